//! How much of the end of a trace has not too many slices, from the times of a few of them.

/// About how many times are noted.
const NOTED: u64 = 1 << 16;

/// The times of some slices, equally many apart.
#[derive(Debug)]
pub(crate) struct Newest {
    /// Slices from one that is noted to the next.
    apart: u64,
    /// How many come before the next one.
    left: u64,
    /// Wall times of the records that they belong to, in ns.
    times: Vec<u64>,
}

impl Newest {
    /// None yet, of a trace with this many events.
    pub(crate) fn new(events: u64) -> Self {
        let apart = (events / NOTED).max(1);
        Self {
            apart,
            left: apart,
            times: Vec::new(),
        }
    }

    /// Takes another slice, in any order.
    #[inline]
    pub(crate) fn take(&mut self, at_ns: u64) {
        self.left -= 1;
        if self.left == 0 {
            self.left = self.apart;
            self.times.push(at_ns);
        }
    }

    /// A time from which on there are at most about `slices`; `None`: there are no more at all.
    pub(crate) fn since(&self, slices: u64) -> Option<u64> {
        let noted = (slices / self.apart) as usize;
        let mut times = self.times.clone();
        let earlier = times.len().checked_sub(noted).filter(|n| *n > 0)?;
        times.sort_unstable();
        // One slice after the latest of those that are too many.
        Some(times[earlier - 1] + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_newer_are_no_more_than_wanted() {
        // Times come thread by thread.
        for (threads, each) in [(1, 100_000), (7, 30_011), (1000, 300)] {
            let mut newest = Newest::new(threads * each);
            let of = |thread: u64| (0..each).map(move |n| n * 1000 + thread);
            (0..threads).flat_map(of).for_each(|at| newest.take(at));
            for wanted in [1_000, 50_000, threads * each / 2] {
                let since = newest.since(wanted).unwrap();
                let newer = (0..threads).flat_map(of).filter(|at| *at >= since);
                let newer = newer.count() as u64;
                let near = wanted / 50 + threads * newest.apart;
                assert!(newer.abs_diff(wanted) <= near, "{newer} for {wanted}");
            }
            assert_eq!(newest.since(threads * each), None);
        }
    }
}
