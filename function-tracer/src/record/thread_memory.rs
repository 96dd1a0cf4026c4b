//! The layout of a thread's memory: its node with the open calls, and its profile table. The stubs
//! know it through `offsets`.
//!
//! A thread's *node* is one mapping, of these parts in order:
//!
//! - the [`Node`] itself, and two sentinels;
//! - the open calls from the outermost to the innermost, then free places (slot 0);
//! - the newest calls left without a return;
//! - a page without access, then the stack for the slow way.
//!
//! A *cell* holds what one profile tracer knows about one function; its number is the same in every
//! table. A *lane* connects the open calls of one tracer, so that none counts another's.

use core::sync::atomic::{AtomicPtr, AtomicU64};

/// A call that has begun and whose end will be seen.
#[repr(C)]
pub(crate) struct OpenCall {
    /// Address of the word that holds the return address; 0: a free place.
    pub(crate) slot: AtomicU64,
    /// The true return address.
    pub(crate) target: AtomicU64,
    /// Type of the call's entry record.
    pub(crate) type_word: AtomicU64,
    /// Tick of the entry, where a tracer wants durations.
    pub(crate) tick: AtomicU64,
}

/// Front of a thread's mapping.
#[repr(C)]
pub(crate) struct Node {
    /// The next node of the list, or null.
    pub(crate) next: AtomicPtr<Node>,
    /// Bytes of the stack of the thread that has the node; 0: no thread has it.
    pub(crate) bytes: AtomicU64,
    /// Thread id; in the upper half the process id.
    pub(super) owner: AtomicU64,
    /// Number of calls left without a return.
    pub(super) calls_left: AtomicU64,
    /// Number of calls that called no callback because one was running on their thread.
    pub(super) not_called: AtomicU64,
    /// The node's profile table, or null. It stays when another thread takes the node over.
    pub(super) profile: AtomicPtr<Table>,
}

/// Open calls of a thread at most; deeper calls are recorded without their return. Memory for them
/// is used as they are.
pub(super) const PLACES: usize = 1 << 17;
/// Places before the first call, with slots above every stack: every search ends at them.
pub(super) const SENTINELS: usize = 2;
/// The lowest slot of a sentinel.
pub(super) const OUTERMOST: u64 = u64::MAX - (SENTINELS as u64 - 1);
/// Calls left without a return that a node remembers.
pub(super) const LEFT: usize = 128;
/// Bytes of the stack for the slow way where the program's has no room.
pub(crate) const STACK_BYTES: usize = 256 << 10;
/// Bytes that must be left of the program's stack for the slow way to run there. It takes a quarter at
/// most; the rest is for callbacks, and for handlers that interrupt it.
pub(crate) const NEED_BYTES: usize = 32 << 10;

/// Bytes of a page of the system.
pub(super) const PAGE: usize = 4096;
const LEFT_AT: usize = size_of::<Node>() + (SENTINELS + PLACES) * size_of::<OpenCall>();
/// From a node to its page without access, in bytes.
pub(super) const GUARD_AT: usize = (LEFT_AT + LEFT * size_of::<OpenCall>()).next_multiple_of(PAGE);
/// Bytes of a node's mapping.
pub(super) const NODE_BYTES: usize = GUARD_AT + PAGE + STACK_BYTES;

/// From a node to its first place, in bytes.
pub(super) const FRONT: usize = size_of::<Node>() + SENTINELS * size_of::<OpenCall>();
/// From the address of a node's table to the node's first place, in bytes.
pub(crate) const TABLE_BEFORE_FIRST: usize = FRONT - core::mem::offset_of!(Node, profile);

/// Profile tracers at once.
pub(crate) const LANES: usize = 16;
/// Number of buckets. Bucket n counts calls of `2^n` ticks up to twice as many; the last one also
/// counts all longer calls.
pub(crate) const BUCKETS: usize = 39;
/// Cells that are mapped together.
pub(super) const CHUNK: usize = 1024;
/// Chunks of a table.
pub(super) const CHUNKS: usize = 512;
/// Cells of a process at most.
pub(crate) const CELLS_MAX: usize = CHUNK * CHUNKS;

