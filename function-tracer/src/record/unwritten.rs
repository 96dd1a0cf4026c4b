//! Numbers of traced calls that left no record, by function type. Budgets need them; they know the
//! other calls from pages. The slow way counts them, because all such calls take it.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32};

use ringmark_format::function::LAST_NUMBER;
use rustix::mm::MapFlags;

use super::own_memory;

/// Start of the counts; null until a tracer has a budget.
pub(super) static COUNTS: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// Makes the counts on the first call. Untouched parts take no memory. `false`: there is none.
pub(crate) fn prepare() -> bool {
    if !COUNTS.load(Acquire).is_null() {
        return true;
    }
    let bytes = (LAST_NUMBER as usize + 1) * size_of::<u32>();
    let start = own_memory::map(ptr::null_mut(), bytes, MapFlags::empty());
    let Some(start) = start else { return false };
    COUNTS.store(start.cast(), Release);
    true
}

fn count_of(number: u32) -> Option<&'static AtomicU32> {
    let start = COUNTS.load(Relaxed);
    if start.is_null() {
        return None;
    }
    // SAFETY: record invariants 1, 2 and 4; there is a count for every number.
    Some(unsafe { &*start.wrapping_add((number & LAST_NUMBER) as usize) })
}

/// Counts one call. Threads that count at the same time may count one call together, because an
/// estimate is not worth a locked instruction.
pub(crate) fn add(number: u32) {
    if let Some(count) = count_of(number) {
        count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// Number of calls of a type so far; wraps around.
pub(crate) fn get(number: u32) -> u32 {
    count_of(number).map_or(0, |count| count.load(Relaxed))
}
