//! aarch64.
//!
//! # Invariants
//!
//! 1. Where a symbol lies that `thread_block.rs` or the linker defines, or the linker or the loader writes down, is the
//!    same while this code is mapped. To take it changes nothing.
//! 2. The thread's block begins with a word that is there as long as the thread.

/// The block of the calling thread.
#[inline(always)]
pub(crate) fn thread_block() -> *mut u64 {
    let block: *mut u64;
    // SAFETY: invariant 1: reads the thread pointer and the symbol's offset from it.
    unsafe {
        core::arch::asm!(
            "adrp {block}, :gottprel:ringmark_own_thread_block",
            "ldr {block}, [{block}, :gottprel_lo12:ringmark_own_thread_block]",
            "mrs {thread}, tpidr_el0",
            "add {block}, {block}, {thread}",
            block = out(reg) block,
            thread = out(reg) _,
            options(pure, readonly, nostack, preserves_flags),
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
            "adrp {word}, :gottprel:ringmark_own_thread_block",
            "ldr {word}, [{word}, :gottprel_lo12:ringmark_own_thread_block]",
            "mrs {thread}, tpidr_el0",
            "ldr {word}, [{thread}, {word}]",
            word = out(reg) word,
            thread = out(reg) _,
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
            "adrp {start}, __start_ringmark_sites",
            "add {start}, {start}, :lo12:__start_ringmark_sites",
            "adrp {stop}, __stop_ringmark_sites",
            "add {stop}, {stop}, :lo12:__stop_ringmark_sites",
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
                concat!("adrp {0}, :got:", $name),
                concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }};
}
pub(crate) use weak_address;

/// Word of the context of what was interrupted at which the kernel puts its first record: behind flags, link, stack and
/// mask of `ucontext_t`, and the registers.
const RECORDS: usize = (176 + 288) / 8;
/// What that record begins with: it holds the vector registers, 528 bytes.
const VECTORS: usize = 528 << 32 | 0x4650_8001;

/// Words of a handler's frame after the first that are looked at.
pub(crate) const HANDLER_FRAME_WORDS: usize = RECORDS;

/// Whether the frame of a handler is where `word` reads: the context of what was interrupted, without flags and without
/// a link to another one. Handlers return into the kernel's own code, and `restorers` tell nothing.
pub(crate) fn is_handler_frame(word: impl Fn(usize) -> usize, _restorers: &[usize]) -> bool {
    word(RECORDS) == VECTORS && word(0) == 0 && word(1) == 0
}

/// What `#[trace_fn]` puts at the beginning of a function's body: nothing, as no function tracer comes.
#[cfg(feature = "functions")]
#[inline(always)]
pub fn function_site() {}