/// What one thread knows about the calls of one function. Times are in ticks.
#[repr(C, align(64))]
pub(crate) struct Cell {
    /// Number of calls that have begun.
    pub(crate) begun: AtomicU64,
    /// Time of all calls but those inside a call of the same function.
    pub(crate) total: AtomicU64,
    /// Time of all calls without the calls inside them that the tracer wants.
    pub(crate) own: AtomicU64,
    /// Time of all calls that have ended.
    pub(crate) sum: AtomicU64,
    /// The shortest time, inverted; 0: no call has ended.
    pub(crate) shortest: AtomicU64,
    /// The longest time.
    pub(crate) longest: AtomicU64,
    /// The outermost open call, numbered as in [`Inner::outer`]; 0: none.
    pub(crate) outermost: AtomicU64,
    /// Number of calls that ended without a return.
    pub(crate) unwound: AtomicU64,
    /// Number of calls whose end could not be seen.
    pub(crate) loose: AtomicU64,
    /// Number of ended calls by time.
    pub(crate) buckets: [AtomicU64; BUCKETS],
}

/// What a lane knows about an open call.
#[repr(C)]
pub(crate) struct Inner {
    /// The open call around it: 16 times the number of its place, counted from 1; 0: none.
    pub(crate) outer: AtomicU64,
    /// Ticks in calls inside it.
    pub(crate) inside: AtomicU64,
}

/// By the number of a place, counted from 1. The first element is no call: its `outer` is the
/// innermost open call.
pub(crate) type Lane = [Inner; PLACES + 1];

/// A thread's profile table.
#[repr(C)]
pub(crate) struct Table {
    /// Cells by number; null: not mapped yet.
    pub(super) chunks: [AtomicPtr<[Cell; CHUNK]>; CHUNKS],
    pub(crate) lanes: [Lane; LANES],
}

/// Distances at which the stubs find things, in bytes.
pub(crate) mod offsets {
    use core::mem::offset_of;

    use super::{CHUNK, Cell, Lane as LaneOf, OpenCall, Table};

    pub(crate) const SLOT: usize = offset_of!(OpenCall, slot);
    pub(crate) const TARGET: usize = offset_of!(OpenCall, target);
    pub(crate) const TYPE_WORD: usize = offset_of!(OpenCall, type_word);
    pub(crate) const TICK: usize = offset_of!(OpenCall, tick);
    pub(crate) const OPEN_CALL: usize = size_of::<OpenCall>();

    pub(crate) const CHUNK_BITS: u32 = CHUNK.trailing_zeros();
    pub(crate) const CHUNK_MASK: usize = CHUNK - 1;
    pub(crate) const CELL: usize = size_of::<Cell>();
    pub(crate) const LANE: usize = size_of::<LaneOf>();
    pub(crate) const LANES: usize = offset_of!(Table, lanes);
    pub(crate) const BEGUN: usize = offset_of!(Cell, begun);
    pub(crate) const TOTAL: usize = offset_of!(Cell, total);
    pub(crate) const OWN: usize = offset_of!(Cell, own);
    pub(crate) const SUM: usize = offset_of!(Cell, sum);
    pub(crate) const SHORTEST: usize = offset_of!(Cell, shortest);
    pub(crate) const LONGEST: usize = offset_of!(Cell, longest);
    pub(crate) const OUTERMOST: usize = offset_of!(Cell, outermost);
    pub(crate) const BUCKETS: usize = offset_of!(Cell, buckets);
    pub(crate) const LAST_BUCKET: usize = super::BUCKETS - 1;

    const _: () = assert!(CHUNK.is_power_of_two() && offset_of!(Table, chunks) == 0);
}
