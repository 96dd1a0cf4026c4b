//! [`Durations`] as bytes, for sums that are merged elsewhere.
//!
//! Words of 64 bits, the lowest byte first: count, sum (two), shortest, longest, the number of durations that no bucket
//! counts, these, and the buckets that are not empty, in ascending order. A bucket is one word with its place and its
//! count; a count that has no room there is a word of its own.

use crate::sums::durations::{BUCKETS, Durations, POWERS};

/// Bytes of a word.
const WORD: usize = size_of::<u64>();
/// Words before the durations.
const HEAD: usize = 6;
/// Bits of a bucket's word that have its count. The place is above them. 0: the next word is the count.
const COUNT_BITS: u32 = u64::BITS - (POWERS * BUCKETS).ilog2() - 1;

impl Durations {
    /// Appends all of it as bytes, for [`Self::merge_bytes`] of the same version.
    pub fn bytes(&mut self, out: &mut Vec<u8>) {
        if !self.powers.is_empty() {
            self.begin_powers();
        }
        let mut word = |word: u64| out.extend_from_slice(&word.to_le_bytes());
        let (high, low) = ((self.sum >> 64) as u64, self.sum as u64);
        let exact = self.exact.len() as u64;
        let head: [u64; HEAD] = [self.count, high, low, self.min, self.max, exact];
        head.into_iter().for_each(&mut word);
        self.exact.iter().for_each(|ns| word(*ns));
        for (power, counts) in self.powers_counted() {
            for (bucket, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                let place = ((power * BUCKETS + bucket) as u64) << COUNT_BITS;
                match count >> COUNT_BITS {
                    0 => word(place | count),
                    _ => [place, *count].into_iter().for_each(&mut word),
                }
            }
        }
    }

    /// Adds all of another sum, of which [`Self::bytes`] wrote these. `None`: it did not, and nothing is added.
    pub fn merge_bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let other = Written::of(bytes)?;
        let _ = self.count.checked_add(other.count)?;
        let _ = self.sum.checked_add(other.sum)?;
        self.merge_totals(other.count, other.sum, (other.min, other.max));
        other.exact().for_each(|ns| self.keep(ns));
        if !other.buckets.is_empty() {
            self.begin_powers();
        }
        other.each_bucket(|place, count| {
            self.counts_of(place / BUCKETS)[place % BUCKETS] += count;
            Some(())
        })
    }
}

/// Bytes that say what a sum may have.
struct Written<'b> {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    exact: &'b [[u8; WORD]],
    buckets: &'b [[u8; WORD]],
}

impl<'b> Written<'b> {
    fn of(bytes: &'b [u8]) -> Option<Self> {
        let (words, []) = bytes.as_chunks::<WORD>() else {
            return None;
        };
        let (head, rest) = words.split_first_chunk::<HEAD>()?;
        let [count, high, low, min, max, exact] = head.map(u64::from_le_bytes);
        let (exact, buckets) = rest.split_at_checked(usize::try_from(exact).ok()?)?;
        let found = Self {
            count,
            sum: u128::from(high) << 64 | u128::from(low),
            min,
            max,
            exact,
            buckets,
        };
        let is_inside = found.exact().all(|ns| (min..=max).contains(&ns));
        let is_sound = found.kept()? == count && min <= max && is_inside;
        is_sound.then_some(found)
    }

    /// How many durations it has in all. `None`: the buckets are not such as [`Durations::bytes`] writes.
    fn kept(&self) -> Option<u64> {
        let mut all = self.exact.len() as u64;
        let mut last = None;
        self.each_bucket(|place, count| {
            let is_next = last < Some(place) && place < POWERS * BUCKETS && count > 0;
            last = Some(place);
            all = all.checked_add(count).filter(|_| is_next)?;
            Some(())
        })?;
        Some(all)
    }

    fn exact(&self) -> impl Iterator<Item = u64> {
        self.exact.iter().map(|word| u64::from_le_bytes(*word))
    }

