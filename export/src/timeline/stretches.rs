//! Stretches of a trace: pieces of a group of rings, some thousand events each.
//!
//! What begins in one and ends in a later one of its group is kept by the stretch that it begins in.

use crate::timeline::order::Begin;

/// Least events and losses of a stretch.
const STRETCH: u64 = 2048;
/// Most stretches, but for one more of each group. What begins in one and ends in another is kept, so
/// what is kept does not grow with the trace.
const STRETCHES_MAX: u64 = 2048;

/// The stretches of all groups, in order.
#[derive(Debug)]
pub(crate) struct Stretches<'a> {
    /// Events and losses of each, but for the last one of a group.
    pub(crate) items: u64,
    /// Wall time at which each begins, in ns; the first one of a group has all before it too.
    starts: Vec<u64>,
    begins: Vec<Vec<Begin<'a>>>,
    /// The first stretch of each group.
    firsts: Vec<usize>,
    /// How many items are still of the latest one.
    left: u64,
}

impl<'a> Stretches<'a> {
    /// None yet, of a trace with this many events.
    pub(crate) fn new(events: u64) -> Self {
        Self {
            items: STRETCH.max(events / STRETCHES_MAX),
            starts: Vec::new(),
            begins: Vec::new(),
            firsts: Vec::new(),
            left: 0,
        }
    }

    /// Begins a group. Returns its number.
    pub(crate) fn begin_group(&mut self) -> usize {
        self.firsts.push(self.starts.len());
        self.left = 0;
        self.firsts.len() - 1
    }

    /// Counts the next event or loss of the group.
    #[inline]
    pub(crate) fn meet(&mut self, at_ns: u64) {
        if self.left == 0 {
            self.begin(at_ns);
        }
        self.left -= 1;
    }

    /// Begins a stretch.
    pub(crate) fn begin(&mut self, at_ns: u64) {
        self.left = self.items;
        let is_first = self.firsts.last() == Some(&self.starts.len());
        let latest = self.starts.last().copied().unwrap_or(0);
        self.starts.push(match is_first {
            true => 0,
            false => latest.max(at_ns),
        });
        self.begins.push(Vec::new());
    }

    /// Whether a time is not before the latest stretch.
    #[inline]
    pub(crate) fn is_latest(&self, at_ns: u64) -> bool {
        self.starts.last().is_some_and(|start| *start <= at_ns)
    }

    /// Keeps the beginning of what ends with the latest item, unless it lies in the latest stretch.
    pub(crate) fn take(&mut self, begin: Begin<'a>) {
        if !self.is_latest(begin.at_ns) {
            self.keep(self.firsts.len().saturating_sub(1), begin);
        }
    }

    /// Keeps a beginning in a group.
    pub(crate) fn keep(&mut self, group: usize, begin: Begin<'a>) {
        let first = self.firsts.get(group).copied().unwrap_or(0);
        let end = self.firsts.get(group + 1).copied();
        let starts = &self.starts[first..end.unwrap_or(self.starts.len())];
        let after = starts.partition_point(|start| *start <= begin.at_ns);
        let stretch = first + after.saturating_sub(1);
        if let Some(begins) = self.begins.get_mut(stretch) {
            begins.push(begin);
        }
    }

    /// What begins in a stretch and ends in a later one, or not at all.
    pub(crate) fn begins(&self, stretch: usize) -> &[Begin<'a>] {
        self.begins.get(stretch).map_or(&[], Vec::as_slice)
    }

    /// Wall time at which a stretch begins, in ns.
    pub(crate) fn starts_at(&self, stretch: usize) -> u64 {
        self.starts.get(stretch).copied().unwrap_or(0)
    }
}
