//! The library behind `ringmark.h`: everything but the straight line of an event, which the header
//! has inline.
//!
//! Nothing unwinds into C: whatever could panic is caught, and then the event or the call failed.

pub mod layout;
mod record;
mod session;
mod structs;
mod types;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `work` returns; `otherwise` if it panics.
fn caught<R>(otherwise: R, work: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

// The thread block is defined in assembly, of which rustc does not know that it is to be exported.
// The linker reads this name in rustc's list of exports as a pattern, and the block matches it.
#[unsafe(export_name = "ringmark_thread_bloc?")]
static EXPORTED: u8 = 0;
