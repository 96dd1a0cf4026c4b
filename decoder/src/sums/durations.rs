//! Many durations in little memory: count, sum, shortest, longest, and percentiles.
//!
//! The first few are kept as they are. More go into a log-linear histogram: 128 buckets for each
//! power of two, so a bucket's middle is at most 0.4 % from each duration in it.

/// Durations that are kept as they are before the histogram begins.
const EXACT_MAX: usize = 256;
/// Buckets of a power of two, as a power of two.
const BUCKET_BITS: u32 = 7;
const BUCKETS: usize = 1 << BUCKET_BITS;

/// Durations in ns.
#[derive(Debug, Clone, Default)]
pub struct Durations {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    /// All of them, until there are too many; always all if `keeps_all`.
    exact: Vec<u64>,
    keeps_all: bool,
    /// Counts by power of two, then bucket. Number 0 holds what is below 2^7, each exactly.
    powers: Vec<Option<Box<[u64; BUCKETS]>>>,
}

impl Durations {
    /// None so far, in bounded memory: at most 58 KiB. Percentiles are within 0.4 %.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// None so far. Each is kept, and percentiles are exact: 8 bytes for each duration.
    #[must_use]
    pub fn exact() -> Self {
        Self {
            keeps_all: true,
            ..Self::default()
        }
    }

    /// [`Self::exact`], or else [`Self::new`].
    pub(crate) fn kept(is_exact: bool) -> Self {
        if is_exact { Self::exact() } else { Self::new() }
    }

    /// Adds one.
    pub fn add(&mut self, ns: u64) {
        self.min = if self.count == 0 {
            ns
        } else {
            self.min.min(ns)
        };
        self.max = self.max.max(ns);
        self.count += 1;
        self.sum += u128::from(ns);
        if !self.powers.is_empty() {
            self.put(ns);
            return;
        }
        self.exact.push(ns);
        if self.exact.len() > EXACT_MAX && !self.keeps_all {
            self.powers = vec![None; 65 - BUCKET_BITS as usize];
            for ns in std::mem::take(&mut self.exact) {
                self.put(ns);
            }
        }
    }

    fn put(&mut self, ns: u64) {
        let power = u64::BITS.saturating_sub(ns.leading_zeros() + BUCKET_BITS);
        let bucket = match power {
            0 => ns,
            power => (ns >> (power - 1)) & (BUCKETS as u64 - 1),
        };
        let counts = self.powers[power as usize].get_or_insert_with(|| Box::new([0; BUCKETS]));
        counts[bucket as usize] += 1;
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their sum in ns; stays at the largest number that fits.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.sum.try_into().unwrap_or(u64::MAX)
    }

    /// The shortest, in ns; 0: there is none.
    #[must_use]
    pub const fn min_ns(&self) -> u64 {
        self.min
    }

    /// The longest, in ns; 0: there is none.
    #[must_use]
    pub const fn max_ns(&self) -> u64 {
        self.max
    }

    /// Their mean, in ns; 0: there is none.
    #[must_use]
    pub fn mean_ns(&self) -> u64 {
        let mean = self.sum.checked_div(self.count.into());
        mean.unwrap_or(0).try_into().unwrap_or(u64::MAX)
    }

    /// The duration in ns that `percent` of them do not exceed, by nearest rank: exact up to 256 of
    /// them, else within 0.4 %. 0: there is none.
    #[must_use]
    pub fn percentile_ns(&self, percent: u32) -> u64 {
        let [found] = self.percentiles_ns([percent]);
        found
    }

    /// [`Self::percentile_ns`] of each.
    #[must_use]
    pub fn percentiles_ns<const N: usize>(&self, percents: [u32; N]) -> [u64; N] {
        let mut sorted = self.exact.clone();
        sorted.sort_unstable();
        percents.map(|percent| self.percentile_of(&sorted, percent))
    }

    fn percentile_of(&self, sorted: &[u64], percent: u32) -> u64 {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100);
        let rank = u64::try_from(rank).unwrap_or(u64::MAX).max(1);
        if self.powers.is_empty() {
            let place = rank.min(self.count).saturating_sub(1) as usize;
            return sorted.get(place).copied().unwrap_or(0);
        }
        self.of_rank(rank).clamp(self.min, self.max)
    }

    /// The middle of the bucket that holds this rank.
    fn of_rank(&self, mut rank: u64) -> u64 {
        for (power, counts) in self.powers.iter().enumerate() {
            for (bucket, count) in counts.iter().flat_map(|counts| counts.iter().enumerate()) {
                if rank <= *count {
                    let width = 1_u64 << power.saturating_sub(1);
                    let low = match power {
                        0 => bucket as u64,
                        _ => (BUCKETS as u64 + bucket as u64) * width,
                    };
                    return low + (width - 1) / 2;
                }
                rank -= count;
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sequence that looks random; the same every time.
    fn numbers(seed: u64) -> impl Iterator<Item = u64> {
        let mut state = seed;
        std::iter::repeat_with(move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(seed | 1);
            // From some ns to some hours.
            (state >> 20) >> (state % 44)
        })
    }

    #[test]
    fn percentiles_are_within_one_percent() {
        for seed in 1..20 {
            let all: Vec<u64> = numbers(seed).take(20_000).collect();
            let (mut few, mut every) = (Durations::new(), Durations::exact());
            all.iter().for_each(|ns| few.add(*ns));
            all.iter().for_each(|ns| every.add(*ns));
            let mut sorted = all.clone();
            sorted.sort_unstable();
            for percent in [0, 1, 50, 90, 99, 100] {
                let rank = (all.len() * percent).div_ceil(100).max(1);
                let exact = sorted[rank - 1];
                assert_eq!(every.percentile_ns(percent as u32), exact, "seed {seed}");
                let found = few.percentile_ns(percent as u32);
                let wrong = found.abs_diff(exact) as f64;
                assert!(
                    wrong <= 0.004 * exact as f64,
                    "seed {seed}: {found} for {exact}"
                );
            }
            let sum: u128 = all.iter().map(|ns| u128::from(*ns)).sum();
            assert_eq!(u128::from(few.sum_ns()), sum);
            assert_eq!(
                (few.min_ns(), few.max_ns()),
                (sorted[0], sorted[sorted.len() - 1])
            );
            assert_eq!(
                (few.count(), few.mean_ns()),
                (20_000, (sum / 20_000) as u64)
            );
        }
    }

    #[test]
    fn none_and_the_largest() {
        let none = Durations::new();
        assert_eq!(
            (none.percentile_ns(50), none.mean_ns(), none.min_ns()),
            (0, 0, 0)
        );
        let mut large = Durations::new();
        (0..1000).for_each(|_| large.add(u64::MAX));
        assert_eq!(
            (large.percentile_ns(99), large.sum_ns()),
            (u64::MAX, u64::MAX)
        );
        let mut small = Durations::new();
        (0..1000).for_each(|n| small.add(n % 128));
        assert_eq!(
            (small.percentile_ns(100), small.percentile_ns(50)),
            (127, 62)
        );
    }
}
