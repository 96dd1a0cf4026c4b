//! aarch64.
//!
//! A read-modify-write is one instruction where the processor has LSE atomics (ARMv8.1), and a loop of exclusive
//! accesses where it has not. Both are whole for signal handlers: the kernel's return from one clears the monitor, so
//! that the store fails and the loop begins again. A debugger that steps through the loop does not come to its end,
//! for the same reason.
//!
//! The result of an addition goes into a register although nobody reads it: thrown away, the instruction would be
//! `stadd`, which some processors carry out at the far end of the cache hierarchy.
//!
//! Stores become visible in any order: what has to be published says so by `order`.
//!
//! # Why each block of assembly is sound
//!
//! 1. It reads and writes only the words that its caller answers for. Another process may change them at any time.
//! 2. It uses no stack.
//! 3. The processor has LSE where [`has_lse`] says so.

use core::arch::asm;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{self, Relaxed};

pub(crate) use super::any::{copy, zero};

/// Systems have pages of several sizes.
pub(crate) const PAGE_BYTES: usize = 0;
/// Widest bracket of two counter reads around a `clock_gettime` that still makes a good pair: 2 us.
pub(crate) fn bracket() -> u64 {
    stated_hertz() / 500_000
}
/// Oldest event time that a page's ticks may count from: a millisecond.
pub(crate) fn base_age() -> u64 {
    stated_hertz() / 1000
}
/// What the kernel calls its clock source where that is the counter.
pub(crate) const SOURCE: &str = "arch_sys_counter";

/// Whether the processor has LSE atomics; `false` until [`prepare`] has looked, which is right on every processor.
static LSE: AtomicBool = AtomicBool::new(false);

/// Looks whether the processor has LSE atomics: the kernel says so.
pub(crate) fn prepare() {
    // SAFETY: reads what the kernel told the process at its start.
    let capabilities = unsafe { libc::getauxval(libc::AT_HWCAP) };
    LSE.store(capabilities & libc::HWCAP_ATOMICS != 0, Relaxed);
}

#[inline(always)]
fn has_lse() -> bool {
    cfg!(target_feature = "lse") || LSE.load(Relaxed)
}

/// An instruction of the two orders that writers use: `Release` and weaker ones.
macro_rules! ordered {
    ($order:expr, $relaxed:expr, $release:expr) => {
        match $order {
            Relaxed => $relaxed,
            _ => $release,
        }
    };
}

macro_rules! cas {
    ($instruction:literal, $word:expr, $expected:expr, $new:expr) => {{
        let found: u64;
        // SAFETY: reasons 1 to 3: the instruction reads and writes exactly these 8 bytes.
        unsafe {
            asm!(
                ".arch_extension lse",
                concat!($instruction, " {found}, {new}, [{word}]"),
                word = in(reg) $word,
                new = in(reg) $new,
                found = inout(reg) $expected => found,
                options(nostack, preserves_flags),
            );
        }
        found
    }};
}

macro_rules! exclusive_cas {
    ($store:literal, $word:expr, $expected:expr, $new:expr) => {{
        let found: u64;
        // SAFETY: reasons 1 and 2: the instructions read and write exactly these 8 bytes.
        unsafe {
            asm!(
                "2: ldxr {found}, [{word}]",
                "cmp {found}, {expected}",
                "b.ne 3f",
                concat!($store, " {failed:w}, {new}, [{word}]"),
                "cbnz {failed:w}, 2b",
                "3:",
                word = in(reg) $word,
                expected = in(reg) $expected,
                new = in(reg) $new,
                found = out(reg) found,
                failed = out(reg) _,
                options(nostack),
            );
        }
        found
    }};
}

macro_rules! ldadd {
    ($instruction:literal, $word:expr, $more:expr) => {{
        let was: u64;
        // SAFETY: reasons 1 to 3: the instruction reads and writes exactly these 8 bytes.
        unsafe {
            asm!(
                ".arch_extension lse",
                concat!($instruction, " {more}, {was}, [{word}]"),
                word = in(reg) $word,
                more = in(reg) $more,
                was = out(reg) was,
                options(nostack, preserves_flags),
            );
        }
        was
    }};
}

macro_rules! exclusive_add {
    ($store:literal, $word:expr, $more:expr) => {{
        let was: u64;
        // SAFETY: reasons 1 and 2: the instructions read and write exactly these 8 bytes.
        unsafe {
            asm!(
                "2: ldxr {was}, [{word}]",
                "add {sum}, {was}, {more}",
                concat!($store, " {failed:w}, {sum}, [{word}]"),
                "cbnz {failed:w}, 2b",
                word = in(reg) $word,
                more = in(reg) $more,
                was = out(reg) was,
                sum = out(reg) _,
                failed = out(reg) _,
                options(nostack, preserves_flags),
            );
        }
        was
    }};
}

/// If the word is `expected`, makes it `new`; returns what it was.
///
/// # Safety
/// `word` is an aligned word of an atomic, and no other thread writes it.
#[inline(always)]
pub(crate) unsafe fn replace(word: *mut u64, expected: u64, new: u64, order: Ordering) -> u64 {
    if has_lse() {
        ordered!(
            order,
            cas!("cas", word, expected, new),
            cas!("casl", word, expected, new)
        )
    } else {
        ordered!(
            order,
            exclusive_cas!("stxr", word, expected, new),
            exclusive_cas!("stlxr", word, expected, new)
        )
    }
}

