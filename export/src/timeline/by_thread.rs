//! The items of a stretch, thread by thread.

use crate::timeline::items::{Item, NO_THREAD};
use crate::timeline::order::Begin;

/// The places of items, by their thread. Memory for the next stretch is kept.
#[derive(Debug, Default)]
pub(crate) struct ByThread {
    /// The threads that have anything, by number.
    pub(crate) threads: Vec<u32>,
    /// By number of the thread plus 1; those of no thread are the first.
    places: Vec<Vec<u32>>,
}

impl ByThread {
    /// Takes another stretch. `begins` are those of slices that end later, by their threads.
    pub(crate) fn fill(&mut self, items: &[Item<'_>], begins: &[Begin<'_>]) {
        for thread in self.threads.drain(..) {
            self.places[row(thread)].clear();
        }
        for (place, item) in (0..).zip(items) {
            self.meet(item.thread);
            self.places[row(item.thread)].push(place);
        }
        for begin in begins {
            self.meet(begin.thread);
        }
        self.threads.sort_unstable();
        self.threads.dedup();
    }

    /// Notes a thread. One without items is noted for each of its beginnings.
    #[inline]
    fn meet(&mut self, thread: u32) {
        let row = row(thread);
        if self.places.len() <= row {
            self.places.resize_with(row + 1, Vec::new);
        }
        if self.places[row].is_empty() {
            self.threads.push(thread);
        }
    }

    /// The places of the items of a thread, in order.
    pub(crate) fn of(&self, thread: u32) -> &[u32] {
        &self.places[row(thread)]
    }
}

/// Numbers of threads begin at 0 and have no gaps.
#[inline]
const fn row(thread: u32) -> usize {
    match thread {
        NO_THREAD => 0,
        thread => thread as usize + 1,
    }
}
