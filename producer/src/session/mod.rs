//! The running session: started once, found by every thread, never taken away.

mod attach;
mod attributes;
mod builder;
mod control;
mod core;
mod create;
mod error;
mod filter;
mod handler;
mod known;
mod layout;
mod life;
mod memory;
mod options;
mod pin;
mod process;
mod registry;
mod retry;
mod sample;
mod schema;

pub use attach::attach_thread;
pub(crate) use attach::reserve_slow;
pub use builder::{Builder, Session};
pub(crate) use control::working;
#[cfg(feature = "tracing")]
pub(crate) use core::count_nested;
pub(crate) use core::{is_counter, now, ticks_of_ns};
pub use error::StartError;
pub use life::start_from_env;
pub use options::{Fork, Keep, OptionError, Options};
pub(crate) use pin::keep_mapped;
pub(crate) use process::foreign_events;
pub(crate) use registry::{answer_requests, append_written, is_first, on_idle, register_dynamic};
#[cfg(feature = "tracing")]
pub(crate) use registry::{is_wanted, level_max, listen, register_once};
pub use sample::RingCounts;
pub(crate) use sample::{ring_counts, sample_types, without_trace};
