//! aarch64: a call leaves its return address in a register, and a function that calls others puts it beside the frame
//! pointer.
//!
//! A thread that waits shows no such register, so its stack is unwound from the first frame pointer that is found on it.

use framehop::aarch64::{CacheAarch64, PtrAuthMask, UnwindRegsAarch64, UnwinderAarch64};

use super::registers::{Registers, UNKNOWN};

pub(crate) type Unwinder<D> = UnwinderAarch64<D>;
pub(crate) type Cache = CacheAarch64;

/// Registers of a sample, as the kernel numbers them: frame pointer, link, stack pointer, instruction.
pub(crate) const SAMPLED: u64 = (1 << 29) | (1 << 30) | (1 << 31) | (1 << 32);

/// Those of a sample, in the order of their numbers.
pub(crate) fn sampled(registers: &[u64]) -> Option<Registers> {
    let [frame_pointer, link, stack_pointer, instruction] = *registers else {
        return None;
    };
    Some(Registers {
        instruction,
        stack_pointer,
        frame_pointer: Some(frame_pointer),
        link: Some(link),
    })
}

/// What the unwinder begins with. Return addresses may be signed in the bits that no address of a program has: at
/// most 52 of them are its own.
pub(crate) fn first_frame(from: Registers) -> UnwindRegsAarch64 {
    let mask = PtrAuthMask::from_max_known_address((1 << 52) - 1);
    let link = from.link.unwrap_or(UNKNOWN);
    let frame_pointer = from.frame_pointer.unwrap_or(UNKNOWN);
    UnwindRegsAarch64::new_with_ptr_auth_mask(mask, link, from.stack_pointer, frame_pointer)
}

/// Bytes of code before a return address that [`follows_call`] looks at.
pub(crate) const BEFORE_RETURN: usize = 4;

/// Whether these bytes are a call: `bl`, or `blr` and its forms that check a signature.
pub(crate) const fn follows_call(code: [u8; BEFORE_RETURN]) -> bool {
    let word = u32::from_le_bytes(code);
    word >> 26 == 0b100101 || word & 0xfeff_f000 == 0xd63f_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_from_jumps() {
        let is_call = |word: u32| follows_call(word.to_le_bytes());
        assert!(is_call(0x9400_0001), "bl");
        assert!(is_call(0xd63f_0100), "blr x8");
        assert!(is_call(0xd63f_0900), "blraaz x8");
        assert!(is_call(0xd73f_0901), "blraa x8, x1");
        assert!(!is_call(0x1400_0001), "b");
        assert!(!is_call(0xd61f_0100), "br x8");
        assert!(!is_call(0xd65f_03c0), "ret");
    }
}
