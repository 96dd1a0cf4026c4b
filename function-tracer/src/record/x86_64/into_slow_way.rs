//! The way from a stub to `record::slow_way` and back, which preserves every register; and the
//! unwind table's entry for `ringmark_return`, by which unwinders find the true caller of a
//! function whose return address was replaced.
//!
//! A DWARF expression reads the copy of the slot's true return address (`true_returns`). Its CFA is one byte off, and rsp has a
//! rule of its own: unwinders tell frames apart by their CFA, and this frame and its caller have
//! the same rsp. An unwinder that follows frame pointers alone finds `ringmark_return`.
//!
//! A throw passes this entry twice for each traced call. An unwinder takes 20 to 40 instructions for
//! each operation, and for each byte that fills the entry up.

use super::vectors::VECTORS_BYTES;
use crate::record::open_calls::offsets as block;
use crate::record::true_returns::{COPY_PART, COPY_SHIFT, UNIT_BITS, UNITS_AT};

/// From `ringmark_return_before` to `ringmark_return_rest`, where ordinary entries take over.
pub(super) const RETURN_BYTES: usize = 13;

core::arch::global_asm!(
    // Calls the function in rax with rdi, and preserves what a stub has not pushed. On the thread's
    // second stack, if that is there and free. `stub_frames` knows the order of the first four
    // words.
    ".pushsection .text.ringmark_slow,\"ax\",@progbits",
    ".balign 16",
    ".globl ringmark_slow",
    ".hidden ringmark_slow",
    ".type ringmark_slow,@function",
    "ringmark_slow:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_offset rbp, -16",
    "push r8",
    "push r9",
    ".cfi_adjust_cfa_offset 16",
    "mov rbp, rsp",
    ".cfi_def_cfa rbp, 32",
    "push r10",
    "push r11",
    "push rbx",
    "push r12",
    "push r13",
    "mov rbx, rax",
    "mov r12, rdi",
    "mov r13, qword ptr [rip + ringmark_open_calls@gottpoff]",
    "mov rcx, qword ptr fs:[r13 + {stack}]",
    "test rcx, rcx",
    "jz 1f",
    "mov qword ptr fs:[r13 + {stack}], 0", // taken: a handler stays on the stack it has
    "mov rsp, rcx",
    "1:",
    "push rcx",
    "mov r8, rsp",
    "sub rsp, {vectors}",
    "and rsp, -64",
    "mov rsi, rsp",
    "call ringmark_save_vectors",
    "push r8",
    "push r8",
    "mov rdi, r12",
    "call rbx",
    "pop r8",
    "pop r8",
    "mov rsi, rsp",
    "call ringmark_load_vectors",
    "mov rcx, qword ptr [r8]",
    "lea rsp, [rbp - 40]",
    "test rcx, rcx",
    "jz 2f",
    "mov qword ptr fs:[r13 + {stack}], rcx",
    "2:",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    ".cfi_def_cfa rsp, 16",
    "pop rbp",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    ".size ringmark_slow, .-ringmark_slow",
    ".popsection",
    //
    // The unwind table's entry. In the piece of the above: one without a reference is not linked.
    ".pushsection .eh_frame,\"a\",@unwind",
    "1:",
    ".long 3f - 2f",
    "2:",
    ".long 0",
    ".byte 1",
    ".asciz \"zR\"",
    ".uleb128 1",
    ".sleb128 -1",
    ".uleb128 16",
    ".uleb128 1",
    ".byte 0x1b", // addresses: relative, 4 bytes
    ".byte 0x0c, 7, 1", // CFA = rsp + 1
    ".byte 0x14, 7, 1", // rsp = CFA - 1
    ".balign 8",
    "3:",
    ".long 5f - 4f",
    "4:",
    ".long 4b - 1b",
    ".long ringmark_return_before - .",
    ".long {return_bytes}",
    ".uleb128 0",
    ".byte 0x16, 16", // return address =
    ".uleb128 9f - 6f",
    "6:", // CFA: slot + 9
    ".byte 0x23",
    ".uleb128 {copy_shift} - 9", // plus: place
    ".byte 0x12, 0x08, {unit_bits}, 0x25", // dup, constant, shift: place, unit
    ".byte 0x23",
    ".uleb128 {units_at}", // plus: place, state's address
    ".byte 0x94, 1", // deref of a byte: place, state
    ".byte 0x28",
    ".short 7f - (. + 2)",
    ".byte 0x30, 0x2f", // 0: there is no memory for copies, and the stack ends here
    ".short 8f - (. + 2)",
    "7:",
    ".byte 0x0e", // constant: place, part
    ".quad {copy_part}",
    ".byte 0x27, 0x06", // xor deref: the copy
    "8:",
    "9:",
    ".balign 8",
    "5:",
    ".popsection",
    stack = const block::STACK,
    vectors = const VECTORS_BYTES,
    return_bytes = const RETURN_BYTES,
    unit_bits = const UNIT_BITS,
    units_at = const UNITS_AT,
    copy_part = const COPY_PART,
    copy_shift = const COPY_SHIFT,
);
