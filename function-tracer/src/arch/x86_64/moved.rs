//! Instructions that are moved: read where they stand, and written elsewhere so that they do the same.
//!
//! What counts from an instruction's own place counts from the new one: the distance of an operand in
//! memory, and that of a jump, which becomes one that reaches everything near.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use super::decode::{always_jumps, is_return};
use super::distance::distance;
use crate::arch::UnfitCode;

/// Longest instruction.
const BYTES_MAX: usize = 15;
/// Bytes of a jump, for which several instructions make room.
const JUMP_BYTES: usize = 5;
/// Bytes of moved instructions at most, where they stand.
pub(super) const CODE_BYTES_MAX: usize = JUMP_BYTES - 1 + BYTES_MAX;
/// Instructions at most.
pub(super) const INSTRUCTIONS_MAX: usize = JUMP_BYTES;
const JUMP: u8 = 0xe9;

/// Instructions that can be moved. A process has one of these for each such site, so it is small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MovedCode {
    bytes: [u8; CODE_BYTES_MAX],
    length: u8,
    never_goes_on: bool,
}

/// An instruction, and what in it counts from its end.
#[derive(Debug, Clone, Copy)]
struct Moved<'c> {
    bytes: &'c [u8],
    counts: Counts,
}

#[derive(Debug, Clone, Copy)]
enum Counts {
    Nothing,
    /// Four bytes at this offset.
    Operand(usize),
    /// The distance of a jump.
    Jump(i32),
    /// The distance of a jump on this condition.
    JumpIf(u8, i32),
}

impl MovedCode {
    /// The one instruction that `code` begins with.
    pub(crate) fn one(code: &[u8]) -> Result<Self, UnfitCode> {
        Self::read(code, 1)
    }

    /// The instructions that `code` begins with, as many as a jump takes the place of.
    pub(crate) fn several(code: &[u8]) -> Result<Self, UnfitCode> {
        Self::read(code, JUMP_BYTES)
    }

    fn read(code: &[u8], least: usize) -> Result<Self, UnfitCode> {
        let unmovable = || UnfitCode::Unmovable(code.get(..BYTES_MAX).unwrap_or(code).to_vec());
        let (mut length, mut never_goes_on) = (0, false);
        while length < least && !never_goes_on {
            let rest = code.get(length..).unwrap_or_default();
            let bytes = Moved::read(rest).ok_or_else(unmovable)?.bytes;
            length += bytes.len();
            never_goes_on = is_return(bytes) || always_jumps(bytes);
        }
        let mut bytes = [0; CODE_BYTES_MAX];
        let place = bytes.get_mut(..length).ok_or_else(unmovable)?;
        place.copy_from_slice(&code[..length]);
        Ok(Self {
            bytes,
            length: length as u8, // At most 19.
            never_goes_on,
        })
    }

    /// Bytes where it stands.
    pub(crate) fn length(&self) -> usize {
        self.length.into()
    }

    /// Whether what stands after it is never reached from it.
    pub(crate) fn never_goes_on(&self) -> bool {
        self.never_goes_on
    }

    /// The bytes of each instruction that do at `to` and after it what they do at `from`, and how many each has at `from`.
    /// `None`: something is out of reach.
    pub(super) fn moved(&self, from: u64, to: u64) -> Option<Vec<(Vec<u8>, usize)>> {
        let mut code = &self.bytes[..self.length()];
        let (mut from, mut to) = (from, to);
        let mut all = Vec::new();
        while !code.is_empty() {
            let one = Moved::read(code)?;
            let moved = one.moved(from, to)?;
            code = &code[one.bytes.len()..];
            from = from.wrapping_add(one.bytes.len() as u64);
            to = to.wrapping_add(moved.len() as u64);
            all.push((moved, one.bytes.len()));
        }
        Some(all)
    }
}

impl<'c> Moved<'c> {
    /// The instruction that `code` begins with; `None`: it cannot be moved.
    fn read(code: &'c [u8]) -> Option<Self> {
        let code = code.get(..BYTES_MAX).unwrap_or(code);
        let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        let bytes = &code[..instruction.len()];
        let counts = counts(&decoder, &instruction, bytes)?;
        Some(Self { bytes, counts })
    }

