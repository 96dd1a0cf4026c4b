//! Calls that were traced and left no record, by function type: for budgets, which know the others
//! from the pages. Counted in the slow way, where all of them pass.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32};

use ringmark_format::function::LAST_NUMBER;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// Start of the counts; null while no tracer has a budget.
static COUNTS: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// Makes the counts, once. Untouched parts take no memory. `false`: there is no room.
pub(crate) fn prepare() -> bool {
    if !COUNTS.load(Acquire).is_null() {
        return true;
    }
    let bytes = (LAST_NUMBER as usize + 1) * size_of::<u32>();
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, flags) };
    let Ok(start) = start else { return false };
    COUNTS.store(start.cast(), Release);
    true
}

fn count_of(number: u32) -> Option<&'static AtomicU32> {
    let start = COUNTS.load(Relaxed);
    if start.is_null() {
        return None;
    }
    // SAFETY: the counts are there for every number, and never unmapped.
    Some(unsafe { &*start.wrapping_add((number & LAST_NUMBER) as usize) })
}

/// Counts one call. Threads that count at the same time may count one call together: an estimate is
/// not worth a locked instruction.
pub(crate) fn add(number: u32) {
    if let Some(count) = count_of(number) {
        count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// Calls so far; wraps around.
pub(crate) fn get(number: u32) -> u32 {
    count_of(number).map_or(0, |count| count.load(Relaxed))
}
