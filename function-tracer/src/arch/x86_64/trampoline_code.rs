//! The code that patch sites call. Each site has a trampoline, which is written once and never
//! changed. It pushes the site's number and jumps through the site's word in a table of targets. To
//! change a target is one store of data, without a moment in which the site has none.

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

/// A jump at `at` to the trampoline at `trampoline_at`, for sites whose call has a fixed distance.
pub(crate) fn write_hop(at: u64, trampoline_at: u64) -> Option<[u8; HOP_BYTES]> {
    let [d0, d1, d2, d3] = distance(at + HOP_BYTES as u64, trampoline_at)?.to_le_bytes();
    Some([0xe9, d0, d1, d2, d3])
}

/// The operand of a relative jump or call to `to` that ends at `from`. `None`: out of reach.
pub(super) fn distance(from: u64, to: u64) -> Option<i32> {
    i32::try_from(to.wrapping_sub(from).cast_signed()).ok()
}
