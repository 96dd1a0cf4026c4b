//! What the threads of a session know of waits for room together. The mark of a wait in vain lies in
//! the ring file, where the other copies of the library in the process find it.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Those of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitMarks<'s> {
    /// What all rings had released together, and one more, when a wait came to its end in vain;
    /// 0: none has, or a page was released since.
    pub(super) in_vain: &'s AtomicU64,
    /// When it was last asked whether another process consumes this session, and whether a wait is in
    /// vain in another one, on the monotonic clock; 0: never.
    pub(super) asked_ns: &'s AtomicU64,
}

impl WaitMarks<'_> {
    /// Whether a wait came to its end in vain, and no ring has released a page since. `released` sums
    /// up what all rings have.
    pub(super) fn are_in_vain(&self, released: impl FnOnce() -> u64) -> bool {
        let mark = self.in_vain.load(Relaxed);
        if mark == 0 {
            return false;
        }
        if mark == mark_of(released()) {
            return true;
        }
        let _ = self.in_vain.compare_exchange(mark, 0, Relaxed, Relaxed);
        false
    }

    /// Notes that a wait came to its end in vain.
    pub(super) fn was_in_vain(&self, released: u64) {
        self.in_vain.store(mark_of(released), Relaxed);
    }

    /// Whether it was asked after this time, and the answer was that a thread may wait.
    pub(super) fn was_asked_after(&self, ns: u64) -> bool {
        self.asked_ns.load(Relaxed) > ns
    }

    /// Notes that the answer of this time is good for a while.
    pub(super) fn ask_again_from(&self, ns: u64) {
        self.asked_ns.store(ns, Relaxed);
    }
}

/// The mark of a wait in vain when all rings had released this many pages. Never 0.
pub(super) fn mark_of(released: u64) -> u64 {
    released.wrapping_add(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_in_vain_counts_until_a_page_is_released() {
        let [in_vain, asked_ns] = [AtomicU64::new(0), AtomicU64::new(0)];
        let marks = WaitMarks {
            in_vain: &in_vain,
            asked_ns: &asked_ns,
        };
        assert!(!marks.are_in_vain(|| 7));
        marks.was_in_vain(7);
        assert!(marks.are_in_vain(|| 7));
        assert!(!marks.are_in_vain(|| 8));
        assert!(
            !marks.are_in_vain(|| 7),
            "what was released counts for good"
        );
    }
}
