//! What the producer says in the assembly of a processor. A port is one file here, with the items used below.
//!
//! - [`thread_block`] and [`first_word`] lead to the thread's own block.
//! - [`sites`] are the ends of the linker section with event types.
//! - [`weak_address!`] is the address of a function that the program may lack.
//! - [`is_handler_frame`] tells the frame of a signal handler on a stack.
//! - [`function_site`] is the site of `#[trace_fn]`.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as processor;
#[cfg(target_arch = "x86_64")]
use x86_64 as processor;

#[cfg(feature = "functions")]
pub use processor::function_site;
pub(crate) use processor::{
    HANDLER_FRAME_WORDS, first_word, is_handler_frame, sites, thread_block, weak_address,
};
