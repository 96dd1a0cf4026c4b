//! x86-64.
//!
//! # Invariants
//!
//! 1. Where a symbol lies that `thread_block.rs` or the linker defines, or the linker or the loader writes down, is the
//!    same while this code is mapped. To take it changes nothing.
//! 2. The thread's block begins with a word that is there as long as the thread.
//! 3. The NOP changes nothing. The call that the function tracer may put in its place preserves all
//!    registers but the flags, which the compiler is told.

/// The block of the calling thread.
#[inline(always)]
pub(crate) fn thread_block() -> *mut u64 {
    let block: *mut u64;
    // SAFETY: invariant 1: reads the thread pointer and the symbol's offset from it.
    unsafe {
        core::arch::asm!(
            "mov {block}, qword ptr [rip + ringmark_own_thread_block@gottpoff]",
            "add {block}, qword ptr fs:[0]",
            block = out(reg) block,
            options(pure, readonly, nostack),
        );
    }
    block
}

/// The first word of that block.
#[inline(always)]
pub(crate) fn first_word() -> *const () {
    let word: *const ();
    // SAFETY: invariants 1 and 2.
    unsafe {
        core::arch::asm!(
            "mov {word}, qword ptr [rip + ringmark_own_thread_block@gottpoff]",
            "mov {word}, qword ptr fs:[{word}]",
            word = out(reg) word,
            options(readonly, nostack, preserves_flags),
        );
    }
    word
}

/// Where the section `ringmark_sites` of this program or shared object begins and ends.
pub(crate) fn sites() -> (*const (), *const ()) {
    let (start, stop): (*const (), *const ());
    // SAFETY: invariant 1; touches no memory.
    unsafe {
        core::arch::asm!(
            // A copy of this library must not find the sites of another one.
            ".hidden __start_ringmark_sites",
            ".hidden __stop_ringmark_sites",
            "lea {start}, [rip + __start_ringmark_sites]",
            "lea {stop}, [rip + __stop_ringmark_sites]",
            start = out(reg) start,
            stop = out(reg) stop,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    (start, stop)
}

/// The address of a function by its name; 0: the program has none.
macro_rules! weak_address {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: the linker or the loader puts an address into the table of addresses (GOT): it is read.
        unsafe {
            core::arch::asm!(
                concat!(".weak ", $name),
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }};
}
pub(crate) use weak_address;

/// Word of a handler's frame with the link to another context: `uc_link` of `ucontext_t`. The kernel
/// sets none.
const LINK: usize = 2;
/// Word of a handler's frame that begins with the code segment: `REG_CSGSFS` of `gregset_t`.
const SEGMENTS: usize = 6 + libc::REG_CSGSFS as usize;
/// The least significant byte of the code segment of 64-bit programs. (The others depend on what the
/// kernel runs on.)
const CODE_SEGMENT: u8 = 0x33;

/// Words of a handler's frame after the first that are looked at.
pub(crate) const HANDLER_FRAME_WORDS: usize = SEGMENTS;

/// Whether the frame of a handler is where `word` reads: its return address, then the context of what was interrupted.
/// `restorers`: where handlers return to that may run.
pub(crate) fn is_handler_frame(word: impl Fn(usize) -> usize, restorers: &[usize]) -> bool {
    let returns_to = word(0);
    let is_known = returns_to != 0 && restorers.contains(&returns_to);
    is_known && word(LINK) == 0 && word(SEGMENTS).to_le_bytes()[0] == CODE_SEGMENT
}

/// A place that the function tracer can make call its code: the site that `#[trace_fn]` puts at the beginning of a
/// function's body.
///
/// Five bytes of NOP, the form that C compilers leave, and in the section `ringmark_functions` how
/// far it is from there. Each copy of the code has an entry of its own. The section is linked to
/// the function's ("o"), so the entry is there as long as the function is; that takes the name of
/// a symbol in the function, which a counter makes unique. The NOP may become a call, so the
/// compiler is not told that the stack is left alone: below the stack pointer nothing is its own.
#[cfg(feature = "functions")]
#[inline(always)]
pub fn function_site() {
    // SAFETY: invariant 3.
    unsafe {
        core::arch::asm!(
            "777:",
            ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00",
            ".ifndef ringmark_function_count",
            ".set ringmark_function_count, 0",
            ".endif",
            ".set ringmark_function_count, ringmark_function_count + 1",
            ".macro ringmark_function_entry count",
            ".Lringmark_function_\\count = 777b",
            ".pushsection ringmark_functions,\"ao\",@progbits,.Lringmark_function_\\count",
            ".balign 8",
            ".quad 777b - .",
            ".popsection",
            ".endm",
            ".altmacro",
            "ringmark_function_entry %ringmark_function_count",
            ".noaltmacro",
            ".purgem ringmark_function_entry",
        );
    }
}
