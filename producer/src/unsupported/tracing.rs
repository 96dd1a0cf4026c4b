//! The bridge from `tracing` and `log` where no session can start: it records nothing.

use core::fmt;
use core::marker::PhantomData;

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Event, LevelFilter, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::Session;

pub use crate::setup::init_error::InitError;

/// Starts no session and installs nothing: `tracing` and `log` keep what the program gives them.
///
/// # Errors
/// None.
pub fn init() -> Result<Option<Session>, InitError> {
    Ok(super::session::start_from_env())
}

/// A subscriber that records nothing.
#[must_use]
pub fn recorder() -> Recorder {
    Recorder
}

/// A subscriber that is interested in nothing.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Recorder;

impl Subscriber for Recorder {
    fn register_callsite(&self, _metadata: &'static Metadata<'static>) -> Interest {
        Interest::never()
    }

    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        false
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::OFF)
    }

    fn new_span(&self, _attributes: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {}

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// A layer that does nothing.
pub struct RecorderLayer<S> {
    subscriber: PhantomData<fn(S)>,
}

impl<S> fmt::Debug for RecorderLayer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecorderLayer")
    }
}

/// A layer for `tracing_subscriber::registry().with(…)`, which does nothing and leaves other layers
/// alone.
#[must_use]
pub fn layer<S>() -> RecorderLayer<S>
where
    S: Subscriber + for<'l> LookupSpan<'l>,
{
    RecorderLayer {
        subscriber: PhantomData,
    }
}

impl<S> Layer<S> for RecorderLayer<S>
where
    S: Subscriber + for<'l> LookupSpan<'l>,
{
    fn enabled(&self, _metadata: &Metadata<'_>, _context: Context<'_, S>) -> bool {
        true
    }
}
