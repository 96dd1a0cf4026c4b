//! The way from a stub to `record::slow_way` and back, which preserves every register; and the
//! unwind table's entry for `ringmark_return`, by which unwinders find the true caller of a
//! function whose return address was replaced.
//!
//! # The stack
//!
//! The slow way runs on the stack that the program runs on, where that has room: on the thread's own,
//! and on its alternate signal stack. So a handler that interrupts it finds what it would find without
//! it. Elsewhere, and where there is too little room, it runs on the thread's second stack, or before
//! there is one on a mapping of its own, with signals blocked: no handler sees that stack, and the
//! kernel does not take the alternate one for free.
//!
//! # Cancellation
//!
//! A thread may be cancelled at any instruction, or in a call of the C library, which unwinds it. That
//! waits until the slow way has ended: Rust's frames cannot be unwound at any instruction, and may hold
//! a lock.
//!
//! # The entry
//!
//! A DWARF expression finds the copy of the slot's true return address (`true_returns`), which libunwind writes
//! when it goes on at a handler. Its CFA is one byte off, and rsp has a
//! rule of its own: unwinders tell frames apart by their CFA, and this frame and its caller have
//! the same rsp. An unwinder that follows frame pointers alone finds `ringmark_return`.
//!
//! A throw passes this entry twice for each traced call. An unwinder takes 20 to 40 instructions for
//! each operation, and for each byte that fills the entry up.

use core::ffi::c_void;
use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicPtr};

use super::{second_frames, vectors::VECTORS_BYTES};
use crate::record::open_calls::offsets as block;
use crate::record::thread_memory::{NEED_BYTES, STACK_BYTES};
use crate::record::true_returns::{COPY_PART, COPY_SHIFT, SECOND_AT, UNIT_BITS, UNITS_AT};

/// From `ringmark_return_before` to `ringmark_return_rest`, where ordinary entries take over.
pub(super) const RETURN_BYTES: usize = 13;

/// A cancellation waits; as in the C library's header.
const PTHREAD_CANCEL_DISABLE: u32 = 1;

/// The C library's `pthread_setcancelstate`: a program may define one of its own, and have it traced.
static SET_CANCEL_STATE: AtomicPtr<c_void> = AtomicPtr::new(nothing as *mut c_void);

/// The C library's `gettid`, which those before 2.30 do not have: a reference to it would keep all of this from loading.
static GET_THREAD_ID: AtomicPtr<c_void> = AtomicPtr::new(nothing as *mut c_void);

/// In the place of a function that was not found.
extern "C" fn nothing() {}

/// Whether [`SET_CANCEL_STATE`] was looked for.
static IS_LOOKED_FOR: AtomicBool = AtomicBool::new(false);

/// Finds what the slow way calls of the C library, and whether unwinders need second frames, once. Called before the first stub can be entered. Waits for the
/// loader's lock, so the caller must hold none and be no turn of the helper thread: the thread that has it may wait
/// for that.
pub(crate) fn find_in_library() {
    if IS_LOOKED_FOR.load(Relaxed) {
        return;
    }
    for (name, place) in [
        (c"pthread_setcancelstate", &SET_CANCEL_STATE),
        (c"gettid", &GET_THREAD_ID),
    ] {
        // SAFETY: the name is a text; the function changes nothing.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        if !found.is_null() {
            place.store(found, Relaxed);
        }
    }
    second_frames::decide();
    IS_LOOKED_FOR.store(true, Relaxed);
}

/// Address of the function that the slow way calls to have a cancellation wait.
pub(in crate::record) fn set_cancel_state() -> u64 {
    SET_CANCEL_STATE.load(Relaxed) as u64
}

/// Address of the C library's `gettid`, which the standard library calls.
pub(in crate::record) fn get_thread_id() -> u64 {
    GET_THREAD_ID.load(Relaxed) as u64
}

