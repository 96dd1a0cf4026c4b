//! The only store into an instruction that other threads may be executing.

use core::arch::asm;

/// Stores one or two bytes with one instruction.
///
/// # Safety
/// The bytes at `at` must be mapped and writable, and hold code that only this library changes. Two
/// bytes must lie in one aligned word of 8: only then do other processors fetch both or none.
pub(crate) unsafe fn store_head(at: u64, head: &[u8]) {
    match *head {
        [one] => {
            // SAFETY: the caller's promise. No Rust reference leads to code (patch invariant 2).
            unsafe {
                asm!("mov byte ptr [{}], {}", in(reg) at, in(reg_byte) one, options(nostack, preserves_flags))
            }
        }
        [one, two] => {
            let both = u16::from_le_bytes([one, two]);
            // SAFETY: as above, and patch invariant 3.
            unsafe {
                asm!("mov word ptr [{}], {:x}", in(reg) at, in(reg) both, options(nostack, preserves_flags))
            }
        }
        _ => {}
    }
}
