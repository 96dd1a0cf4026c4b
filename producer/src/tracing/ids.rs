//! Span ids, and how many handles each span has. No allocation for a span, no lock.
//!
//! An id says where its span's cell is. Cells lie in regions; a thread owns one region at a time
//! and only it gives out the region's cells, so that taking one is a plain store. Any thread may
//! count handles of any span, and gives the cell back by counting to 0.
//!
//! However many spans live, a new one looks at a bounded number of cells. Where the next few of a region are
//! taken the thread goes on in another region: one of a few whose turn it is, if enough of it is free, else
//! one that was never used. So at most some [`REGIONS`] × [`CELLS`] spans live at one time, 16 million; one
//! more is not recorded, and counted as lost for want of memory.
//!
//! # Invariants
//!
//! 1. A cell's `metadata` is null, or stored by `take` from a `&'static Metadata`; its `site` likewise from a
//!    `&'static Site`.

use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};

use ringmark_ring::lease::Lease;
use ringmark_ring::published_static::Published;
use tracing_core::Metadata;

use super::site::Site;

const CELL_BITS: u32 = 10;
const REGION_BITS: u32 = 14;
const CELLS: usize = 1 << CELL_BITS;
const REGIONS: usize = 1 << REGION_BITS;
/// Cells behind the one whose turn it is that are looked at; then the thread goes on in another region.
const NEAR: usize = 8;
/// Regions that are looked at before one is taken that was never used.
const TRIES: usize = 4;
/// Cells of such a region that are looked at, and how many of them are free in one that is worth it.
const SAMPLE: usize = 64;
const WORTH: usize = 8;

/// A living span, or nothing. What is done to one span looks its cell up once.
pub(super) struct SpanCell {
    /// Handles; 0: free.
    handles: AtomicU32,
    /// What [`super::watched`] knows of it; 0: it is not watched, as every new one.
    watch: AtomicU32,
    /// What it is; null or from a `&'static`.
    metadata: AtomicPtr<Metadata<'static>>,
    /// Its call site; null or from a `&'static`.
    site: AtomicPtr<Site>,
    /// Who wrote the last record about it: the address of the writer.
    last_ring: AtomicUsize,
}

type Cells = [SpanCell; CELLS];

struct Region {
    /// Its number: ids given out so far. A cell that is used again gets another id.
    lease: Lease,
    cells: Published<Cells>,
}

/// Regions that were used so far: the first ones.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Whose turn it is to be looked at.
static TURN: AtomicUsize = AtomicUsize::new(0);

static ALL: [Region; REGIONS] = [const {
    Region {
        lease: Lease::new(),
        cells: Published::new(),
    }
}; REGIONS];

/// The region of a thread.
#[derive(Clone, Copy)]
struct Owned {
    number: usize,
    cells: &'static Cells,
}

/// What a thread knows, without a destructor, so that reaching it costs nothing.
struct Mine {
    region: Cell<Option<Owned>>,
    given: Cell<u64>,
    next: Cell<usize>,
}

/// Gives the region back at thread exit.
struct GiveBack;

impl Drop for GiveBack {
    fn drop(&mut self) {
        MINE.with(give_back);
    }
}

thread_local! {
    static MINE: Mine = const {
        Mine { region: Cell::new(None), given: Cell::new(0), next: Cell::new(0) }
    };
    static GIVE_BACK: GiveBack = const { GiveBack };
}

/// What a span is.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) metadata: &'static Metadata<'static>,
    /// `None`: it was off when the span was made, and nothing about the span is recorded; or it is watched.
    pub(super) site: Option<&'static Site>,
}

/// A new span with one handle: its id, even and not 0, and its cell. `None`: too many spans live.
#[inline]
pub(super) fn new(kind: Kind) -> Option<(u64, &'static SpanCell)> {
    MINE.with(|mine| {
        if let Some(owned) = mine.region.get() {
            let number = mine.next.get() % CELLS;
            if owned.cells[number].handles.load(Relaxed) == 0 {
                return Some(take(mine, owned, number, kind));
            }
        }
        new_elsewhere(mine, kind)
    })
}

/// An id that no span has.
pub(super) const NONE: u64 = 1 << 62;

#[inline(always)]
fn take(mine: &Mine, owned: Owned, number: usize, kind: Kind) -> (u64, &'static SpanCell) {
    let cell = &owned.cells[number];
    let site = kind.site.map_or(ptr::null(), ptr::from_ref);
    cell.metadata
        .store(ptr::from_ref(kind.metadata).cast_mut(), Relaxed);
    cell.site.store(site.cast_mut(), Relaxed);
    cell.handles.store(1, Relaxed);
    let given = mine.given.get() + 1;
    mine.given.set(given);
    mine.next.set(number + 1);
    let place = (owned.number << CELL_BITS | number) as u64;
    let id = (given << (REGION_BITS + CELL_BITS) | place) << 1;
    (id, cell)
}

