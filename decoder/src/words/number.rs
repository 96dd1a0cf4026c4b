//! Numbers to decimal text, into a byte buffer.
//!
//! Some readers of JSON keep numbers as IEEE 754 doubles, which are exact up to 2^53 only.

const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// Largest magnitude up to which every reader of JSON keeps integers exact.
pub(crate) const EXACT_MAX: u64 = 1 << 53;

/// Appends `n` in decimal.
#[inline]
pub fn unsigned(mut n: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    while n >= 100 {
        let pair = PAIRS[(n % 100) as usize];
        n /= 100;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&pair);
    }
    if n >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[n as usize]);
    } else {
        at -= 1;
        digits[at] = b'0' + n as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends `n` in decimal.
#[inline]
pub fn signed(n: i64, out: &mut Vec<u8>) {
    if n < 0 {
        out.push(b'-');
    }
    unsigned(n.unsigned_abs(), out);
}

/// Appends `n` as a JSON number, or as a string beyond 2^53.
#[inline]
pub fn json_unsigned(n: u64, out: &mut Vec<u8>) {
    if n <= EXACT_MAX {
        unsigned(n, out);
    } else {
        out.push(b'"');
        unsigned(n, out);
        out.push(b'"');
    }
}

/// Appends `n` as a JSON number, or as a string beyond -2^53 and 2^53.
#[inline]
pub fn json_signed(n: i64, out: &mut Vec<u8>) {
    if n.unsigned_abs() <= EXACT_MAX {
        signed(n, out);
    } else {
        out.push(b'"');
        signed(n, out);
        out.push(b'"');
    }
}

/// The nine digits of nanoseconds within a second.
#[inline]
pub(crate) fn nine_digits(n: u32) -> [u8; 9] {
    let mut digits = [0; 9];
    digits[0] = b'0' + (n / 100_000_000 % 10) as u8;
    let (high, low) = (n / 10_000 % 10_000, n % 10_000);
    digits[1..3].copy_from_slice(&PAIRS[(high / 100) as usize]);
    digits[3..5].copy_from_slice(&PAIRS[(high % 100) as usize]);
    digits[5..7].copy_from_slice(&PAIRS[(low / 100) as usize]);
    digits[7..9].copy_from_slice(&PAIRS[(low % 100) as usize]);
    digits
}

/// The two digits of a number below 100.
pub(crate) const fn two_digits(n: u64) -> [u8; 2] {
    PAIRS[(n % 100) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        let mut n = 1u64;
        for step in 0..200u64 {
            for n in [n, n - 1, n.wrapping_mul(step), !n] {
                let mut out = Vec::new();
                unsigned(n, &mut out);
                out.push(b' ');
                signed(n as i64, &mut out);
                assert_eq!(out, format!("{n} {}", n as i64).into_bytes());
                let ns = (n % 1_000_000_000) as u32;
                assert_eq!(nine_digits(ns).to_vec(), format!("{ns:09}").into_bytes());
            }
            n = n.wrapping_mul(3).max(1);
        }
    }

    #[test]
    fn json_keeps_what_doubles_would_round_as_strings() {
        let mut out = Vec::new();
        json_unsigned(1 << 53, &mut out);
        json_unsigned((1 << 53) + 1, &mut out);
        json_signed(-(1 << 53) - 1, &mut out);
        assert_eq!(
            out,
            br#"9007199254740992"9007199254740993""-9007199254740993""#
        );
    }
}
