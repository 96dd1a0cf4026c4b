//! The files of a store that are no segments: its identity, and the index of each segment.

layout! {
    /// The file `store.id`, which makes a directory a store.
    pub struct StoreId: 32 {
        /// [`STORE_MAGIC`].
        0 magic: [u8; 8],
        /// Version of the store, 1. A collector refuses a newer one by name.
        8 version: u32,
        /// Zero.
        12 reserved: u32,
        /// Identity of the store.
        16 id: [u8; 16],
    }
}

/// First bytes of `store.id`.
pub const STORE_MAGIC: [u8; 8] = *b"RMKSTORE";
/// Version of the store: what its directories, its file names and its index files mean.
pub const STORE_VERSION: u32 = 1;

layout! {
    /// Content of an INDEX block, for the session of the block: when the events of one segment
    /// happened. `slots` [`IndexSlot`]s follow.
    pub struct Index: 56 {
        /// Size of the segment that was read.
        0 segment_bytes: u64,
        /// CRC-32 of its last INDEX_TAIL_BYTES bytes, or of all if it has fewer.
        8 tail_crc: u32,
        /// [`IndexSlot`]s that follow.
        12 slots: u32,
        /// Earliest event, ns since 1970, on the clock of section 11; greater than `last_ns`: there
        /// are no events.
        16 first_ns: u64,
        /// Latest event, likewise.
        24 last_ns: u64,
        /// Earliest event, ns since the session's start.
        32 first_t_ns: u64,
        /// Latest event, likewise.
        40 last_t_ns: u64,
        /// How wrong the times since 1970 can be, ns; the greatest number: not known.
        48 error_ns: u64,
    }
}

layout! {
    /// A slot in an INDEX block: what the segment holds of it.
    pub struct IndexSlot: 48 {
        /// Index in the ring directory.
        0 slot: u32,
        /// Zero.
        4 reserved: u32,
        /// Reservations of the slot before the segment's first page.
        8 first_event: u64,
        /// Reservations up to the end of its last page.
        16 end_event: u64,
        /// Events lost in the slot before its first page.
        24 first_lost: u64,
        /// Events lost in the slot before its last page.
        32 last_lost: u64,
        /// The page after the last sealed one; 0: none is sealed.
        40 next_page: u64,
    }
}

/// Bytes at a segment's end whose checksum its index holds.
pub const INDEX_TAIL_BYTES: u32 = 4096;
