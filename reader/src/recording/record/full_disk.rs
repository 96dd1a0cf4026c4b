//! A full disk: a recorder that may wait for space tries again from time to time.

use std::time::{Duration, Instant};

/// How long to wait before a full disk is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Whether a recorder waits for space. It does from a failed write until pages were written.
#[derive(Debug, Default)]
pub(super) struct FullDisk {
    retry_at: Option<Instant>,
    is_known: bool,
}

impl FullDisk {
    /// Notes that a write found no space; returns whether one before it had.
    pub(super) fn begin_wait(&mut self) -> bool {
        self.retry_at = Some(Instant::now() + RETRY_AFTER);
        std::mem::replace(&mut self.is_known, true)
    }

    /// How long to wait until the disk is tried again; `None`: nothing is to be waited for.
    pub(super) fn wait_left(&self) -> Option<Duration> {
        let at = self.retry_at?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    /// Whether a pass may write now. The wait for its time has then ended.
    pub(super) fn may_try(&mut self) -> bool {
        let may_try = self.wait_left().is_none_or(|left| left.is_zero());
        if may_try {
            self.retry_at = None;
        }
        may_try
    }

    /// Notes that pages were written.
    pub(super) fn wrote(&mut self) {
        self.is_known = false;
    }

    /// Whether nothing was written since there was no space.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wait_is_known_until_pages_were_written() {
        let mut disk = FullDisk::default();
        assert!(disk.may_try() && !disk.begin_wait());
        assert!(disk.is_known() && disk.wait_left().is_some());
        assert!(disk.begin_wait(), "the same wait goes on");
        disk.retry_at = Some(Instant::now());
        assert!(disk.may_try() && disk.wait_left().is_none() && disk.is_known());
        disk.wrote();
        assert!(!disk.begin_wait(), "a new wait");
    }
}