    /// The bytes that do at `to` what it does at `from`. `None`: something is out of reach.
    fn moved(&self, from: u64, to: u64) -> Option<Vec<u8>> {
        let own = self.bytes;
        let end = from.wrapping_add(own.len() as u64);
        let target = |by: i32| end.wrapping_add_signed(by.into());
        match self.counts {
            Counts::Nothing => Some(own.to_vec()),
            Counts::Operand(at) => {
                let operand = own.get(at..)?.first_chunk::<4>()?;
                let new_end = to.wrapping_add(own.len() as u64);
                let moved = distance(new_end, target(i32::from_le_bytes(*operand)))?;
                let mut bytes = own.to_vec();
                bytes[at..at + 4].copy_from_slice(&moved.to_le_bytes());
                Some(bytes)
            }
            Counts::Jump(by) => {
                let moved = distance(to.wrapping_add(5), target(by))?;
                Some([&[JUMP][..], &moved.to_le_bytes()].concat())
            }
            Counts::JumpIf(condition, by) => {
                let moved = distance(to.wrapping_add(6), target(by))?;
                Some([&[0x0f, 0x80 | condition][..], &moved.to_le_bytes()].concat())
            }
        }
    }
}

/// What of an instruction counts from its end; `None`: it cannot be moved.
fn counts(decoder: &Decoder<'_>, instruction: &Instruction, bytes: &[u8]) -> Option<Counts> {
    if instruction.op0_kind() == OpKind::NearBranch64 {
        let end = instruction.len() as u64;
        // Both lie in the same four bytes.
        let by = instruction.near_branch_target().wrapping_sub(end) as i32;
        return match instruction.mnemonic() {
            Mnemonic::Jmp => Some(Counts::Jump(by)),
            _ => condition(bytes).map(|condition| Counts::JumpIf(condition, by)),
        };
    }
    match instruction.mnemonic() {
        Mnemonic::Call
        | Mnemonic::Int
        | Mnemonic::Int1
        | Mnemonic::Int3
        | Mnemonic::Into
        | Mnemonic::Sysenter
        | Mnemonic::Iretq
        | Mnemonic::Xabort => return None,
        Mnemonic::Jmp if instruction.code() != Code::Jmp_rm64 => return None,
        _ => {}
    }
    if !instruction.is_ip_rel_memory_operand() {
        return Some(Counts::Nothing);
    }
    let offsets = decoder.get_constant_offsets(instruction);
    let is_whole = offsets.has_displacement() && offsets.displacement_size() == 4;
    let is_by_rip = instruction.memory_base() == Register::RIP;
    (is_whole && is_by_rip).then(|| Counts::Operand(offsets.displacement_offset()))
}

