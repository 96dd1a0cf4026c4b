//! The code behind a site's pad, and the code that a traced function returns to.
//!
//! A pad has pushed the site's number. Every register is preserved, also those that a caller may
//! expect unchanged because it knows the function; only general registers are used, and less than
//! 100 bytes of the program's stack. A record is reserved as `Writer::reserve` does it; one without
//! payload is reserved and committed by the same compare-exchange. Whatever is not the common case
//! goes to `record::slow`, by way of `slow_way`.

use ringmark::client::writer_offsets as writer;
use ringmark_format::function::{CALLER_BITS, EXIT_BIT, LOOSE_BIT};
use ringmark_format::record::{BUSY, pack_span};
use ringmark_format::session::Clock;

use super::frames::PUSHED_BELOW;
use super::inside_stub::ringmark_enter_any_inside;
use super::slow_way::RETURN_BYTES;
use crate::record::nodes::NODES;
use crate::record::open_calls::offsets as calls;
use crate::record::slow;
use crate::record::types::{RETURN_PLACES, TYPES};

/// Bits of `TSC_AUX` that are the CPU's number; the others are its node.
const CPU_MASK: u32 = 0xFFF;

core::arch::global_asm!(
    ".pushsection .tbss.ringmark_open_calls,\"awT\",@nobits",
    ".balign 8",
    ".globl ringmark_open_calls",
    ".hidden ringmark_open_calls",
    ".type ringmark_open_calls,@tls_object",
    ".size ringmark_open_calls,{block}",
    "ringmark_open_calls:",
    ".zero {block}",
    ".popsection",
    //
    ".macro ringmark_push",
    "push rax",
    "push rcx",
    "push rdx",
    "push rsi",
    "push rdi",
    ".cfi_adjust_cfa_offset 40",
    ".endm",
    ".macro ringmark_pop",
    "pop rdi",
    "pop rsi",
    "pop rdx",
    "pop rcx",
    "pop rax",
    ".cfi_adjust_cfa_offset -40",
    ".endm",
    // rax: the type of the site whose number lies at [rsp + at], which it replaces.
    ".macro ringmark_type at",
    "mov eax, dword ptr [rsp + \\at]",
    "mov rdx, qword ptr [rip + {types}]",
    "mov eax, dword ptr [rdx + 4 * rax]",
    "mov qword ptr [rsp + \\at], rax",
    ".endm",
    // rsi: this thread's writer, if its clock is the counter.
    ".macro ringmark_writer off",
    "mov rsi, qword ptr [rip + ringmark_thread_block@gottpoff]",
    "mov rsi, qword ptr fs:[rsi]",
    "test rsi, rsi",
    "jz \\off",
    "cmp qword ptr [rsi + {clock}], {tsc}",
    "jne \\off",
    ".endm",
    // rax: ticks since the page's base, of the counter's value in edx:eax. Sets in_use, whose old
    // value is in rdi from then on; so `off` gives it back.
    ".macro ringmark_begin off",
    "shl rdx, 32",
    "or rax, rdx",
    "mov rdi, qword ptr [rsi + {in_use}]",
    "mov qword ptr [rsi + {in_use}], 1",
    "sub rax, qword ptr [rsi + {tick_base}]",
    "mov rdx, rax",
    "shr rdx, 32",
    "jnz \\off",
    "mov rcx, qword ptr [rsi + {cursor}]",
    ".endm",
    // A record without payload of the type at [rsp + at]. If it is not that simple, nothing has
    // changed and the way goes to `off`.
    ".macro ringmark_record at, off",
    "ringmark_writer \\off",
    "rdtsc",
    "ringmark_begin 98f",
    "lea rdx, [rcx + 8]",
    "cmp rdx, qword ptr [rsi + {end}]",
    "ja 98f",
    "mov edx, dword ptr [rsp + \\at]",
    "shl rdx, 32",
    "or rdx, rax",
    "xor eax, eax",
    "cmpxchg qword ptr [rcx], rdx", // reserves and commits
    "jne 98f",
    "inc qword ptr [rsi + {reservations}]",
    "add rcx, 8",
    "mov qword ptr [rsi + {cursor}], rcx",
    "mov qword ptr [rsi + {in_use}], rdi",
    "jmp 99f",
    "98:",
    "mov qword ptr [rsi + {in_use}], rdi",
    "jmp \\off",
    "99:",
    ".endm",
    // The slow way to \function with \argument.
    ".macro ringmark_go function, argument:vararg",
    "lea rdi, [\\argument]",
    "lea rax, [rip + \\function]",
    "call ringmark_slow",
    ".endm",
    //
    ".macro ringmark_begins name, cfa",
    ".pushsection .text.\\name,\"ax\",@progbits",
    ".balign 64",
    ".globl \\name",
    ".hidden \\name",
    ".type \\name,@function",
    "\\name:",
    ".cfi_startproc",
    ".cfi_def_cfa_offset \\cfa",
    ".cfi_offset rip, -8",
    ".endm",
    ".macro ringmark_ends name",
    ".cfi_endproc",
    ".size \\name, .-\\name",
    ".popsection",
    ".endm",
    //
    // Entry of a function whose return is wanted, too, at its beginning, or inside it. Where `sleds`
    // is 0, its return address is replaced, else its exits are sites.
    ".macro ringmark_entry name, inside, sleds",
    "ringmark_begins \\name, 24 - 8 * \\inside", // number, way back; inside it has a frame of its own
    "ringmark_push",
    // [rsp + 40] number, [rsp + 48] way back, [rsp + 56] the slot if the function has not begun
    ".if \\inside",
    "mov eax, dword ptr [rsp + 40]",
    "mov rdx, qword ptr [rip + {places}]",
    "mov esi, dword ptr [rdx + 4 * rax]",
    "ringmark_type 40",
    "test esi, esi",
    "jns 7f",
    "lea rsi, [rbp + 8 - 56]",
    "sub rsi, rsp",
    "7:",
    "mov dword ptr [rsp + 44], esi",
    "lea rsi, [rsp + rsi + 56]",
    ".else",
    "ringmark_type 40",
    "lea rsi, [rsp + 56]",
    ".endif",
    "mov rdi, qword ptr [rip + ringmark_open_calls@gottpoff]",
    "mov rdx, rsi",
    "sub rdx, qword ptr fs:[rdi + {low}]",
    "cmp rdx, qword ptr fs:[rdi + {bytes}]",
    "jae 2f",
    "mov rcx, qword ptr fs:[rdi + {top}]",
    "cmp rcx, qword ptr fs:[rdi + {limit}]",
    "jae 3f",
    // The innermost open call must lie further out; else it is stale, or this is a tail call.
    "cmp rsi, qword ptr [rcx - {open_call} + {slot}]",
    "jae 3f",
    // The place is taken before it is filled: see `open_calls`.
    "lea rdx, [rcx + {open_call}]",
    "mov qword ptr fs:[rdi + {top}], rdx",
    "mov rdx, qword ptr [rsi]",
    "mov qword ptr [rcx + {target}], rdx",
    "or eax, \\sleds",
    "mov qword ptr [rcx + {type_word}], rax",
    "mov qword ptr [rcx + {slot}], rsi",
    ".if \\sleds == 0",
    "lea rax, [rip + ringmark_return]",
    "mov qword ptr [rsi], rax",
    ".endif",
    "1:",
    "ringmark_record 40, 4f",
    "5:",
    "ringmark_pop",
    "lea rsp, [rsp + 8]",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_adjust_cfa_offset 48",
    "2:", // not the thread's own stack: the entry is recorded, the return left alone
    "cmp qword ptr fs:[rdi + {bytes}], 0",
    "je 3f",
    "or dword ptr [rsp + 40], {loose}",
    "jmp 1b",
    "3:",
    "ringmark_go {slow_enter} rsp - {below}",
    "jmp 5b",
    "4:",
    "ringmark_go {slow_record} rsp + 40",
    "jmp 5b",
    "ringmark_ends \\name",
    ".endm",
    "ringmark_entry ringmark_enter, 0, 0",
    "ringmark_entry ringmark_enter_inside, 1, 0",
    "ringmark_entry ringmark_enter_sleds, 0, {sleds}",
    //
    // Exit of a function whose exits are sites; its slot is at [rsp + at] behind what is pushed.
    ".macro ringmark_exit name, at, slow",
    "ringmark_begins \\name, \\at - 32",
    "ringmark_push",
    "mov rdi, qword ptr [rip + ringmark_open_calls@gottpoff]",
    "lea rsi, [rsp + \\at]",
    "mov rdx, rsi",
    "sub rdx, qword ptr fs:[rdi + {low}]",
    "cmp rdx, qword ptr fs:[rdi + {bytes}]",
    "jae 5f", // not the thread's own stack: the entry is recorded without its exit
    "mov rcx, qword ptr fs:[rdi + {top}]",
    "cmp rsi, qword ptr [rcx - {open_call} + {slot}]",
    "jne 3f",
    "cmp rsi, qword ptr [rcx - 2 * {open_call} + {slot}]",
    "je 3f",
    "mov rax, qword ptr [rcx - {open_call} + {type_word}]",
    "xor eax, {sleds_exit}",
    "test eax, {any_end}",
    "jnz 3f",
    "mov qword ptr [rsp + 40], rax",
    "mov qword ptr [rcx - {open_call} + {slot}], 0",
    "sub rcx, {open_call}",
    "mov qword ptr fs:[rdi + {top}], rcx",
    "ringmark_record 40, 4f",
    "5:",
    "ringmark_pop",
    "lea rsp, [rsp + 8]",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_adjust_cfa_offset 48",
    "3:",
    "ringmark_go \\slow, rsp - {below}",
    "jmp 5b",
    "4:",
    "ringmark_go {slow_record} rsp + 40",
    "jmp 5b",
    "ringmark_ends \\name",
    ".endm",
    "ringmark_exit ringmark_leave_sled, 48, {slow_leave_sled}", // it has jumped here
    "ringmark_exit ringmark_leave_called, 56, {slow_leave_called}",
    "ringmark_exit ringmark_leave_tail, 56, {slow_leave_tail}",
    //
    // Entry of a function of which only caller and CPU are wanted.
    "ringmark_begins ringmark_enter_called, 24",
    "ringmark_push",
    "ringmark_type 40",
    "push r8",
    "push r9",
    ".cfi_adjust_cfa_offset 16",
    "mov r8, qword ptr [rsp + 72]",
    "lea rax, [rip + ringmark_return]",
    "cmp r8, rax",
    "je 3f", // a tail call: the caller is the open call's
    "shl r8, 64 - {caller_bits}",
    "shr r8, 64 - {caller_bits}",
    "ringmark_writer 3f",
    "rdtscp",
    "and ecx, {cpu_mask}",
    "inc ecx",
    "shl rcx, {caller_bits}",
    "or r8, rcx",
    "ringmark_begin 2f",
    "lea rdx, [rcx + 16]",
    "cmp rdx, qword ptr [rsi + {end}]",
    "ja 2f",
    "mov r9, rax",
    "mov rdx, {busy_two}",
    "xor eax, eax",
    "cmpxchg qword ptr [rcx], rdx",
    "jne 2f",
    "inc qword ptr [rsi + {reservations}]",
    "lea rdx, [rcx + 16]",
    "mov qword ptr [rsi + {cursor}], rdx",
    "mov qword ptr [rcx + 8], r8",
    "mov edx, dword ptr [rsp + 56]",
    "or edx, {one_word_loose}",
    "shl rdx, 32",
    "or rdx, r9",
    "mov qword ptr [rcx], rdx", // the commit
    "mov qword ptr [rsi + {in_use}], rdi",
    "pop r9",
    "pop r8",
    ".cfi_adjust_cfa_offset -16",
    "1:",
    "ringmark_pop",
    "lea rsp, [rsp + 8]",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_adjust_cfa_offset 64",
    "2:",
    "mov qword ptr [rsi + {in_use}], rdi",
    "3:",
    "pop r9",
    "pop r8",
    ".cfi_adjust_cfa_offset -16",
    "ringmark_go {slow_record_caller} rsp - {below}",
    "jmp 1b",
    "ringmark_ends ringmark_enter_called",
    //
    // Entry of a function of which more is wanted.
    "ringmark_begins ringmark_enter_any, 24",
    "ringmark_push",
    "ringmark_type 40",
    "ringmark_go {slow_enter} rsp - {below}",
    "ringmark_pop",
    "lea rsp, [rsp + 8]",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    "ringmark_ends ringmark_enter_any",
    //
    // Where traced functions return to.
    ".pushsection .text.ringmark_return,\"ax\",@progbits",
    ".balign 64",
    ".globl ringmark_return_anchor",
    ".hidden ringmark_return_anchor",
    "ringmark_return_anchor:",
    ".quad {nodes} - ringmark_return_anchor",
    ".globl ringmark_return_before",
    ".hidden ringmark_return_before",
    "ringmark_return_before:",
    ".byte 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90",
    ".globl ringmark_return",
    ".hidden ringmark_return",
    ".type ringmark_return,@function",
    "ringmark_return:",
    ".byte 0x48, 0x8d, 0x64, 0x24, 0xf8", // lea rsp, [rsp - 8]
    ".org ringmark_return_before + {return_bytes}",
    ".cfi_startproc",
    ".cfi_def_cfa_offset 8",
    ".cfi_offset rip, -8",
    "ringmark_push",
    "mov rdi, qword ptr [rip + ringmark_open_calls@gottpoff]",
    "mov rcx, qword ptr fs:[rdi + {top}]",
    "lea rsi, [rsp + 40]",
    "cmp rsi, qword ptr [rcx - {open_call} + {slot}]",
    "jne 3f",
    "cmp rsi, qword ptr [rcx - 2 * {open_call} + {slot}]",
    "je 3f", // tail calls: several calls return at once
    "mov rax, qword ptr [rcx - {open_call} + {type_word}]",
    "test eax, {any_end}",
    "jnz 3f",
    "mov rdx, qword ptr [rcx - {open_call} + {target}]",
    "mov qword ptr [rsi], rdx", // from here on the stack says where it returns to
    "or eax, {exit}",
    "push rax",
    ".cfi_adjust_cfa_offset 8",
    "mov qword ptr [rcx - {open_call} + {slot}], 0",
    "sub rcx, {open_call}",
    "mov qword ptr fs:[rdi + {top}], rcx",
    "ringmark_record 0, 4f",
    "5:",
    "lea rsp, [rsp + 8]",
    ".cfi_adjust_cfa_offset -8",
    "6:",
    "ringmark_pop",
    "lea rsp, [rsp + 8]",
    ".cfi_adjust_cfa_offset -8",
    "jmp qword ptr [rsp - 8]", // a return would be predicted wrong a second time
    ".cfi_adjust_cfa_offset 48",
    "3:",
    "ringmark_go {slow_leave} rsp - {below}",
    "jmp 6b",
    ".cfi_adjust_cfa_offset 8",
    "4:",
    "ringmark_go {slow_record} rsp",
    "jmp 5b",
    ".cfi_endproc",
    ".size ringmark_return, .-ringmark_return",
    ".popsection",
    block = const calls::BLOCK,
    types = sym TYPES,
    places = sym RETURN_PLACES,
    nodes = sym NODES,
    clock = const writer::CLOCK,
    tsc = const Clock::Tsc as u32,
    in_use = const writer::IN_USE,
    tick_base = const writer::TICK_BASE,
    cursor = const writer::CURSOR,
    end = const writer::END,
    reservations = const writer::RESERVATIONS,
    low = const calls::LOW,
    bytes = const calls::BYTES,
    top = const calls::TOP,
    limit = const calls::LIMIT,
    slot = const calls::SLOT,
    target = const calls::TARGET,
    type_word = const calls::TYPE_WORD,
    open_call = const calls::OPEN_CALL,
    loose = const LOOSE_BIT,
    exit = const EXIT_BIT,
    any_end = const slow::ANY_END | slow::SLEDS,
    sleds = const slow::SLEDS,
    sleds_exit = const slow::SLEDS | EXIT_BIT,
    one_word_loose = const LOOSE_BIT | 1 << 24,
    busy_two = const pack_span(BUSY, 2),
    caller_bits = const CALLER_BITS,
    cpu_mask = const CPU_MASK,
    below = const PUSHED_BELOW,
    return_bytes = const RETURN_BYTES,
    slow_enter = sym slow::enter,
    slow_leave = sym slow::leave,
    slow_leave_sled = sym slow::leave_sled,
    slow_leave_called = sym slow::leave_called,
    slow_leave_tail = sym slow::leave_tail,
    slow_record = sym slow::record_only,
    slow_record_caller = sym slow::record_caller,
);

