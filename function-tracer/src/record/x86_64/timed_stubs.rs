//! The stubs for a function whose calls are recorded at their end, if they took long enough
//! (`ringmark_enter_timed`) or led to a function whose callers are wanted (`ringmark_enter_leading`).
//!
//! They keep to the rules in `call_stubs`. An entry opens the call and notes its tick. A return closes a call that
//! is not recorded; one that may be recorded goes the slow way, which looks at its plan.

use super::stub_frames::PUSHED_BELOW;
use crate::record::call_records::{ANY_END, LEADING, LEADS, TIMED};
use crate::record::least_time::LEAST_TICKS;
use crate::record::open_calls::offsets as block;
use crate::record::site_tables::TYPES;
use crate::record::slow_way;
use crate::record::thread_memory::offsets as memory;
use crate::record::true_returns::{COPY_PART, COPY_SHIFT};
use crate::record::unwritten::COUNTS;

core::arch::global_asm!(
    include_str!("frame_macros.s"),
    //
    ".macro ringmark_time name, end",
    ".pushsection .text.\\name,\"ax\",@progbits",
    ".balign 64",
    ".globl \\name",
    ".hidden \\name",
    ".type \\name,@function",
    "\\name:",
    ".cfi_startproc",
    ".cfi_def_cfa_offset 24",
    ".cfi_offset rip, -8",
    "ringmark_push",
    // [rsp + 40] number, [rsp + 48] way back, [rsp + 56] the slot with the return address
    "mov eax, dword ptr [rsp + 40]",
    "mov rdx, qword ptr [rip + {types}]",
    "mov eax, dword ptr [rdx + 4 * rax]",
    "mov qword ptr [rsp + 40], rax",
    "mov rdi, qword ptr [rip + ringmark_open_calls@gottpoff]",
    "lea rsi, [rsp + 56]",
    "mov rdx, rsi",
    "sub rdx, qword ptr fs:[rdi + {low}]",
    "cmp rdx, qword ptr fs:[rdi + {bytes}]",
    "jae 3f",
    "mov rcx, qword ptr fs:[rdi + {top}]",
    "cmp rcx, qword ptr fs:[rdi + {limit}]",
    "jae 3f",
    "cmp rsi, qword ptr [rcx - {open_call} + {slot}]",
    "jae 3f",
    "cmp qword ptr [rip + {counts}], 0",
    "jne 3f", // calls that leave no record are counted for a budget
    "lea rdx, [rcx + {open_call}]", // the place is taken before it is filled
    "mov qword ptr fs:[rdi + {top}], rdx",
    "mov rdi, qword ptr [rsi]",
    "mov qword ptr [rcx + {target}], rdi",
    "or eax, \\end",
    "mov qword ptr [rcx + {type_word}], rax",
    "movabs rdx, {copy_part}",
    "xor rdx, rsi",
    "mov qword ptr [rdx + {copy_shift}], rdi", // see `true_returns`
    "lea rdi, [rip + ringmark_return]",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "mov qword ptr [rcx + {tick}], rax",
    "mov qword ptr [rcx + {slot}], rsi",
    "mov qword ptr [rsi], rdi",
    "5:",
    "ringmark_pop",
    "lea rsp, [rsp + 8]",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_adjust_cfa_offset 48",
    "3:",
    "lea rdi, [rsp - {below}]",
    "lea rax, [rip + {slow_enter}]",
    "call ringmark_slow",
    "jmp 5b",
    ".cfi_endproc",
    ".size \\name, .-\\name",
    ".popsection",
    ".endm",
    "ringmark_time ringmark_enter_timed, {timed_end}",
    "ringmark_time ringmark_enter_leading, {leading_end}",
    //
    // A return of a call that is not only counted, as `ringmark_return` has found it: eax its type word, rcx after its
    // place, rsi its slot, rdi the thread's block.
    ".pushsection .text.ringmark_return_timed,\"ax\",@progbits",
    ".balign 64",
    ".globl ringmark_return_timed",
    ".hidden ringmark_return_timed",
    ".type ringmark_return_timed,@function",
    "ringmark_return_timed:",
    ".cfi_startproc",
    ".cfi_def_cfa_offset 48",
    ".cfi_offset rip, -8",
    "test eax, {timed}",
    "jz ringmark_return_slow",
    "test eax, {leads}",
    "jnz ringmark_return_slow",
    "test eax, {leading}",
    "jnz 1f",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "sub rax, qword ptr [rcx - {open_call} + {tick}]",
    "jb 1f", // the clock was set back: no time
    "cmp rax, qword ptr [rip + {least_ticks}]",
    "jae ringmark_return_slow",
    "1:", // not recorded
    "mov rdx, qword ptr [rcx - {open_call} + {target}]",
    "mov qword ptr [rsi], rdx", // from here on the stack says where it returns to
    "mov qword ptr [rcx - {open_call} + {slot}], 0",
    "sub rcx, {open_call}",
    "mov qword ptr fs:[rdi + {top}], rcx",
    "jmp ringmark_return_done",
    ".cfi_endproc",
    ".size ringmark_return_timed, .-ringmark_return_timed",
    ".popsection",
    types = sym TYPES,
    counts = sym COUNTS,
    least_ticks = sym LEAST_TICKS,
    low = const block::LOW,
    bytes = const block::BYTES,
    top = const block::TOP,
    limit = const block::LIMIT,
    slot = const memory::SLOT,
    target = const memory::TARGET,
    type_word = const memory::TYPE_WORD,
    tick = const memory::TICK,
    open_call = const memory::OPEN_CALL,
    copy_part = const COPY_PART,
    copy_shift = const COPY_SHIFT,
    timed = const TIMED,
    leads = const LEADS,
    leading = const LEADING,
    timed_end = const ANY_END | TIMED,
    leading_end = const ANY_END | TIMED | LEADING,
    below = const PUSHED_BELOW,
    slow_enter = sym slow_way::enter,
);

unsafe extern "C" {
    pub(super) fn ringmark_enter_timed();
    pub(super) fn ringmark_enter_leading();
}
