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
//! What has ended and lies in nothing that has ended waits. When very much waits, what ended first is
//! taken together, two by two.

use crate::trace_file::thread_times::ThreadTimes;

/// Most that waits in a thread.
const WAITING_MAX: usize = 1 << 14;

/// What is added up of what lies in something: ns as a rule.
pub(crate) trait Part: Copy + Default {
    /// Both together.
    fn and(self, other: Self) -> Self;
}

impl Part for u64 {
    fn and(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl Part for ThreadTimes {
    fn and(self, other: Self) -> Self {
        Self::and(self, other)
    }
}

/// What has ended, by thread and in order, and lies in nothing that has ended.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    /// By number of the thread: they begin at 0 and have no gaps.
    threads: Vec<Waiting>,
}

/// What has ended in one thread: all of it, or that of one name.
///
/// Of each: the tick at which it began, and its part.
#[derive(Debug, Default)]
pub(crate) struct Waiting<P = u64>(Vec<(u64, P)>);

impl Nesting {
    /// Something ends in a thread that began at tick `start` and took `ns`. Returns how much of it was spent
    /// in what lay in it.
    #[inline]
    pub(crate) fn end(&mut self, thread: u32, start: u64, ns: u64) -> u64 {
        self.thread(thread).end(start, ns).min(ns)
    }

    /// Something ends in a thread that may not have lain around what began since.
    pub(crate) fn add(&mut self, thread: u32, start: u64, ns: u64) {
        self.thread(thread).add(start, ns);
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
    /// Something ends that began at tick `start`. Returns the parts of what lay in it.
    #[inline]
    pub(crate) fn end(&mut self, start: u64, part: P) -> P {
        let mut inside = P::default();
        while let Some((_, inner)) = self.0.pop_if(|(began, _)| *began >= start) {
            inside = inside.and(inner);
        }
        self.add(start, part);
        inside
    }

    #[inline]
    fn add(&mut self, start: u64, part: P) {
        if self.0.len() >= WAITING_MAX {
            self.join();
        }
        self.0.push((start, part));
    }

    /// Makes one of two, of the half that ended first.
    #[cold]
    fn join(&mut self) {
        let rest = self.0.split_off(WAITING_MAX / 2);
        let sum = |pair: &[(u64, P)]| {
            let parts = pair.iter().map(|ended| ended.1);
            (pair[0].0, parts.fold(P::default(), P::and))
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
        assert_eq!(waiting.end(20, 5), 0);
        assert_eq!(waiting.end(30, 5), 0);
        assert_eq!(waiting.end(15, 25), 10, "around both");
        assert_eq!(waiting.end(50, 5), 0, "beside it");
        assert_eq!(waiting.end(10, 100), 30, "direct ones alone");
    }

    #[test]
    fn very_many_are_kept_together_and_their_time_stays() {
        let mut waiting = Waiting::default();
        let all = 10 * WAITING_MAX as u64;
        (0..all).for_each(|n| assert_eq!(waiting.end(1 + n, 1), 0));
        assert!(waiting.0.len() <= WAITING_MAX);
        assert_eq!(waiting.end(0, 2 * all), all);
    }
}
