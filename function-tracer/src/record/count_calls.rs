//! Counting of calls for profile tracers: each tracer's cell of the function gets their number and
//! times, and no record is written. Only the thread itself and its signal handlers write its table.

use core::sync::atomic::Ordering::Relaxed;

use super::open_calls::Block;
use super::profile_tables::{self, CellUse, for_each_use};
use super::thread_memory::{BUCKETS, Cell, Inner, Lane, Table};
use super::x86_64::{add, raise};

/// The number of a place in [`Inner::outer`]: 16 times its number counted from 1.
fn mark(place: usize) -> u64 {
    (place as u64 + 1) << 4
}

/// What `lane` knows about the call with this mark.
fn inner(lane: &Lane, mark: u64) -> &Inner {
    let last = lane.len() - 1;
    &lane[((mark >> 4) as usize).min(last)]
}

/// The mark of the nearest open call around `mark`, from `from` outwards. Calls further in were
/// left without a return.
fn outside(lane: &Lane, from: u64, mark: u64) -> u64 {
    let mut outer = from;
    while outer >= mark {
        let next = inner(lane, outer).outer.load(Relaxed);
        outer = if next < outer { next } else { 0 };
    }
    outer
}

/// Calls `to` with each cell that calls of a type count in.
fn with_cells(block: &Block, number: u32, mut to: impl FnMut(&Table, &Cell, CellUse)) {
    let table = block.table();
    for_each_use(number, |one| {
        match table.and_then(|table| Some((table, table.cell(one.cell)?))) {
            Some((table, cell)) => to(table, cell, one),
            None => profile_tables::count_uncounted(),
        }
    });
}

/// Counts the begin of a call in this place of the thread, whose end will be seen.
pub(super) fn enter(block: &Block, number: u32, place: usize) {
    let me = mark(place);
    with_cells(block, number, |table, cell, one| {
        let lane = &table.lanes[one.lane as usize];
        let outer = outside(lane, lane[0].outer.load(Relaxed), me);
        let call = inner(lane, me);
        call.outer.store(outer, Relaxed);
        call.inside.store(0, Relaxed);
        lane[0].outer.store(me, Relaxed);
        let outermost = cell.outermost.load(Relaxed);
        if outermost == 0 || outermost >= me {
            cell.outermost.store(me, Relaxed);
        }
        add(&cell.begun, 1);
    });
}

/// Counts the begin of a call whose end will not be seen.
pub(super) fn pass(block: &Block, number: u32) {
    with_cells(block, number, |_, cell, _| {
        add(&cell.begun, 1);
        add(&cell.loose, 1);
    });
}

/// Counts the begin of a call on another stack, whose end will be seen.
pub(super) fn enter_elsewhere(block: &Block, number: u32) {
    with_cells(block, number, |_, cell, _| add(&cell.begun, 1));
}

/// A call on another stack that has ended.
pub(super) struct EndedElsewhere {
    pub(super) number: u32,
    pub(super) took: u64,
    /// Time in calls inside it.
    pub(super) inside: u64,
    /// Whether a call of the same function is around it.
    pub(super) is_recursive: bool,
    pub(super) unwound: bool,
    /// Place of the thread's own call that it began and ended in, if no call on its stack is around it.
    pub(super) around: Option<usize>,
}

/// Counts the end of a call on another stack.
pub(super) fn leave_elsewhere(block: &Block, call: &EndedElsewhere) {
    with_cells(block, call.number, |table, cell, one| {
        let lane = &table.lanes[one.lane as usize];
        let innermost = lane[0].outer.load(Relaxed);
        if call.around.is_some_and(|place| mark(place) == innermost) {
            add(&inner(lane, innermost).inside, call.took);
        }
        add(&cell.own, call.took.saturating_sub(call.inside));
        if !call.is_recursive {
            add(&cell.total, call.took);
        }
        add_times(cell, call.took, call.unwound);
    });
}

fn add_times(cell: &Cell, took: u64, unwound: bool) {
    add(&cell.sum, took);
    raise(&cell.longest, took);
    raise(&cell.shortest, !took);
    let bucket = took.checked_ilog2().unwrap_or(0) as usize;
    add(&cell.buckets[bucket.min(BUCKETS - 1)], 1);
    add(&cell.unwound, u64::from(unwound));
}

/// Counts the end of a call after `took` ticks. Its place is not given back yet.
pub(super) fn leave(block: &Block, number: u32, place: usize, took: u64, unwound: bool) {
    let me = mark(place);
    with_cells(block, number, |table, cell, one| {
        let lane = &table.lanes[one.lane as usize];
        let call = inner(lane, me);
        let outer = outside(lane, call.outer.load(Relaxed), me);
        lane[0].outer.store(outer, Relaxed);
        add(&inner(lane, outer).inside, took);
        add(&cell.own, took.saturating_sub(call.inside.load(Relaxed)));
        if cell.outermost.load(Relaxed) == me {
            cell.outermost.store(0, Relaxed);
            add(&cell.total, took);
        }
        add_times(cell, took, unwound);
    });
}
