//! The record of removals: what was lost with sessions that were removed before they were read.
//!
//! Sessions of dead processes stay until a reader takes them. When they take too much space they
//! are removed, and this file keeps the counts.

layout! {
    /// Start of the file `removals` in a session directory; REMOVED_PLACES [`Removed`]s follow,
    /// then zeros up to REMOVALS_BYTES. Counts are cumulative and never reset.
    pub struct Removals: 128 {
        /// [`REMOVALS_MAGIC`].
        0 magic: [u8; 8],
        /// Version of the file, 1. A newer one is neither read nor written.
        8 version: u32,
        /// Zero.
        12 reserved: u32,
        /// Sessions that were removed with something unread in them, by `removal`.
        16 sessions: [u64; 4],
        /// Events in them that no reader had taken, and those that they counted as lost, by
        /// `removal`.
        48 events: [u64; 4],
        /// Events in them that newer ones had overwritten before.
        80 overwritten: u64,
        /// Sessions whose events are a lower bound.
        88 inexact: u64,
        /// Starts that were refused although every session that may be removed was.
        96 refused: u64,
        /// When it was written last, ns since 1970.
        104 changed_ns: u64,
        /// Zero.
        112 reserved_end: [u64; 2],
    }
}

layout! {
    /// One session that was removed. Session number n, counted from 0 over all of `removal`, stands
    /// at place n modulo REMOVED_PLACES.
    pub struct Removed: 48 {
        /// The session.
        0 session: [u8; 16],
        /// Events in it that no reader had taken, and those that it counted as lost.
        16 events: u64,
        /// Events in it that newer ones had overwritten before.
        24 overwritten: u64,
        /// When it was removed, ns since 1970.
        32 removed_ns: u64,
        /// Its process, in the process's own pid namespace.
        40 pid: u32,
        /// Why it was removed: see `removal`.
        44 removal: u16,
        /// 1: `events` is a lower bound.
        46 inexact: u16,
    }
}

/// First bytes of the record of removals.
pub const REMOVALS_MAGIC: [u8; 8] = *b"RMREMOVE";
/// Size of the record of removals in bytes.
pub const REMOVALS_BYTES: usize = 4096;
/// Places for removed sessions in the record of removals.
pub const REMOVED_PLACES: usize = 82;
/// Version of the record of removals.
pub const REMOVALS_VERSION: u32 = 1;

/// Why a session was removed.
pub mod removal {
    /// The sessions of dead processes took more space than they may.
    pub const CAP: u64 = 0;
    /// A program could not have started without the space.
    pub const NO_ROOM: u64 = 1;
    /// By a person: `ringmark clean`.
    pub const BY_HAND: u64 = 2;
}
