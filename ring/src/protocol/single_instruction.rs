//! Single-instruction updates: whole for a signal handler on the same thread, without the cost of
//! a bus lock, because no other thread writes the word.
//!
//! A signal is delivered between two instructions, never inside one. So a read-modify-write that is
//! one instruction cannot be split by a handler, even without the `lock` prefix that other
//! processors would need. On x86-64 that prefix costs about twenty cycles, on each event.
//! `arch` has the instructions of each processor.
//!
//! What they are not: atomic between threads. Two threads that increment the same word lose
//! counts. A word that they update has one writing thread, and any number of reading ones: an
//! aligned store of 8 bytes is whole for them.
//!
//! On processors that `arch` does not know, under Miri and under loom the same functions are real atomic operations,
//! with the same result and another price.
//!
//! # Why each call of `arch` is sound
//!
//! 1. It reads and writes only the words that it is given, which are aligned and live behind
//!    references to atomics. Another process may change them at any time, as atomics allow.
//! 2. Words that are changed have one writing thread: that is what these functions are for.

use core::sync::atomic::Ordering;
use core::sync::atomic::Ordering::Relaxed;

use crate::arch;
use crate::protocol::sync::{AtomicU64, private};

/// If `word` is 0, makes it `new` and returns 0; else changes nothing and returns what it is.
///
/// Whole for signals on this thread. Other threads and processes may only read `word`. It orders
/// nothing for them: what `new` announces is published by a later store.
#[inline(always)]
pub fn mark_if_empty(word: &AtomicU64, new: u64) -> u64 {
    replace(word, 0, new, Relaxed)
}

/// Adds 1 to a private word; wraps. Whole for signals on this thread; no other thread writes it.
#[inline(always)]
pub fn increment(word: &private::AtomicU64) {
    // SAFETY: reasons 1 and 2.
    unsafe { arch::increment(word.as_ptr(), Relaxed) };
}

/// Adds 1 to word `AT` of these: as [`increment`], with the place as part of the instruction. So
/// several counts of one writer need one register.
#[inline(always)]
pub fn increment_in<const AT: usize, const N: usize>(words: &[private::AtomicU64; N]) {
    const { assert!(AT < N) };
    #[cfg(not(steps))]
    // SAFETY: reasons 1 and 2: word `AT` is below `N`.
    unsafe {
        arch::increment_in::<AT>(words.as_ptr().cast_mut().cast());
    }
    #[cfg(steps)]
    increment(&words[AT]);
}

/// Adds 1 to a word that other threads and processes may read, and no other one writes. They see
/// the old value or the new one, and what was stored before it as `order` says.
#[inline(always)]
pub fn increment_shared(word: &AtomicU64, order: Ordering) {
    #[cfg(not(loom))]
    // SAFETY: reasons 1 and 2.
    unsafe {
        arch::increment(word.as_ptr(), order);
    }
    #[cfg(loom)]
    word.fetch_add(1, order);
}

/// Takes 1 from such a word: as [`increment_shared`].
#[inline(always)]
pub fn decrement_shared(word: &AtomicU64, order: Ordering) {
    #[cfg(not(loom))]
    // SAFETY: reasons 1 and 2.
    unsafe {
        arch::decrement(word.as_ptr(), order);
    }
    #[cfg(loom)]
    word.fetch_sub(1, order);
}

/// Adds `more` to a word that other threads and processes may read, and no other one writes;
/// returns what it was. Whole for signals on this thread.
#[inline(always)]
pub fn add_shared(word: &AtomicU64, more: u64) -> u64 {
    #[cfg(not(loom))]
    // SAFETY: reasons 1 and 2.
    unsafe {
        arch::add(word.as_ptr(), more)
    }
    #[cfg(loom)]
    word.fetch_add(more, Relaxed)
}

/// If `word` is `expected`, makes it `new`; returns what it was. As [`mark_if_empty`], but what was
/// stored before it is published by it, as `order` says: on x86-64 every store does that.
#[inline(always)]
pub fn replace(word: &AtomicU64, expected: u64, new: u64, order: Ordering) -> u64 {
    #[cfg(not(loom))]
    // SAFETY: reasons 1 and 2.
    unsafe {
        arch::replace(word.as_ptr(), expected, new, order)
    }
    #[cfg(loom)]
    word.compare_exchange(expected, new, order, Relaxed)
        .unwrap_or_else(|found| found)
}

/// Zeroes words that other threads and processes may read: whole for each word.
///
/// A handler may come between two words of it. For other processors the words may become zero in
/// any order: the caller has announced before that the words are not to be read (`[W1]`).
pub fn zero(words: &[AtomicU64]) {
    #[cfg(not(loom))]
    // SAFETY: reason 1: writes exactly these words.
    unsafe {
        arch::zero(words.as_ptr().cast_mut().cast(), words.len());
    }
    #[cfg(loom)]
    for word in words {
        word.store(0, Relaxed);
    }
}

/// Copies words that their writer has left.
///
/// If a word is written during the copy, the copy must be thrown away; the page's generation tells.
/// `to` must be as long as `from`, else nothing happens.
pub fn copy(from: &[AtomicU64], to: &mut [u64]) {
    if from.len() != to.len() {
        return;
    }
    #[cfg(not(loom))]
    // SAFETY: reason 1: reads and writes exactly `to.len()` words, and those that it writes are
    // exclusively borrowed.
    unsafe {
        arch::copy(from.as_ptr().cast(), to.as_mut_ptr(), to.len());
    }
    #[cfg(loom)]
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.load(Relaxed);
    }
}
