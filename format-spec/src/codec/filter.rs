//! The reversible filter of DELTA_SHUFFLE_LZ4.
//!
//! The content is walked as blocks. A PAGE block (magic, kind PAGE, codec NONE, stored = raw =
//! extent, a multiple of 8, at least a page header, all of it there) gives its block header and
//! page header to the *raw* stream and its records, word by word, to the others; any other whole
//! block goes to the raw stream with its padding; what is no whole block goes there to the end.
//!
//! The low half of a record's header word goes to the *ticks* stream as the zigzag of its
//! difference (in 32 bits) from the page's previous header word; the upper half (type and length)
//! becomes a u16 in the *symbols* stream: its number in a dictionary in order of first appearance
//! in the container. [`ESCAPE`] in its place says that the half itself (u32) is in the raw stream:
//! at its first appearance, which numbers it, and whenever the dictionary (at most
//! [`SYMBOLS_MAX`]) is full. A length word (LONG) goes to the raw stream. The first
//! [`PLACES`] payload words go to the lane `(symbol % KINDS) * PLACES + place`, each either as it
//! is or as the zigzag of its difference from the lane's previous word, whichever took fewer bits
//! lately: with g = leading zeros of the word less leading zeros of that zigzag, the score s
//! (from 0) becomes s + g - s / 16 (truncating) after each word; s > 0 stores the word itself.
//! Further payload words, the words of BUSY and CANCELLED, and everything from PAD, an empty word
//! or a record that does not fit to the end of the extent go to the raw stream. An escaped half
//! that got no number counts as symbol [`ESCAPE`].
//!
//! Filtered bytes: u32 lengths of the streams (raw in bytes; headers; each lane in words), the raw
//! stream, then as bit planes (see SPEC, "Bit planes") symbols (2 bytes), ticks (4 bytes), and the
//! lanes (8 bytes each) in order.

use alloc::vec::Vec;
use zerocopy::FromBytes;

use super::error::CodecError;
use super::lane::{Lane, unzigzag, zigzag};
use super::transpose::{planes, unplanes};
use crate::block::{BLOCK_MAGIC, BlockHeader, codec, kind};
use crate::page::PageHeader;
use crate::record::{self, Header};

/// Payload words of a record that have a lane.
pub const PLACES: usize = 4;
/// Kinds of records that have lanes of their own.
pub const KINDS: usize = 32;
/// Most entries of the dictionary of upper halves.
pub const SYMBOLS_MAX: usize = 4095;
/// Symbol of an upper half that stands in the raw stream.
pub const ESCAPE: u16 = 0xFFFF;

const LANES: usize = PLACES * KINDS;
const TABLE_BYTES: usize = 4 * (2 + LANES);
const FRONT_BYTES: usize = BlockHeader::BYTES + PageHeader::BYTES;

/// Most bytes that `raw_bytes` bytes of content can become: every header word escaped.
#[must_use]
pub const fn filtered_bytes_max(raw_bytes: usize) -> usize {
    TABLE_BYTES + raw_bytes + raw_bytes / 4
}

/// What the next piece of the content is.
enum Piece {
    /// This many bytes as they are.
    Raw(usize),
    /// A page's front, then this many words of records, then padding-free end.
    Page { words: usize },
}

/// Looks at the content's rest through its first bytes (up to 64) and its length.
fn next_piece(front: &[u8], rest: usize) -> Piece {
    let Ok((header, _)) = BlockHeader::read_from_prefix(front) else {
        return Piece::Raw(rest);
    };
    let whole = header.whole_bytes();
    if header.magic != BLOCK_MAGIC || whole > rest {
        return Piece::Raw(rest);
    }
    let extent = header.extent as usize;
    let plain = header.codec == codec::NONE
        && header.stored_bytes == header.extent
        && header.raw_bytes == header.extent;
    if header.kind == kind::PAGE && plain && extent.is_multiple_of(8) && extent >= PageHeader::BYTES
    {
        let words = (extent - PageHeader::BYTES) / 8;
        return Piece::Page { words };
    }
    Piece::Raw(whole)
}

/// The upper halves seen so far: number to half, and an open-addressed table back.
struct Dictionary {
    halves: Vec<u32>,
    slots: Vec<u16>,
}

const DICTIONARY_SLOTS: usize = 8192;

impl Dictionary {
    fn new() -> Self {
        Self {
            halves: Vec::new(),
            slots: alloc::vec![ESCAPE; DICTIONARY_SLOTS],
        }
    }

    fn add(&mut self, half: u32) -> u16 {
        if self.halves.len() == SYMBOLS_MAX {
            return ESCAPE;
        }
        let symbol = self.halves.len() as u16;
        self.halves.push(half);
        symbol
    }

