//! Signals that wait: no handler runs on the thread meanwhile, so none leaves by a jump what is half done,
//! and none switches to another coroutine in the middle of it.
//!
//! # Invariants
//!
//! 1. The system call reads one word and writes one word, and the kernel is told that size. What changes
//!    is the signal mask of the calling thread alone.

use ringmark_ring::raw;

/// Those that an instruction raises itself: where one of these is blocked, the kernel ends the process.
const SYNCHRONOUS: [i32; 6] = [
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGSYS,
];

/// The calling thread's signals wait while this lives. Where a filter of system calls forbids it, they
/// come.
#[derive(Debug)]
pub struct HeldSignals {
    before: Option<u64>,
}

impl HeldSignals {
    /// Holds them from now on.
    #[must_use]
    pub fn hold() -> Self {
        let held = SYNCHRONOUS
            .iter()
            .fold(u64::MAX, |set, signal| set & !(1 << (signal - 1)));
        Self {
            before: set_mask(held),
        }
    }

    /// The signals that were blocked before; `None`: they are now, as none could be held.
    pub(super) const fn blocked_before(&self) -> Option<u64> {
        self.before
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            set_mask(before);
        }
    }
}

/// Sets the signal mask of the calling thread. Returns the one before it.
fn set_mask(mask: u64) -> Option<u64> {
    let mut before = 0_u64;
    let (new, old) = (&raw const mask as u64, &raw mut before as u64);
    let arguments = [libc::SIG_SETMASK as u64, new, old, size_of::<u64>() as u64];
    // SAFETY: invariant 1: two locals.
    let done = unsafe { raw::syscall(libc::SYS_rt_sigprocmask, arguments) };
    (done == 0).then_some(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_wait_and_come_again_but_those_of_faults() {
        let bit = |signal: i32| 1_u64 << (signal - 1);
        let mask = || {
            let all = set_mask(u64::MAX).expect("a mask");
            set_mask(all).map(|_| all).expect("a mask")
        };
        let before = mask();
        let held = HeldSignals::hold();
        for signal in SYNCHRONOUS {
            assert_eq!(mask() & bit(signal), 0, "signal {signal}");
        }
        assert_ne!(mask() & bit(libc::SIGALRM), 0);
        drop(held);
        assert_eq!(mask(), before);
    }
}
