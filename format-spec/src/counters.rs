//! Losses by cause, and the COUNTERS block that ends every trace file.

/// Number of loss counters a slot and a session keep.
pub const CAUSES: usize = 8;

/// Why an event was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Cause {
    /// Discard mode: every page of the ring waited for the reader.
    RingFull = 0,
    /// No directory entry was free for the thread.
    NoRing = 1,
    /// The record was larger than a page of the ring holds.
    Oversize = 2,
    /// A signal handler interrupted a reservation and its record did not fit the open page.
    Nested = 3,
    /// The session's memory cap, or the filesystem, had no room for a ring; or there was none for another span
    /// that lives.
    NoMemory = 4,
    /// The thread had already given its ring back.
    ThreadExited = 5,
    /// The schema region was exhausted, the event's type is not described.
    NoSchema = 6,
    /// Reserved; 0.
    Reserved = 7,
}

impl Cause {
    /// Every cause, in the order of the counters.
    pub const ALL: [Self; CAUSES] = [
        Self::RingFull,
        Self::NoRing,
        Self::Oversize,
        Self::Nested,
        Self::NoMemory,
        Self::ThreadExited,
        Self::NoSchema,
        Self::Reserved,
    ];

    /// The cause's name in output, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RingFull => "ring full",
            Self::NoRing => "no ring",
            Self::Oversize => "oversize",
            Self::Nested => "nested",
            Self::NoMemory => "no memory",
            Self::ThreadExited => "thread exited",
            Self::NoSchema => "no schema",
            Self::Reserved => "reserved",
        }
    }
}

layout! {
    /// Start of a COUNTERS block: totals of the session when it was written, and a clock sample.
    /// `slots` entries of [`SlotCounters`] follow.
    pub struct CountersHeader: 104 {
        /// Tick of this clock sample; 0 together with `sample_mono_ns` = no sample.
        0 sample_tick: u64,
        /// `CLOCK_MONOTONIC` of this clock sample in ns.
        8 sample_mono_ns: u64,
        /// `CLOCK_REALTIME` of this clock sample in ns since 1970.
        16 sample_real_ns: u64,
        /// Entries that follow.
        24 slots: u32,
        /// Bit 0: the session had ended and everything was read ([`FINAL`]). Bit 1: the schema
        /// stream had no room for an entry ([`SCHEMA_INCOMPLETE`]).
        28 flags: u32,
        /// Events lost that belong to no ring, by cause.
        32 lost: [u64; CAUSES],
        /// Length of the session's schema stream.
        96 schema_bytes: u64,
    }
}

/// Flag of [`CountersHeader::flags`]: nothing more will come from this session.
pub const FINAL: u32 = 1;
/// Flag of [`CountersHeader::flags`]: types are not described, because the session had no room.
pub const SCHEMA_INCOMPLETE: u32 = 2;

layout! {
    /// Totals of one slot in a COUNTERS block.
    pub struct SlotCounters: 104 {
        /// Index in the ring directory.
        0 slot: u32,
        /// Thread of the latest claim.
        4 tid: u32,
        /// Latest ring id.
        8 ring_id: u64,
        /// Pages produced since the slot exists.
        16 produced: u64,
        /// Pages released since the slot exists.
        24 consumed: u64,
        /// Reservations since the slot exists, as far as they could be counted.
        32 events: u64,
        /// Events lost in this slot, by cause.
        40 lost: [u64; CAUSES],
    }
}
