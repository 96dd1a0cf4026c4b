//! The stack of open spans: what each thread is in, since when, with which arguments.
//!
//! A span of shape Span becomes one record when it ends. Until then it stands in a *frame* of its
//! thread's stack, which lies in the ring file and so outlives the program. The producer writes
//! frames, readers copy them, and a trace file carries the copies in blocks of kind OPEN_SPANS.

use crate::ids::TypeId;

/// Frames of a stack: spans that are open beyond them are only counted.
pub const FRAMES: u32 = 63;
/// Size of a stack in the ring file: its header and [`FRAMES`] frames.
pub const STACK_BYTES: u64 = 4096;
/// Words of a span's payload that a frame holds at most.
pub const KEPT_WORDS: u32 = 6;
/// `head` of a frame that was never used. Others that are free hold the serial number of their last
/// span, which is less than 2^32.
pub const FREE: u64 = 0;
/// Bit of `head`: the frame is being filled.
pub const CLAIMED: u64 = 1 << 61;
/// Bit of `head`: the frame is filled.
pub const FILLED: u64 = 1 << 63;
/// Bit of `head`: the span ends with the block of code that it began in.
pub const LEXICAL: u64 = 1 << 62;
/// Flag of [`OpenSpans::flags`]: the stack changed while it was copied. All frames that are there
/// were open throughout; others may be missing.
pub const MOVING: u32 = 1;

/// A shorter wait for a ring is none to speak of, in ns.
pub const RING_WAIT_NS: u64 = 1_000_000;

/// `tick` of [`OpenSpans`] where the session had ended: its process was dead, or had closed it.
pub const ENDED_SESSION: u64 = u64::MAX;

const TYPE_SHIFT: u32 = 32;
const WORDS_SHIFT: u32 = 56;

layout! {
    /// Start of a thread's stack of open spans. [`FRAMES`] frames follow.
    pub struct StackHeader: 64 {
        /// Zero.
        0 unused: u64,
        /// Spans that are open beyond the frames.
        8 over: u64,
        /// Spans that began beyond the frames, by all owners of the stack.
        16 over_begun: u64,
        /// Zero.
        24 reserved: [u64; 5],
    }
}

layout! {
    /// A frame: one open span.
    pub struct Frame: 64 {
        /// What the frame holds, see [`Head`]; stored last, with Release.
        0 head: u64,
        /// Tick at which the span began, or was entered.
        8 tick: u64,
        /// What the record's payload begins with; for shape Span without the duration.
        16 payload: [u64; 6],
    }
}

layout! {
    /// Content of an OPEN_SPANS block: the stack of one thread. `frames` [`Frame`]s follow, the
    /// outermost span first, all of them FILLED.
    pub struct OpenSpans: 64 {
        /// Ring id of the thread's claim; 0: no thread had a span open.
        0 ring_id: u64,
        /// Tick at which all stacks of the session were copied; [`ENDED_SESSION`] after its end.
        8 tick: u64,
        /// Spans that are open beyond the frames.
        16 over: u64,
        /// Thread id of the owner, in its pid namespace.
        24 tid: u32,
        /// Slot in the ring directory.
        28 slot: u32,
        /// Name of the owner thread as it was seen last, zero-padded.
        32 thread_name: [u8; 16],
        /// Frames that follow.
        48 frames: u32,
        /// Bit 0: the stack changed while it was copied ([`MOVING`]).
        52 flags: u32,
        /// Longest time that an owner of the ring waited for it, at its first record, in ns.
        56 ring_wait_ns: u64,
    }
}

/// The `head` of a filled frame, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Event type of the span.
    pub type_id: TypeId,
    /// Words of the payload that the frame holds: 0 to [`KEPT_WORDS`].
    pub words: u32,
    /// How many spans this frame has had, this one included; low 32 bits. No two spans of a frame
    /// have the same head, but for one in 2^32.
    pub serial: u32,
    /// Whether the span ends with the block of code that it began in.
    pub lexical: bool,
}

impl Head {
    /// The word that stands in the frame.
    #[inline]
    #[must_use]
    pub const fn pack(self) -> u64 {
        let lexical = if self.lexical { LEXICAL } else { 0 };
        FILLED
            | lexical
            | (self.words as u64) << WORDS_SHIFT
            | (self.type_id.0 as u64) << TYPE_SHIFT
            | self.serial as u64
    }

    /// Takes a frame's `head` apart. `None`: it is free, being filled, or its span has ended, or
    /// it is damaged.
    #[inline]
    #[must_use]
    pub const fn unpack(head: u64) -> Option<Self> {
        let words = (head >> WORDS_SHIFT) as u32 & 7;
        if head & FILLED == 0 || words > KEPT_WORDS {
            return None;
        }
        Some(Self {
            type_id: TypeId((head >> TYPE_SHIFT) as u32 & 0xFF_FFFF),
            words,
            serial: head as u32,
            lexical: head & LEXICAL != 0,
        })
    }
}

const _: () = assert!(
    StackHeader::BYTES as u64 + FRAMES as u64 * Frame::BYTES as u64 == STACK_BYTES
        && size_of::<[u64; KEPT_WORDS as usize]>() == Frame::BYTES - 16
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_what_was_packed() {
        for (words, lexical) in [(0, false), (1, true), (KEPT_WORDS, false)] {
            for (type_id, serial) in [(16, 0), (0xFF_FFFF, u32::MAX), (0x80_0001, 7)] {
                let type_id = TypeId(type_id);
                let head = Head {
                    type_id,
                    words,
                    serial,
                    lexical,
                };
                assert_eq!(Head::unpack(head.pack()), Some(head));
                assert_ne!(head.pack(), FREE);
            }
        }
    }

    #[test]
    fn what_is_no_open_span_has_no_head() {
        let too_long = FILLED | u64::from(KEPT_WORDS + 1) << WORDS_SHIFT;
        for word in [FREE, 2, 1, LEXICAL, CLAIMED | 7, too_long, FILLED - 1] {
            assert_eq!(Head::unpack(word), None, "{word:#x}");
        }
    }
}