/// The next cell lives: finds another one near it, or in another region.
#[cold]
#[inline(never)]
fn new_elsewhere(mine: &Mine, kind: Kind) -> Option<(u64, &'static SpanCell)> {
    if let Some(owned) = mine.region.get()
        && let Some(number) = free_cell(owned.cells, mine.next.get(), NEAR)
    {
        return Some(take(mine, owned, number, kind));
    }
    give_back(mine);
    let (owned, given) = other_region()?;
    // Cells before those that were given out last have had more time to become free.
    let number = free_cell(owned.cells, given as usize, SAMPLE);
    mine.given.set(given);
    let taken = number.map(|number| take(mine, owned, number, kind));
    mine.region.set(Some(owned));
    // A thread whose destructors have run could not give the region back later.
    if taken.is_none() || GIVE_BACK.try_with(|_| ()).is_err() {
        give_back(mine);
    }
    taken
}

/// A region for this thread, and how many ids of it were given out.
fn other_region() -> Option<(Owned, u64)> {
    let used = USED.load(Relaxed).min(REGIONS);
    for _ in 0..TRIES.min(used) {
        let number = TURN.fetch_add(1, Relaxed) % used;
        if let Some(found) = take_region(number, WORTH) {
            return Some(found);
        }
    }
    while USED.load(Relaxed) < REGIONS {
        let number = USED.fetch_add(1, Relaxed);
        if number < REGIONS
            && let Some(found) = take_region(number, WORTH)
        {
            return Some(found);
        }
    }
    (0..TRIES).find_map(|_| take_region(TURN.fetch_add(1, Relaxed) % REGIONS, 1))
}

/// Takes this region if no thread has it, and as many of the cells whose turn it is are free.
fn take_region(number: usize, free: usize) -> Option<(Owned, u64)> {
    let region = &ALL[number];
    let given = region.lease.take()?;
    let cells = region.cells.get_or_publish(new_cells);
    let sample = (0..SAMPLE).filter(|at| is_free(cells, given as usize + at));
    if sample.count() < free {
        region.lease.give_back(given);
        return None;
    }
    Some((Owned { number, cells }, given))
}

fn new_cells() -> Box<Cells> {
    Box::new(
        [const {
            SpanCell {
                handles: AtomicU32::new(0),
                watch: AtomicU32::new(0),
                metadata: AtomicPtr::new(ptr::null_mut()),
                site: AtomicPtr::new(ptr::null_mut()),
                last_ring: AtomicUsize::new(0),
            }
        }; CELLS],
    )
}

fn is_free(cells: &Cells, number: usize) -> bool {
    cells[number % CELLS].handles.load(Relaxed) == 0
}

/// The first free cell of so many.
fn free_cell(cells: &Cells, from: usize, of: usize) -> Option<usize> {
    let mut near = from..from + of;
    let found = near.find(|number| is_free(cells, *number))?;
    Some(found % CELLS)
}

fn give_back(mine: &Mine) {
    if let Some(owned) = mine.region.take() {
        ALL[owned.number].lease.give_back(mine.given.get());
    }
}

/// The cell of a span. `None`: it is not from here.
#[inline(always)]
pub(super) fn cell(id: u64) -> Option<&'static SpanCell> {
    if id == 0 || id == NONE || id & 1 != 0 {
        return None;
    }
    let place = (id >> 1) as usize;
    let region = &ALL[place >> CELL_BITS & (REGIONS - 1)];
    region.cells.current()?.get(place & (CELLS - 1))
}

/// What a span of this module is. `None`: it is not from here.
pub(super) fn metadata(id: u64) -> Option<&'static Metadata<'static>> {
    let metadata = cell(id)?.metadata.load(Relaxed);
    // SAFETY: invariant 1.
    unsafe { metadata.as_ref() }
}

impl SpanCell {
    /// The call site of the span. `None`: nothing about the span is recorded.
    #[inline(always)]
    pub(super) fn site(&self) -> Option<&'static Site> {
        let site = self.site.load(Relaxed);
        // SAFETY: invariant 1.
        unsafe { site.as_ref() }
    }

    /// See [`super::watched`].
    pub(super) fn watch(&self) -> u32 {
        self.watch.load(Relaxed)
    }

    pub(super) fn set_watch(&self, watch: u32) {
        self.watch.store(watch, Relaxed);
    }

    /// The ring with the last record about the span; 0: not known.
    #[inline(always)]
    pub(super) fn last_ring(&self) -> usize {
        self.last_ring.load(Relaxed)
    }

    /// Stores which ring has the last record about the span.
    #[inline(always)]
    pub(super) fn set_last_ring(&self, ring: usize) {
        self.last_ring.store(ring, Relaxed);
    }

    /// One handle more.
    pub(super) fn add_handle(&self) {
        self.handles.fetch_add(1, Relaxed);
    }

    /// As [`SpanCell::remove_handle`], of a span that may be watched: the next one of this cell is not.
    pub(super) fn remove_watched_handle(&self) -> bool {
        loop {
            match self.handles.load(Relaxed) {
                0 => return false,
                1 => {
                    self.watch.store(0, Relaxed);
                    self.handles.store(0, Relaxed);
                    return true;
                }
                more => {
                    let less = self
                        .handles
                        .compare_exchange(more, more - 1, Relaxed, Relaxed);
                    if less.is_ok() {
                        return false;
                    }
                }
            }
        }
    }

    /// One handle less. `true`: it was the last one.
    #[inline]
    pub(super) fn remove_handle(&self) -> bool {
        match self.handles.load(Relaxed) {
            // Only the owner of the last handle could add another one.
            1 => {
                self.handles.store(0, Relaxed);
                true
            }
            0 => false,
            _ => self.handles.fetch_sub(1, Relaxed) == 1,
        }
    }
}
