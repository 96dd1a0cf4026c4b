//! The only store into an instruction that other threads may be executing.

use core::arch::asm;

/// Stores one, two or five bytes with one instruction.
///
/// # Safety
/// The bytes at `at`, and the aligned word of 8 around them, must be mapped and writable, and hold code that
/// only this library changes, one thread at a time. Several bytes must lie in one such word: only then do
/// other processors fetch all or none.
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
        [_, _, _, _, _] => {
            let word = at & !7;
            // SAFETY: the caller's promise.
            let mut bytes = unsafe { (word as *const u64).read_volatile() }.to_le_bytes();
            let from = (at - word) as usize;
            if let Some(place) = bytes.get_mut(from..from + head.len()) {
                place.copy_from_slice(head);
                let all = u64::from_le_bytes(bytes);
                // SAFETY: as above, and patch invariant 3: the word is aligned.
                unsafe {
                    asm!("mov qword ptr [{}], {}", in(reg) word, in(reg) all, options(nostack, preserves_flags))
                }
            }
        }
        _ => {}
    }
}
