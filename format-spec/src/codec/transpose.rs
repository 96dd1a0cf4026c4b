//! Bit planes: the same bit of many elements side by side, so that bits that never change vanish
//! under LZ4 and bits that are noise do not spoil their neighbours.
//!
//! The first `n - n % 8` of `n` elements of `w` bytes become `8 * w` planes of `n / 8` bytes:
//! plane `8 * byte + bit`, in it byte `g` holds that bit of elements `8g..8g + 8`, the lowest bit
//! the first element. The remaining `n % 8` elements follow as they are, little-endian.

use alloc::vec::Vec;

/// Transposes an 8 x 8 bit matrix: bit `c` of byte `r` becomes bit `r` of byte `c`.
const fn transpose8(mut x: u64) -> u64 {
    let t = (x ^ (x >> 7)) & 0x00AA_00AA_00AA_00AA;
    x ^= t ^ (t << 7);
    let t = (x ^ (x >> 14)) & 0x0000_CCCC_0000_CCCC;
    x ^= t ^ (t << 14);
    let t = (x ^ (x >> 28)) & 0x0000_0000_F0F0_F0F0;
    x ^ t ^ (t << 28)
}

/// Appends the planes of `values`, each taken as its low `width` bytes.
pub(super) fn planes(values: &[u64], width: usize, out: &mut Vec<u8>) {
    let groups = values.len() / 8;
    let start = out.len();
    out.resize(start + groups * 8 * width, 0);
    let planes = &mut out[start..];
    for (g, group) in values.chunks_exact(8).enumerate() {
        let any = group.iter().fold(0, |any, v| any | v);
        for byte in 0..width {
            if (any >> (8 * byte)) as u8 != 0 {
                put_byte_plane(group, byte, g, groups, planes);
            }
        }
    }
    for value in &values[groups * 8..] {
        out.extend_from_slice(&value.to_le_bytes()[..width]);
    }
}

fn put_byte_plane(group: &[u64], byte: usize, g: usize, groups: usize, planes: &mut [u8]) {
    let gathered = group.iter().enumerate().fold(0, |word, (i, value)| {
        word | (((value >> (8 * byte)) & 0xFF) << (8 * i))
    });
    let rows = transpose8(gathered).to_le_bytes();
    for (bit, row) in rows.iter().enumerate() {
        planes[(8 * byte + bit) * groups + g] = *row;
    }
}

/// Reads `count` values of `width` bytes from the front of `bytes`; `None` if they are not there.
pub(super) fn unplanes(bytes: &[u8], count: usize, width: usize) -> Option<(Vec<u64>, &[u8])> {
    let (own, rest) = bytes.split_at_checked(count.checked_mul(width)?)?;
    let groups = count / 8;
    let (planes, tail) = own.split_at(groups * 8 * width);
    let mut values = alloc::vec![0u64; count];
    for (g, group) in values.chunks_exact_mut(8).enumerate() {
        for byte in 0..width {
            take_byte_plane(group, byte, g, groups, planes);
        }
    }
    for (value, bytes) in values[groups * 8..]
        .iter_mut()
        .zip(tail.chunks_exact(width))
    {
        let mut whole = [0; 8];
        whole[..width].copy_from_slice(bytes);
        *value = u64::from_le_bytes(whole);
    }
    Some((values, rest))
}

fn take_byte_plane(group: &mut [u64], byte: usize, g: usize, groups: usize, planes: &[u8]) {
    let mut rows = [0; 8];
    for (bit, row) in rows.iter_mut().enumerate() {
        *row = planes[(8 * byte + bit) * groups + g];
    }
    let gathered = transpose8(u64::from_le_bytes(rows));
    for (i, value) in group.iter_mut().enumerate() {
        *value |= ((gathered >> (8 * i)) & 0xFF) << (8 * byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_is_transposed() {
        for row in 0..8 {
            for column in 0..8 {
                let bit = |r: u64, c: u64| 1u64 << (8 * r + c);
                assert_eq!(transpose8(bit(row, column)), bit(column, row));
            }
        }
    }

    #[test]
    fn planes_come_back_at_every_length() {
        for width in [2usize, 4, 8] {
            for count in 0..40u64 {
                let mask = u64::MAX >> (64 - 8 * width);
                let values: Vec<u64> = (0..count)
                    .map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) & mask)
                    .collect();
                let mut bytes = Vec::new();
                planes(&values, width, &mut bytes);
                let (back, rest) = unplanes(&bytes, values.len(), width).unwrap();
                assert_eq!((back, rest), (values, &[][..]));
            }
        }
    }
}
