//! When a thread without a ring tries again: after one was freed, and otherwise at intervals. Looking
//! at every slot for every lost event would slow the program.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ringmark_format::counters::Cause;

use crate::thread_block;

/// Rings that became free, so far.
static FREED: AtomicU64 = AtomicU64::new(0);
/// Lost events between two tries: a reader that drains a sealed ring, and a file system that has room
/// again, tell no thread.
const LOOK_EVERY: u64 = 64;
const CAUSE_BITS: u32 = 8;
const TRIES_BITS: u32 = 8;
const TRY: u64 = 1 << CAUSE_BITS;

/// Lets threads without a ring look again: there may be one now.
pub(super) fn ring_freed() {
    FREED.fetch_add(1, Relaxed);
}

/// To be read before looking for a ring.
pub(super) fn freed() -> u64 {
    FREED.load(Relaxed)
}

/// Remembers that this thread found no ring, and why. `freed` was read before it looked.
pub(super) fn remember(cause: Cause, freed: u64) {
    thread_block::set_failure(freed << (CAUSE_BITS + TRIES_BITS) | (1 + cause as u64));
}

/// Why this thread has no ring, if it need not look again for the present event.
pub(super) fn known() -> Option<Cause> {
    let failure = thread_block::failure();
    let cause = match (failure % TRY).checked_sub(1)? {
        cause if cause == Cause::NoMemory as u64 => Cause::NoMemory,
        _ => Cause::NoRing,
    };
    let before = failure >> (CAUSE_BITS + TRIES_BITS);
    let tries = failure >> CAUSE_BITS & ((1 << TRIES_BITS) - 1);
    if before != freed() & (u64::MAX >> (CAUSE_BITS + TRIES_BITS)) || tries + 1 >= LOOK_EVERY {
        return None;
    }
    thread_block::set_failure(failure + TRY);
    Some(cause)
}
