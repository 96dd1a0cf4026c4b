//! Numbers that look random, from a seed that is printed: set `RINGMARK_SEED` to see a run again.

use std::time::{SystemTime, UNIX_EPOCH};

/// The generator xorshift64*.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Seeded by `RINGMARK_SEED`, else by the time; prints the seed.
    #[must_use]
    pub fn seeded() -> Self {
        let given = std::env::var("RINGMARK_SEED").ok();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(1, |now| now.as_nanos() as u64);
        let seed = given.and_then(|text| text.parse().ok()).unwrap_or(now);
        println!("RINGMARK_SEED={seed}");
        Self(seed | 1)
    }

    /// Seeded by this number.
    #[must_use]
    pub const fn from_seed(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % end
    }
}
