//! The running session: started once, found by every thread, never taken away.
//!
//! The rooms, from the ground up; each knows only those above it in this list:
//!
//! - what a session is made of: `attributes`, `layout` (the bytes of a new ring file), `core` (the
//!   session itself), `memory` (the file's space);
//! - what the operating system tells: `handler`, `pin`, `retry`, `process`;
//! - what threads get: `warm` (the pool of rings), `attach` (the way off the event path), `sample`;
//! - what types are known: `known`, `schema`, `registry`;
//! - the life of a session: `control` (its helper thread), `create` (its file), `life` (start and
//!   close), `registration` (types that come while the program runs).

// What a session is made of.
mod attributes;
mod core;
mod layout;
mod memory;

// What the operating system tells.
mod handler;
mod pin;
mod process;
mod retry;

// What threads get.
mod attach;
mod sample;
mod warm;

// What types are known.
mod known;
mod registry;
mod schema;

// The life of a session.
mod control;
mod create;
mod life;
mod registration;

pub use attach::attach_thread;
pub(crate) use attach::reserve_slow;
pub use control::working;
#[cfg(feature = "tracing")]
pub(crate) use core::count_nested;
pub(crate) use core::now;
pub(crate) use life::start;
pub use life::{Session, start_from_env};
pub(crate) use pin::keep_mapped;
#[cfg(feature = "tracing")]
pub(crate) use registration::register_once;
pub(crate) use registration::{is_first, register_dynamic};
pub(crate) use registry::{answer_requests, append_written};
#[cfg(feature = "tracing")]
pub(crate) use registry::{is_wanted, level_max, listen};
pub use sample::{RingCounts, without_trace};
