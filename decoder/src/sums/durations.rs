//! Many durations in little memory: count, sum, shortest, longest, and percentiles.
//!
//! The first few are kept as they are. More go into a log-linear histogram: 128 buckets for each
//! power of two, so a bucket's middle is at most 0.4 % from each duration in it. Sums of parts
//! [merge](Durations::merge): the histogram of the whole is that of all parts.

/// Durations that are kept as they are before the histogram begins.
const EXACT_MAX: usize = 256;
/// Durations that wait for the histogram. Its buckets are far apart in memory: those of one duration after the other are
/// loaded at the same time.
const WAITING_MAX: usize = 64;
/// Buckets of a power of two, as a power of two.
const BUCKET_BITS: u32 = 7;
pub(super) const BUCKETS: usize = 1 << BUCKET_BITS;
/// Powers of two that have buckets. Number 0 holds what is below 2^7, each exactly.
pub(super) const POWERS: usize = 65 - BUCKET_BITS as usize;
/// Buckets that are one in [`Durations::buckets`].
const BUCKETS_SHOWN_AS_ONE: usize = 4;

/// How many durations are in each bucket of a power of two.
pub(super) type Counts = [u64; BUCKETS];

/// A bucket of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The shortest duration in ns that belongs to it.
    pub from_ns: u64,
    /// The longest one.
    pub to_ns: u64,
    /// Durations in it.
    pub count: u64,
}

/// Durations in ns.
#[derive(Debug, Clone, Default)]
pub struct Durations {
    pub(super) count: u64,
    pub(super) sum: u128,
    pub(super) min: u64,
    pub(super) max: u64,
    /// All of them, until there are too many. Then those that `powers` does not count yet.
    pub(super) exact: Vec<u64>,
    /// By power of two; empty: there is no histogram.
    pub(super) powers: Vec<Option<Box<Counts>>>,
}

