//! Enabling and disabling patch sites while every thread of the process goes on running.
//!
//! A batch walks all its sites once per step ([`crate::arch::STEPS`]). Between two steps every
//! processor that runs the program passes a serializing instruction. No step leaves a site in a
//! state that a thread could not execute, so no thread is stopped, waited for or interrupted by a
//! trap. The states of a site are described in the processor's folder of `arch`.
//!
//! In the order of a switch:
//!
//! 1. [`prepare`]: goals become changes of one module's sites; a goal that cannot be reached gets
//!    a [`Refusal`].
//! 2. [`trampolines`]: the code that enabled sites call, within their reach ([`places`]), in memory of
//!    [`code_region`]. [`code_objects`]: such memory that unwinders know, by [`object_file`].
//! 3. [`batch`]: compares bytes with those expected, opens the code for writing, does the steps.
//! 4. [`code_writes`]: the only writes into code of the program.
//! 5. [`patched`]: a module and what was done to its sites.
//!
//! # Invariants
//!
//! `SAFETY` lines of this folder cite these as *patch invariant n*.
//!
//! 1. The loader unmaps no module while its lock is held; a [`Held`] is the proof that it is.
//! 2. Only this folder writes code of patch sites, under the lock of changes. No Rust reference
//!    leads to that code.
//! 3. A head of several bytes lies in one aligned word of 8: [`Form`] admits no other, but where a jump is put there
//!    once, while no thread is at the site.
//! 4. A region is this library's own mapping, and no Rust reference leads into it.
//! 5. A page of a region is filled before a thread can execute it and never written after that.
//! 6. A region is unmapped only when no site calls into it.
//! 7. The word of a trampoline's target is aligned. Trampolines load it, and one thread at a time
//!    stores it.
//! 8. A target stays in memory for ever and keeps to the rules in the crate's documentation.
//!
//! 9. The loader maps an object that runs no code of its own and binds no name. It is unmapped only
//!    where no memory of it was handed out.
//!
//! [`Held`]: crate::sites::loader::Held
//! [`Form`]: crate::arch::Form

pub(crate) mod batch;
pub(crate) mod code_objects;
mod code_region;
mod code_writes;
mod object_file;
pub(crate) mod patched;
mod places;
pub(crate) mod prepare;
mod refusal;
pub(crate) mod trampolines;

pub use prepare::Threads;
pub use refusal::{Refusal, RefusedSite};
pub use trampolines::Target;

/// Bytes of a page of the system. A constant, because `rustix` reads the size from the kernel's
/// page of code and dies where a tool such as valgrind hides that page.
const PAGE_BYTES: usize = 4096;