/// The condition of a jump; `None`: it is another instruction, such as `loop`, which reaches 127 bytes only.
fn condition(bytes: &[u8]) -> Option<u8> {
    match *bytes {
        [.., 0x0f, opcode, _, _, _, _] if opcode & 0xf0 == 0x80 => Some(opcode & 15),
        [.., opcode, _] if opcode & 0xf0 == 0x70 => Some(opcode & 15),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(code: &[u8], from: u64, to: u64) -> Vec<u8> {
        let read = MovedCode::one(code).expect("it can be moved");
        let all = read.moved(from, to).expect("it is within reach");
        assert_eq!((all.len(), all[0].1), (1, code.len()));
        all[0].0.clone()
    }

    /// Where an instruction leads, or which address it uses.
    fn leads(code: &[u8], at: u64) -> u64 {
        let instruction = Decoder::with_ip(64, code, at, DecoderOptions::NONE).decode();
        assert_eq!(instruction.len(), code.len());
        match instruction.op0_kind() {
            OpKind::NearBranch64 => instruction.near_branch_target(),
            _ => instruction.ip_rel_memory_address(),
        }
    }

    #[test]
    fn what_counts_from_its_place_leads_where_it_led() {
        let (from, to) = (0x40_1000, 0x2000_0000);
        for code in [
            &[0x48, 0x8b, 0x05, 1, 2, 3, 0][..],         // mov rax, [rip + d]
            &[0x48, 0x8d, 0x3d, 0xf0, 0xff, 0xff, 0xff], // lea rdi, [rip - d]
            &[0x83, 0x3d, 1, 2, 3, 0, 7],                // cmp dword ptr [rip + d], 7
            &[0xc7, 0x05, 1, 2, 3, 0, 9, 9, 9, 9],       // mov dword ptr [rip + d], imm
            &[0xff, 0x25, 1, 2, 3, 0],                   // jmp [rip + d]
            &[0xe9, 1, 2, 3, 0],
            &[0xeb, 0x10],
            &[0xeb, 0xf0],
            &[0x74, 0x10],
            &[0x0f, 0x85, 1, 2, 3, 0],
        ] {
            let moved = moved(code, from, to);
            assert_eq!(
                leads(&moved, to),
                leads(code, from),
                "{code:02x?} {moved:02x?}"
            );
        }
        let far = MovedCode::one(&[0xe9, 1, 2, 3, 0]).unwrap();
        assert_eq!(far.moved(from, 1 << 40), None);
    }

    #[test]
    fn what_counts_from_nothing_stays_as_it_is() {
        for code in [
            &[0xb8, 1, 0, 0, 0][..],
            &[0xc3],
            &[0x48, 0x83, 0xec, 0x18],
            &[0x41, 0x57],
            &[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0],
            &[0x0f, 0x05],
        ] {
            assert_eq!(moved(code, 0x1000, 1 << 40), code);
        }
    }

    #[test]
    fn as_many_instructions_are_moved_as_a_jump_takes_the_place_of() {
        let (from, to) = (0x40_1000, 0x2000_0000);
        let several = |code: &[u8]| {
            let read = MovedCode::several(code).expect("they can be moved");
            (read, read.moved(from, to).expect("they are within reach"))
        };
        // push rbp; mov rbp, rsp; sub rsp, 24; nop
        let prologue = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x18, 0x90];
        let (read, moved) = several(&prologue);
        assert_eq!((read.length(), read.never_goes_on()), (8, false));
        let lengths = moved.iter().map(|(_, length)| *length);
        assert_eq!(lengths.collect::<Vec<_>>(), [1, 3, 4]);
        let bytes: Vec<u8> = moved.into_iter().flat_map(|(bytes, _)| bytes).collect();
        assert_eq!(bytes, prologue[..8]);
        // test edi, edi; je +16; mov eax, [rip + d]
        let (read, moved) = several(&[0x85, 0xff, 0x74, 0x10, 0x8b, 0x05, 1, 2, 3, 0, 0x90]);
        assert_eq!(read.length(), 10);
        assert_eq!(moved[1].0.len(), 6, "the jump reaches far");
        assert_eq!(leads(&moved[1].0, to + 2), from + 4 + 0x10);
        assert_eq!(leads(&moved[2].0, to + 8), from + 10 + 0x3_0201);
        // xor eax, eax; ret: what follows is padding.
        let (read, _) = several(&[0x31, 0xc0, 0xc3, 0xcc, 0xcc]);
        assert_eq!((read.length(), read.never_goes_on()), (3, true));
        for (code, why) in [
            (&[0x55, 0xe8, 1, 2, 3, 0][..], "a call"),
            (&[0x55, 0x48, 0x89], "half an instruction"),
            (&[0x55], "too few"),
        ] {
            assert!(MovedCode::several(code).is_err(), "{why}");
        }
    }

    #[test]
    fn what_cannot_be_moved_is_refused() {
        for refused in [
            &[0xe8, 1, 2, 3, 0][..], // call
            &[0xff, 0xd0],           // call rax
            &[0xcc],
            &[0xe3, 0x10],             // jrcxz
            &[0xc7, 0xf8, 1, 0, 0, 0], // xbegin
            &[0x06],
            &[0x48],
            &[],
        ] {
            assert!(MovedCode::one(refused).is_err(), "{refused:02x?}");
        }
    }
}