/// All signals but those that an instruction raises itself: where one of these is blocked, the kernel
/// ends the process. The upper half is that of the sign.
const ASYNCHRONOUS: i32 = {
    use libc::{SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    !(1 << (SIGILL - 1)
        | 1 << (SIGTRAP - 1)
        | 1 << (SIGBUS - 1)
        | 1 << (SIGFPE - 1)
        | 1 << (SIGSEGV - 1)
        | 1 << (SIGSYS - 1))
};

core::arch::global_asm!(
    include_str!("frame_macros.s"),
    //
    // Calls the function in rax with rdi, and preserves what a stub has not pushed. `stub_frames` knows
    // the order of the first four words.
    ".pushsection .text.ringmark_slow,\"ax\",@progbits",
    ".balign 16",
    ".globl ringmark_slow",
    ".hidden ringmark_slow",
    ".type ringmark_slow,@function",
    "ringmark_slow:",
    ".cfi_startproc",
    "ringmark_save rbp",
    ".cfi_offset rbp, -16",
    "ringmark_save r8, r9",
    "mov rbp, rsp",
    ".cfi_def_cfa rbp, 32",
    "push r10",
    "push r11",
    "push rbx",
    ".cfi_offset rbx, -56",
    "push r12",
    ".cfi_offset r12, -64",
    "push r13",
    ".cfi_offset r13, -72",
    "push r14",
    ".cfi_offset r14, -80",
    "push {asynchronous}", // [rbp - 56]: signals to block, then those that were
    "mov rbx, rax",
    "mov r12, rdi",
    "xor r14d, r14d", // not 0: signals are blocked. Not 1: the address of a stack to unmap
    "mov r13, qword ptr [rip + ringmark_open_calls@gottpoff]",
    "mov rax, rsp",
    "sub rax, qword ptr fs:[r13 + {low}]",
    "cmp rax, qword ptr fs:[r13 + {bytes}]",
    "jb 2f",
    "mov rax, qword ptr fs:[r13 + {stack}]",
    "sub rax, rsp",
    "cmp rax, {stack_bytes}",
    "jb 5f", // on the second stack already
    "mov rax, rsp",
    "sub rax, qword ptr fs:[r13 + {alternate_low}]",
    "cmp rax, qword ptr fs:[r13 + {alternate_bytes}]",
    "jae 3f",
    // Where the alternate signal stack was. The kernel says whether it is there, and this is on it.
    "sub rsp, {stack_t}",
    "mov eax, {sigaltstack}",
    "xor edi, edi",
    "mov rsi, rsp",
    "syscall",
    "mov rdx, rsp",
    "sub rdx, qword ptr [rsp + {stack_t_low}]",
    "mov ecx, dword ptr [rsp + {stack_t_flags}]",
    "lea rsp, [rbp - 56]",
    "test rax, rax",
    "jnz 3f",
    "test ecx, {on_stack}",
    "jz 3f",
    "mov rax, rdx",
    "2:",
    "cmp rax, {need}",
    "jae 5f",
    "3:", // too little room, or nobody knows
    "mov eax, {sigprocmask}",
    "mov edi, {set_mask}",
    "mov rsi, rsp",
    "mov rdx, rsp",
    "mov r10d, 8",
    "syscall",
    "mov r14d, 1",
    "mov rcx, qword ptr fs:[r13 + {stack}]",
    "test rcx, rcx",
    "jnz 4f",
    "mov eax, {mmap}", // the thread has no node yet
    "xor edi, edi",
    "mov esi, {stack_bytes}",
    "mov edx, {readable_writable}",
    "mov r10d, {private_anonymous}",
    "mov r8, -1",
    "xor r9d, r9d",
    "syscall",
    "cmp rax, -4095",
    "jae 5f",
    "mov r14, rax",
    "lea rcx, [rax + {stack_bytes}]",
    "4:",
    "mov rsp, rcx",
    "5:",
    "sub rsp, {vectors} + 16",
    "and rsp, -64",
    "lea rsi, [rsp + 64]",
    "call ringmark_save_vectors",
    "mov edi, {uncancelled}",
    "lea rsi, [rsp + 8]",
    "call qword ptr [rip + {set_cancel_state}]",
    "mov rdi, r12",
    "call rbx",
    "mov edi, dword ptr [rsp + 8]",
    "xor esi, esi",
    "call qword ptr [rip + {set_cancel_state}]", // a thread that was cancelled may end here
    "lea rsi, [rsp + 64]",
    "call ringmark_load_vectors",
    "lea rsp, [rbp - 56]",
    "test r14, r14",
    "jz 7f",
    "cmp r14, 1",
    "je 6f",
    "mov eax, {munmap}",
    "mov rdi, r14",
    "mov esi, {stack_bytes}",
    "syscall",
    "6:",
    "mov eax, {sigprocmask}",
    "mov edi, {set_mask}",
    "mov rsi, rsp",
    "xor edx, edx",
    "mov r10d, 8",
    "syscall",
    "7:",
    "lea rsp, [rbp - 48]",
    "pop r14",
    ".cfi_restore r14",
    "pop r13",
    ".cfi_restore r13",
    "pop r12",
    ".cfi_restore r12",
    "pop rbx",
    ".cfi_restore rbx",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    ".cfi_def_cfa rsp, 16",
    "ringmark_load rbp",
    ".cfi_restore rbp",
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
    ".byte 0x10, 16", // return address is at
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
    ".byte 0x0e", // constant: there the second frame's address, or 0, as no memory for copies is here
    ".quad {second}",
    ".byte 0x2f", // skip
    ".short 8f - (. + 2)",
    "7:",
    ".byte 0x0e", // constant: place, part
    ".quad {copy_part}",
    ".byte 0x27", // xor: the copy's address
    "8:",
    "9:",
    ".balign 8",
    "5:",
    ".popsection",
    low = const block::LOW,
    bytes = const block::BYTES,
    alternate_low = const block::ALTERNATE_LOW,
    alternate_bytes = const block::ALTERNATE_BYTES,
    stack = const block::STACK,
    stack_bytes = const STACK_BYTES,
    need = const NEED_BYTES,
    vectors = const VECTORS_BYTES + 64,
    stack_t = const size_of::<libc::stack_t>(),
    stack_t_low = const offset_of!(libc::stack_t, ss_sp),
    stack_t_flags = const offset_of!(libc::stack_t, ss_flags),
    on_stack = const libc::SS_ONSTACK,
    sigaltstack = const libc::SYS_sigaltstack,
    sigprocmask = const libc::SYS_rt_sigprocmask,
    set_mask = const libc::SIG_SETMASK,
    mmap = const libc::SYS_mmap,
    munmap = const libc::SYS_munmap,
    readable_writable = const libc::PROT_READ | libc::PROT_WRITE,
    private_anonymous = const libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
    asynchronous = const ASYNCHRONOUS,
    set_cancel_state = sym SET_CANCEL_STATE,
    uncancelled = const PTHREAD_CANCEL_DISABLE,
    return_bytes = const RETURN_BYTES,
    unit_bits = const UNIT_BITS,
    units_at = const UNITS_AT,
    second = const SECOND_AT,
    copy_part = const COPY_PART,
    copy_shift = const COPY_SHIFT,
);
