//! What an unwind table says of trampolines and hops, as DWARF.

use super::trampoline_code::{MOVED_ENTRY, MOVED_PUSHED_FROM, MOVED_PUSHES, PUSH_BYTES};

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

/// In trampolines of sites whose first instruction was moved, which have 64 bytes each: as in the others
/// up to the instruction, and with what that pushes from its end on.
pub(crate) const IN_MOVED: &[u8] = &[
    0x0f,
    38, // CFA =
    0x77,
    8, // rsp + 8
    0x80,
    0,
    0x08,
    0x3f,
    0x1a, // place: rip and 63
    0x12,
    0x30 + PUSH_BYTES,
    0x2a, // dup, is at least the end of the push
    0x14,
    0x30 + MOVED_ENTRY as u8,
    0x2d, // over, is below the entry
    0x1a,
    0x33,
    0x24, // and, shifted by 3
    0x16, // swap: end, push, place
    0x80,
    0,
    0x08,
    0x3f,
    0x20,
    0x1a, // begin: rip and not 63
    0x12,
    0x23,
    MOVED_PUSHED_FROM as u8,
    0x94,
    1,    // dup, from: a byte
    0x17, // rot: from, place, begin
    0x23,
    MOVED_PUSHES as u8,
    0x94,
    4,    // pushes: four bytes
    0x17, // rot: pushes, from, place
    0x2c,
    0x1e, // from is at most place, times
    0x22,
    0x22, // plus, plus
];

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::{Encoding, EndianSlice, Format, Location};
    use gimli::{Evaluation, EvaluationResult, Expression, LittleEndian, Register, Value};

    const RSP: u64 = 0x7000;
    const BEGIN: u64 = 0x12_3440;
    const PUSHES: u64 = 0x18;
    const FROM: u64 = 25;

    /// The frame's end at a place in a trampoline.
    fn end_at(place: u64) -> u64 {
        let encoding = Encoding {
            address_size: 8,
            format: Format::Dwarf32,
            version: 4,
        };
        let code = EndianSlice::new(&IN_MOVED[2..], LittleEndian);
        let mut evaluation: Evaluation<_> = Expression(code).evaluation(encoding);
        let mut result = evaluation.evaluate().unwrap();
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = if register == Register(7) {
                        RSP
                    } else {
                        BEGIN + place
                    };
                    evaluation
                        .resume_with_register(Value::Generic(value))
                        .unwrap()
                }
                EvaluationResult::RequiresMemory { address, .. } => {
                    let value = match address - BEGIN {
                        48 => PUSHES,
                        52 => FROM,
                        other => panic!("{other}"),
                    };
                    evaluation
                        .resume_with_memory(Value::Generic(value))
                        .unwrap()
                }
                other => panic!("{other:?}"),
            };
        }
        match evaluation.result()[0].location {
            Location::Address { address } => address,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_frame_ends_where_it_does_at_each_place_of_a_trampoline() {
        assert_eq!(usize::from(IN_MOVED[1]), IN_MOVED.len() - 2);
        for place in 0..48 {
            let more = match place {
                5..16 => 8,
                FROM.. => PUSHES,
                _ => 0,
            };
            assert_eq!(end_at(place), RSP + 8 + more, "{place}");
        }
    }
}
