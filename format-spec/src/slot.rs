//! The ring directory: one entry per slot.
//!
//! Threads come and go; a slot keeps its place and its counts, and each claim of it by a thread is
//! a ring with an id of its own.

use crate::counters::CAUSES;

layout! {
    /// One ring's place, owner and counters. Written by the producer only. Positions and counters
    /// are cumulative per slot and never reset; a new claim only gets a new ring id.
    pub struct Slot: 256 {
        /// State, see [`state`]; stored with Release when a claim is complete.
        0 state: u64,
        /// Ring id of the present (or last) claim; 0 while a claim changes the owner.
        8 ring_id: u64,
        /// Offset of page slot 0 in the file.
        16 pages_offset: u64,
        /// Bytes of a page.
        24 page_bytes: u32,
        /// Pages in the ring.
        28 pages: u32,
        /// Thread id of the owner, in its pid namespace.
        32 tid: u32,
        /// Claims so far.
        36 claims: u32,
        /// Name of the owner thread when it attached, zero-padded.
        40 thread_name: [u8; 16],
        /// Page number at which the present claim started.
        56 first_page: u64,
        /// *produced*: number of page switches so far; page `produced - 1` is open.
        64 produced: u64,
        /// Events lost in this slot, by cause.
        72 lost: [u64; CAUSES],
        /// Reservations up to the seal of the last ended claim.
        136 events_sealed: u64,
        /// Offset of the stack of open spans in the file; 0: there is none.
        144 stack_offset: u64,
        /// Times that a thread waited for room in the ring.
        152 waits: u64,
        /// How long it waited in all, in nanoseconds.
        160 waited_ns: u64,
        /// Longest time that an owner waited for the ring, at its first record, in nanoseconds.
        168 ring_wait_ns: u64,
        /// Zero.
        176 reserved: [u64; 10],
    }
}

/// Values of [`Slot::state`].
///
/// ```text
/// FREE --producer: fallocate, publish geometry--> WARM --thread: attach--> ACTIVE
/// ACTIVE --thread: exit--> SEALED --thread: reclaim (drained, or oldest in overwrite)--> ACTIVE
/// ACTIVE --thread: goes on in another ring--> ABANDONED --thread: comes back--> ACTIVE
/// ABANDONED --thread: exit--> SEALED
/// WARM --producer: its end--> FREE
/// ```
pub mod state {
    /// No memory yet.
    pub const FREE: u64 = 0;
    /// A thread of the producer is setting it up.
    pub const CLAIMING: u64 = 1;
    /// Memory is there, no owner.
    pub const WARM: u64 = 2;
    /// A thread writes into it.
    pub const ACTIVE: u64 = 3;
    /// Its thread is gone; all pages are sealed.
    pub const SEALED: u64 = 4;
    /// Set aside by its thread, which holds a reservation open here and uses another ring.
    pub const ABANDONED: u64 = 5;
}
