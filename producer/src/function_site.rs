//! The site that `#[trace_fn]` puts at the beginning of a function's body.
//!
//! Five bytes of NOP, the form that C compilers leave, and in the section `ringmark_functions` how
//! far it is from there. Each copy of the code has an entry of its own. The section is linked to
//! the function's ("o"), so the entry is there as long as the function is; that takes the name of
//! a symbol in the function, which a counter makes unique. The NOP may become a call, so the
//! compiler is not told that the stack is left alone: below the stack pointer nothing is its own.
//!
//! # Invariants
//!
//! 1. The NOP changes nothing. The call that the function tracer may put in its place preserves all
//!    registers but the flags, which the compiler is told.

/// A place that the function tracer can make call its code.
#[inline(always)]
pub fn function_site() {
    // SAFETY: invariant 1.
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
