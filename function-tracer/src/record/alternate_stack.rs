//! Tells a thread's alternate signal stack from the stacks of coroutines. The kernel knows it; it is
//! asked once for each page that a traced function is entered on.

use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::{AtomicU64, compiler_fence};

use super::true_returns;
use super::x86_64::alternate_stack;

/// Bits of an address in a page.
const PAGE_BITS: u32 = 12;
/// Pages that are remembered.
const PAGES: usize = 4096;

/// Pages that are no alternate stack of the thread that has asked, in the order of their numbers: the
/// page's number with the address of the thread's [`AlternateStack`] in other bits. Two with one
/// place are asked for in turn.
static ELSEWHERE: [AtomicU64; PAGES] = [const { AtomicU64::new(0) }; PAGES];

/// What a thread knows of the stacks it runs on beside its own. All zero at first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct AlternateStack {
    /// Lowest address of the alternate signal stack, where a traced function has run on it.
    pub(super) low: AtomicU64,
    /// Bytes of that stack; 0: unknown.
    pub(super) bytes: AtomicU64,
}

impl AlternateStack {
    /// Whether `slot`, which is not on the thread's own stack, lies on this one, and calls there can
    /// be opened. It asks about the calling thread.
    pub(super) fn holds(&self, slot: u64) -> bool {
        let is_inside = |low: u64, bytes: u64| slot.wrapping_sub(low) < bytes;
        if is_inside(self.low.load(Relaxed), self.bytes.load(Relaxed)) {
            return true;
        }
        let page = slot >> PAGE_BITS;
        let place = &ELSEWHERE[page as usize % PAGES];
        let asked = page ^ (core::ptr::from_ref(self) as u64).rotate_left(32);
        if place.load(Relaxed) != asked {
            let stack = alternate_stack().filter(|(low, bytes)| is_inside(*low, *bytes));
            let usable = |(low, bytes): &(u64, u64)| true_returns::prepare(*low, *bytes);
            if let Some((low, bytes)) = stack.filter(usable) {
                self.bytes.store(0, Relaxed);
                compiler_fence(Release); // A handler finds no range, or a whole one.
                self.low.store(low, Relaxed);
                compiler_fence(Release);
                self.bytes.store(bytes, Relaxed);
                return true;
            }
            place.store(asked, Relaxed);
        }
        false
    }
}