/// Adds to a word; returns what it was.
///
/// # Safety
/// As [`replace`].
#[inline(always)]
unsafe fn add_ordered(word: *mut u64, more: u64, order: Ordering) -> u64 {
    if has_lse() {
        ordered!(
            order,
            ldadd!("ldadd", word, more),
            ldadd!("ldaddl", word, more)
        )
    } else {
        ordered!(
            order,
            exclusive_add!("stxr", word, more),
            exclusive_add!("stlxr", word, more)
        )
    }
}

/// Adds 1 to a word; wraps.
///
/// # Safety
/// As [`replace`].
#[inline(always)]
pub(crate) unsafe fn increment(word: *mut u64, order: Ordering) {
    // SAFETY: as the caller promises.
    let _ = unsafe { add_ordered(word, 1, order) };
}

/// Adds 1 to word `AT` from `words` on.
///
/// # Safety
/// As [`replace`], for that word.
#[inline(always)]
pub(crate) unsafe fn increment_in<const AT: usize>(words: *mut u64) {
    // SAFETY: as the caller promises.
    let _ = unsafe { add_ordered(words.wrapping_add(AT), 1, Relaxed) };
}

/// Takes 1 from a word; wraps.
///
/// # Safety
/// As [`replace`].
#[inline(always)]
pub(crate) unsafe fn decrement(word: *mut u64, order: Ordering) {
    // SAFETY: as the caller promises.
    let _ = unsafe { add_ordered(word, u64::MAX, order) };
}

/// Adds `more` to a word; returns what it was.
///
/// # Safety
/// As [`replace`].
#[inline(always)]
pub(crate) unsafe fn add(word: *mut u64, more: u64) -> u64 {
    // SAFETY: as the caller promises.
    unsafe { add_ordered(word, more, Relaxed) }
}

/// The virtual counter, which Linux lets every program read.
#[inline(always)]
pub(crate) fn counter() -> Option<u64> {
    let ticks: u64;
    // SAFETY: touches no memory. The compiler is not told so: two reads must not become one.
    unsafe {
        asm!("mrs {ticks}, cntvct_el0", ticks = out(reg) ticks, options(nostack, preserves_flags));
    }
    Some(ticks)
}

/// Whether a clock source that is not the counter says nothing against it: that of a hypervisor, of the host of an
/// emulated processor, or none. The architecture has one counter for all processors, at one rate, that never stops.
pub(crate) fn is_invariant(source: &str) -> bool {
    matches!(source, "kvm-clock" | "tsc" | "")
}

/// Ticks of the counter in a second, as the firmware states them; `None`: it does not.
pub(crate) fn hertz() -> Option<u64> {
    Some(stated_hertz()).filter(|hertz| *hertz > 0)
}

fn stated_hertz() -> u64 {
    let hertz: u64;
    // SAFETY: reads a register that Linux lets every program read.
    unsafe {
        asm!("mrs {hertz}, cntfrq_el0", hertz = out(reg) hertz, options(nomem, nostack, preserves_flags));
    }
    hertz
}

/// Enters the kernel, which returns its result and changes no other register.
///
/// # Safety
/// As the call requires.
pub(crate) unsafe fn syscall(number: i64, [first, second, third, fourth]: [u64; 4]) -> i64 {
    let result: i64;
    // SAFETY: the caller keeps to the rules of the call.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") first => result,
            in("x1") second,
            in("x2") third,
            in("x3") fourth,
            options(nostack),
        );
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways, where the processor has both.
    fn each_way(check: impl Fn()) {
        LSE.store(false, Relaxed);
        check();
        prepare();
        check();
    }

    #[test]
    fn a_word_is_replaced_if_it_is_the_expected_one() {
        each_way(|| {
            for order in [Relaxed, Ordering::Release] {
                let mut word = 7_u64;
                // SAFETY: a word of this test.
                let found = unsafe { replace(&raw mut word, 8, 9, order) };
                assert_eq!((found, word), (7, 7));
                // SAFETY: as above.
                let found = unsafe { replace(&raw mut word, 7, 9, order) };
                assert_eq!((found, word), (7, 9));
            }
        });
    }

    #[test]
    fn words_are_counted_and_wrap() {
        each_way(|| {
            for order in [Relaxed, Ordering::Release] {
                let mut words = [0_u64, u64::MAX];
                // SAFETY: words of this test.
                unsafe { increment(&raw mut words[0], order) };
                // SAFETY: as above.
                unsafe { increment_in::<1>(words.as_mut_ptr()) };
                assert_eq!(words, [1, 0]);
                // SAFETY: as above.
                unsafe { decrement(&raw mut words[1], order) };
                // SAFETY: as above.
                let was = unsafe { add(&raw mut words[0], 41) };
                assert_eq!((was, words), (1, [42, u64::MAX]));
            }
        });
    }

    #[test]
    fn the_counter_goes_on_at_the_rate_that_it_states() {
        let [from, to] = [(); 2].map(|()| {
            let tick = counter().expect("a counter");
            let end = std::time::Duration::from_millis(20);
            std::thread::sleep(end);
            tick
        });
        let (ticks, hertz) = (to - from, hertz().expect("a rate"));
        assert!(ticks >= hertz / 100, "{ticks} ticks of {hertz} Hz in 20 ms");
    }
}
