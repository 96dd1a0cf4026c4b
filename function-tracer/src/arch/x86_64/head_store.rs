//! The one store that other threads may be executing the target of.

use core::arch::asm;

/// Stores one or two bytes at once.
///
/// # Safety
/// The bytes at `at` must be mapped and writable, hold code that only this library changes, and
/// two bytes must lie in one aligned word of 8: only then do other processors fetch both or none.
pub(crate) unsafe fn store_head(at: u64, head: &[u8]) {
    match *head {
        [one] => {
            // SAFETY: writable, as the caller says. Code is not memory of the Rust program.
            unsafe {
                asm!("mov byte ptr [{}], {}", in(reg) at, in(reg_byte) one, options(nostack, preserves_flags))
            }
        }
        [one, two] => {
            let both = u16::from_le_bytes([one, two]);
            // SAFETY: as above; the caller says that they do not straddle.
            unsafe {
                asm!("mov word ptr [{}], {:x}", in(reg) at, in(reg) both, options(nostack, preserves_flags))
            }
        }
        _ => {}
    }
}
