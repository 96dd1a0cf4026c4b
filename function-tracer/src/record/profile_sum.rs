//! Sums of the profile tables of all threads.

use core::sync::atomic::Ordering::Relaxed;

use super::profile_tables::tables;
use super::thread_memory::{BUCKETS, Cell};

/// Number of calls that have begun, of one cell in all threads.
pub(crate) fn begun(cell: u32) -> u64 {
    let cells = tables().filter_map(|table| table.cell(cell));
    cells.map(|cell| cell.begun.load(Relaxed)).sum()
}

/// One cell added up over all threads. Fields are as in [`Cell`]; times are in ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) begun: u64,
    pub(crate) unwound: u64,
    pub(crate) loose: u64,
    pub(crate) total: u64,
    pub(crate) own: u64,
    pub(crate) sum: u64,
    /// `None`: no call has ended.
    pub(crate) shortest: Option<u64>,
    pub(crate) longest: u64,
    /// As in [`Cell::buckets`].
    pub(crate) buckets: [u64; BUCKETS],
}

impl Sum {
    /// Sums one cell over all threads. A call that ends during the sum may be counted partially.
    pub(crate) fn of(cell: u32) -> Self {
        let mut sum = Self {
            begun: 0,
            unwound: 0,
            loose: 0,
            total: 0,
            own: 0,
            sum: 0,
            shortest: None,
            longest: 0,
            buckets: [0; BUCKETS],
        };
        tables()
            .filter_map(|table| table.cell(cell))
            .for_each(|cell| sum.add(cell));
        sum
    }

    fn add(&mut self, cell: &Cell) {
        self.begun += cell.begun.load(Relaxed);
        self.unwound += cell.unwound.load(Relaxed);
        self.loose += cell.loose.load(Relaxed);
        self.total += cell.total.load(Relaxed);
        self.own += cell.own.load(Relaxed);
        self.sum += cell.sum.load(Relaxed);
        let shortest = cell.shortest.load(Relaxed);
        if shortest != 0 {
            let found = !shortest;
            self.shortest = Some(self.shortest.map_or(found, |ticks| ticks.min(found)));
        }
        self.longest = self.longest.max(cell.longest.load(Relaxed));
        for (all, bucket) in self.buckets.iter_mut().zip(&cell.buckets) {
            *all += bucket.load(Relaxed);
        }
    }

    /// What was added since `before`. Calls that were open then are open now, or have ended since.
    pub(crate) fn since(mut self, before: Option<&Self>) -> Self {
        let Some(before) = before else {
            return self;
        };
        // A call that ended while `before` was summed up may be in a part of it only.
        let less = |now: &mut u64, before: u64| *now = now.saturating_sub(before);
        less(&mut self.begun, before.ended() + before.loose);
        less(&mut self.unwound, before.unwound);
        less(&mut self.loose, before.loose);
        less(&mut self.total, before.total);
        less(&mut self.own, before.own);
        less(&mut self.sum, before.sum);
        let buckets = self.buckets.iter_mut().zip(before.buckets);
        buckets.for_each(|(now, before)| less(now, before));
        self
    }

    /// Number of calls that have ended.
    pub(crate) fn ended(&self) -> u64 {
        self.buckets.iter().sum()
    }
}