    /// The half's number, or the slot where it would stand.
    fn find(&self, half: u32) -> Result<u16, usize> {
        let mut slot = (half.wrapping_mul(0x9E37_79B1) >> 19) as usize % DICTIONARY_SLOTS;
        loop {
            let symbol = self.slots[slot];
            if symbol == ESCAPE {
                return Err(slot);
            }
            if self.halves[symbol as usize] == half {
                return Ok(symbol);
            }
            slot = (slot + 1) % DICTIONARY_SLOTS;
        }
    }
}

struct Streams {
    raw: Vec<u8>,
    symbols: Vec<u64>,
    ticks: Vec<u64>,
    lanes: Vec<Lane>,
    dictionary: Dictionary,
}

impl Streams {
    fn new() -> Self {
        Self {
            raw: Vec::new(),
            symbols: Vec::new(),
            ticks: Vec::new(),
            lanes: (0..LANES).map(|_| Lane::default()).collect(),
            dictionary: Dictionary::new(),
        }
    }

    fn put_header(&mut self, word: u64, ticks_before: &mut u32) -> u16 {
        let low = word as u32;
        let difference = low.wrapping_sub(*ticks_before) as i32;
        *ticks_before = low;
        let folded = zigzag(i64::from(difference) as u64);
        self.ticks.push(folded & 0xFFFF_FFFF);
        let half = (word >> 32) as u32;
        match self.dictionary.find(half) {
            Ok(symbol) => {
                self.symbols.push(u64::from(symbol));
                symbol
            }
            Err(slot) => {
                self.symbols.push(u64::from(ESCAPE));
                self.raw.extend_from_slice(&half.to_le_bytes());
                let symbol = self.dictionary.add(half);
                self.dictionary.slots[slot] = symbol;
                symbol
            }
        }
    }

    fn write(&self) -> Vec<u8> {
        let words: usize = self.lanes.iter().map(|l| l.codes.len()).sum();
        let bytes = TABLE_BYTES + self.raw.len() + 6 * self.symbols.len() + 8 * words;
        let mut out = Vec::with_capacity(bytes);
        let mut length = |n: usize| out.extend_from_slice(&(n as u32).to_le_bytes());
        length(self.raw.len());
        length(self.symbols.len());
        self.lanes.iter().for_each(|lane| length(lane.codes.len()));
        out.extend_from_slice(&self.raw);
        planes(&self.symbols, 2, &mut out);
        planes(&self.ticks, 4, &mut out);
        for lane in &self.lanes {
            planes(&lane.codes, 8, &mut out);
        }
        out
    }
}

/// What follows a header word: words for the raw stream, words for lanes.
struct Following {
    raw_words: usize,
    lane_words: usize,
}

/// `None`: everything after this header word goes to the raw stream.
fn following(header: u64, length_word: Option<u64>, left: usize) -> Option<Following> {
    let unpacked = record::unpack(header);
    let after = unpacked.words(|| length_word)? - 1 - u64::from(is_long(header));
    let lane_words = match unpacked {
        Header::Record { .. } => after.min(PLACES as u64),
        _ => 0,
    };
    (after <= left as u64).then_some(Following {
        raw_words: (after - lane_words) as usize,
        lane_words: lane_words as usize,
    })
}

/// Whether a length word follows this header word.
const fn is_long(header: u64) -> bool {
    matches!(
        record::unpack(header),
        Header::Record {
            payload_words: None,
            ..
        }
    )
}

const fn lane_of(symbol: u16, place: usize) -> usize {
    (symbol as usize % KINDS) * PLACES + place
}

/// The filtered form of `raw`: at most [`filtered_bytes_max`] bytes.
#[must_use]
pub fn apply(raw: &[u8]) -> Vec<u8> {
    let mut streams = Streams::new();
    let mut rest = raw;
    while !rest.is_empty() {
        let front = &rest[..rest.len().min(BlockHeader::BYTES)];
        match next_piece(front, rest.len()) {
            Piece::Raw(bytes) => {
                let (now, after) = rest.split_at(bytes);
                streams.raw.extend_from_slice(now);
                rest = after;
            }
            Piece::Page { words } => {
                let (now, after) = rest.split_at(FRONT_BYTES);
                let (records, after) = after.split_at(8 * words);
                streams.raw.extend_from_slice(now);
                apply_records(records, &mut streams);
                rest = after;
            }
        }
    }
    streams.write()
}

fn apply_records(records: &[u8], streams: &mut Streams) {
    let (words, _) = records.as_chunks::<8>();
    let mut words = words.iter().map(|w| u64::from_le_bytes(*w));
    let mut ticks_before = 0;
    while let Some(header) = words.next() {
        let symbol = streams.put_header(header, &mut ticks_before);
        let length = if is_long(header) { words.next() } else { None };
        if let Some(length) = length {
            streams.raw.extend_from_slice(&length.to_le_bytes());
        }
        let Some(next) = following(header, length, words.len()) else {
            words.for_each(|w| streams.raw.extend_from_slice(&w.to_le_bytes()));
            return;
        };
        for (place, word) in words.by_ref().take(next.lane_words).enumerate() {
            streams.lanes[lane_of(symbol, place)].put(word);
        }
        for word in words.by_ref().take(next.raw_words) {
            streams.raw.extend_from_slice(&word.to_le_bytes());
        }
    }
}

