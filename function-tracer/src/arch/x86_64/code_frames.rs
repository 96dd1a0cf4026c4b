//! What an unwind table says of trampolines and hops, as DWARF.

use super::trampoline_code::PUSH_BYTES;

/// Column of the return address.
pub(crate) const RETURN_COLUMN: u8 = 16;

/// At first, as after a call: the frame ends 8 above rsp, and the return address is its last word.
pub(crate) const AS_AFTER_A_CALL: &[u8] = &[
    0x0c, 7, 8, // CFA = rsp + 8
    0x90, 1, // return address at CFA - 8
];

/// In a hop: a jump changes nothing.
pub(crate) const IN_HOPS: &[u8] = &[];

/// In trampolines: from the end of the push on there is a word more. They have 16 bytes each, so the
/// address tells, as in the entry that linkers make for imports' stubs.
pub(crate) const IN_TRAMPOLINES: &[u8] = &[
    0x0f,
    11, // CFA =
    0x77,
    8, // rsp + 8
    0x80,
    0, // rip + 0
    0x3f,
    0x1a, // and 15
    0x30 + PUSH_BYTES,
    0x2a, // is at least
    0x33,
    0x24, // shifted by 3
    0x22, // plus
];
