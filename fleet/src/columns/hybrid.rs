//! Numbers as Parquet's hybrid of runs and of groups of eight that are packed bit by bit.

/// Numbers from which on equal ones are a run.
const RUN_MIN: u32 = 8;
/// Packed numbers that are kept, at most: a multiple of 8.
const PACKED_MAX: usize = 4096;

/// Encodes numbers of a known width.
pub(super) struct Hybrid {
    /// Bits of a number.
    width: u32,
    out: Vec<u8>,
    /// The last number, and how many times it came.
    run: (u32, u32),
    /// Numbers before it that will be packed.
    packed: Vec<u32>,
}

impl Hybrid {
    /// Appends to `out`. `width`: bits of the largest number.
    pub(super) fn new(width: u32, out: Vec<u8>) -> Self {
        Self {
            width,
            out,
            run: (0, 0),
            packed: Vec::with_capacity(PACKED_MAX + 8),
        }
    }

    /// Appends a number `count` times.
    #[inline]
    pub(super) fn push(&mut self, number: u32, count: u32) {
        if self.run.0 == number {
            self.run.1 += count;
        } else {
            self.settle();
            self.run = (number, count);
        }
    }

    /// Encodes the last run.
    #[inline]
    fn settle(&mut self) {
        let (number, count) = self.run;
        if count == 1 {
            return self.pack(number);
        }
        // Packed numbers before a run fill whole groups.
        let missing = (8 - self.packed.len() as u32 % 8) % 8;
        let filling = missing.min(count);
        let left = count - filling;
        if left < RUN_MIN {
            (0..count).for_each(|_| self.pack(number));
            return;
        }
        (0..filling).for_each(|_| self.pack(number));
        self.flush();
        varint(u64::from(left) << 1, &mut self.out);
        let bytes = number.to_le_bytes();
        let length = self.width.div_ceil(8) as usize;
        self.out.extend_from_slice(&bytes[..length]);
    }

    #[inline]
    fn pack(&mut self, number: u32) {
        self.packed.push(number);
        if self.packed.len() >= PACKED_MAX {
            self.flush();
        }
    }

    /// Writes the packed numbers: whole groups, or the last ones of all.
    fn flush(&mut self) {
        if self.packed.is_empty() {
            return;
        }
        let groups = self.packed.len().div_ceil(8);
        self.packed.resize(groups * 8, 0);
        varint((groups as u64) << 1 | 1, &mut self.out);
        let (mut word, mut bits) = (0_u64, 0);
        for number in self.packed.drain(..) {
            word |= u64::from(number) << bits;
            bits += self.width;
            if bits >= 32 {
                self.out.extend_from_slice(&(word as u32).to_le_bytes());
                word >>= 32;
                bits -= 32;
            }
        }
        // Groups end with a byte.
        let rest = word.to_le_bytes();
        self.out.extend_from_slice(&rest[..bits as usize / 8]);
    }

    /// All that was encoded.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.settle();
        self.flush();
        self.out
    }
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads numbers as the format describes them.
    fn decoded(width: u32, bytes: &[u8], count: usize) -> Vec<u32> {
        let (mut at, mut found) = (0, Vec::new());
        while found.len() < count {
            let (mut head, mut shift) = (0_u64, 0);
            loop {
                let byte = bytes[at];
                at += 1;
                head |= u64::from(byte & 0x7F) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            let of_width = width.div_ceil(8) as usize;
            if head & 1 == 0 {
                let mut number = [0; 4];
                number[..of_width].copy_from_slice(&bytes[at..at + of_width]);
                at += of_width;
                found.extend((0..head >> 1).map(|_| u32::from_le_bytes(number)));
                continue;
            }
            let numbers = (head >> 1) as usize * 8;
            for number in 0..numbers {
                let bit = |of: u32| {
                    let place = at * 8 + number * width as usize + of as usize;
                    u32::from(bytes[place / 8] >> (place % 8) & 1) << of
                };
                found.push((0..width).map(bit).sum());
            }
            at += numbers * width as usize / 8;
        }
        assert_eq!(at, bytes.len());
        found.truncate(count);
        found
    }

    #[test]
    fn numbers_are_read_back() {
        let mut state = 7_u64;
        let mut next = |end: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % end
        };
        for width in [0, 1, 2, 7, 8, 9, 17, 24, 31, 32] {
            for longest in [1, 3, 20, 5000] {
                let (mut numbers, mut hybrid) = (Vec::new(), Hybrid::new(width, Vec::new()));
                while numbers.len() < 9000 {
                    let number = next(1 << width) as u32;
                    let count = 1 + next(longest) as u32;
                    hybrid.push(number, count);
                    numbers.extend((0..count).map(|_| number));
                }
                let bytes = hybrid.finish();
                assert!(
                    decoded(width, &bytes, numbers.len()) == numbers,
                    "{width} {longest}"
                );
            }
        }
        assert!(Hybrid::new(3, Vec::new()).finish().is_empty());
    }
}
