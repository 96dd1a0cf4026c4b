//! The stubs in front of others where calls are selected by their level: see `record::levels`.
//!
//! A call that is not selected ends here: nothing is written, and its return address stays. A call that is
//! selected goes on to the stub that it would have gone to. What these instructions cannot tell goes the slow
//! way, which decides by the same rule: the thread's first call, one on another stack, one after others that
//! were left without a return.

use super::call_stubs::{
    ringmark_enter, ringmark_enter_any, ringmark_enter_inside, ringmark_enter_sleds,
};
use super::inside_stub::ringmark_enter_any_inside;
use super::profile_stubs::ringmark_enter_profile;
use super::timed_stubs::{ringmark_enter_leading, ringmark_enter_timed};
use crate::record::levels::{GENERATION, LEAST, SPAN};
use crate::record::open_calls::offsets as block;
use crate::record::site_tables::RETURN_PLACES;
use crate::record::slow_way::SLEDS;
use crate::record::thread_memory::offsets as memory;

core::arch::global_asm!(
    include_str!("frame_macros.s"),
    //
    ".macro ringmark_select name, inside, selected, unsure",
    ".pushsection .text.\\name,\"ax\",@progbits",
    ".balign 64",
    ".globl \\name",
    ".hidden \\name",
    ".type \\name,@function",
    "\\name:",
    ".cfi_startproc",
    ".cfi_def_cfa_offset 24 - 8 * \\inside", // number, way back; inside it has a frame of its own
    ".cfi_offset rip, -8",
    "ringmark_save rax, rcx, rdx",
    // [rsp + 24] number, [rsp + 32] way back, [rsp + 40] the slot if the function has not begun
    "mov rax, qword ptr [rip + ringmark_open_calls@gottpoff]",
    "mov rdx, qword ptr [rip + {generation}]",
    "cmp rdx, qword ptr fs:[rax + {thread_generation}]",
    "jne 3f",
    "mov rcx, qword ptr fs:[rax + {top}]",
    "mov rdx, rcx",
    "sub rdx, qword ptr fs:[rax + {no_levels}]",
    "jb 3f", // some of the calls that are no levels have ended
    "sub rdx, qword ptr [rip + {least}]",
    "cmp rdx, qword ptr [rip + {span}]",
    "jb 4f",
    ".if \\inside",
    "mov edx, dword ptr [rsp + 24]",
    "shl rdx, 2",
    "add rdx, qword ptr [rip + {places}]",
    "mov edx, dword ptr [rdx]",
    "test edx, edx",
    "lea rdx, [rsp + rdx + 40]",
    "jns 5f",
    "lea rdx, [rbp + 8]",
    "5:",
    ".else",
    "lea rdx, [rsp + 40]",
    ".endif",
    "cmp rdx, qword ptr [rcx - {open_call} + {slot}]",
    "jae 2f",
    "sub rdx, qword ptr fs:[rax + {low}]",
    "cmp rdx, qword ptr fs:[rax + {bytes}]",
    "jae 3f", // not the thread's own stack
    "1:", // not selected
    "ringmark_load rdx, rcx, rax",
    "lea rsp, [rsp + 8]",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_adjust_cfa_offset 32",
    "2:", // the innermost open call was left, or has ended with a jump to this function
    "ja 3f",
    "test dword ptr [rcx - {open_call} + {type_word}], {sleds}",
    "jnz 3f",
    "lea rcx, [rip + ringmark_return]",
    "cmp rcx, qword ptr [rdx]",
    "je 1b",
    "3:",
    "ringmark_load rdx, rcx, rax",
    "jmp \\unsure",
    ".cfi_adjust_cfa_offset 24",
    "4:",
    "ringmark_load rdx, rcx, rax",
    "jmp \\selected",
    ".cfi_endproc",
    ".size \\name, .-\\name",
    ".popsection",
    ".endm",
    "ringmark_select ringmark_select_calls, 0, {enter}, {enter_any}",
    "ringmark_select ringmark_select_sleds, 0, {enter_sleds}, {enter_any}",
    "ringmark_select ringmark_select_profile, 0, {enter_profile}, {enter_any}",
    "ringmark_select ringmark_select_timed, 0, {enter_timed}, {enter_any}",
    "ringmark_select ringmark_select_leading, 0, {enter_leading}, {enter_any}",
    "ringmark_select ringmark_select_any, 0, {enter_any}, {enter_any}",
    "ringmark_select ringmark_select_inside, 1, {enter_inside}, {enter_any_inside}",
    "ringmark_select ringmark_select_any_inside, 1, {enter_any_inside}, {enter_any_inside}",
    enter = sym ringmark_enter,
    enter_sleds = sym ringmark_enter_sleds,
    enter_profile = sym ringmark_enter_profile,
    enter_timed = sym ringmark_enter_timed,
    enter_leading = sym ringmark_enter_leading,
    enter_any = sym ringmark_enter_any,
    enter_inside = sym ringmark_enter_inside,
    enter_any_inside = sym ringmark_enter_any_inside,
    generation = sym GENERATION,
    least = sym LEAST,
    span = sym SPAN,
    places = sym RETURN_PLACES,
    thread_generation = const block::GENERATION,
    no_levels = const block::NO_LEVELS,
    top = const block::TOP,
    low = const block::LOW,
    bytes = const block::BYTES,
    slot = const memory::SLOT,
    type_word = const memory::TYPE_WORD,
    open_call = const memory::OPEN_CALL,
    sleds = const SLEDS,
);

unsafe extern "C" {
    pub(super) fn ringmark_select_calls();
    pub(super) fn ringmark_select_sleds();
    pub(super) fn ringmark_select_profile();
    pub(super) fn ringmark_select_timed();
    pub(super) fn ringmark_select_leading();
    pub(super) fn ringmark_select_any();
    pub(super) fn ringmark_select_inside();
    pub(super) fn ringmark_select_any_inside();
}
