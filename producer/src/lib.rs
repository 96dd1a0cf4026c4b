//! Always-on tracing: each thread writes its events into its own ring of a shared memory file.
//!
//! The ring file outlives the program: after a crash, and also after `kill -9`, every committed
//! event can be read. The command `ringmark` reads it, live or afterwards.
//!
//! ```
//! use ringmark::{Event, Keep, Mode, Session, counter, emit, event, instrument, span};
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
//! #[instrument(fields(port))]
//! fn serve(port: u16) {
//!     emit(&PacketSeen { length: 64, port });
//! }
//!
//! fn main() -> Result<(), ringmark::StartError> {
//!     // Without a session every macro does nothing.
//!     event!("nowhere");
//!
//!     let session = Session::builder().mode(Mode::Overwrite).keep(Keep::Never).start()?;
//!     {
//!         let _span = span!("db.query", table = "users");
//!         event!(level: Warn, "query.slow", rows = 3_u32, error = ?None::<()>);
//!         counter!("queue.depth", 7_u64);
//!     }
//!     serve(80);
//!     assert_eq!(session.records(), 5);
//!     Ok(())
//! }
//! ```
//!
//! A program that is traced from outside calls [`start_from_env`] instead: it has a session if
//! `RINGMARK` asks for one, as `ringmark run` and `ringmark record` do.
//!
//! # What there is
//!
//! | to record | use |
//! | --- | --- |
//! | something that happens | [`event!`], [`event_at!`] with a tick of its own |
//! | something with a duration | [`span!`] on one thread, [`async_span!`] and [`InSpan`] for futures |
//! | each call of a function | [`macro@instrument`] |
//! | a value over time, an id that ties threads together | [`counter!`], [`flow!`] |
//! | a struct | `#[derive(Event)]`, [`emit()`], [`reserve()`] |
//! | a value of a type of your own | `Plain`, with the feature `bytemuck` |
//! | events and spans of `tracing` and `log` | `ringmark::tracing` |
//! | functions that are chosen while the program runs | [`trace_fn`] |
//! | records of a library's own | [`client`] |
//!
//! The way of an event: a macro looks at one word of its call site, which says whether the type is
//! enabled. It reads the clock, reserves a record in this thread's ring, writes the arguments, and
//! commits the record by one store. On this way there is no lock, no allocation and no system call,
//! and a signal handler may emit at any instruction.
//!
//! # Features
//!
//! No feature is enabled by default.
//!
//! | feature | effect |
//! | --- | --- |
//! | `tracing` | the module `ringmark::tracing`: a bridge from `tracing` and `log` |
//! | `functions` | [`trace_fn`] leaves patch sites for the function tracer; without it the attribute changes nothing |
//! | `bytemuck` | `Plain`: values of the program's own types as arguments and fields |
//!
//! Derives and attributes name the crate `ringmark`. A program that renames the dependency, here to
//! `rm`, writes `extern crate rm as ringmark;` in its root; the other macros need no such line.
//!
//! # Environment variables
//!
//! [`start_from_env`] reads them; the reference of the guide, which `docs/build` writes,
//! describes each key and says when to change it.
//!
//! | variable | default | effect |
//! | --- | --- | --- |
//! | `RINGMARK` | not traced | `1`, or options such as `mode=discard,ring=1M`: see [`Options::parse`] |
//! | `RINGMARK_FILTER` | all enabled | `LEVEL`, `TARGET=LEVEL` and `SPAN[FIELD=VALUE]=LEVEL`, comma separated, such as `info,hyper=debug` |
//! | `RINGMARK_TAGS` | none | `key=value`, comma separated, stored with the session |
//! | `RINGMARK_DIR` | `/dev/shm/ringmark-UID` | the directory of ring files, for every session |
//! | `RINGMARK_VERBOSE` | silent | `1`: the program prints why it is not traced |
//!
//! # Limits
//!
#![doc = include_str!("limits.md")]
//!
//! # What it does not do
//!
//! - It prints nothing, and never ends the program: without a session, or without room, the program
//!   goes on untraced. Lost events are counted by cause.
//! - It does not drop or change an event that is committed, except in overwrite mode, where the
//!   oldest page gives way to new events, and is counted.
//! - It does not wake readers; they look at the file when they want to.
//! - It does not read trace files: the command `ringmark` and the crate `ringmark-decoder` do.
//! - It does not sample, and has no levels that are removed at compile time.
//!
//! # Other systems
//!
//! Ringmark traces on Linux with glibc on x86-64 and aarch64. A program that uses this crate compiles on every other
//! system and processor, too: no session starts there, which [`StartError::Unsupported`] says, and
//! each macro does what it does without a session: its arguments are type-checked, never
//! evaluated. The subscriber and the layer of the bridge from `tracing` record nothing.

