//! x86-64: a call leaves its return address on the stack.

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};

use super::registers::{Registers, UNKNOWN};

pub(crate) type Unwinder<D> = UnwinderX86_64<D>;
pub(crate) type Cache = CacheX86_64;

/// Registers of a sample, as the kernel numbers them: frame pointer, stack pointer, instruction.
pub(crate) const SAMPLED: u64 = (1 << 6) | (1 << 7) | (1 << 8);

/// Those of a sample, in the order of their numbers.
pub(crate) fn sampled(registers: &[u64]) -> Option<Registers> {
    let [frame_pointer, stack_pointer, instruction] = *registers else {
        return None;
    };
    Some(Registers {
        instruction,
        stack_pointer,
        frame_pointer: Some(frame_pointer),
        link: None,
    })
}

/// What the unwinder begins with.
pub(crate) fn first_frame(from: Registers) -> UnwindRegsX86_64 {
    let frame_pointer = from.frame_pointer.unwrap_or(UNKNOWN);
    UnwindRegsX86_64::new(from.instruction, from.stack_pointer, frame_pointer)
}

/// Bytes of code before a return address that [`follows_call`] looks at.
pub(crate) const BEFORE_RETURN: usize = 7;

/// Whether these bytes end in a call.
pub(crate) const fn follows_call(code: [u8; BEFORE_RETURN]) -> bool {
    // `call` through a register or memory, with as many bytes as its operand takes.
    const fn is_indirect(code: [u8; BEFORE_RETURN], length: usize) -> bool {
        code[7 - length] == 0xff && code[8 - length] & 0x38 == 0x10
    }
    code[2] == 0xe8
        || is_indirect(code, 2)
        || is_indirect(code, 3)
        || is_indirect(code, 4)
        || is_indirect(code, 6)
        || is_indirect(code, 7)
}