unsafe extern "C" {
    fn ringmark_enter();
    fn ringmark_enter_inside();
    fn ringmark_enter_sleds();
    fn ringmark_enter_called();
    fn ringmark_enter_any();
    fn ringmark_leave_sled();
    fn ringmark_leave_called();
    fn ringmark_leave_tail();
    fn ringmark_return();
}

/// What a pad may jump to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stub {
    /// Entry and exit are recorded: the return address is replaced.
    Calls,
    /// Entry and exit are recorded: the exits are sites, too.
    CallsWithSleds,
    /// The entry is recorded with its caller.
    Callers,
    /// Whatever the plan says.
    Any,
    /// As `Calls`, at a site inside a function.
    CallsInside,
    /// As `Any`, at a site inside a function.
    AnyInside,
    /// At a site in the place of a return.
    Exit,
    /// At a site in front of a return.
    BeforeReturn,
    /// At a site in front of a jump out of the function.
    TailExit,
}

impl Stub {
    /// Its address.
    pub(crate) fn address(self) -> u64 {
        let stub: unsafe extern "C" fn() = match self {
            Self::Calls => ringmark_enter,
            Self::CallsWithSleds => ringmark_enter_sleds,
            Self::Callers => ringmark_enter_called,
            Self::Any => ringmark_enter_any,
            Self::CallsInside => ringmark_enter_inside,
            Self::AnyInside => ringmark_enter_any_inside,
            Self::Exit => ringmark_leave_sled,
            Self::BeforeReturn => ringmark_leave_called,
            Self::TailExit => ringmark_leave_tail,
        };
        stub as usize as u64
    }
}

/// What stands in the place of a replaced return address.
pub(crate) fn return_address() -> u64 {
    let address: unsafe extern "C" fn() = ringmark_return;
    address as usize as u64
}
