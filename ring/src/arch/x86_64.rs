//! x86-64.
//!
//! An instruction is never interrupted halfway by a signal, so that a read-modify-write needs no `lock` prefix where no
//! other thread writes the word. Each store publishes what was stored before it.
//!
//! # Why each block of assembly is sound
//!
//! 1. It reads and writes only the words that its caller answers for. Another process may change them at any time.
//! 2. It uses no stack and leaves the direction flag clear, as it found it.

use core::arch::asm;
use core::sync::atomic::Ordering;

/// Bytes of a page of the system.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Widest bracket of two counter reads around a `clock_gettime` that still makes a good pair.
pub(crate) const fn bracket() -> u64 {
    2048
}
/// Oldest event time that a page's ticks may count from: about a millisecond.
pub(crate) const fn base_age() -> u64 {
    1 << 22
}
/// What the kernel calls its clock source where that is the counter.
pub(crate) const SOURCE: &str = "tsc";

/// Nothing to find out: every x86-64 processor has what is used here.
pub(crate) fn prepare() {}

/// If the word is `expected`, makes it `new`; returns what it was. Any order: each store has it.
///
/// # Safety
/// `word` is an aligned word of an atomic, and no other thread writes it.
#[inline(always)]
pub(crate) unsafe fn replace(word: *mut u64, expected: u64, new: u64, _order: Ordering) -> u64 {
    let found: u64;
    // SAFETY: reasons 1 and 2: the instruction reads and writes exactly these 8 bytes.
    unsafe {
        asm!(
            "cmpxchg qword ptr [{word}], {new}",
            word = in(reg) word,
            new = in(reg) new,
            inout("rax") expected => found,
            options(nostack),
        );
    }
    found
}

/// Adds 1 to a word; wraps. Any order: each store has it.
///
/// # Safety
/// As [`replace`].
#[inline(always)]
pub(crate) unsafe fn increment(word: *mut u64, _order: Ordering) {
    // SAFETY: reasons 1 and 2: the instruction reads and writes exactly these 8 bytes.
    unsafe { asm!("inc qword ptr [{word}]", word = in(reg) word, options(nostack)) }
}

/// Adds 1 to word `AT` from `words` on, with the place as part of the instruction.
///
/// # Safety
/// As [`replace`], for that word.
#[inline(always)]
pub(crate) unsafe fn increment_in<const AT: usize>(words: *mut u64) {
    // SAFETY: reasons 1 and 2: the instruction reads and writes exactly that word.
    unsafe {
        asm!(
            "inc qword ptr [{words} + {at}]",
            words = in(reg) words,
            at = const AT * 8,
            options(nostack),
        );
    }
}

/// Takes 1 from a word; wraps. Any order: each store has it.
///
/// # Safety
/// As [`replace`].
#[inline(always)]
pub(crate) unsafe fn decrement(word: *mut u64, _order: Ordering) {
    // SAFETY: reasons 1 and 2: the instruction reads and writes exactly these 8 bytes.
    unsafe { asm!("dec qword ptr [{word}]", word = in(reg) word, options(nostack)) }
}

/// Adds `more` to a word; returns what it was.
///
/// # Safety
/// As [`replace`].
#[inline(always)]
pub(crate) unsafe fn add(word: *mut u64, more: u64) -> u64 {
    let was: u64;
    // SAFETY: reasons 1 and 2: the instruction reads and writes exactly these 8 bytes.
    unsafe {
        asm!(
            "xadd qword ptr [{word}], {more}",
            word = in(reg) word,
            more = inout(reg) more => was,
            options(nostack),
        );
    }
    was
}

/// Zeroes `words` words by one string instruction: four times faster than a loop of stores, and like them whole for
/// each word.
///
/// # Safety
/// They are words of atomics.
pub(crate) unsafe fn zero(to: *mut u64, words: usize) {
    // SAFETY: reasons 1 and 2: writes exactly that many words.
    unsafe {
        asm!(
            "rep stosq",
            inout("rcx") words => _,
            inout("rdi") to => _,
            in("rax") 0_u64,
            options(nostack, preserves_flags),
        );
    }
}

/// Copies `words` words by one string instruction: half the time of a loop of loads when the words come from memory.
///
/// # Safety
/// `from` are words of atomics, `to` are the caller's own, and they do not overlap.
pub(crate) unsafe fn copy(from: *const u64, to: *mut u64, words: usize) {
    // SAFETY: reasons 1 and 2: reads and writes exactly that many words.
    unsafe {
        asm!(
            "rep movsq",
            inout("rcx") words => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags),
        );
    }
}

/// The time stamp counter.
#[inline(always)]
pub(crate) fn counter() -> Option<u64> {
    // SAFETY: reading the counter touches no memory; every x86-64 processor has it.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

/// Whether a clock source that is not the counter says nothing against it: that of a hypervisor, or none.
pub(crate) fn is_invariant(source: &str) -> bool {
    matches!(source, "kvm-clock" | "")
        && core::arch::x86_64::__cpuid(0x8000_0000).eax >= 0x8000_0007
        && core::arch::x86_64::__cpuid(0x8000_0007).edx & (1 << 8) != 0
}

/// The counter does not state its rate: it is not asked for.
pub(crate) const fn hertz() -> Option<u64> {
    None
}

/// Enters the kernel, which returns its result.
///
/// # Safety
/// As the call requires.
pub(crate) unsafe fn syscall(number: i64, [first, second, third, fourth]: [u64; 4]) -> i64 {
    let result: i64;
    // SAFETY: the caller keeps to the rules of the call, which changes these registers, and memory as the arguments
    // say.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            in("r10") fourth,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}
