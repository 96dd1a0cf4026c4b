//! PROGRESS: what a host says about the pages of a session that it sends, so that a reader can tell
//! lost, missing and late pages apart.

/// Why pages will never come.
pub mod cause {
    /// The ring had newer pages in their place before they were copied.
    pub const OVERWRITTEN: u32 = 1;
    /// They waited in the streamer's spill, and its file is damaged or gone.
    pub const SPILL: u32 = 2;
    /// A collector acknowledged them under another uuid of the session, which it then refused: the host
    /// had another name. They are counted there.
    pub const ELSEWHERE: u32 = 3;
}

/// Age of the latest PROGRESS of a session, in ms, after which its host counts as silent.
pub const SILENT_FOR_MS: u32 = 600_000;
/// Flag of [`Progress::flags`]: all that the session has was sent before this block.
pub const ALL_SENT: u32 = 1;

layout! {
    /// Start of a PROGRESS block. `slots` [`ProgressSlot`]s follow, then `ranges` [`GoneRange`]s.
    pub struct Progress: 56 {
        /// Number of the connection over which the streamer sends the session, from 1.
        0 epoch: u32,
        /// See [`ALL_SENT`].
        4 flags: u32,
        /// `CLOCK_REALTIME` of the host when this was said, ns since 1970.
        8 real_ns: u64,
        /// `CLOCK_MONOTONIC` of the host when this was said, ns.
        16 mono_ns: u64,
        /// Bytes of the schema stream that were acknowledged, from its start.
        24 schema_acked: u64,
        /// Identity of the store whose collector acknowledged that schema; 0: none did.
        32 store: [u8; 16],
        /// [`ProgressSlot`]s that follow.
        48 slots: u32,
        /// [`GoneRange`]s that follow.
        52 ranges: u32,
    }
}

layout! {
    /// A slot in a PROGRESS block.
    pub struct ProgressSlot: 24 {
        /// Index in the ring directory.
        0 slot: u32,
        /// Zero.
        4 reserved: u32,
        /// The page with which this epoch begins.
        8 start: u64,
        /// Sealed pages before this one were acknowledged by a collector, were sent before this block
        /// on the same connection, or will never come.
        16 acked: u64,
    }
}

layout! {
    /// Sealed pages of a slot that will never come, in a PROGRESS block.
    pub struct GoneRange: 32 {
        /// Index in the ring directory.
        0 slot: u32,
        /// See [`cause`].
        4 cause: u32,
        /// The first of these pages.
        8 from: u64,
        /// The page after the last of them.
        16 to: u64,
        /// Reservations in them, as far as known.
        24 events: u64,
    }
}
