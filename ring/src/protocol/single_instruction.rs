//! Single-instruction updates: whole for a signal handler on the same thread, without the cost of
//! a bus lock, because no other thread writes the word.
//!
//! A signal is delivered between two instructions, never inside one. So a read-modify-write that is
//! one instruction cannot be split by a handler, even without the `lock` prefix that other
//! processors would need. On x86-64 that prefix costs about twenty cycles, on each event.
//!
//! What they are not: atomic between threads. Two threads that increment the same word lose
//! counts. A word that they update has one writing thread, and any number of reading ones: an
//! aligned store of 8 bytes is whole for them.
//!
//! On other processors, under Miri and under loom the same functions are real atomic operations,
//! with the same result and another price.
//!
//! # Why each block of assembly is sound
//!
//! 1. It reads and writes only the words that it is given, which are aligned and live behind
//!    references to atomics. Another process may change them at any time, as atomics allow.
//! 2. It uses no stack and leaves the direction flag clear, as it found it.

use core::sync::atomic::Ordering;

use crate::protocol::sync::{AtomicU64, private};

/// If `word` is 0, makes it `new` and returns 0; else changes nothing and returns what it is.
///
/// Whole for signals on this thread. Other threads and processes may only read `word`. It orders
/// nothing for them: what `new` announces is published by a later store.
#[inline(always)]
pub fn mark_if_empty(word: &AtomicU64, new: u64) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    {
        let found: u64;
        // SAFETY: reasons 1 and 2: the instruction reads and writes exactly these 8 bytes.
        unsafe {
            core::arch::asm!(
                "cmpxchg qword ptr [{word}], {new}",
                word = in(reg) word.as_ptr(),
                new = in(reg) new,
                inout("rax") 0u64 => found,
                options(nostack),
            );
        }
        found
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    {
        use core::sync::atomic::Ordering::Relaxed;
        word.compare_exchange(0, new, Relaxed, Relaxed)
            .unwrap_or_else(|found| found)
    }
}

/// Adds 1 to a private word; wraps. Whole for signals on this thread; no other thread writes it.
#[inline(always)]
pub fn increment(word: &private::AtomicU64) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: reasons 1 and 2: the instruction reads and writes exactly these 8 bytes.
    unsafe {
        core::arch::asm!("inc qword ptr [{word}]", word = in(reg) word.as_ptr(), options(nostack));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    word.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
}

/// Adds 1 to word `AT` of these: as [`increment`], with the place as part of the instruction. So
/// several counts of one writer need one register.
#[inline(always)]
pub fn increment_in<const AT: usize, const N: usize>(words: &[private::AtomicU64; N]) {
    const { assert!(AT < N) };
    #[cfg(all(target_arch = "x86_64", not(miri), not(steps)))]
    // SAFETY: reasons 1 and 2: the instruction reads and writes word `AT`, which is below `N`.
    unsafe {
        core::arch::asm!(
            "inc qword ptr [{words} + {at}]",
            words = in(reg) words.as_ptr(),
            at = const AT * 8,
            options(nostack),
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri), not(steps))))]
    increment(&words[AT]);
}

/// Adds 1 to a word that other threads and processes may read, and no other one writes. They see
/// the old value or the new one, and nothing about the order with other words.
#[inline(always)]
pub fn increment_shared(word: &AtomicU64) {
    #[cfg(not(loom))]
    increment(word);
    #[cfg(loom)]
    word.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
}

/// Takes 1 from such a word: as [`increment_shared`].
#[inline(always)]
pub fn decrement_shared(word: &AtomicU64) {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    // SAFETY: reasons 1 and 2: the instruction reads and writes exactly these 8 bytes.
    unsafe {
        core::arch::asm!("dec qword ptr [{word}]", word = in(reg) word.as_ptr(), options(nostack));
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    word.fetch_sub(1, core::sync::atomic::Ordering::Relaxed);
}

/// Adds `more` to a word that other threads and processes may read, and no other one writes;
/// returns what it was. Whole for signals on this thread.
#[inline(always)]
pub fn add_shared(word: &AtomicU64, more: u64) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    {
        let was: u64;
        // SAFETY: reasons 1 and 2: the instruction reads and writes exactly these 8 bytes.
        unsafe {
            core::arch::asm!(
                "xadd qword ptr [{word}], {more}",
                word = in(reg) word.as_ptr(),
                more = inout(reg) more => was,
                options(nostack),
            );
        }
        was
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    word.fetch_add(more, core::sync::atomic::Ordering::Relaxed)
}

/// If `word` is `expected`, makes it `new`; returns what it was. As [`mark_if_empty`], but what was
/// stored before it is published by it, as `order` says: on x86-64 every store does that.
#[inline(always)]
pub fn replace(word: &AtomicU64, expected: u64, new: u64, order: Ordering) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    {
        let found: u64;
        // SAFETY: reasons 1 and 2: the instruction reads and writes exactly these 8 bytes.
        unsafe {
            core::arch::asm!(
                "cmpxchg qword ptr [{word}], {new}",
                word = in(reg) word.as_ptr(),
                new = in(reg) new,
                inout("rax") expected => found,
                options(nostack),
            );
        }
        let _ = order;
        found
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    {
        word.compare_exchange(expected, new, order, Ordering::Relaxed)
            .unwrap_or_else(|found| found)
    }
}

/// Zeroes words that other threads and processes may read. One string instruction: four times
/// faster than a loop of relaxed stores, and like them whole for each word.
///
/// A handler may come between two words of it. For other processors the words may become zero in
/// any order: the caller has announced before that the words are not to be read (`[W1]`).
pub fn zero(words: &[AtomicU64]) {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    // SAFETY: reasons 1 and 2: writes exactly `words.len()` words.
    unsafe {
        core::arch::asm!(
            "rep stosq",
            inout("rcx") words.len() => _,
            inout("rdi") words.as_ptr() => _,
            in("rax") 0_u64,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    for word in words {
        word.store(0, core::sync::atomic::Ordering::Relaxed);
    }
}

/// Copies words that their writer has left: one string instruction, half the time of a loop of
/// relaxed loads when the words come from memory.
///
/// If a word is written during the copy, the copy must be thrown away; the page's generation tells.
/// `to` must be as long as `from`, else nothing happens.
pub fn copy(from: &[AtomicU64], to: &mut [u64]) {
    if from.len() != to.len() {
        return;
    }
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    // SAFETY: reasons 1 and 2: reads and writes exactly `to.len()` words, and those that it writes
    // are exclusively borrowed.
    unsafe {
        core::arch::asm!(
            "rep movsq",
            inout("rcx") to.len() => _,
            inout("rsi") from.as_ptr() => _,
            inout("rdi") to.as_mut_ptr() => _,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.load(core::sync::atomic::Ordering::Relaxed);
    }
}
