//! Single-instruction updates: whole for a signal handler on the same thread, without the cost of
//! a bus lock, because no other thread writes the word.

use crate::protocol::sync::AtomicU64;

/// If `word` is 0, makes it `new` and returns 0; else returns what it is.
///
/// Whole with regard to signals on this thread. Other threads and processes may only read `word`.
#[inline(always)]
pub fn mark_if_empty(word: &AtomicU64, new: u64) -> u64 {
    #[cfg(steps)]
    crate::protocol::steps::between();
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    {
        let found: u64;
        // SAFETY: `word` is a live, aligned u64 behind a shared reference to an atomic; the
        // instruction reads and writes exactly these 8 bytes.
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

/// Adds 1 to a private word. Whole with regard to signals; no other thread may write it.
#[inline(always)]
pub fn increment(word: &core::sync::atomic::AtomicU64) {
    #[cfg(steps)]
    crate::protocol::steps::between();
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: `word` is a live, aligned u64 behind a shared reference to an atomic; the
    // instruction reads and writes exactly these 8 bytes.
    unsafe {
        core::arch::asm!("inc qword ptr [{word}]", word = in(reg) word.as_ptr(), options(nostack));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    word.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
}

/// Adds 1 to word `AT` of these. The same as [`increment`], with the place in the instruction.
#[inline(always)]
pub fn increment_in<const AT: usize, const N: usize>(words: &[core::sync::atomic::AtomicU64; N]) {
    const { assert!(AT < N) };
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: as for `increment`: the instruction reads and writes word `AT`, which is there.
    unsafe {
        core::arch::asm!(
            "inc qword ptr [{words} + {at}]",
            words = in(reg) words.as_ptr(),
            at = const AT * 8,
            options(nostack),
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    increment(&words[AT]);
}

/// Adds 1 to a word that other threads and processes may read.
#[inline(always)]
pub fn increment_shared(word: &AtomicU64) {
    #[cfg(not(loom))]
    increment(word);
    #[cfg(loom)]
    word.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
}

/// Zeroes words that other threads and processes may read. One string instruction: four times
/// faster than a loop of relaxed stores, and like them whole for each word.
pub fn zero(words: &[AtomicU64]) {
    #[cfg(steps)]
    crate::protocol::steps::between();
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    // SAFETY: writes exactly `words.len()` aligned words behind shared references to atomics; the
    // direction flag is clear at every asm block.
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
/// relaxed loads when the words come from memory. A copy beside which a word was written must be
/// thrown away; the page's generation tells. `to` must be as long as `from`, else nothing happens.
pub fn copy(from: &[AtomicU64], to: &mut [u64]) {
    if from.len() != to.len() {
        return;
    }
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    // SAFETY: reads and writes exactly `to.len()` aligned words, of which the ones written to are
    // exclusively borrowed; the direction flag is clear at every asm block.
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
