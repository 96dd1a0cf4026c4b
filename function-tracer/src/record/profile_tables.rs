//! The profile tables: each thread has one, made before its first counted call. It stays when the
//! thread ends and goes on with the thread that takes its node over.
//!
//! Which thread counts a call, and where:
//!
//! - A thread that exists when a profile tracer starts gets its cells from the starting thread,
//!   before the first site is enabled.
//! - A thread that begins later gets them at its first call of a traced function, with its node.
//! - A thread whose memory cannot be mapped counts nothing; its calls are counted as uncounted.
//! - A thread that takes a node over adds to the counts of the ended one, because sums are taken
//!   over all tables.

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, fence};

use ringmark_format::function::LAST_NUMBER;
use rustix::mm::{Advice, MapFlags, madvise, munmap};

use super::thread_memory::{CELLS_MAX, CHUNK, Cell, Table};
use super::{nodes, own_memory};

impl Table {
    /// The cell with this number. `None`: there was no memory for it.
    pub(crate) fn cell(&self, number: u32) -> Option<&Cell> {
        let number = number as usize;
        let chunk = self.chunks.get(number / CHUNK)?.load(Acquire);
        // SAFETY: record invariants 1 and 4.
        unsafe { chunk.as_ref() }.map(|chunk| &chunk[number % CHUNK])
    }
}

/// Number of cells that every table must have.
static CELLS: AtomicUsize = AtomicUsize::new(0);
/// Number of calls of threads without memory for a table.
static UNCOUNTED: AtomicU64 = AtomicU64::new(0);

/// Counts a call that no table counts.
#[cold]
pub(crate) fn count_uncounted() {
    UNCOUNTED.fetch_add(1, Relaxed);
}

/// Number of calls that no table counts.
pub(crate) fn uncounted() -> u64 {
    UNCOUNTED.load(Relaxed)
}

/// A new mapping, which takes memory only where it is used; null: there is none.
fn map<T>() -> *mut T {
    let start = own_memory::map(ptr::null_mut(), size_of::<T>(), MapFlags::empty());
    let Some(start) = start else {
        return ptr::null_mut();
    };
    // SAFETY: the new mapping. Failure is accepted: then its first use may take 2 MiB.
    let _ = unsafe { madvise(start, size_of::<T>(), Advice::LinuxNoHugepage) };
    start.cast()
}

/// The value that `word` points at, mapped first if `word` is null.
fn mapped<T>(word: &AtomicPtr<T>) -> Option<&'static T> {
    let mut found = word.load(Acquire);
    if found.is_null() {
        let new = map::<T>();
        found = match word.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire) {
            Ok(_) => new,
            Err(other) => {
                if !new.is_null() {
                    // SAFETY: this call's own mapping, which was not published.
                    let _ = unsafe { munmap(new.cast(), size_of::<T>()) };
                }
                other
            }
        };
    }
    // SAFETY: record invariants 1, 2 and 4.
    unsafe { found.as_ref() }
}

/// Gives the table of a node, which is in the list, as many cells as every table must have.
pub(super) fn prepare(table: &AtomicPtr<Table>) {
    fence(SeqCst); // After the node was put into the list: see `make_room`.
    let cells = CELLS.load(SeqCst);
    if cells == 0 {
        return;
    }
    if let Some(table) = mapped(table) {
        for chunk in &table.chunks[..cells.div_ceil(CHUNK)] {
            mapped(chunk);
        }
    }
}

/// Gives every thread room for `cells` cells: existing nodes here, later ones when they are taken.
pub(crate) fn make_room(cells: usize) {
    if CELLS.fetch_max(cells.min(CELLS_MAX), SeqCst) >= cells {
        return;
    }
    fence(SeqCst);
    nodes::tables().for_each(prepare);
}

/// Sets all counts to 0, for a forked child. Its open calls stay open.
pub(crate) fn forget() {
    UNCOUNTED.store(0, Relaxed);
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

/// Forgets the shortest and the longest call of a cell. A call that ends at this moment may be remembered or not.
pub(crate) fn forget_extremes(cell: u32) {
    for cell in tables().filter_map(|table| table.cell(cell)) {
        cell.shortest.store(0, Relaxed);
        cell.longest.store(0, Relaxed);
    }
}

/// The tables of all threads, those that have ended included.
pub(super) fn tables() -> impl Iterator<Item = &'static Table> {
    // SAFETY: record invariants 1 and 4.
    nodes::tables().filter_map(|table| unsafe { table.load(Acquire).as_ref() })
}

/// The cell and the lane that a call counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellUse {
    pub(crate) cell: u32,
    pub(crate) lane: u32,
}

/// By number of the function type one of: 0; a cell in the upper half with twice the lane plus 1
/// below; the address of [`Several`]. Null: no profile tracer was ever started.
pub(crate) static USES: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());

type UsesTable = [AtomicU64; LAST_NUMBER as usize + 1];
type Several = Vec<CellUse>;

/// Sets what the calls of a type count in, before its sites are enabled. `false`: there is no
/// memory.
pub(crate) fn set_uses(number: u32, uses: Vec<CellUse>) -> bool {
    let mut start = USES.load(Acquire);
    if start.is_null() {
        let new = map::<UsesTable>().cast();
        // Called by the control path only, by one thread at a time.
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
    // SAFETY: record invariants 1, 2 and 4; the table has a word for every number.
    unsafe { &*start.wrapping_add(number as usize) }.store(word, Release);
    true
}

/// Calls `to` with each cell and lane that the calls of a type count in.
pub(super) fn for_each_use(number: u32, mut to: impl FnMut(CellUse)) {
    let start = USES.load(Acquire);
    if start.is_null() || number > LAST_NUMBER {
        return;
    }
    // SAFETY: record invariants 1, 2 and 4; the table has a word for every number.
    let word = unsafe { &*start.wrapping_add(number as usize) }.load(Acquire);
    if word & 1 != 0 {
        to(CellUse {
            cell: (word >> 32) as u32,
            lane: (word as u32) >> 1,
        });
        return;
    }
    // SAFETY: record invariant 1: null, or a list that `set_uses` leaked.
    if let Some(several) = unsafe { (word as *const Several).as_ref() } {
        several.iter().copied().for_each(to);
    }
}
