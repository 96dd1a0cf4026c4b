//! Where in the program events are emitted: every `event!`, `span!`, … leaves a pointer in a
//! linker section, so a session knows all event types, with the types of their fields, before
//! the first of them happens.
//!
//! Invariants that the SAFETY lines cite:
//!
//! 1. Only `declare` writes to the section: pointers to functions of the type [`Describe`], each
//!    aligned to 8 bytes, without gaps.
//! 2. The linker puts the two symbols at the ends of the section, and keeps the section ("R"). They
//!    are hidden: those of this program or shared object, whatever else the process has loaded.
//! 3. The section is mapped as long as this code.

use super::arch;
use crate::description::Description;

/// Writes the description of one event type to `to`.
pub(crate) type Describe = fn(to: &mut dyn FnMut(Description<'_>));

core::arch::global_asm!(
    ".pushsection ringmark_sites,\"awR\",@progbits",
    ".popsection"
);

/// Leaves a pointer to `T::describe` in the section. No instruction is generated.
#[inline(always)]
pub(crate) fn declare<T: DescribeSite>() {
    // SAFETY: executes nothing; adds what invariant 1 allows. The `sym` operand makes the compiler
    // emit the function.
    unsafe {
        core::arch::asm!(
            ".pushsection ringmark_sites,\"awR\",@progbits",
            ".balign 8",
            ".quad {describe}",
            ".popsection",
            describe = sym T::describe,
            options(nomem, nostack, preserves_flags),
        );
    }
}

/// What [`declare`] can point at.
pub(crate) trait DescribeSite {
    /// Gives the description to `to`.
    fn describe(to: &mut dyn FnMut(Description<'_>));
}

/// Every description in this program, duplicates included (inlining copies sites).
pub(crate) fn for_each(mut to: impl FnMut(Description<'_>)) {
    for describe in all() {
        describe(&mut to);
    }
}

fn all() -> &'static [Describe] {
    let (start, stop) = arch::sites();
    let start = start.cast::<Describe>();
    let count = (stop.addr() - start.addr()) / size_of::<Describe>();
    // SAFETY: the symbols enclose aligned pointers, mapped as long as this code (invariants 1 to 3).
    unsafe { core::slice::from_raw_parts(start, count) }
}
