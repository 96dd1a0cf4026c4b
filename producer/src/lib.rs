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

pub mod client;
#[cfg(feature = "tracing")]
pub mod tracing;

mod event;
#[cfg(feature = "functions")]
mod function_site;
mod session;
mod sites;
mod thread_block;
mod wiped;

#[doc(hidden)]
pub mod __private;

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
pub use session::{
    Builder, Fork, Keep, OptionError, Options, Session, StartError, attach_thread, start_from_env,
};

/// The session's clock in ticks, for [`event_at!`]; 0 without a session.
#[inline(always)]
#[must_use]
pub fn ticks() -> u64 {
    session::now()
}
