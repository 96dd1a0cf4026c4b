//! Distances at which the operand of a call is harmless to a thread that is interrupted inside it.
//!
//! gcc fills a patch site with five one-byte NOPs. A thread may have been interrupted between any
//! two of them, in its own code or below a signal handler. There is no way to find out whether one
//! was, or when it will go on. So the site's bytes 1 to 4 only ever change, one by one, between
//! values with which execution can begin at any of them. These bytes are also the distance of the
//! call to its trampoline. Hence the hops to the trampolines of such sites lie where that distance
//! is one of these.

use super::nops::TEST;

/// A prefix that changes nothing before a NOP.
const NULL: u8 = 0x66;
/// Values of the byte that changes the distance by 64 KiB: prefixes that change nothing.
const SHIFTS: [u8; 8] = [0x66, 0x65, 0x64, 0x67, 0x3e, 0x36, 0x2e, 0x26];
/// One-byte instructions that change at most the arithmetic flags, which are unused where a
/// function begins: NOP, CLC, STC, CMC. Distances with these last bytes are negative.
const LAST: [u8; 4] = [0x90, 0xf8, 0xf9, 0xf5];
/// Segment prefixes, which 64-bit mode ignores, so the instruction after the site keeps its
/// meaning. Distances with these last bytes are positive, for programs at the bottom of the address
/// space.
const IGNORED: [u8; 4] = [0x3e, 0x36, 0x2e, 0x26];

/// The harmless distances in bytes, best first.
pub(crate) fn safe_distances() -> impl Iterator<Item = i32> {
    let below = LAST.into_iter().flat_map(|last| {
        let shifted = SHIFTS.into_iter();
        shifted.map(move |shift| i32::from_le_bytes([NULL, NULL, shift, last]))
    });
    let above = IGNORED.map(|last| i32::from_le_bytes([NULL, NULL, 0x90, last]));
    below.chain(above)
}

/// The first byte of a disabled site whose other bytes are `distance`: a prefix if the whole is
/// then one NOP, else [`TEST`].
pub(super) fn disabled_head(distance: i32) -> u8 {
    let [.., shift, last] = distance.to_le_bytes();
    let is_nop = SHIFTS.contains(&shift) && last == 0x90;
    if is_nop { NULL } else { TEST }
}

/// The operand of a relative jump or call to `to` that ends at `from`. `None`: out of reach.
pub(super) fn distance(from: u64, to: u64) -> Option<i32> {
    i32::try_from(to.wrapping_sub(from).cast_signed()).ok()
}

#[cfg(test)]
mod tests {
    use super::super::nops;
    use super::*;

    /// Whether execution may begin at each byte of `body` and come out after it unchanged.
    fn is_harmless(body: [u8; 4]) -> bool {
        let run = |code: &[u8]| {
            let prefixes = code.iter().take_while(|byte| SHIFTS.contains(byte)).count();
            // Prefixes alone go over to the next instruction: only those that are ignored may.
            let is_left = prefixes == code.len() && code.len() == 1 && IGNORED.contains(&code[0]);
            is_left || code.get(prefixes).is_some_and(|byte| LAST.contains(byte))
        };
        (0..4).all(|from| {
            let mut at = from;
            while at < 4 {
                if !run(&body[at..]) {
                    return false;
                }
                let prefixes = body[at..]
                    .iter()
                    .take_while(|byte| SHIFTS.contains(byte))
                    .count();
                at += prefixes + 1;
            }
            true
        })
    }

    #[test]
    fn every_mixture_of_old_and_new_bytes_is_harmless() {
        let mut count = 0;
        for distance in safe_distances() {
            let new = distance.to_le_bytes();
            for mixture in 0..16 {
                let body = [0, 1, 2, 3].map(|at| {
                    if mixture >> at & 1 == 1 {
                        new[at]
                    } else {
                        0x90
                    }
                });
                assert!(is_harmless(body), "{body:x?}");
            }
            count += 1;
        }
        assert_eq!(count, 36);
        assert!(
            !is_harmless([0x66, 0x66, 0x90, 0x66]),
            "0x66 would change the next instruction"
        );
        assert!(!is_harmless([0x12, 0x90, 0x90, 0x90]));
    }

    #[test]
    fn the_best_distances_leave_one_nop() {
        for distance in safe_distances() {
            let [a, b, c, d] = distance.to_le_bytes();
            let site = [disabled_head(distance), a, b, c, d];
            if site[0] == NULL {
                let plain = site.map(|byte| if SHIFTS.contains(&byte) { 0x66 } else { byte });
                assert_eq!(
                    nops::first(&plain).map(|nop| nop.length),
                    Some(5),
                    "{site:x?}"
                );
            }
        }
        assert_eq!(disabled_head(safe_distances().next().unwrap()), NULL);
    }
}
