//! A record: one header word, then payload in 8-byte words.
//!
//! Header word of a committed record: bits `0..32` ticks since the page's base, `32..56` type id,
//! `56..64` payload length in words; [`LONG`] there means that the next word holds the length.
//! Header word of BUSY, CANCELLED and PAD: bits `0..32` length of the whole record in words (header
//! included), `32..56` the reserved type. A zero word: nothing here yet.

use crate::ids::TypeId;

/// Value of the length byte with which the next word holds the payload length, in words.
pub const LONG: u64 = 255;
/// Closes a page to its end.
pub const PAD: u32 = 1;
/// Reserved and not committed: the writer is at work, or it died.
pub const BUSY: u32 = 2;
/// Reserved and cancelled.
pub const CANCELLED: u32 = 3;
/// One payload word: the full tick of the record that follows. Reserved and committed with it.
pub const TIME_EXTEND: u32 = 4;
/// First type id for event types; smaller ones are reserved by the format.
pub const FIRST_TYPE: u32 = 16;
/// Largest event type id. Ids with bit 23 set are types of function records.
pub const LAST_TYPE: u32 = (1 << 23) - 1;
/// Bit of a type id that marks a type of function records.
pub const FUNCTION_BIT: u32 = 1 << 23;
/// Words of a TIME_EXTEND record.
pub const TIME_EXTEND_WORDS: u64 = 2;

/// Header word of a committed record with `payload_words` words of payload. `ticks` counts from
/// the tick base of the page. From [`LONG`] words on, the next word must hold the length.
#[inline]
#[must_use]
pub const fn pack(ticks: u32, type_id: TypeId, payload_words: u64) -> u64 {
    let length = if payload_words < LONG {
        payload_words
    } else {
        LONG
    };
    ticks as u64 | ((type_id.0 as u64) << 32) | (length << 56)
}

/// Header word of BUSY, CANCELLED or PAD over `words` words, header included. `words` has 32 bits.
#[inline]
#[must_use]
pub const fn pack_span(reserved_type: u32, words: u64) -> u64 {
    (words & 0xFFFF_FFFF) | ((reserved_type as u64) << 32)
}

/// Words that a record with `payload_words` words of payload takes, header and length word
/// included.
#[inline]
#[must_use]
pub const fn record_words(payload_words: u64) -> u64 {
    if payload_words < LONG {
        1 + payload_words
    } else {
        2 + payload_words
    }
}

/// Payload words of the largest record that fits a page of `page_bytes` bytes after a time
/// extension.
#[must_use]
pub const fn payload_words_max(page_bytes: u32) -> u64 {
    let words = (page_bytes as u64 - crate::page::PageHeader::BYTES as u64) / 8;
    words - TIME_EXTEND_WORDS - 2
}

/// What one header word says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// Nothing here yet.
    Empty,
    /// The rest of the page holds no records.
    Pad,
    /// Reserved over this many words, not committed.
    Busy(u64),
    /// Reserved over this many words and cancelled.
    Cancelled(u64),
    /// A committed record.
    Record {
        /// Ticks since the page's base.
        ticks: u32,
        /// Event type (or TIME_EXTEND).
        type_id: TypeId,
        /// Payload words; `None`: the next word holds the number.
        payload_words: Option<u64>,
    },
}

impl Header {
    /// Words of the whole record, header included. `next` gives the word after the header and is
    /// called if that holds the length. `None`: no record starts here (EMPTY, PAD), or its length
    /// is none that a record can have: 0, not there, or more than a `u64` counts.
    #[inline]
    #[must_use]
    pub fn words(self, next: impl FnOnce() -> Option<u64>) -> Option<u64> {
        match self {
            Self::Empty | Self::Pad | Self::Busy(0) | Self::Cancelled(0) => None,
            Self::Busy(words) | Self::Cancelled(words) => Some(words),
            Self::Record {
                payload_words: Some(words),
                ..
            } => Some(1 + words),
            Self::Record {
                payload_words: None,
                ..
            } => next()?.checked_add(2),
        }
    }
}

/// Takes a header word apart.
#[inline]
#[must_use]
pub const fn unpack(word: u64) -> Header {
    if word == 0 {
        return Header::Empty;
    }
    let low = word as u32;
    let type_id = (word >> 32) as u32 & 0xFF_FFFF;
    let length = word >> 56;
    match type_id {
        PAD => Header::Pad,
        BUSY => Header::Busy(low as u64),
        CANCELLED => Header::Cancelled(low as u64),
        _ => Header::Record {
            ticks: low,
            type_id: TypeId(type_id),
            payload_words: if length == LONG { None } else { Some(length) },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(header: u64, next: Option<u64>) -> Option<u64> {
        unpack(header).words(|| next)
    }

    #[test]
    fn a_record_is_as_long_as_its_writer_made_it() {
        for payload in [0, 1, 7, LONG - 1, LONG, LONG + 1, 1 << 20] {
            let header = pack(5, TypeId(FIRST_TYPE), payload);
            let found = words(header, Some(payload));
            assert_eq!(found, Some(record_words(payload)), "{payload} words");
        }
        for reserved in [BUSY, CANCELLED] {
            for span in [1, 2, 4096, u64::from(u32::MAX)] {
                assert_eq!(words(pack_span(reserved, span), None), Some(span));
            }
        }
    }

    #[test]
    fn the_next_word_is_read_only_where_it_is_the_length() {
        let short = pack(5, TypeId(FIRST_TYPE), LONG - 1);
        for header in [0, short, pack_span(PAD, 9), pack_span(BUSY, 9)] {
            let _ = unpack(header).words(|| unreachable!("asked for the length"));
        }
    }

    #[test]
    fn what_is_no_length_is_none() {
        assert_eq!(words(0, Some(1)), None);
        for reserved in [PAD, BUSY, CANCELLED] {
            assert_eq!(words(pack_span(reserved, 0), Some(1)), None);
        }
        let long = pack(0, TypeId(FIRST_TYPE), LONG);
        assert_eq!(words(long, None), None);
        assert_eq!(words(long, Some(u64::MAX - 2)), Some(u64::MAX));
        assert_eq!(words(long, Some(u64::MAX - 1)), None);
    }
}
