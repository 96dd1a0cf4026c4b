//! Instructions, decoded: where they lead, and which words of memory they use on the way.

use iced_x86::{
    Code, Decoder, DecoderError, DecoderOptions, Instruction, Mnemonic, OpKind, Register,
};

/// Longest instruction.
const BYTES_MAX: usize = 15;

/// What an instruction does that decides who is called, and who is the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Jumps to an address, always or on a condition.
    Jump { to: u64 },
    /// Jumps to the address in a word at a known place.
    JumpByWord { word: u64 },
    /// Jumps to an address in a register, or in memory at a place that registers say.
    JumpByPointer,
    /// Uses the word at a known place in another way than to jump or to call by it.
    Use { word: u64 },
}

/// The steps in the code at an address, each with the address of its instruction and of the next one. What is no
/// instruction is passed over byte by byte. Ends in front of an instruction that the end of the code cuts.
pub(crate) struct Steps<'c> {
    decoder: Decoder<'c>,
    instruction: Instruction,
}

impl<'c> Steps<'c> {
    pub(crate) fn of(code: &'c [u8], at: u64) -> Self {
        Self {
            decoder: Decoder::with_ip(64, code, at, DecoderOptions::NONE),
            instruction: Instruction::default(),
        }
    }

    /// Up to where the code was decoded.
    pub(crate) fn at(&self) -> u64 {
        self.decoder.ip()
    }
}

impl Iterator for Steps<'_> {
    type Item = (u64, u64, Step);

    fn next(&mut self) -> Option<Self::Item> {
        while self.decoder.can_decode() {
            let (at, place) = (self.decoder.ip(), self.decoder.position());
            self.decoder.decode_out(&mut self.instruction);
            let is_cut = self.decoder.last_error() == DecoderError::NoMoreBytes;
            if self.instruction.is_invalid() {
                let from = place + usize::from(!is_cut);
                // A place in the code, as this one or the one after it is.
                let _ = self.decoder.set_position(from);
                self.decoder.set_ip(at + u64::from(!is_cut));
                if is_cut {
                    return None;
                }
            } else if let Some(step) = step(&self.instruction) {
                return Some((at, self.decoder.ip(), step));
            }
        }
        None
    }
}

fn step(instruction: &Instruction) -> Option<Step> {
    let is_near = matches!(instruction.op0_kind(), OpKind::NearBranch64);
    if is_near && instruction.mnemonic() != Mnemonic::Call {
        let to = instruction.near_branch_target();
        return Some(Step::Jump { to });
    }
    if instruction.code() == Code::Jmp_rm64 {
        return match word(instruction) {
            Some(word) => Some(Step::JumpByWord { word }),
            // This prefix marks a jump by a table, whose entries lead into the same function.
            None if instruction.segment_prefix() == Register::DS => None,
            None => Some(Step::JumpByPointer),
        };
    }
    match instruction.mnemonic() {
        // A comparison with zero, whether a function is there at all, is none that takes its address.
        Mnemonic::Call | Mnemonic::Lea | Mnemonic::Nop | Mnemonic::Cmp | Mnemonic::Test => None,
        _ => word(instruction).map(|word| Step::Use { word }),
    }
}

/// The address of the word that an instruction has as an operand, where no register decides it.
fn word(instruction: &Instruction) -> Option<u64> {
    let is_memory = (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory);
    let base = instruction.memory_base();
    let is_fixed = base == Register::RIP || base == Register::None;
    let is_plain = !matches!(instruction.segment_prefix(), Register::FS | Register::GS);
    let is_word = is_memory && is_fixed && is_plain && instruction.memory_index() == Register::None;
    // With rip the displacement is the address, too.
    is_word.then(|| instruction.memory_displacement64())
}

