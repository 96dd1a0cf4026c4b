//! Switching sites while every thread of the process goes on.
//!
//! A batch walks all its sites once per step ([`crate::arch::STEPS`]), and between two steps all
//! processors that run the program pass a serializing instruction ([`sync`]). No step leaves a site
//! in a state that a thread could not execute, so no thread has to be stopped, waited for or
//! interrupted by a trap; what those states are, the processor's folder says.
//!
//! - [`patched`]: a module, and what was done to its sites so far.
//! - [`prepare`]: goals become changes, by module; what cannot be done is refused with its reason.
//! - [`trampolines`]: pads for the sites' calls, within reach, before anything calls them.
//! - [`batch`]: the bytes are compared with what they should be, the text is opened for writing,
//!   the steps are done, the text is closed.
//! - [`code_writes`]: the only writes into code, [`code_region`]: the only code that is made.

pub(crate) mod batch;
pub(crate) mod code_region;
mod code_writes;
pub(crate) mod patched;
pub(crate) mod prepare;
mod refusal;
mod sync;
pub(crate) mod threads;
pub(crate) mod trampolines;

pub use refusal::Refusal;
pub use threads::Threads;
pub use trampolines::Target;

/// The system's pages. Not asked for: `rustix` looks for the answer in the kernel's page of code, and
/// dies where a tool such as valgrind hides that.
const PAGE_BYTES: usize = 4096;
