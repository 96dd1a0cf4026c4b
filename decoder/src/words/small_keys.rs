//! Maps by numbers and addresses of our own, which need no defence against chosen keys.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are small numbers or addresses, none of them chosen by a trace.
pub type SmallKeys<K, V> = HashMap<K, V, BuildHasherDefault<Multiply>>;

/// Multiplies, and so spreads numbers that are near each other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Multiply(u64);

/// An odd number near 2^64 divided by the golden ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        // The high bits are the best ones, and a map takes the low ones too.
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(FACTOR);
    }

    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    #[inline]
    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }
}
