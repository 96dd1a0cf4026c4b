//! Changes of words that one thread and its signal handlers write. Each is one instruction, and
//! none is locked.

use core::arch::asm;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// Adds to a counter that only this thread writes.
#[inline]
pub(crate) fn add(counter: &AtomicU64, more: u64) {
    // SAFETY: the word of an atomic is writable; a handler runs before the instruction or after it.
    unsafe {
        asm!(
            "add qword ptr [{counter}], {more}",
            counter = in(reg) counter.as_ptr(),
            more = in(reg) more,
            options(nostack),
        );
    }
}

/// Raises a word that only this thread writes to `value` if it is less.
#[inline]
pub(crate) fn raise(word: &AtomicU64, value: u64) {
    let mut found = word.load(Relaxed);
    while found < value {
        let expected = found;
        // SAFETY: as in `add`.
        unsafe {
            asm!(
                "cmpxchg qword ptr [{word}], {value}",
                word = in(reg) word.as_ptr(),
                value = in(reg) value,
                inout("rax") expected => found,
                options(nostack),
            );
        }
        if found == expected {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_grow_and_words_rise() {
        let word = AtomicU64::new(5);
        add(&word, 7);
        assert_eq!(word.load(Relaxed), 12);
        raise(&word, 11);
        assert_eq!(word.load(Relaxed), 12);
        raise(&word, u64::MAX);
        assert_eq!(word.load(Relaxed), u64::MAX);
    }
}
