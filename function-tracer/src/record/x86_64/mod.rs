//! The straight line of a call on x86-64, in the order of a call:
//!
//! 1. `stub`: which code a trampoline jumps to.
//! 2. `call_stubs`, `inside_stub` and `profile_stubs`: that code. `handler_safe`: the same counter
//!    instructions for Rust.
//! 3. `into_slow_way`: leads from a stub into Rust. `vectors`: saves the vector registers for it.
//! 4. `stub_frames`: the stack that Rust finds. `processor`: what Rust asks the processor.
//!
//! `measured_function` is a function with a patch site whose calls show what a stub costs.

mod call_stubs;
mod handler_safe;
mod inside_stub;
mod into_slow_way;
mod measured_function;
mod processor;
mod profile_stubs;
mod stub;
mod stub_frames;
mod vectors;

pub(crate) use handler_safe::{add, raise};
pub(crate) use measured_function::{MEASURED_SITE, call_measured};
pub(crate) use processor::{current_cpu, has_shadow_stack, trap};
pub(crate) use stub::Stub;
pub(crate) use stub_frames::{EntryFrame, ExitFrame, SledFrame, return_address};