#![cfg_attr(
    not(all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        target_pointer_width = "64",
        not(ringmark_unsupported)
    )),
    allow(dead_code, reason = "what only a session uses")
)]

mod builder;
pub mod client;
mod clock;
mod description;
mod event;
mod recorded;
mod setup;
pub mod testing;

// What traces, or what stands in for it where Ringmark cannot trace. Cargo.toml has the same rule.
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(ringmark_unsupported)
))]
#[path = "."]
mod platform {
    pub(crate) mod arch;
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
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
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

pub use builder::{Builder, start_from_env};
pub use clock::ticks;
pub use event::async_span::{AsyncSpan, Entered, InSpan, Spanned};
#[cfg(feature = "bytemuck")]
pub use event::plain::Plain;
pub use event::span::SpanGuard;
pub use event::typed::{Event, Reserved, Written, emit, reserve};
pub use event::value::{Encoder, Redacted, Value, redact};
/// How readers read a field's bytes.
///
/// ```
/// use ringmark::{Kind, Value};
///
/// assert_eq!(<u16 as Value>::KIND, Kind::U16);
/// assert_eq!(Kind::U16.fixed_bytes(), 2);
/// ```
#[doc(inline)]
pub use ringmark_format::schema::Kind;
/// The level of an event type, which filters compare.
///
/// ```
/// use ringmark::Level;
///
/// assert!(Level::Error < Level::Trace, "the most severe comes first");
/// ```
#[doc(inline)]
pub use ringmark_format::schema::Level;
/// The clock that gives events their ticks; [`Builder::clock`] chooses it.
///
/// ```
/// use ringmark::{Clock, Session};
///
/// let session = Session::builder().clock(Clock::Monotonic).start().expect("a session");
/// assert_eq!(session.clock(), Clock::Monotonic);
/// ```
#[doc(inline)]
pub use ringmark_format::session::Clock;
/// What may be lost when a ring is full; [`Builder::mode`] chooses it.
///
/// ```
/// use ringmark::Mode;
///
/// assert_eq!(Mode::Discard.name(), "discard");
/// ```
#[doc(inline)]
pub use ringmark_format::session::Mode;
/// Makes a struct an event type: implements [`Event`](trait@Event).
///
/// ```
/// use ringmark::{Event, Session, emit};
///
/// #[derive(Event)]
/// #[repr(C)]
/// #[event(name = "login", level = "warn", category = "auth")]
/// struct Login {
///     user: u32,
///     #[event(unit = "ms")]
///     waited: u16,
///     #[event(redact)]
///     token: u64,
/// }
///
/// assert!(Login::FIELDS[2].redacted);
/// let session = Session::builder().start().expect("a session");
/// emit(&Login { user: 7, waited: 120, token: 0xDEAD });
/// assert_eq!(session.records(), 1);
/// ```
#[doc(inline)]
pub use ringmark_macros::Event;
/// Records each call of a function as a span.
///
/// ```
/// use ringmark::{Session, instrument};
///
/// #[instrument(level = "debug", fields(id, half = id / 2, name = %name))]
/// fn greet(id: u64, name: &str, password: &str) -> usize {
///     name.len() + password.len()
/// }
///
/// let session = Session::builder().start().expect("a session");
/// assert_eq!(greet(7, "you", "hunter2"), 10);
/// assert_eq!(session.records(), 1);
/// ```
#[doc(inline)]
pub use ringmark_macros::instrument;
/// Excludes a function or a block from [`macro@trace_fn`] on the block around it.
///
/// ```
/// use ringmark::{notrace, trace_fn};
///
/// struct Cache(Vec<u8>);
///
/// #[trace_fn]
/// impl Cache {
///     fn fill(&mut self) {
///         self.0.push(1);
///     }
///
///     #[notrace]
///     fn len(&self) -> usize {
///         self.0.len()
///     }
/// }
///
/// let mut cache = Cache(Vec::new());
/// cache.fill();
/// assert_eq!(cache.len(), 1);
/// ```
#[doc(inline)]
pub use ringmark_macros::notrace;
/// Leaves a patch site for the function tracer at the beginning of a function.
///
/// ```
/// use ringmark::trace_fn;
///
/// #[trace_fn]
/// fn twice(n: u32) -> u32 {
///     2 * n
/// }
///
/// assert_eq!(twice(21), 42);
/// ```
#[doc(inline)]
pub use ringmark_macros::trace_fn;
pub use session::{Session, attach_thread};
pub use setup::{Fork, Keep, OptionError, Options, StartError};
