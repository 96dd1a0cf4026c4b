//! What an unwind table says of trampolines and hops, as DWARF.

use super::moved::INSTRUCTIONS_MAX;
use super::trampoline_code::{
    MOVED_ADDRESSES, MOVED_ENTRY, MOVED_PLACES, MOVED_TRAMPOLINE_BYTES, PUSH_BYTES,
};

/// Column of the return address.
pub(crate) const RETURN_COLUMN: u8 = 16;

/// At first, as after a call: the frame ends 8 above rsp, and the return address is its last word.
pub(crate) const AS_AFTER_A_CALL: &[u8] = &[
    0x0c, 7, 8, // CFA = rsp + 8
    0x90, 1, // return address at CFA - 8
];

/// What an unwind table says of one kind of code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeFrames {
    /// DWARF instructions.
    pub(crate) rules: &'static [u8],
    /// Whether the caller goes on at the very return address, as after a signal, and not behind a call.
    pub(crate) is_interrupting: bool,
}

/// In a hop: a jump changes nothing.
pub(crate) const IN_HOPS: CodeFrames = CodeFrames {
    rules: &[],
    is_interrupting: false,
};

/// In trampolines: from the end of the push on there is a word more. They have 16 bytes each, so the
/// address tells, as in the entry that linkers make for imports' stubs.
pub(crate) const IN_TRAMPOLINES: CodeFrames = CodeFrames {
    rules: &[
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
    ],
    is_interrupting: false,
};

/// In trampolines of sites whose first instructions were moved, which have 128 bytes each: a frame of their own, as if
/// the function had been interrupted at the instruction that stands here. So what the compiler says of the
/// function holds, whatever the instructions do. The frame ends where the function's stack pointer was.
pub(crate) const IN_MOVED: CodeFrames = CodeFrames {
    rules: &MOVED_RULES,
    is_interrupting: true,
};

/// Where the frame ends.
const MOVED_END: [u8; 21] = [
    0x0f, // CFA =
    19, 0x80, 0, 0x08, 0x7f, 0x1a, // place: rip and 127
    0x12, 0x40, 0x2d, // dup, is below 16: a call is on the stack
    0x16, 0x35, 0x2a, // swap, is at least 5: a number is, too
    0x31, 0x22, 0x1e, // plus 1, times
    0x33, 0x24, // shifted by 3
    0x77, 0, 0x22, // plus rsp
];

/// Where the address of the instruction stands: the first of those words, and one further for each place that is reached.
const MOVED_WORD: [u8; 17] = [
    0x10,
    RETURN_COLUMN, // at
    14 + (MOVED_INSTRUCTIONS * MOVED_FURTHER.len()) as u8,
    0x80,
    0,
    0x08,
    0x7f,
    0x1a, // place: rip and 127
    0x80,
    0,
    0x08,
    0x7f,
    0x20,
    0x1a, // begin: rip and not 127
    0x12,
    0x23,
    MOVED_ADDRESSES as u8, // dup, plus: word
];
const MOVED_FURTHER: [u8; 12] = [
    0x15,
    2, // place
    0x15,
    2, // begin
    0x23,
    MOVED_PLACES as u8,
    0x94,
    1,    // plus, a byte there
    0x2a, // place is at least that
    0x33,
    0x24, // shifted by 3
    0x22, // plus word
];
/// Where [`MOVED_FURTHER`] has the number of its place.
const MOVED_FURTHER_PLACE: usize = 5;
const MOVED_INSTRUCTIONS: usize = 5;
const MOVED_RULES_BYTES: usize =
    MOVED_END.len() + MOVED_WORD.len() + MOVED_INSTRUCTIONS * MOVED_FURTHER.len();
const MOVED_RULES: [u8; MOVED_RULES_BYTES] = {
    let mut rules = [0; MOVED_RULES_BYTES];
    let mut at = 0;
    while at < MOVED_RULES_BYTES {
        let of_word = at.saturating_sub(MOVED_END.len());
        let of_further = of_word.saturating_sub(MOVED_WORD.len());
        rules[at] = if at < MOVED_END.len() {
            MOVED_END[at]
        } else if of_word < MOVED_WORD.len() {
            MOVED_WORD[of_word]
        } else {
            let place = of_further % MOVED_FURTHER.len();
            let further = (of_further / MOVED_FURTHER.len()) as u8;
            MOVED_FURTHER[place]
                + if place == MOVED_FURTHER_PLACE {
                    further
                } else {
                    0
                }
        };
        at += 1;
    }
    rules
};

const _: () =
    assert!(MOVED_ENTRY == 16 && PUSH_BYTES == 5 && MOVED_INSTRUCTIONS == INSTRUCTIONS_MAX);
const _: () =
    assert!(MOVED_TRAMPOLINE_BYTES == 128 && MOVED_ADDRESSES < 128 && MOVED_PLACES < 128 - 5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{MovedCode, write_moved_trampoline};
    use gimli::{Encoding, EndianSlice, Format, LittleEndian, Register};
    use gimli::{Evaluation, EvaluationResult, Expression, Location, Value};

    const RSP: u64 = 0x7000;
    const BEGIN: u64 = 0x12_3480;
    const SITE: u64 = 0x14_0004;

    /// What an expression comes to at a place in a trampoline with this content.
    fn value(expression: &[u8], trampoline: &[u8], place: u64) -> u64 {
        let encoding = Encoding {
            address_size: 8,
            format: Format::Dwarf32,
            version: 4,
        };
        let code = EndianSlice::new(expression, LittleEndian);
        let mut evaluation: Evaluation<_> = Expression(code).evaluation(encoding);
        evaluation.set_initial_value(1); // The frame's end, of which no use is made.
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
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    assert_eq!(size, 1);
                    let value = trampoline[(address - BEGIN) as usize];
                    evaluation
                        .resume_with_memory(Value::Generic(value.into()))
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
    fn at_each_place_of_a_trampoline_the_function_is_where_its_instruction_stood() {
        let end = &MOVED_RULES[2..MOVED_END.len()];
        assert_eq!(usize::from(MOVED_END[1]), end.len());
        let word = &MOVED_RULES[MOVED_END.len() + 3..];
        assert_eq!(usize::from(MOVED_WORD[2]), word.len());
        // test edi, edi; je; push rbp: the jump grows to six bytes.
        let code = MovedCode::several(&[0x85, 0xff, 0x74, 0x10, 0x55]).unwrap();
        let mut trampoline = [0; MOVED_TRAMPOLINE_BYTES];
        write_moved_trampoline(&mut trampoline, BEGIN, 7, BEGIN + 0x1000, (&code, SITE)).unwrap();
        for place in 0..MOVED_PLACES as u64 {
            let pushed = match place {
                0..5 => 8,
                5..16 => 16,
                _ => 0,
            };
            assert_eq!(value(end, &trampoline, place), RSP + pushed, "{place}");
            let stood_at = match place {
                0..23 => 0,
                23..29 => 2,
                29 => 4,
                _ => 5,
            };
            let at = (value(word, &trampoline, place) - BEGIN) as usize;
            let address = trampoline[at..].first_chunk().copied().unwrap();
            assert_eq!(u64::from_le_bytes(address), SITE + stood_at, "{place}");
        }
    }
}
