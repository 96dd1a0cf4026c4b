//! What the scheduler says of a thread.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::time::{ClockId, clock_gettime};

/// What a thread got of the processors since it began (`/proc/PID/task/TID/schedstat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Schedule {
    /// How long it ran, in ns.
    pub(crate) ran_ns: u64,
    /// How long it could have run and had no processor, in ns.
    pub(crate) ready_ns: u64,
    /// How often it got a processor.
    pub(crate) turns: u64,
}

impl Schedule {
    /// Reads an open `schedstat`.
    ///
    /// # Errors
    /// The thread has ended.
    pub(crate) fn read(file: &File) -> io::Result<Self> {
        let mut bytes = [0; 96];
        let came = file.read_at(&mut bytes, 0)?;
        let text = std::str::from_utf8(&bytes[..came]).unwrap_or_default();
        Self::parse(text).ok_or_else(|| io::Error::other(format!("schedstat: found {text:?}")))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok();
        Some(Self {
            ran_ns: next()?,
            ready_ns: next()?,
            turns: next()?,
        })
    }

    /// What came since `before`.
    pub(crate) const fn since(self, before: Self) -> Self {
        Self {
            ran_ns: self.ran_ns.saturating_sub(before.ran_ns),
            ready_ns: self.ready_ns.saturating_sub(before.ready_ns),
            turns: self.turns.saturating_sub(before.turns),
        }
    }
}

/// The clock that the kernel notes switches by.
pub(crate) fn mono_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::Schedule;

    #[test]
    fn three_numbers_are_read_and_nothing_else() {
        let read = Schedule::parse("12 34 5\n");
        let expected = Schedule {
            ran_ns: 12,
            ready_ns: 34,
            turns: 5,
        };
        assert_eq!(read, Some(expected));
        for text in ["", "1 2", "1 2 x", "-1 2 3"] {
            assert_eq!(Schedule::parse(text), None, "{text:?}");
        }
    }
}
