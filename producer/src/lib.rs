//! Ringmark's producer: each thread writes events into its own ring of one shared memory file.
//!
//! ```
//! use ringmark::{Mode, Session, event, span};
//!
//! let session = Session::builder().mode(Mode::Overwrite).ring_bytes(256 << 10).start();
//! // Without a session every macro does nothing.
//! {
//!     let _span = span!("db.query", rows = 3_u32);
//!     event!("request.done", status = 200_u16, bytes = 4096_u64);
//! }
//! # drop(session);
//! ```
//!
//! A struct can be an event, a function or a future a span:
//!
//! ```
//! use ringmark::{Event, InSpan, async_span, emit, instrument};
//!
//! #[derive(Event)]
//! #[repr(C)]
//! #[event(name = "packet.seen", level = "debug")]
//! struct PacketSeen {
//!     #[event(unit = "bytes")]
//!     length: u32,
//!     port: u16,
//! }
//!
//! #[instrument(fields(port, path = %path))]
//! async fn serve(port: u16, path: String) {
//!     emit(&PacketSeen { length: 64, port });
//! }
//!
//! async fn accept() {
//!     serve(80, "/".to_owned()).in_span(async_span!("accept", peers = 1_u32)).await;
//! }
//! # drop(accept());
//! ```
//!
//! The way of an event: a macro looks at one word of its call site (is it on?), reads the clock,
//! reserves a record in this thread's ring, writes the arguments, and commits by one store. No
//! lock, no allocation, no system call; a signal handler may do the same at any instruction.
//!
//! # Other systems
//!
//! Ringmark traces on Linux on x86-64. A program that uses this crate compiles on every other
//! system and processor, too: no session starts there, which [`StartError::Unsupported`] says, and
//! each macro does what it does without a session: its arguments are type-checked, never
//! evaluated. The subscriber and the layer of the bridge from `tracing` record nothing.

#![cfg_attr(
    not(all(
        target_os = "linux",
        target_arch = "x86_64",
        target_pointer_width = "64",
        not(ringmark_unsupported)
    )),
    allow(dead_code, reason = "what only a session uses")
)]

mod builder;
pub mod client;
mod event;
mod setup;

// What traces, or what stands in for it where Ringmark cannot trace. Cargo.toml has the same rule.
#[cfg(all(
    target_os = "linux",
    target_arch = "x86_64",
    target_pointer_width = "64",
    not(ringmark_unsupported)
))]
#[path = "."]
mod platform {
    #[cfg(feature = "functions")]
    pub(crate) mod function_site;
    pub(crate) mod session;
    pub(crate) mod sites;
    pub(crate) mod thread_block;
    #[cfg(feature = "tracing")]
    pub mod tracing;
    pub(crate) mod wiped;

    pub(crate) use ringmark_ring as ring;
}
#[cfg(not(all(
    target_os = "linux",
    target_arch = "x86_64",
    target_pointer_width = "64",
    not(ringmark_unsupported)
)))]
#[path = "unsupported/mod.rs"]
mod platform;

#[doc(hidden)]
pub mod __private;

#[cfg(feature = "tracing")]
pub use platform::tracing;
use platform::{ring, session, sites, thread_block};

pub use builder::Builder;
pub use event::async_span::{AsyncSpan, Entered, InSpan, Spanned};
pub use event::span::SpanGuard;
pub use event::typed::{Event, Reserved, Written, emit, reserve};
pub use event::value::{Encoder, Redacted, Value, redact};
#[doc(inline)]
pub use ringmark_format::schema::{Kind, Level};
#[doc(inline)]
pub use ringmark_format::session::{Clock, Mode};
#[doc(inline)]
pub use ringmark_macros::{Event, instrument, notrace, trace_fn};
pub use session::{Session, attach_thread, start_from_env};
pub use setup::{Fork, Keep, OptionError, Options, StartError};

/// The session's clock in ticks, for [`event_at!`]; 0 without a session.
#[inline(always)]
#[must_use]
pub fn ticks() -> u64 {
    session::now()
}
