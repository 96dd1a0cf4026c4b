//! One instruction that is moved: read where it stands, and written elsewhere so that it does the same.
//!
//! What counts from the instruction's own place counts from the new one: the distance of an operand in
//! memory, and that of a jump, which becomes one that reaches everything near.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use super::decode::{always_jumps, is_return};
use super::distance::distance;
use crate::arch::UnfitCode;

/// Longest instruction.
const BYTES_MAX: usize = 15;
/// Bytes of a moved instruction at most: a conditional jump grows to six.
pub(super) const MOVED_BYTES_MAX: usize = BYTES_MAX;
const JUMP: u8 = 0xe9;

/// An instruction that can be moved. A process has one for each such site, so it is small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MovedInstruction {
    bytes: [u8; BYTES_MAX],
    length: u8,
    counts: Counts,
    /// Bytes by which it lowers the stack pointer.
    pushes: u32,
}

/// What in an instruction counts from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    Nothing,
    /// Four bytes at this offset.
    Operand(u8),
    /// The distance of a jump.
    Jump(i32),
    /// The distance of a jump on this condition.
    JumpIf(u8, i32),
}

impl MovedInstruction {
    /// The instruction that `code` begins with.
    pub(crate) fn read(code: &[u8]) -> Result<Self, UnfitCode> {
        let bytes = code.get(..BYTES_MAX).unwrap_or(code);
        let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let unmovable = || UnfitCode::Unmovable(bytes.to_vec());
        if instruction.is_invalid() {
            return Err(unmovable());
        }
        let pushes = pushes(&instruction).ok_or_else(unmovable)?;
        let counts = counts(&decoder, &instruction, bytes).ok_or_else(unmovable)?;
        let mut kept = [0; BYTES_MAX];
        let length = instruction.len();
        kept[..length].copy_from_slice(&bytes[..length]);
        Ok(Self {
            bytes: kept,
            length: length as u8, // At most 15.
            counts,
            pushes,
        })
    }

    /// Bytes where it stands.
    pub(crate) fn length(&self) -> usize {
        self.length.into()
    }

    /// Whether the instruction after it is never reached from it.
    pub(crate) fn never_goes_on(&self) -> bool {
        let code = &self.bytes[..self.length()];
        is_return(code) || always_jumps(code)
    }

    /// Bytes by which it lowers the stack pointer.
    pub(super) fn pushes(&self) -> u32 {
        self.pushes
    }

    /// The bytes that do at `to` what it does at `from`. `None`: something is out of reach.
    pub(super) fn moved(&self, from: u64, to: u64) -> Option<Vec<u8>> {
        let own = &self.bytes[..self.length()];
        let end = from.wrapping_add(own.len() as u64);
        let target = |by: i32| end.wrapping_add_signed(by.into());
        match self.counts {
            Counts::Nothing => Some(own.to_vec()),
            Counts::Operand(at) => {
                let at = usize::from(at);
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
            _ => condition(&bytes[..instruction.len()])
                .map(|condition| Counts::JumpIf(condition, by)),
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
    (is_whole && is_by_rip).then(|| Counts::Operand(offsets.displacement_offset() as u8))
}

/// The condition of a jump; `None`: it is another instruction, such as `loop`, which reaches 127 bytes only.
fn condition(bytes: &[u8]) -> Option<u8> {
    match *bytes {
        [.., 0x0f, opcode, _, _, _, _] if opcode & 0xf0 == 0x80 => Some(opcode & 15),
        [.., opcode, _] if opcode & 0xf0 == 0x70 => Some(opcode & 15),
        _ => None,
    }
}

/// Bytes by which an instruction lowers the stack pointer; `None`: it changes it in another way.
fn pushes(instruction: &Instruction) -> Option<u32> {
    let is_rsp = |n| {
        let registers = [Register::RSP, Register::ESP, Register::SP, Register::SPL];
        n < instruction.op_count()
            && instruction.op_kind(n) == OpKind::Register
            && registers.contains(&instruction.op_register(n))
    };
    match instruction.mnemonic() {
        Mnemonic::Push => matches!(
            instruction.code(),
            Code::Push_r64 | Code::Push_rm64 | Code::Pushq_imm8 | Code::Pushq_imm32
        )
        .then_some(8),
        Mnemonic::Sub if is_rsp(0) => match instruction.code() {
            Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 => {
                u32::try_from(instruction.immediate(1).cast_signed()).ok()
            }
            _ => None,
        },
        Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Ret => Some(0),
        Mnemonic::Pop | Mnemonic::Pushfq | Mnemonic::Popfq | Mnemonic::Enter | Mnemonic::Leave => {
            None
        }
        _ if is_rsp(0) => None,
        Mnemonic::Xchg | Mnemonic::Xadd if is_rsp(1) => None,
        _ => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(code: &[u8], from: u64, to: u64) -> Vec<u8> {
        let read = MovedInstruction::read(code).expect("it can be moved");
        read.moved(from, to).expect("it is within reach")
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
            assert!(moved.len() <= MOVED_BYTES_MAX);
        }
        let far = MovedInstruction::read(&[0xe9, 1, 2, 3, 0]).unwrap();
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
    fn what_it_pushes_is_known_or_it_is_refused() {
        let pushes = |code: &[u8]| MovedInstruction::read(code).map(|one| one.pushes).ok();
        assert_eq!(pushes(&[0x41, 0x57]), Some(8)); // push r15
        assert_eq!(pushes(&[0x68, 1, 0, 0, 0]), Some(8)); // push 1
        assert_eq!(pushes(&[0x48, 0x83, 0xec, 0x18]), Some(0x18)); // sub rsp, 24
        assert_eq!(pushes(&[0x48, 0x81, 0xec, 0, 1, 0, 0]), Some(0x100));
        assert_eq!(pushes(&[0x4c, 0x8d, 0x54, 0x24, 8]), Some(0)); // lea r10, [rsp + 8]
        for refused in [
            &[0x48, 0x89, 0xfc][..],         // mov rsp, rdi
            &[0x48, 0x83, 0xe4, 0xf0],       // and rsp, -16
            &[0x48, 0x83, 0xec, 0xf0],       // sub rsp, -16
            &[0x48, 0x8d, 0x64, 0x24, 0xf8], // lea rsp, [rsp - 8]
            &[0x58],                         // pop rax
            &[0x9c],                         // pushfq
            &[0x66, 0x50],                   // push ax
            &[0xe8, 1, 2, 3, 0],             // call
            &[0xff, 0xd0],                   // call rax
            &[0xcc],
            &[0xe3, 0x10],             // jrcxz
            &[0xc7, 0xf8, 1, 0, 0, 0], // xbegin
            &[0x06],
            &[0x48],
            &[],
        ] {
            assert!(MovedInstruction::read(refused).is_err(), "{refused:02x?}");
        }
    }
}
