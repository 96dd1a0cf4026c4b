//! The code that patch sites call. Each site has a trampoline, which is written once and never
//! changed. It pushes the site's number and jumps through the site's word in a table of targets. To
//! change a target is one store of data, without a moment in which the site has none.

use super::distance::distance;
use super::moved::{CODE_BYTES_MAX, INSTRUCTIONS_MAX, MovedCode};

/// Bytes of a trampoline.
pub(crate) const TRAMPOLINE_BYTES: usize = 16;

/// Bytes of the push that a trampoline begins with.
pub(super) const PUSH_BYTES: u8 = 5;

/// Bytes of a hop, a jump to a trampoline.
pub(crate) const HOP_BYTES: usize = 5;

/// Writes the trampoline of site `number` for address `at`. `None`: the word of its target, at
/// `target_at`, is out of reach.
///
/// The target finds the number at `[rsp]` and the address after the site at `[rsp + 8]`. A site
/// that jumps, in an exit sled, leaves the function's return address there.
pub(crate) fn write_trampoline(to: &mut [u8], at: u64, number: u32, target_at: u64) -> Option<()> {
    const JUMP_END: u64 = 11;
    let [n0, n1, n2, n3] = number.to_le_bytes();
    let [d0, d1, d2, d3] = distance(at + JUMP_END, target_at)?.to_le_bytes();
    let code = [
        0x68, n0, n1, n2, n3, // push number
        0xff, 0x25, d0, d1, d2, d3, // jmp *target(%rip)
        0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
    ];
    to.get_mut(..TRAMPOLINE_BYTES)?.copy_from_slice(&code);
    Some(())
}

/// Bytes of a trampoline of a site whose first instructions were moved.
pub(crate) const MOVED_TRAMPOLINE_BYTES: usize = 128;
/// Where the site's jump enters it.
pub(crate) const MOVED_ENTRY: usize = 16;
/// Where the moved instructions begin.
const MOVED_AT: usize = MOVED_ENTRY + CALL_BYTES;
/// Where the places stand at which each of them but the first begins, and what follows the last: for unwinders.
pub(super) const MOVED_PLACES: usize = 72;
/// Where the address of each stands in the function, and of what follows the last. The first is the site's.
pub(crate) const MOVED_ADDRESSES: usize = 80;
const CALL_BYTES: usize = 5;
/// Bytes of an instruction that is moved at most: a jump on a condition grows from two bytes to six.
const MOVED_BYTES_MAX: usize = CODE_BYTES_MAX + 4 * (INSTRUCTIONS_MAX / 2);

/// Writes the trampoline of a site whose first instructions were moved, for address `at`. The site, at
/// `site_at`, jumps to [`MOVED_ENTRY`]. `None`: something is out of reach.
///
/// ```text
///   0  push number; jmp *target(%rip)       as any trampoline
///  16  call 0; the instructions; jmp back
///  72  data: what unwinders need
/// ```
///
/// For the target it is as after a site's call; it returns behind the call, where the instructions are.
pub(crate) fn write_moved_trampoline(
    to: &mut [u8],
    at: u64,
    number: u32,
    target_at: u64,
    (code, site_at): (&MovedCode, u64),
) -> Option<()> {
    write_trampoline(to, at, number, target_at)?;
    let to_begin = -(MOVED_AT as i32);
    let mut put = |at: usize, bytes: &[u8]| {
        to.get_mut(at..at + bytes.len())?.copy_from_slice(bytes);
        Some(())
    };
    put(MOVED_ENTRY, &[0xe8])?;
    put(MOVED_ENTRY + 1, &to_begin.to_le_bytes())?;
    put(MOVED_PLACES, &[u8::MAX; INSTRUCTIONS_MAX])?;
    put(MOVED_ADDRESSES, &site_at.to_le_bytes())?;
    let (mut place, mut stood_at) = (MOVED_AT, site_at);
    let moved = code.moved(site_at, at + MOVED_AT as u64)?;
    for (n, (bytes, length)) in moved.iter().enumerate() {
        put(place, bytes)?;
        place += bytes.len();
        stood_at += *length as u64;
        put(MOVED_PLACES + n, &[place as u8])?;
        put(MOVED_ADDRESSES + 8 * (n + 1), &stood_at.to_le_bytes())?;
    }
    put(place, &write_hop(at + place as u64, stood_at)?)
}

const _: () = assert!(MOVED_AT + MOVED_BYTES_MAX + HOP_BYTES <= MOVED_PLACES);
const _: () = assert!(MOVED_PLACES + INSTRUCTIONS_MAX <= MOVED_ADDRESSES);
const _: () = assert!(MOVED_ADDRESSES + 8 * (INSTRUCTIONS_MAX + 1) <= MOVED_TRAMPOLINE_BYTES);

/// The call that a target returns behind, in a trampoline of a site whose instructions were moved. No site of
/// a compiler is so near to its trampoline.
pub(crate) const MOVED_CALL: [u8; CALL_BYTES] = [0xe8, (-(MOVED_AT as i8)) as u8, 0xff, 0xff, 0xff];

/// Where such a trampoline has its site's address, from the address behind that call.
pub(crate) const MOVED_SITE_FROM_CALL: usize = MOVED_ADDRESSES - MOVED_AT;

/// A jump at `at` to the trampoline at `trampoline_at`, for sites whose call has a fixed distance.
pub(crate) fn write_hop(at: u64, trampoline_at: u64) -> Option<[u8; HOP_BYTES]> {
    let [d0, d1, d2, d3] = distance(at + HOP_BYTES as u64, trampoline_at)?.to_le_bytes();
    Some([0xe9, d0, d1, d2, d3])
}