    /// Gives each bucket to `to`: its place and its count. `None`: a count is missing, or `to` refused one.
    fn each_bucket(&self, mut to: impl FnMut(usize, u64) -> Option<()>) -> Option<()> {
        let mut words = self.buckets.iter().map(|word| u64::from_le_bytes(*word));
        while let Some(word) = words.next() {
            let count = match word & ((1 << COUNT_BITS) - 1) {
                0 => words.next()?,
                count => count,
            };
            to((word >> COUNT_BITS) as usize, count)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::durations::tests::{answers, numbers};

    fn sum_of(all: &[u64]) -> Durations {
        let mut sum = Durations::new();
        all.iter().for_each(|ns| sum.add(*ns));
        sum
    }

    fn bytes_of(mut sum: Durations) -> Vec<u8> {
        let mut bytes = Vec::new();
        sum.bytes(&mut bytes);
        bytes
    }

    fn bytes_of_words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn parts_merge_to_the_whole_in_any_order() {
        for seed in 1..30 {
            let all: Vec<u64> = numbers(seed).take(113 * seed as usize).collect();
            // Some have few, some have many, and one has none.
            let sizes = [300, 0, 7, 256, 257, 40, 2000];
            let (mut parts, mut rest, mut size) = (Vec::new(), &all[..], sizes.iter().cycle());
            while !rest.is_empty() {
                let next = *size.next().expect("without end");
                let (part, others) = rest.split_at(rest.len().min(next));
                parts.push(bytes_of(sum_of(part)));
                rest = others;
            }
            let whole = answers(&sum_of(&all));
            for turn in 0..parts.len() {
                parts.rotate_left(turn);
                let mut merged = Durations::new();
                for part in &parts {
                    merged.merge_bytes(part).expect("its bytes");
                }
                assert_eq!(answers(&merged), whole, "seed {seed}, turn {turn}");
            }
        }
    }

    #[test]
    fn a_count_may_be_too_large_for_the_word_of_its_bucket() {
        let mut sum = sum_of(&[5, 5, 5, 1 << 40, u64::MAX].repeat(60));
        (0..54).for_each(|_| sum.merge(&sum.clone()));
        assert!((sum.count() / 5) >> COUNT_BITS > 0);
        let mut merged = Durations::new();
        merged
            .merge_bytes(&bytes_of(sum.clone()))
            .expect("its bytes");
        assert_eq!(answers(&merged), answers(&sum));
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let all: Vec<u64> = numbers(7).take(700).collect();
        for bytes in [bytes_of(sum_of(&all)), bytes_of(sum_of(&all[..9]))] {
            let mut sum = sum_of(&all[..300]);
            let before = answers(&sum);
            for end in 0..bytes.len() {
                assert_eq!(sum.merge_bytes(&bytes[..end]), None, "{end} bytes");
            }
            assert_eq!(answers(&sum), before);
            let longer = [&bytes[..], &[0; WORD]].concat();
            assert_eq!(sum.merge_bytes(&longer), None);
            assert_eq!(sum.merge_bytes(&bytes), Some(()));
        }
    }

    #[test]
    fn what_no_sum_writes_is_refused() {
        let at = |place: u64, count: u64| place << COUNT_BITS | count;
        let (places, most) = ((POWERS * BUCKETS) as u64, u64::MAX);
        let refused: [&[u64]; 12] = [
            &[1, 0, 5, 5, 5, 2, 5],
            &[2, 0, 5, 5, 5, 1, 5],
            &[1, 0, 5, 6, 5, 1, 5],
            &[1, 0, 5, 5, 5, 1, 6],
            &[1, 0, 5, 5, 5, most, 5],
            &[1, 0, 5, 5, 5, 0, at(places, 1)],
            &[1, 0, 5, 5, 5, 0, at(5, 0)],
            &[0, 0, 5, 5, 5, 0, at(5, 0), 0],
            &[2, 0, 5, 5, 5, 0, at(5, 1), at(5, 1)],
            &[2, 0, 5, 5, 5, 0, at(6, 1), at(5, 1)],
            &[most, 0, 5, 5, 5, 0, at(5, 0), most],
            &[1, most, most, 5, 5, 1, 5],
        ];
        let mut sum = sum_of(&[1, 2, 3]);
        let before = answers(&sum);
        for words in refused {
            assert_eq!(sum.merge_bytes(&bytes_of_words(words)), None, "{words:?}");
        }
        assert_eq!(answers(&sum), before);
        let sound = [1, 0, 5, 5, 5, 0, at(5, 1)];
        assert_eq!(sum.merge_bytes(&bytes_of_words(&sound)), Some(()));
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let all: Vec<u64> = numbers(3).take(900).collect();
        let bytes = [bytes_of(sum_of(&all)), bytes_of(sum_of(&all[..200]))];
        let mut random = numbers(11);
        let mut next = || random.next().expect("without end");
        for round in 0..5_000 {
            let mut bytes = bytes[round % 2].clone();
            for _ in 0..=next() % 3 {
                let place = next() as usize % bytes.len();
                // The head is small, and decides most.
                let place = if next() % 2 == 0 { place % 48 } else { place };
                bytes[place] = next() as u8;
            }
            let mut sum = sum_of(&all[..20]);
            if sum.merge_bytes(&bytes).is_some() {
                let counted = sum.buckets().iter().map(|bucket| bucket.count).sum();
                assert_eq!(sum.count(), counted);
                assert!((sum.min_ns()..=sum.max_ns()).contains(&sum.quantile_ns(0.99)));
            }
        }
    }
}
