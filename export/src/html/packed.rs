//! The bytes that the page reads.
//!
//! They stand in two elements, each raw deflate in base64: `data`, and after the scripts `texts`, so
//! that the first picture need not wait for what it does not show. Numbers are LEB128: seven bits a
//! byte, the lowest first, the high bit set in all but the last.
//!
//! `data` has two sections, each a number of bytes and then those:
//!
//! 1. JSON: everything there is little of. `tracks` says how many rows each track has.
//! 2. The rows, in the order of the tracks, and then what each thread of `states` did, whose names are those of
//!    `does`. Each is the number of its slices, then five columns:
//!    starts in ns, each from the one before, the first one from `first`; durations in ns; numbers of
//!    names times 8, plus 1 if the slice has no end, plus 2 if it began before the first record, plus 4
//!    if it is a time in which a thread was in a span over threads; arguments: 0 for none, 1 for the next
//!    text that was not met yet, n + 2 for text n; and, in tracks of spans over threads and of such times,
//!    the slice that is around, or that the thread was in: 0 for none, n + 1 for the slice with number n.
//!
//! `texts` has the texts of arguments: how many, then their lengths in bytes, then all of them.

use miniz_oxide::deflate::compress_to_vec;

use super::rows::{Slice, flag};
use crate::texts::Texts;

/// Appends a number.
pub(super) fn number(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Appends a section.
pub(super) fn section(bytes: &[u8], out: &mut Vec<u8>) {
    number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a row. `met` is how many texts of arguments were met before it.
/// `places`: numbers of the slices of spans over threads, by those of the spans. `has_links`: the last column is
/// there.
pub(super) fn row(
    (slices, has_links): (&[Slice], bool),
    first_ns: u64,
    places: &[u32],
    met: &mut u32,
    out: &mut Vec<u8>,
) {
    number(slices.len() as u64, out);
    let mut before = first_ns;
    for slice in slices {
        let start = slice.start.max(before);
        number(start - before, out);
        before = start;
    }
    for slice in slices {
        number(slice.end.saturating_sub(slice.start), out);
    }
    for slice in slices {
        let name = u64::from(slice.name) << flag::BITS;
        number(name | u64::from(slice.flags), out);
    }
    for slice in slices {
        let word = match slice.args {
            None => 0,
            Some(text) if text == *met => {
                *met += 1;
                1
            }
            Some(text) => u64::from(text) + 2,
        };
        number(word, out);
    }
    for slice in slices.iter().filter(|_| has_links) {
        let place = slice.around.and_then(|life| places.get(life as usize));
        let place = place.filter(|place| **place != u32::MAX);
        number(place.map_or(0, |place| u64::from(*place) + 1), out);
    }
}

/// Appends the texts of arguments.
pub(super) fn texts(texts: &Texts, out: &mut Vec<u8>) {
    number(texts.len() as u64, out);
    texts.all().for_each(|text| number(text.len() as u64, out));
    out.extend_from_slice(texts.bytes());
}

/// How much is tried to make them smaller, of 10. More takes much longer and saves 1 % per step.
const EFFORT: u8 = 3;

/// As the page holds them: smaller, and of letters and digits alone.
pub(super) fn as_text(bytes: &[u8]) -> Vec<u8> {
    base64(&compress_to_vec(bytes, EFFORT))
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for place in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * place)) as usize & 63];
            out.push(if place > chunk.len() { b'=' } else { digit });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        let text = |bytes: &[u8]| String::from_utf8(base64(bytes)).unwrap();
        let all = [&b""[..], b"f", b"fo", b"foo", b"foob", b"\xff\xfb"].map(text);
        assert_eq!(all, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "//s="]);
    }
}
