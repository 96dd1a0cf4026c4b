//! The code that patch sites call. Each site has a trampoline, which is written once and never
//! changed. It pushes the site's number and jumps through the site's word in a table of targets. To
//! change a target is one store of data, without a moment in which the site has none.

use super::distance::distance;
use super::moved::{MOVED_BYTES_MAX, MovedInstruction};

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

/// Bytes of a trampoline of a site whose first instruction was moved.
pub(crate) const MOVED_TRAMPOLINE_BYTES: usize = 64;
/// Where the site's jump enters it.
pub(crate) const MOVED_ENTRY: usize = 16;
/// Where the moved instruction begins.
const MOVED_AT: usize = MOVED_ENTRY + CALL_BYTES;
/// Where the bytes stand that the instruction pushes, for unwinders.
pub(super) const MOVED_PUSHES: usize = 48;
/// Where it stands at which place they are pushed.
pub(super) const MOVED_PUSHED_FROM: usize = 52;
/// Where the address of the site stands.
const MOVED_SITE: usize = 56;
const CALL_BYTES: usize = 5;

/// Writes the trampoline of a site whose first instruction was moved, for address `at`. The site, at
/// `site_at`, jumps to [`MOVED_ENTRY`]. `None`: something is out of reach.
///
/// ```text
///  0  push number; jmp *target(%rip)       as any trampoline
/// 16  call 0; the instruction; jmp back
/// 48  data: what unwinders need, the address of the site
/// ```
///
/// For the target it is as after a site's call; it returns behind the call, where the instruction is.
pub(crate) fn write_moved_trampoline(
    to: &mut [u8],
    at: u64,
    number: u32,
    target_at: u64,
    (instruction, site_at): (&MovedInstruction, u64),
) -> Option<()> {
    write_trampoline(to, at, number, target_at)?;
    let moved = instruction.moved(site_at, at + MOVED_AT as u64)?;
    let back_at = MOVED_AT + moved.len();
    let back = write_hop(at + back_at as u64, site_at + instruction.length() as u64)?;
    let to_begin = -(MOVED_AT as i32);
    let mut put = |at: usize, bytes: &[u8]| {
        to.get_mut(at..at + bytes.len())?.copy_from_slice(bytes);
        Some(())
    };
    put(MOVED_ENTRY, &[0xe8])?;
    put(MOVED_ENTRY + 1, &to_begin.to_le_bytes())?;
    put(MOVED_AT, &moved)?;
    put(back_at, &back)?;
    put(MOVED_PUSHES, &instruction.pushes().to_le_bytes())?;
    put(MOVED_PUSHED_FROM, &[back_at as u8])?;
    put(MOVED_SITE, &site_at.to_le_bytes())
}

const _: () = assert!(MOVED_AT + MOVED_BYTES_MAX + HOP_BYTES <= MOVED_PUSHES);

/// The call that a target returns behind, in a trampoline of a site whose instruction was moved. No site of
/// a compiler is so near to its trampoline.
pub(crate) const MOVED_CALL: [u8; CALL_BYTES] = [0xe8, (-(MOVED_AT as i8)) as u8, 0xff, 0xff, 0xff];

/// Where such a trampoline has its site's address, from the address behind that call.
pub(crate) const MOVED_SITE_FROM_CALL: usize = MOVED_SITE - MOVED_AT;

/// A jump at `at` to the trampoline at `trampoline_at`, for sites whose call has a fixed distance.
pub(crate) fn write_hop(at: u64, trampoline_at: u64) -> Option<[u8; HOP_BYTES]> {
    let [d0, d1, d2, d3] = distance(at + HOP_BYTES as u64, trampoline_at)?.to_le_bytes();
    Some([0xe9, d0, d1, d2, d3])
}
