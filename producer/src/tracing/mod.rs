//! The bridge from `tracing` and `log`: one line, [`init`], and every event and span of them is a
//! record in its thread's ring.
//!
//! ```
//! if let Err(error) = ringmark::tracing::init() {
//!     eprintln!("events are not recorded by Ringmark: {error}");
//! }
//! tracing::info!(rows = 3, "query done"); // recorded if `RINGMARK` asks for a session
//! ```
//!
//! In a program that installs a subscriber of its own, add [`layer`] to that one, and start the
//! session with [`crate::start_from_env`].
//!
//! `RINGMARK_FILTER`, `Session::set_filter` and the requests of tools enable and disable events at
//! run time; a disabled one costs a load and a branch. Not for signal handlers: `tracing` itself is
//! not.

mod direct;
mod ids;
mod kinds;
mod layer;
mod log_records;
mod site;
mod sites;
mod spans;
mod subscriber;
mod texts;
mod thread;
mod values;
mod watched;

use tracing_core::{Dispatch, dispatcher};

pub use crate::setup::init_error::InitError;
pub use layer::{RecorderLayer, layer};
pub use subscriber::Recorder;

use crate::Session;

/// Starts a session if `RINGMARK` asks for one, and bridges `tracing` and `log` to it.
///
/// `None`: no session runs; everything is disabled until one starts.
///
/// ```
/// use ringmark::Session;
///
/// let session = Session::builder().start().expect("a session");
/// if let Err(error) = ringmark::tracing::init() {
///     eprintln!("events are not recorded by Ringmark: {error}");
/// }
/// tracing::info!(rows = 3, "query done");
/// assert_eq!(session.records(), 1);
/// ```
///
/// # Errors
/// The program has set a subscriber or a logger before: add [`layer`] to that subscriber. A program
/// that goes on without its trace is better than one that ends, so do not unwrap the result.
pub fn init() -> Result<Option<Session>, InitError> {
    let session = crate::start_from_env().or_else(Session::current);
    dispatcher::set_global_default(Dispatch::new(recorder()))
        .map_err(|_| InitError::SubscriberIsSet)?;
    tracing_log::LogTracer::init().map_err(|_| InitError::LoggerIsSet)?;
    Ok(session)
}

/// The subscriber, for programs that install it themselves.
///
/// ```
/// use ringmark::Session;
///
/// let session = Session::builder().start().expect("a session");
/// let _guard = tracing::subscriber::set_default(ringmark::tracing::recorder());
/// tracing::info!("one thread only");
/// assert_eq!(session.records(), 1);
/// ```
#[must_use]
pub fn recorder() -> Recorder {
    sites::listen();
    Recorder
}
