//! The memory of profiles: each thread has a table of its own, made before its calls come, which
//! stays when the thread ends and goes on with the thread that takes its node over.
//!
//! A *cell* is what one tracer knows of one function; its number is the same in every table. A
//! *lane* is where the open calls of one tracer know each other, so that none counts another's.

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, fence};

use ringmark_format::function::LAST_NUMBER;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::nodes::{self, PLACES};

/// Profile tracers at once.
pub(crate) const LANES: usize = 16;
/// Bucket n holds calls of `2^n` ticks up to twice as many; the last one also all longer ones.
pub(crate) const BUCKETS: usize = 39;
/// Cells that are mapped together.
const CHUNK: usize = 1024;
const CHUNKS: usize = 512;
/// Cells of a process.
pub(crate) const CELLS_MAX: usize = CHUNK * CHUNKS;

/// What one thread knows of the calls of one function, in ticks.
#[repr(C, align(64))]
pub(crate) struct Cell {
    pub(crate) begun: AtomicU64,
    /// Ticks, without calls inside a call of the same function.
    pub(crate) total: AtomicU64,
    /// Ticks, without the calls inside it that the tracer wants.
    pub(crate) own: AtomicU64,
    /// Ticks of all calls that ended.
    pub(crate) sum: AtomicU64,
    /// The shortest one, inverted: zero means none.
    pub(crate) shortest: AtomicU64,
    pub(crate) longest: AtomicU64,
    /// The outermost open call, as in [`Inner::outer`].
    pub(crate) outermost: AtomicU64,
    pub(crate) unwound: AtomicU64,
    /// Begun without an end that could be seen.
    pub(crate) loose: AtomicU64,
    pub(crate) buckets: [AtomicU64; BUCKETS],
}

/// What a lane knows of an open call.
#[repr(C)]
pub(crate) struct Inner {
    /// The open call around it: 16 times the number of its place, counted from 1.
    pub(crate) outer: AtomicU64,
    /// Ticks in calls inside it.
    pub(crate) inside: AtomicU64,
}

/// The first one is no call: its `outer` is the innermost one.
pub(crate) type Lane = [Inner; PLACES + 1];

/// A thread's table.
#[repr(C)]
pub(crate) struct Table {
    chunks: [AtomicPtr<[Cell; CHUNK]>; CHUNKS],
    pub(crate) lanes: [Lane; LANES],
}

impl Table {
    /// `None`: there was no memory for it.
    pub(crate) fn cell(&self, number: u32) -> Option<&Cell> {
        let number = number as usize;
        let chunk = self.chunks.get(number / CHUNK)?.load(Acquire);
        // SAFETY: null, or a chunk that is never unmapped.
        unsafe { chunk.as_ref() }.map(|chunk| &chunk[number % CHUNK])
    }
}

/// Cells that every table must have.
static CELLS: AtomicUsize = AtomicUsize::new(0);
/// Calls of threads for whose table there was no memory.
static UNCOUNTED: AtomicU64 = AtomicU64::new(0);

/// Counts a call that goes into no table.
#[cold]
pub(crate) fn count_uncounted() {
    UNCOUNTED.fetch_add(1, Relaxed);
}

/// Calls that went into no table.
pub(crate) fn uncounted() -> u64 {
    UNCOUNTED.load(Relaxed)
}

/// Memory of zeros that takes no room before it is used; null: there is none.
fn map<T>() -> *mut T {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), size_of::<T>(), protection, flags) };
    start.map_or(ptr::null_mut(), <*mut _>::cast)
}

/// What `word` points at, which is mapped if it is not there.
fn there<T>(word: &AtomicPtr<T>) -> Option<&'static T> {
    let mut found = word.load(Acquire);
    if found.is_null() {
        let new = map::<T>();
        found = match word.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire) {
            Ok(_) => new,
            Err(other) => {
                if !new.is_null() {
                    // SAFETY: our mapping, which no other thread has seen.
                    let _ = unsafe { munmap(new.cast(), size_of::<T>()) };
                }
                other
            }
        };
    }
    // SAFETY: zeroed memory is a valid `T` (words), and is never unmapped once it was shown.
    unsafe { found.as_ref() }
}

