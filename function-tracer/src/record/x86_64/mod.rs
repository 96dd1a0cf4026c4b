//! The straight line on x86-64, in the order of a call: `stub` says which code a pad jumps to,
//! `call_stubs`, `inside_stub` and `profile_stubs` are that code, `into_slow_way` leads from it
//! into Rust with `vectors` saved, `stub_frames` is the stack that Rust finds there.

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
