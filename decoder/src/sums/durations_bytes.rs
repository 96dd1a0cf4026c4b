//! [`Durations`] as bytes, for sums that are merged elsewhere.

use crate::sums::durations::{BUCKETS, Durations};

impl Durations {
    /// Appends all of it as bytes, for [`Self::of_bytes`] of the same version.
    pub fn bytes(&self, out: &mut Vec<u8>) {
        let mut word = |word: u64| out.extend_from_slice(&word.to_le_bytes());
        let (high, low) = ((self.sum >> 64) as u64, self.sum as u64);
        let numbers = [self.count, high, low, self.min, self.max];
        numbers.into_iter().for_each(&mut word);
        let mut settled = self.clone();
        if !settled.powers.is_empty() {
            settled.begin_powers();
        }
        word(settled.exact.len() as u64);
        settled.exact.iter().for_each(|ns| word(*ns));
        for (power, counts) in settled.powers_counted() {
            for (bucket, count) in counts.iter().enumerate() {
                if *count > 0 {
                    word((power * BUCKETS + bucket) as u64);
                    word(*count);
                }
            }
        }
    }

    /// What [`Self::bytes`] wrote; `None`: it is something else.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let words = bytes
            .chunks(8)
            .map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
        let words: Vec<u64> = words.collect::<Option<_>>()?;
        let [count, high, low, min, max, exact, ref rest @ ..] = *words else {
            return None;
        };
        let (exact, buckets) = rest.split_at_checked(usize::try_from(exact).ok()?)?;
        let mut found = Self {
            count,
            sum: u128::from(high) << 64 | u128::from(low),
            min,
            max,
            exact: exact.to_vec(),
            ..Self::default()
        };
        for pair in buckets.chunks(2) {
            let &[place, count] = pair else { return None };
            found.begin_powers();
            let place = usize::try_from(place).ok()?;
            let counts = found.powers.get_mut(place / BUCKETS)?;
            counts.get_or_insert_with(|| Box::new([0; BUCKETS]))[place % BUCKETS] = count;
        }
        Some(found)
    }
}