/// The first instruction of `code`; `None`: it is none, or is cut.
fn first(code: &[u8]) -> Option<Instruction> {
    let code = code.get(..BYTES_MAX).unwrap_or(code);
    let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// Whether `code` returns from its function.
pub(crate) fn is_return(code: &[u8]) -> bool {
    let code = first(code).map(|instruction| instruction.code());
    matches!(code, Some(Code::Retnq | Code::Retnq_imm16))
}

/// Whether `code` is a jump that is always taken. Where it leaves a function, the flags and the memory below the
/// stack pointer are unused: the other function expects nothing there. A conditional jump reads the flags, and where
/// it is not taken the function goes on.
pub(crate) fn always_jumps(code: &[u8]) -> bool {
    let code = first(code).map(|instruction| instruction.code());
    matches!(
        code,
        Some(Code::Jmp_rel8_64 | Code::Jmp_rel32_64 | Code::Jmp_rm64)
    )
}

/// Makes the tables that decoding needs, so that a fork does not come upon a thread that makes them.
pub(crate) fn prepare_decoder() {
    let _ = first(&[0x90]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(code: &[u8]) -> Vec<(u64, u64, Step)> {
        Steps::of(code, 0x1000).collect()
    }

    #[test]
    fn where_instructions_lead() {
        let jump = |to| Step::Jump { to };
        for (code, step) in [
            (&[0xe9, 0xfb, 0x0f, 0, 0][..], Some(jump(0x2000))),
            (&[0x0f, 0x84, 0xfa, 0x0f, 0, 0], Some(jump(0x2000))),
            (&[0xeb, 0x0e], Some(jump(0x1010))),
            (&[0x74, 0x0e], Some(jump(0x1010))),
            (&[0xe8, 0xfb, 0x0f, 0, 0], None),       // a call
            (&[0xff, 0x15, 0xfa, 0x0f, 0, 0], None), // a call by a word
            (
                &[0xff, 0x25, 0xfa, 0x0f, 0, 0],
                Some(Step::JumpByWord { word: 0x2000 }),
            ),
            (
                &[0xf2, 0xff, 0x25, 0xf9, 0x0f, 0, 0],
                Some(Step::JumpByWord { word: 0x2000 }),
            ),
            (
                &[0xff, 0x24, 0x25, 0, 0x20, 0, 0],
                Some(Step::JumpByWord { word: 0x2000 }),
            ),
            (&[0xff, 0xe0], Some(Step::JumpByPointer)),
            (&[0xff, 0x60, 0x08], Some(Step::JumpByPointer)),
            (&[0x3e, 0xff, 0xe0], None), // by a table
            (
                &[0x48, 0x8b, 0x05, 0xf9, 0x0f, 0, 0],
                Some(Step::Use { word: 0x2000 }),
            ),
            (
                &[0xff, 0x35, 0xfa, 0x0f, 0, 0],
                Some(Step::Use { word: 0x2000 }),
            ),
            (&[0x48, 0x83, 0x3d, 0xf8, 0x0f, 0, 0, 0], None), // whether it is there
            // Bytes of a jump in the distance of another instruction, its offset, its immediate operand; with AVX-512.
            (&[0x4c, 0x8d, 0x25, 0x24, 0xff, 0xe0, 0], None),
            (&[0x48, 0xc7, 0xc0, 0xff, 0xe0, 0xff, 0xff], None),
            (
                &[0x62, 0xf1, 0x7c, 0x48, 0x10, 0x87, 0xff, 0xe0, 0xff, 0xff],
                None,
            ),
            (&[0xc5, 0xfc, 0x10, 0x87, 0xff, 0xe0, 0xff, 0xff], None),
        ] {
            let end = 0x1000 + code.len() as u64;
            let expected: Vec<_> = step.map(|step| (0x1000, end, step)).into_iter().collect();
            assert_eq!(steps(code), expected, "{code:02x?}");
        }
    }

    #[test]
    fn what_is_cut_is_left_and_what_is_none_is_passed_over() {
        let mut cut = Steps::of(&[0x90, 0xe9, 0, 0], 0x1000);
        assert_eq!((cut.next(), cut.at()), (None, 0x1001));
        // 0x06 is none.
        assert_eq!(
            steps(&[0x06, 0xff, 0xe0]),
            [(0x1001, 0x1003, Step::JumpByPointer)]
        );
    }

    #[test]
    fn ends_of_functions() {
        for code in [&[0xc3][..], &[0xf3, 0xc3], &[0xf2, 0xc3], &[0xc2, 8, 0]] {
            assert!(is_return(code) && !always_jumps(code), "{code:02x?}");
        }
        for code in [
            &[0xe9, 0, 0, 0, 0][..],
            &[0xeb, 0],
            &[0xff, 0xe0],
            &[0x48, 0xff, 0xe0],
            &[0xff, 0x25, 0, 0, 0, 0],
        ] {
            assert!(always_jumps(code) && !is_return(code), "{code:02x?}");
        }
        // Conditional ones, a call, two that are cut.
        for code in [
            &[0x0f, 0x84, 0, 0, 0, 0][..],
            &[0x74, 0],
            &[0xe3, 0],
            &[0xe8, 0, 0, 0, 0],
            &[0xe9, 0],
            &[],
        ] {
            assert!(!always_jumps(code) && !is_return(code), "{code:02x?}");
        }
    }
}
