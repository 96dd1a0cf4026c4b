//! Blocks: what a trace file, a pipe and a stream are made of.
//!
//! A block says how long it is and what session it belongs to, so that a reader can skip any block
//! and find the next one after damage.

use crate::align::align8;

/// First bytes of a block, and so of a trace file.
pub const BLOCK_MAGIC: [u8; 4] = *b"RMKB";

/// Kinds of blocks. Unknown kinds are skipped by their length.
pub mod kind {
    /// Session header and attributes, as in the ring file.
    pub const SESSION: u16 = 1;
    /// A piece of the schema stream; `page_number` is its offset in the stream.
    pub const SCHEMA: u16 = 2;
    /// The first `extent` bytes of a page.
    pub const PAGE: u16 = 3;
    /// Counters and a clock sample.
    pub const COUNTERS: u16 = 4;
    /// Several blocks under one codec. Containers do not nest.
    pub const CONTAINER: u16 = 5;
    /// The clocks of the session's host compared with the collector's.
    pub const HOST_CLOCK: u16 = 6;
    /// What a segment of a store holds; in a file next to the segment, never in a trace file.
    pub const INDEX: u16 = 7;
    /// From when on the pages after it are shown.
    pub const WINDOW: u16 = 8;
    /// How the session ended.
    pub const ENDING: u16 = 9;
    /// The spans that a thread had open when its session was copied.
    pub const OPEN_SPANS: u16 = 10;
    /// How far the host has come with sending the session.
    pub const PROGRESS: u16 = 11;
    /// What a segment that is an object holds of which host.
    pub const FOOTER: u16 = 12;
    /// When the threads of the session's process got a processor and left it.
    pub const SWITCHES: u16 = 13;
    /// What the threads of the session's process were seen waiting for.
    pub const WAITS: u16 = 14;
    /// Where the threads of the session's process ran.
    pub const SAMPLES: u16 = 15;
}

/// How a block's content is stored.
pub mod codec {
    /// As it is.
    pub const NONE: u8 = 0;
    /// LZ4 block format.
    pub const LZ4: u8 = 1;
    /// LZ4 after the reversible delta and shuffle of the records (SPEC, "Codecs").
    pub const DELTA_SHUFFLE_LZ4: u8 = 2;
}

/// Flag of [`BlockHeader::flags`]: the page is sealed, no record will be added.
pub const SEALED: u8 = 1;

/// Whether the page of a PAGE block will get more records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageState {
    /// It is complete: the writer has opened the next one.
    Sealed,
    /// Its writer may add records; a later block has more of it.
    Open,
}

impl PageState {
    /// The flags of a PAGE block in this state.
    #[must_use]
    pub const fn flags(self) -> u8 {
        match self {
            Self::Sealed => SEALED,
            Self::Open => 0,
        }
    }

    /// The state that the flags of a PAGE block tell; other flags are ignored.
    #[must_use]
    pub const fn of_flags(flags: u8) -> Self {
        match flags & SEALED {
            0 => Self::Open,
            _ => Self::Sealed,
        }
    }
}

/// Most bytes the content of a block may have, before and after its codec.
pub const CONTENT_BYTES_MAX: u32 = 4 << 20;

layout! {
    /// In front of every block's content. The content is followed by zeros up to a multiple of 8.
    pub struct BlockHeader: 64 {
        /// [`BLOCK_MAGIC`].
        0 magic: [u8; 4],
        /// See [`kind`].
        4 kind: u16,
        /// See [`codec`]; anything but NONE only on containers.
        6 codec: u8,
        /// See [`SEALED`].
        7 flags: u8,
        /// Identity of the session.
        8 session: [u8; 16],
        /// PAGE: ring id. Else 0.
        24 ring_id: u64,
        /// PAGE: page number. SCHEMA: offset in the stream. Else 0.
        32 page_number: u64,
        /// PAGE: bytes of the page that are here, from its start. Else 0.
        40 extent: u32,
        /// PAGE: size of the whole page. Else 0.
        44 page_bytes: u32,
        /// Bytes of content as stored.
        48 stored_bytes: u32,
        /// Bytes of content before the codec.
        52 raw_bytes: u32,
        /// CRC-32 (IEEE) of the content as stored.
        56 content_crc: u32,
        /// CRC-32 (IEEE) of the 60 bytes before.
        60 header_crc: u32,
    }
}

impl BlockHeader {
    /// Bytes of the whole block: header, content as stored, and padding; a multiple of 8.
    #[must_use]
    pub const fn whole_bytes(&self) -> usize {
        Self::BYTES + align8(self.stored_bytes as usize)
    }
}

layout! {
    /// Content of a WINDOW block: which part of the session's pages after it is shown.
    pub struct Window: 16 {
        /// `CLOCK_MONOTONIC` of the session from when on events are shown, ns.
        0 from_mono_ns: u64,
        /// Zero.
        8 reserved: u64,
    }
}
