//! How much of the time of something its thread spent in what lay in it.
//!
//! Spans, calls, waits, and the times in which a thread was in a span over threads all end in the order of
//! time. So whatever has ended in a thread, and began after something that ends now, lay in it:
//!
//! ```text
//! job        |---------------------|
//!   execute     |------------|            a call
//!     db           |----|                 a span
//! ended        db, execute, job           in this order; each takes those that began after it
//! ```
//!
//! Two that overlap, as a program may begin and end spans in any order, count once for what is around both.
//!
//! What has ended and lies in nothing that has ended waits. When very much waits, what ended first is
//! taken together, two by two.

use crate::trace_file::thread_times::ThreadTimes;

/// Most that waits in a thread.
const WAITING_MAX: usize = 1 << 13;

/// Something that has ended: the ticks at which it began and ended, and its part: how long it took in ns, as a rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended<P = u64> {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) part: P,
}

/// What is added up of what lies in something.
pub(crate) trait Part: Copy + Default {
    /// Both together.
    fn and(self, other: Self) -> Self;

    /// So much of it, as if it were the same all the time.
    fn share(self, part: u64, all: u64) -> Self;
}

impl Part for u64 {
    fn and(self, other: Self) -> Self {
        self.saturating_add(other)
    }

    fn share(self, part: u64, all: u64) -> Self {
        let ns = u128::from(self) * u128::from(part) / u128::from(all.max(1));
        Self::try_from(ns).unwrap_or(Self::MAX)
    }
}

impl Part for ThreadTimes {
    fn and(self, other: Self) -> Self {
        Self::and(self, other)
    }

    fn share(self, part: u64, all: u64) -> Self {
        let of = |whole: u64| whole.share(part, all);
        Self {
            running_ns: of(self.running_ns),
            ready_ns: of(self.ready_ns),
            throttled_ns: of(self.throttled_ns),
            waiting_ns: of(self.waiting_ns),
            waits: of(self.waits),
            preemptions: of(self.preemptions),
        }
    }
}

impl<P: Part> Ended<P> {
    /// Its part before this tick.
    fn before(&self, tick: u64) -> P {
        match tick >= self.to {
            true => self.part,
            false => self
                .part
                .share(tick.saturating_sub(self.from), self.to - self.from),
        }
    }
}

/// What has ended, by thread and in order, and lies in nothing that has ended.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    /// By number of the thread: they begin at 0 and have no gaps.
    threads: Vec<Waiting>,
}

/// What has ended in one thread: all of it, or that of one name.
#[derive(Debug, Default)]
pub(crate) struct Waiting<P = u64>(Vec<Ended<P>>);

impl Nesting {
    /// Something ends in a thread. Returns how much of it was spent in what lay in it, in ns.
    #[inline]
    pub(crate) fn end(&mut self, thread: u32, ended: Ended) -> u64 {
        self.thread(thread).end(ended).min(ended.part)
    }

    /// Something ends in a thread that may not have lain around what began since.
    pub(crate) fn add(&mut self, thread: u32, ended: Ended) {
        self.thread(thread).add(ended);
    }

    #[inline]
    fn thread(&mut self, thread: u32) -> &mut Waiting {
        let number = thread as usize;
        if number >= self.threads.len() {
            self.threads.resize_with(number + 1, Waiting::default);
        }
        &mut self.threads[number]
    }
}

impl<P: Part> Waiting<P> {
    /// Something ends. Returns the parts of what lay in it.
    #[inline]
    pub(crate) fn end(&mut self, ended: Ended<P>) -> P {
        let (mut inside, mut counted_from) = (P::default(), u64::MAX);
        // The one that ended last comes first.
        while let Some(inner) = self.0.pop_if(|inner| inner.from >= ended.from) {
            inside = inside.and(inner.before(counted_from));
            counted_from = counted_from.min(inner.from);
        }
        self.add(ended);
        inside
    }

    #[inline]
    fn add(&mut self, ended: Ended<P>) {
        if self.0.len() >= WAITING_MAX {
            self.join();
        }
        self.0.push(ended);
    }

    /// Makes one of two, of the half that ended first.
    #[cold]
    fn join(&mut self) {
        let rest = self.0.split_off(WAITING_MAX / 2);
        let sum = |pair: &[Ended<P>]| {
            let parts = pair.iter().map(|ended| ended.part);
            Ended {
                from: pair[0].from,
                to: pair[pair.len() - 1].to,
                part: parts.fold(P::default(), P::and),
            }
        };
        self.0 = self.0.chunks(2).map(sum).collect();
        self.0.extend(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_later_and_ended_lies_inside() {
        let mut waiting = Waiting::default();
        assert_eq!(waiting.end(ended(20, 25)), 0);
        assert_eq!(waiting.end(ended(30, 35)), 0);
        assert_eq!(waiting.end(ended(15, 40)), 10, "around both");
        assert_eq!(waiting.end(ended(50, 55)), 0, "beside it");
        assert_eq!(waiting.end(ended(10, 110)), 30, "direct ones alone");
    }

    #[test]
    fn what_overlaps_counts_once() {
        let mut waiting = Waiting::default();
        assert_eq!(waiting.end(ended(20, 30)), 0);
        assert_eq!(waiting.end(ended(25, 40)), 0);
        assert_eq!(waiting.end(ended(38, 50)), 0);
        assert_eq!(waiting.end(ended(10, 60)), 30, "20 to 50");
        let mut waiting = Waiting::default();
        assert_eq!(waiting.end(ended(20, 30)), 0);
        assert_eq!(waiting.end(ended(22, 40)), 0);
        assert_eq!(waiting.end(ended(15, 50)), 20, "20 to 40");
    }

    fn ended(from: u64, to: u64) -> Ended {
        Ended {
            from,
            to,
            part: to - from,
        }
    }

    #[test]
    fn very_many_are_kept_together_and_their_time_stays() {
        let mut waiting = Waiting::default();
        let all = 10 * WAITING_MAX as u64;
        (0..all).for_each(|n| assert_eq!(waiting.end(ended(1 + n, 2 + n)), 0));
        assert!(waiting.0.len() <= WAITING_MAX);
        assert_eq!(waiting.end(ended(0, 2 * all)), all);
    }
}
