//! Turns of the helper thread that the loader's thread waits for. None of our locks is held: the
//! loader's thread waits for a word, and the helper thread changes it. The loader's own lock is held:
//! what needs it waits, too.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use ringmark::__private::helper;
use ringmark::client::monotonic_ns;
use rustix::thread::{Timespec, futex};

/// Turns that were asked for; the last of them that the helper thread began, and ended.
static ASKED: AtomicU32 = AtomicU32::new(0);
static BEGUN: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicU32 = AtomicU32::new(0);
/// Turns that were not waited for to the end.
static LATE: AtomicU32 = AtomicU32::new(0);

/// How long the loader's thread waits for a turn to begin, and to end once it has begun. A turn reads
/// the files of new modules, which takes a second for the largest.
const BEGIN_NS: u64 = 1_000_000_000;
const END_NS: u64 = 5_000_000_000;
/// How often the helper thread is woken again, should it have missed it.
const AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 2_000_000,
};

/// Has the helper thread look at the loader's list, and waits until it has. Without a helper thread
/// nothing happens. After a turn that came late no thread waits until one has ended.
pub(super) fn take() {
    let before = ASKED.load(Relaxed);
    let turn = before.wrapping_add(1);
    ASKED.store(turn, Release);
    let limit = match ENDED.load(Acquire) == before {
        true => BEGIN_NS,
        false => 0,
    };
    if helper::wake() && !is_ended_within(turn, limit) {
        LATE.fetch_add(1, Relaxed);
    }
}

fn is_ended_within(turn: u32, begin_ns: u64) -> bool {
    let from = monotonic_ns();
    loop {
        let ended = ENDED.load(Acquire);
        if is_reached(ended, turn) {
            return true;
        }
        let limit = match is_reached(BEGUN.load(Acquire), turn) {
            true if begin_ns > 0 => END_NS,
            _ => begin_ns,
        };
        if monotonic_ns().saturating_sub(from) >= limit {
            return false;
        }
        let _ = futex::wait(&ENDED, futex::Flags::PRIVATE, ended, Some(&AGAIN));
        // Without it no turn comes any more.
        if !helper::wake() {
            return false;
        }
    }
}

/// Whether a count that wraps around has come to `turn`.
fn is_reached(count: u32, turn: u32) -> bool {
    count.wrapping_sub(turn) < u32::MAX / 2
}

/// The turn that the helper thread begins.
pub(crate) fn begin() -> u32 {
    let turn = ASKED.load(Acquire);
    BEGUN.store(turn, Release);
    turn
}

/// Ends a turn: the sites of all modules that were mapped before it follow the tracers.
pub(crate) fn end(turn: u32) {
    if ENDED.swap(turn, Release) != turn {
        let _ = futex::wake(&ENDED, futex::Flags::PRIVATE, i32::MAX as u32);
    }
}

/// Number of turns that came late: calls of modules that were just mapped may be missing.
pub(crate) fn late() -> u64 {
    LATE.load(Relaxed).into()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// One test: the turns are of the whole process.
    #[test]
    fn turns_are_waited_for_within_limits() {
        // No session, no helper thread, no wait: that would be in vain, and counted.
        take();
        assert_eq!(late(), 0);
        let turn = begin();
        end(turn);
        let waiter = thread::spawn(move || is_ended_within(turn, 30 * BEGIN_NS));
        assert!(waiter.join().expect("it ends"), "it was ended");
        assert!(!is_ended_within(turn.wrapping_add(1), 1_000_000));
        assert!(!is_ended_within(turn.wrapping_add(1), 0), "at once");
        assert!(is_reached(0, u32::MAX) && !is_reached(u32::MAX, 0));
    }
}
