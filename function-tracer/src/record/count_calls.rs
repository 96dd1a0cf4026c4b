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
        add(&cell.sum, took);
        if cell.outermost.load(Relaxed) == me {
            cell.outermost.store(0, Relaxed);
            add(&cell.total, took);
        }
        raise(&cell.longest, took);
        raise(&cell.shortest, !took);
        let bucket = took.checked_ilog2().unwrap_or(0) as usize;
        add(&cell.buckets[bucket.min(BUCKETS - 1)], 1);
        add(&cell.unwound, u64::from(unwound));
    });
}