/// The streams on the way back.
struct Taking<'a> {
    raw: &'a [u8],
    symbols: Vec<u64>,
    ticks: Vec<u64>,
    next: usize,
    lanes: Vec<Lane>,
    dictionary: Vec<u32>,
}

fn take_length<'a>(bytes: &mut &'a [u8]) -> Option<usize> {
    let (length, rest): (&'a [u8; 4], _) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*length) as usize)
}

impl<'a> Taking<'a> {
    fn read(filtered: &'a [u8]) -> Option<Self> {
        let (mut table, rest) = filtered.split_at_checked(TABLE_BYTES)?;
        let raw_bytes = take_length(&mut table)?;
        let headers = take_length(&mut table)?;
        let (raw, rest) = rest.split_at_checked(raw_bytes)?;
        let (symbols, rest) = unplanes(rest, headers, 2)?;
        let (ticks, mut rest) = unplanes(rest, headers, 4)?;
        let mut lanes = Vec::with_capacity(LANES);
        while let Some(length) = take_length(&mut table) {
            let (codes, after) = unplanes(rest, length, 8)?;
            rest = after;
            lanes.push(Lane {
                codes,
                ..Lane::default()
            });
        }
        rest.is_empty().then_some(Self {
            raw,
            symbols,
            ticks,
            next: 0,
            lanes,
            dictionary: Vec::new(),
        })
    }

    fn raw(&mut self, bytes: usize, out: &mut Vec<u8>) -> Option<()> {
        let (now, rest) = self.raw.split_at_checked(bytes)?;
        out.extend_from_slice(now);
        self.raw = rest;
        Some(())
    }

    fn raw_word(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        let (word, rest) = self.raw.split_first_chunk()?;
        self.raw = rest;
        out.extend_from_slice(word);
        Some(u64::from_le_bytes(*word))
    }

    fn header(&mut self, ticks_before: &mut u32) -> Option<(u64, u16)> {
        let mut symbol = *self.symbols.get(self.next)? as u16;
        let difference = unzigzag(*self.ticks.get(self.next)?) as u32;
        self.next += 1;
        *ticks_before = ticks_before.wrapping_add(difference);
        let half = if symbol == ESCAPE {
            let (half, rest) = self.raw.split_first_chunk()?;
            self.raw = rest;
            let half = u32::from_le_bytes(*half);
            if self.dictionary.len() < SYMBOLS_MAX {
                symbol = self.dictionary.len() as u16;
                self.dictionary.push(half);
            }
            half
        } else {
            *self.dictionary.get(symbol as usize)?
        };
        Some((u64::from(half) << 32 | u64::from(*ticks_before), symbol))
    }

    fn is_used_up(&self) -> bool {
        let lanes = self.lanes.iter().all(|l| l.next == l.codes.len());
        self.raw.is_empty() && self.next == self.symbols.len() && lanes
    }
}

/// The `raw_bytes` bytes that `filtered` was made of.
///
/// # Errors
/// [`CodecError::Filter`] if the streams do not give exactly that many; never panics.
pub fn undo(filtered: &[u8], raw_bytes: usize) -> Result<Vec<u8>, CodecError> {
    undo_checked(filtered, raw_bytes).ok_or(CodecError::Filter)
}

fn undo_checked(filtered: &[u8], raw_bytes: usize) -> Option<Vec<u8>> {
    let mut from = Taking::read(filtered)?;
    let mut out = Vec::with_capacity(raw_bytes);
    while out.len() < raw_bytes {
        let left = raw_bytes - out.len();
        let front = from.raw.get(..left.min(BlockHeader::BYTES))?;
        match next_piece(front, left) {
            Piece::Raw(bytes) => from.raw(bytes, &mut out)?,
            Piece::Page { words } => {
                from.raw(FRONT_BYTES, &mut out)?;
                undo_records(&mut from, words, &mut out)?;
            }
        }
    }
    from.is_used_up().then_some(out)
}

fn undo_records(from: &mut Taking<'_>, words: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut left = words;
    let mut ticks_before = 0;
    while left > 0 {
        let (header, symbol) = from.header(&mut ticks_before)?;
        out.extend_from_slice(&header.to_le_bytes());
        left -= 1;
        let mut length = None;
        if is_long(header) && left > 0 {
            length = Some(from.raw_word(out)?);
            left -= 1;
        }
        let Some(next) = following(header, length, left) else {
            return from.raw(8 * left, out);
        };
        left -= next.raw_words + next.lane_words;
        for place in 0..next.lane_words {
            let word = from.lanes[lane_of(symbol, place)].take()?;
            out.extend_from_slice(&word.to_le_bytes());
        }
        from.raw(8 * next.raw_words, out)?;
    }
    Some(())
}