impl Durations {
    /// None so far, in bounded memory: at most 59 KiB. Percentiles are within 0.4 %.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
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
        self.keep(ns);
    }

    /// Adds all of another sum, as if each of its durations were added.
    pub fn merge(&mut self, other: &Self) {
        self.merge_totals(other.count, other.sum, (other.min, other.max));
        other.exact.iter().for_each(|ns| self.keep(*ns));
        if !other.powers.is_empty() {
            self.begin_powers();
        }
        for (power, theirs) in other.powers.iter().enumerate() {
            let Some(theirs) = theirs else { continue };
            let counts = self.counts_of(power).iter_mut().zip(theirs.iter());
            counts.for_each(|(mine, theirs)| *mine += theirs);
        }
    }

    /// Counts durations that are not kept yet: their number, their sum, the shortest and the longest.
    pub(super) fn merge_totals(&mut self, count: u64, sum: u128, (min, max): (u64, u64)) {
        if count == 0 {
            return;
        }
        self.min = match self.count {
            0 => min,
            _ => self.min.min(min),
        };
        self.max = self.max.max(max);
        self.count = self.count.saturating_add(count);
        self.sum += sum;
    }

    pub(super) fn keep(&mut self, ns: u64) {
        self.exact.push(ns);
        let most = match self.powers.is_empty() {
            true => EXACT_MAX,
            false => WAITING_MAX,
        };
        if self.exact.len() > most {
            self.begin_powers();
        }
    }

    /// From here on there is a histogram. It counts all that waited.
    pub(super) fn begin_powers(&mut self) {
        if self.powers.is_empty() {
            self.powers = vec![None; POWERS];
        }
        let mut waiting = std::mem::take(&mut self.exact);
        waiting.iter().for_each(|ns| self.put(*ns));
        waiting.clear();
        waiting.shrink_to(WAITING_MAX + 1);
        self.exact = waiting;
    }

    fn put(&mut self, ns: u64) {
        let (power, bucket) = bucket_of(ns);
        self.counts_of(power)[bucket] += 1;
    }

    /// The counts of a power of two; there is a histogram.
    pub(super) fn counts_of(&mut self, power: usize) -> &mut Counts {
        self.powers[power].get_or_insert_with(|| Box::new([0; BUCKETS]))
    }

    /// The powers of two that have counts.
    pub(super) fn powers_counted(&self) -> impl Iterator<Item = (usize, &Counts)> {
        let powers = self.powers.iter().enumerate();
        powers.filter_map(|(power, counts)| Some((power, &**counts.as_ref()?)))
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
        let sorted = self.sorted();
        percents.map(|percent| {
            let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100);
            self.ranked(&sorted, u64::try_from(rank).unwrap_or(u64::MAX))
        })
    }

    /// The duration in ns that this part of them do not exceed, from 0 to 1, as [`Self::percentile_ns`] has it.
    #[must_use]
    pub fn quantile_ns(&self, part: f64) -> u64 {
        self.ranked(&self.sorted(), (self.count as f64 * part).ceil() as u64)
    }

    fn sorted(&self) -> Vec<u64> {
        let mut sorted = self.exact.clone();
        sorted.sort_unstable();
        sorted
    }

    /// The duration of a rank. `sorted`: those that no bucket counts.
    fn ranked(&self, sorted: &[u64], rank: u64) -> u64 {
        let rank = rank.max(1);
        if self.powers.is_empty() {
            let place = rank.min(self.count).saturating_sub(1) as usize;
            return sorted.get(place).copied().unwrap_or(0);
        }
        self.of_rank(sorted, rank).clamp(self.min, self.max)
    }

    /// The middle of the bucket that holds this rank.
    fn of_rank(&self, mut waiting: &[u64], mut rank: u64) -> u64 {
        for (power, counts) in self.powers.iter().enumerate() {
            let of_power = waiting.partition_point(|ns| bucket_of(*ns).0 <= power);
            let (here, later) = waiting.split_at(of_power);
            let counted = counts.as_ref().map_or(0, |counts| counts.iter().sum());
            let all = counted + here.len() as u64;
            if rank <= all {
                let mut counts = counts.as_deref().copied().unwrap_or([0; BUCKETS]);
                here.iter().for_each(|ns| counts[bucket_of(*ns).1] += 1);
                return middle(power, &counts, rank);
            }
            (waiting, rank) = (later, rank - all);
        }
        self.max
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let powers = self.powers.iter().flatten().count() * BUCKETS * 8;
        let kept = self.exact.capacity() * 8 + self.powers.capacity() * size_of::<usize>();
        size_of::<Self>() + kept + powers
    }

    /// The histogram: its buckets that are not empty, the shortest first. There are 32 for each power
    /// of two, so the middle of one is at most 1.6 % from each duration in it; below 128 ns each ns is
    /// one. Histograms with the same bounds merge by sums of their counts.
    #[must_use]
    pub fn buckets(&self) -> Vec<Bucket> {
        let mut whole = self.clone();
        whole.begin_powers();
        let mut found = Vec::new();
        for (power, counts) in whole.powers_counted() {
            let together = if power == 0 { 1 } else { BUCKETS_SHOWN_AS_ONE };
            for (number, counts) in counts.chunks(together).enumerate() {
                let count = counts.iter().sum();
                let (from_ns, width) = place(power, number * together);
                let to_ns = from_ns + (width * together as u64 - 1);
                found.extend((count > 0).then_some(Bucket {
                    from_ns,
                    to_ns,
                    count,
                }));
            }
        }
        found
    }
}

/// The power of two of a duration, and the bucket that counts it.
fn bucket_of(ns: u64) -> (usize, usize) {
    let power = u64::BITS.saturating_sub(ns.leading_zeros() + BUCKET_BITS);
    let bucket = match power {
        0 => ns,
        power => (ns >> (power - 1)) & (BUCKETS as u64 - 1),
    };
    (power as usize, bucket as usize)
}

