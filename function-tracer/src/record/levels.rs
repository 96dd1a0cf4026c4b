//! Selection of calls by the open calls around them: up to a depth, and inside a function.
//!
//! The *level* of a call is the number of open calls around it that the tracer has opened. A call that is
//! not selected is not opened, so it is no level, and nothing has to be undone when it ends, however
//! that comes about. Such a tracer is the only one that is on, so that all calls that are opened are its own.
//!
//! Calls that were open when the selection came into force are no levels: a thread notes with its first call
//! after that how many they are (see [`super::open_calls::Block::level`]).
//!
//! The stubs of `x86_64::select_stubs` decide by [`GENERATION`], [`LEAST`] and [`SPAN`].

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use super::thread_memory::OpenCall;

/// How often a selection came into force; 0: none did.
pub(crate) static GENERATION: AtomicU64 = AtomicU64::new(0);

/// The lowest level of selected calls, as bytes of places; of calls that may be the outermost one it is 0.
pub(crate) static LEAST: AtomicU64 = AtomicU64::new(0);

/// How many levels of selected calls there are from that on, as bytes of places.
pub(crate) static SPAN: AtomicU64 = AtomicU64::new(0);

/// Levels of the calls that are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Levels {
    /// The lowest of them.
    pub(crate) least: u32,
    /// The first that is too deep.
    pub(crate) end: u32,
}

const fn bytes(levels: u32) -> u64 {
    levels as u64 * size_of::<OpenCall>() as u64
}

impl Levels {
    /// Whether calls of this level are selected.
    pub(super) fn have(self, level: u32) -> bool {
        (self.least..self.end).contains(&level)
    }

    /// Whether these are the levels that the stubs decide by.
    pub(crate) fn are_common(self) -> bool {
        bytes(self.least) == LEAST.load(Relaxed)
    }

    /// Has the stubs decide by these levels. `is_new`: calls that are open now are no levels. Called by the
    /// control path only, by one thread at a time.
    pub(crate) fn come_into_force(self, is_new: bool) {
        LEAST.store(bytes(self.least), Relaxed);
        SPAN.store(bytes(self.end.saturating_sub(self.least)), Relaxed);
        if is_new {
            GENERATION.store(GENERATION.load(Relaxed) + 1, Relaxed);
        }
    }
}

/// The present generation.
pub(super) fn generation() -> u64 {
    GENERATION.load(Relaxed)
}

/// The level of a call on another stack, with its generation, as a word of 32 bits.
pub(super) fn packed(level: u32) -> u32 {
    (generation() as u32) << 16 | level.min(0xFFFF)
}

/// The level in such a word, if it is of the present generation.
pub(super) fn unpacked(word: u32) -> Option<u32> {
    (word >> 16 == generation() as u32 & 0xFFFF).then_some(word & 0xFFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_of_its_generation() {
        let inside = Levels { least: 1, end: 3 };
        assert_eq!(
            [0, 1, 2, 3].map(|n| inside.have(n)),
            [false, true, true, false]
        );
        let word = packed(70_000);
        assert_eq!(
            (unpacked(word), unpacked(packed(3))),
            (Some(0xFFFF), Some(3))
        );
        inside.come_into_force(true);
        assert!(inside.are_common() && !Levels { least: 0, end: 3 }.are_common());
        assert_eq!(unpacked(word), None);
    }
}
