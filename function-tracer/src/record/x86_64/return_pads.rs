//! Where traced functions on other stacks return to: a *pad* of its own for each open call.
//!
//! All pads lead to the same code, which finds the call by the pad's address: that is what the slot
//! still holds. So a return finds its way whatever became of the stack in the meantime. Pads lie in
//! pages of the system. Each page begins with the distance to the calls of its pads, so that an
//! unwinder finds the true return address by a few operations of DWARF: the entry in the unwind table
//! has the form of that in `into_slow_way`.

use super::stub_frames::PUSHED_BELOW;
use crate::record::elsewhere::{CALL_BYTES, CALLS, PAD_BYTES, PADS_PER_PAGE, PAGES, UNWOUND_TO};
use crate::record::slow_way;

core::arch::global_asm!(
    include_str!("frame_macros.s"),
    //
    ".pushsection .text.ringmark_return_pads,\"ax\",@progbits",
    ".balign 4096",
    ".globl ringmark_return_pads",
    ".hidden ringmark_return_pads",
    ".type ringmark_return_pads,@function",
    "ringmark_return_pads:",
    ".set ringmark_pads_page, 0",
    ".rept {pages}",
    "7:",
    ".quad {calls} + ringmark_pads_page * {calls_bytes} - 7b",
    ".rept {per_page} - 1",
    ".byte 0xe9", // jmp
    ".long ringmark_return_elsewhere - (. + 4)",
    ".byte 0xcc, 0xcc, 0xcc",
    ".endr",
    ".set ringmark_pads_page, ringmark_pads_page + 1",
    ".endr",
    "ringmark_return_elsewhere:",
    ".byte 0x48, 0x8d, 0x64, 0x24, 0xf8", // lea rsp, [rsp - 8]
    "ringmark_return_pads_rest:",
    ".cfi_startproc",
    ".cfi_def_cfa_offset 8",
    ".cfi_offset rip, -8",
    "ringmark_push",
    "lea rdi, [rsp - {below}]",
    "lea rax, [rip + {slow_leave}]",
    "call ringmark_slow",
    "ringmark_pop",
    "ringmark_drop",
    "jmp qword ptr [rsp - 8]", // a return would be predicted wrong a second time
    ".cfi_endproc",
    ".size ringmark_return_pads, .-ringmark_return_pads",
    ".popsection",
    //
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
    ".byte 0x0c, 7, 0",
    ".balign 8",
    "3:",
    ".long 5f - 4f",
    "4:",
    ".long 4b - 1b",
    ".long ringmark_return_pads - .",
    ".long ringmark_return_pads_rest - ringmark_return_pads",
    ".uleb128 0",
    ".byte 0x0c, 7, 1",    // CFA = rsp + 1
    ".byte 0x14, 7, 1",    // rsp = CFA - 1
    ".byte 0x10, 16",      // return address is at
    ".uleb128 9f - 6f",
    "6:",                  // CFA
    ".byte 0x39, 0x1c",    // - 9: slot
    ".byte 0x06, 0x12",    // deref dup: pad, pad
    ".byte 0x0a",          // constant: bytes in a page - 1
    ".short 4095",
    ".byte 0x1a",          // and: pad, place
    ".byte 0x38, 0x1e",    // * 8: pad, distance of its call
    ".byte 0x16, 0x0b",    // swap, constant
    ".short -4096",
    ".byte 0x1a",          // and: distance, page
    ".byte 0x12, 0x06",    // dup deref
    ".byte 0x22",          // plus: distance, calls
    ".byte 0x12, 0x06",    // dup deref: the second frame's address, or 0
    ".byte 0x28",          // if it is none:
    ".short 9f - (. + 2)",
    ".byte 0x22",          // plus: call
    ".byte 0x23",
    ".uleb128 {unwound_to}", // plus: where it has its target for unwinders
    "9:",
    ".balign 8",
    "5:",
    ".popsection",
    pages = const PAGES,
    per_page = const PADS_PER_PAGE,
    calls = sym CALLS,
    calls_bytes = const PADS_PER_PAGE * CALL_BYTES,
    unwound_to = const UNWOUND_TO,
    below = const PUSHED_BELOW,
    slow_leave = sym slow_way::leave_elsewhere,
);

// As the unwind table's entry has it.
const _: () =
    assert!(PADS_PER_PAGE as u64 * PAD_BYTES == 4096 && CALL_BYTES as u64 == 8 * PAD_BYTES);
