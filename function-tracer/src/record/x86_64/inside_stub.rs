//! The stub for a patch site inside a function of which more than its calls is wanted. It works as
//! those of `call_stubs`.
//!
//! The function has begun, so its return address lies further up the stack. The stub finds the
//! distance by the site's number and stores it with the type, where
//! [`super::stub_frames::EntryFrame`] reads it.

use super::stub_frames::PUSHED_BELOW;
use crate::record::site_tables::{RETURN_PLACES, TYPES};
use crate::record::slow_way;

core::arch::global_asm!(
    include_str!("frame_macros.s"),
    //
    ".pushsection .text.ringmark_enter_any_inside,\"ax\",@progbits",
    ".balign 64",
    ".globl ringmark_enter_any_inside",
    ".hidden ringmark_enter_any_inside",
    ".type ringmark_enter_any_inside,@function",
    "ringmark_enter_any_inside:",
    ".cfi_startproc",
    ".cfi_def_cfa_offset 16", // number, way back to the function
    ".cfi_offset rip, -8",
    "ringmark_push",
    // [rsp + 40] number, [rsp + 48] way back, [rsp + 56] the function's own
    "mov eax, dword ptr [rsp + 40]",
    "mov rdx, qword ptr [rip + {places}]",
    "mov ecx, dword ptr [rdx + 4 * rax]",
    "mov rdx, qword ptr [rip + {types}]",
    "mov eax, dword ptr [rdx + 4 * rax]",
    "test ecx, ecx",
    "jns 1f",
    "lea rcx, [rbp + 8 - 56]",
    "sub rcx, rsp",
    "1:",
    "mov dword ptr [rsp + 40], eax",
    "mov dword ptr [rsp + 44], ecx",
    "lea rdi, [rsp - {below}]",
    "lea rax, [rip + {slow_enter}]",
    "call ringmark_slow",
    "ringmark_pop",
    "ringmark_drop",
    "ret",
    ".cfi_endproc",
    ".size ringmark_enter_any_inside, .-ringmark_enter_any_inside",
    ".popsection",
    places = sym RETURN_PLACES,
    types = sym TYPES,
    below = const PUSHED_BELOW,
    slow_enter = sym slow_way::enter,
);

unsafe extern "C" {
    pub(super) fn ringmark_enter_any_inside();
}
