//! Any processor: the compiler's atomics, and the C library.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{self, Relaxed};

/// Systems have pages of several sizes.
pub(crate) const PAGE_BYTES: usize = 0;
/// Widest bracket of two counter reads around a `clock_gettime` that still makes a good pair.
pub(crate) const fn bracket() -> u64 {
    2048
}
/// Oldest event time that a page's ticks may count from: about a millisecond.
pub(crate) const fn base_age() -> u64 {
    1 << 22
}
/// No clock source is a counter that could be read.
pub(crate) const SOURCE: &str = "none";

/// Nothing to find out.
pub(crate) fn prepare() {}

/// If the word is `expected`, makes it `new`; returns what it was.
///
/// # Safety
/// `word` is an aligned word of an atomic.
#[inline(always)]
pub(crate) unsafe fn replace(word: *mut u64, expected: u64, new: u64, order: Ordering) -> u64 {
    // SAFETY: as the caller promises.
    let word = unsafe { AtomicU64::from_ptr(word) };
    word.compare_exchange(expected, new, order, Relaxed)
        .unwrap_or_else(|found| found)
}

/// Adds 1 to a word; wraps.
///
/// # Safety
/// As [`replace`].
#[inline(always)]
pub(crate) unsafe fn increment(word: *mut u64, order: Ordering) {
    // SAFETY: as the caller promises.
    let word = unsafe { AtomicU64::from_ptr(word) };
    word.fetch_add(1, order);
}

/// Adds 1 to word `AT` from `words` on.
///
/// # Safety
/// As [`replace`], for that word.
#[inline(always)]
pub(crate) unsafe fn increment_in<const AT: usize>(words: *mut u64) {
    // SAFETY: as the caller promises.
    unsafe { increment(words.wrapping_add(AT), Relaxed) };
}

/// Takes 1 from a word; wraps.
///
/// # Safety
/// As [`replace`].
#[inline(always)]
pub(crate) unsafe fn decrement(word: *mut u64, order: Ordering) {
    // SAFETY: as the caller promises.
    let word = unsafe { AtomicU64::from_ptr(word) };
    word.fetch_sub(1, order);
}

/// Adds `more` to a word; returns what it was.
///
/// # Safety
/// As [`replace`].
#[inline(always)]
pub(crate) unsafe fn add(word: *mut u64, more: u64) -> u64 {
    // SAFETY: as the caller promises.
    let word = unsafe { AtomicU64::from_ptr(word) };
    word.fetch_add(more, Relaxed)
}

/// Zeroes `words` words.
///
/// # Safety
/// They are words of atomics.
pub(crate) unsafe fn zero(to: *mut u64, words: usize) {
    for at in 0..words {
        // SAFETY: as the caller promises.
        let word = unsafe { AtomicU64::from_ptr(to.wrapping_add(at)) };
        word.store(0, Relaxed);
    }
}

/// Copies `words` words.
///
/// # Safety
/// `from` are words of atomics, `to` are the caller's own, and they do not overlap.
pub(crate) unsafe fn copy(from: *const u64, to: *mut u64, words: usize) {
    for at in 0..words {
        // SAFETY: as the caller promises; it is only read.
        let word = unsafe { AtomicU64::from_ptr(from.wrapping_add(at).cast_mut()) };
        // SAFETY: as the caller promises.
        unsafe { to.wrapping_add(at).write(word.load(Relaxed)) };
    }
}

/// None: the system's clock stands for it.
#[inline(always)]
pub(crate) fn counter() -> Option<u64> {
    None
}

/// Nothing is known of a counter.
pub(crate) fn is_invariant(_source: &str) -> bool {
    false
}

/// There is no counter.
pub(crate) const fn hertz() -> Option<u64> {
    None
}

/// Enters the kernel by the C library. `errno` is as it was.
///
/// # Safety
/// As the call requires.
pub(crate) unsafe fn syscall(number: i64, [first, second, third, fourth]: [u64; 4]) -> i64 {
    // SAFETY: no argument.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the place of this thread's `errno`, which is there as long as the thread.
    let errno = unsafe { &mut *errno };
    let before = *errno;
    // SAFETY: the caller keeps to the rules of the call.
    let result = unsafe { libc::syscall(number, first, second, third, fourth) };
    let result = if result == -1 {
        -i64::from(*errno)
    } else {
        result
    };
    *errno = before;
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "no system calls there")]
    fn the_kernel_is_asked_by_the_c_library_and_errno_stays() {
        let errno = || std::io::Error::last_os_error().raw_os_error();
        // SAFETY: closes nothing.
        let close = || unsafe { syscall(libc::SYS_close, [u64::MAX, 0, 0, 0]) };
        let before = errno();
        assert_eq!(close(), -i64::from(libc::EBADF));
        assert_eq!(errno(), before);
        // SAFETY: no arguments.
        let own = unsafe { syscall(libc::SYS_getpid, [0; 4]) };
        assert_eq!(own, i64::from(std::process::id()));
    }
}