/// The middle of the bucket of a power of two that holds this rank; there is one.
fn middle(power: usize, counts: &Counts, mut rank: u64) -> u64 {
    let mut bucket = 0;
    while bucket + 1 < BUCKETS && rank > counts[bucket] {
        rank -= counts[bucket];
        bucket += 1;
    }
    let (low, width) = place(power, bucket);
    low + (width - 1) / 2
}

/// The shortest duration of a bucket, and how many ns it spans.
const fn place(power: usize, bucket: usize) -> (u64, u64) {
    let width = 1_u64 << power.saturating_sub(1);
    match power {
        0 => (bucket as u64, width),
        _ => ((BUCKETS as u64 + bucket as u64) * width, width),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A sequence that looks random; the same every time.
    pub(in crate::sums) fn numbers(seed: u64) -> impl Iterator<Item = u64> {
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
            let mut few = Durations::new();
            all.iter().for_each(|ns| few.add(*ns));
            let mut sorted = all.clone();
            sorted.sort_unstable();
            for percent in [0, 1, 50, 90, 99, 100] {
                let rank = (all.len() * percent).div_ceil(100).max(1);
                let exact = sorted[rank - 1];
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

    /// Everything that can be asked of a sum.
    pub(in crate::sums) fn answers(
        durations: &Durations,
    ) -> (u64, u64, u64, u64, Vec<u64>, Vec<Bucket>) {
        (
            durations.count(),
            durations.sum_ns(),
            durations.min_ns(),
            durations.max_ns(),
            (0..=100).map(|p| durations.percentile_ns(p)).collect(),
            durations.buckets(),
        )
    }

    #[test]
    fn parts_merge_to_the_whole() {
        for seed in 1..30 {
            let all: Vec<u64> = numbers(seed).take(97 * seed as usize).collect();
            // Cut at places that differ, some parts empty, some with few, some with many.
            let (mut merged, mut whole) = (Durations::new(), Durations::new());
            all.iter().for_each(|ns| whole.add(*ns));
            let mut rest = &all[..];
            for part in numbers(seed + 100) {
                let (first, others) = rest.split_at((part % 700).min(rest.len() as u64) as usize);
                let mut part = Durations::new();
                first.iter().for_each(|ns| part.add(*ns));
                merged.merge(&part);
                rest = others;
                if rest.is_empty() {
                    break;
                }
            }
            merged.merge(&Durations::new());
            assert_eq!(answers(&merged), answers(&whole), "seed {seed}");
            let mut turned = Durations::new();
            turned.merge(&merged);
            assert_eq!(answers(&turned), answers(&whole), "seed {seed}");
            assert_eq!(merged.quantile_ns(0.99), whole.percentile_ns(99));
        }
    }

    #[test]
    fn buckets_hold_each_duration_once_and_are_narrow() {
        for seed in 1..20 {
            let all: Vec<u64> = numbers(seed).take(5_000).chain([u64::MAX, 0]).collect();
            let mut durations = Durations::new();
            all.iter().for_each(|ns| durations.add(*ns));
            let buckets = durations.buckets();
            let fits = |b: &Bucket, ns: &u64| (b.from_ns..=b.to_ns).contains(ns);
            for bucket in &buckets {
                let held = all.iter().filter(|ns| fits(bucket, ns)).count() as u64;
                assert_eq!(held, bucket.count, "{bucket:?}");
                let middle = bucket.from_ns + (bucket.to_ns - bucket.from_ns) / 2;
                let wrong = (middle - bucket.from_ns).max(bucket.to_ns - middle) as f64;
                assert!(wrong <= 0.016 * bucket.from_ns as f64, "{bucket:?}");
            }
            let held: u64 = buckets.iter().map(|bucket| bucket.count).sum();
            assert_eq!(held, all.len() as u64);
        }
    }
}