/// Makes a node's table as large as all must be.
pub(super) fn prepare(table: &AtomicPtr<Table>) {
    fence(SeqCst); // After the node was shown: see `make_room`.
    let cells = CELLS.load(SeqCst);
    if cells == 0 {
        return;
    }
    if let Some(table) = there(table) {
        for chunk in &table.chunks[..cells.div_ceil(CHUNK)] {
            there(chunk);
        }
    }
}

/// Gives every thread room for `cells` cells: nodes that are there get it here, others when they
/// are made.
pub(crate) fn make_room(cells: usize) {
    if CELLS.fetch_max(cells.min(CELLS_MAX), SeqCst) >= cells {
        return;
    }
    fence(SeqCst);
    nodes::tables().for_each(prepare);
}

/// A forked child has counted nothing yet. Its open calls stay open.
pub(crate) fn forget() {
    let cells = CELLS.load(SeqCst) as u32;
    for table in tables() {
        for cell in (0..cells).filter_map(|number| table.cell(number)) {
            if cell.begun.swap(0, Relaxed) == 0 {
                continue;
            }
            let words = [
                &cell.total,
                &cell.own,
                &cell.sum,
                &cell.shortest,
                &cell.longest,
                &cell.unwound,
                &cell.loose,
            ];
            let all = words.into_iter().chain(&cell.buckets);
            all.for_each(|word| word.store(0, Relaxed));
        }
    }
}

/// The tables of all threads, also of those that have ended.
pub(super) fn tables() -> impl Iterator<Item = &'static Table> {
    // SAFETY: null, or a table that is never unmapped.
    nodes::tables().filter_map(|table| unsafe { table.load(Acquire).as_ref() })
}

/// Which cell and lane a call belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellUse {
    pub(crate) cell: u32,
    pub(crate) lane: u32,
}

/// By number of the function type: 0; a cell in the upper half, and the lane times two, plus one;
/// or the address of [`Several`].
pub(crate) static USES: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());

type UsesTable = [AtomicU64; LAST_NUMBER as usize + 1];
type Several = Vec<CellUse>;

/// Says what the calls of a type are counted as, before its sites are switched on. `false`: there
/// is no memory.
pub(crate) fn set_uses(number: u32, uses: Vec<CellUse>) -> bool {
    let mut start = USES.load(Acquire);
    if start.is_null() {
        let new = map::<UsesTable>().cast();
        // Only the control path comes here, one thread at a time.
        USES.store(new, Release);
        start = new;
    }
    if start.is_null() || number > LAST_NUMBER {
        return false;
    }
    let word = match uses.as_slice() {
        [] => 0,
        [one] => u64::from(one.cell) << 32 | u64::from(one.lane) << 1 | 1,
        _ => ptr::from_ref::<Several>(Box::leak(Box::new(uses))) as u64,
    };
    // SAFETY: the table has a word for every number, and is never unmapped.
    unsafe { &*start.wrapping_add(number as usize) }.store(word, Release);
    true
}

/// What the calls of a type are counted as.
pub(super) fn for_each_use(number: u32, mut to: impl FnMut(CellUse)) {
    let start = USES.load(Acquire);
    if start.is_null() || number > LAST_NUMBER {
        return;
    }
    // SAFETY: as above.
    let word = unsafe { &*start.wrapping_add(number as usize) }.load(Acquire);
    if word & 1 != 0 {
        to(CellUse {
            cell: (word >> 32) as u32,
            lane: (word as u32) >> 1,
        });
        return;
    }
    // SAFETY: null, or a list that was leaked by `set_uses`.
    if let Some(several) = unsafe { (word as *const Several).as_ref() } {
        several.iter().copied().for_each(to);
    }
}

/// Where the stubs find things, in bytes.
pub(crate) mod offsets {
    use core::mem::offset_of;

    use super::{CHUNK, Cell, Lane as LaneOf, Table};

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
