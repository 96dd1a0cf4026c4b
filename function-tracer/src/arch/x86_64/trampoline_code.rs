//! What sites call: a pad per site, written once and never changed, that pushes the site's number
//! and jumps where the site's slot in a table of addresses says. Changing a target is one store
//! of data, without a moment in which the site has no target.

/// Bytes of a pad.
pub(crate) const PAD_BYTES: usize = 16;

/// Bytes of a hop.
pub(crate) const HOP_BYTES: usize = 5;

/// Writes the pad of site `number` for address `at`, or nothing where `slot_at` is out of reach.
///
/// Its target finds the number at `[rsp]` and at `[rsp + 8]` the address after the site; in an
/// exit sled, where the site jumps, the function's return address.
pub(crate) fn write_pad(to: &mut [u8], at: u64, number: u32, slot_at: u64) -> Option<()> {
    const JUMP_END: u64 = 11;
    let [n0, n1, n2, n3] = number.to_le_bytes();
    let [d0, d1, d2, d3] = distance(at + JUMP_END, slot_at)?.to_le_bytes();
    let code = [
        0x68, n0, n1, n2, n3, // push number
        0xff, 0x25, d0, d1, d2, d3, // jmp *slot(%rip)
        0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
    ];
    to.get_mut(..PAD_BYTES)?.copy_from_slice(&code);
    Some(())
}

/// A jump at `at` to the pad at `pad_at`, for sites whose call has a fixed distance.
pub(crate) fn write_hop(at: u64, pad_at: u64) -> Option<[u8; HOP_BYTES]> {
    let [d0, d1, d2, d3] = distance(at + HOP_BYTES as u64, pad_at)?.to_le_bytes();
    Some([0xe9, d0, d1, d2, d3])
}

/// The operand of a relative jump or call that ends at `from`.
pub(super) fn distance(from: u64, to: u64) -> Option<i32> {
    i32::try_from(to.wrapping_sub(from).cast_signed()).ok()
}
