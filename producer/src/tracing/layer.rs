//! The same records from a layer, for programs that already stack layers on a registry.
//!
//! A registry numbers the spans here. The records carry twice that number: even ids are the
//! registry's, so none equals a native span's.

use core::fmt;
use core::marker::PhantomData;

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::site::Site;
use super::{sites, spans, subscriber};
use crate::event::span_records;
use crate::session;

/// A layer that records enabled events, and leaves other layers alone: its filter is its own. Made
/// by [`layer`].
///
/// ```
/// use ringmark::tracing::{RecorderLayer, layer};
/// use tracing_subscriber::Registry;
///
/// let layer: RecorderLayer<Registry> = layer();
/// assert_eq!(format!("{layer:?}"), "RecorderLayer");
/// ```
pub struct RecorderLayer<S> {
    subscriber: PhantomData<fn(S)>,
}

impl<S> fmt::Debug for RecorderLayer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecorderLayer")
    }
}

/// A layer for `tracing_subscriber::registry().with(…)`.
///
/// The registry costs more than the records: prefer [`super::init`] where no other layer is needed.
///
/// With `fmt`, and an `EnvFilter` for both:
///
/// ```
/// use tracing_subscriber::prelude::*;
/// use tracing_subscriber::{EnvFilter, fmt};
///
/// let session = ringmark::start_from_env();
/// tracing_subscriber::registry()
///     .with(EnvFilter::new("info"))
///     .with(fmt::layer().with_writer(std::io::stderr))
///     .with(session.as_ref().map(|_| ringmark::tracing::layer()))
///     .init();
/// tracing::info!("in the log, and recorded if `RINGMARK` asks for a session");
/// ```
///
/// In one thread only:
///
/// ```
/// use ringmark::Session;
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let session = Session::builder().start().expect("a session");
/// let subscriber = tracing_subscriber::registry().with(ringmark::tracing::layer());
/// tracing::subscriber::with_default(subscriber, || tracing::info!("seen by both"));
/// assert_eq!(session.records(), 1);
/// ```
#[must_use]
pub fn layer<S>() -> RecorderLayer<S>
where
    S: Subscriber + for<'l> LookupSpan<'l>,
{
    sites::listen();
    RecorderLayer {
        subscriber: PhantomData,
    }
}

/// The registry's id as ours: even, so that it is not taken for a native span's.
fn own_id(id: u64) -> u64 {
    id << 1
}

/// The site of a span, if it is recorded.
fn site_of<S>(id: &Id, context: &Context<'_, S>) -> Option<&'static Site>
where
    S: Subscriber + for<'l> LookupSpan<'l>,
{
    context
        .metadata(id)
        .and_then(sites::site_of)
        .filter(|site| site.is_on())
}

impl<S> Layer<S> for RecorderLayer<S>
where
    S: Subscriber + for<'l> LookupSpan<'l>,
{
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if !sites::is_log_callsite(metadata)
            && let Some(site) = sites::site_of(metadata)
        {
            site.look();
        }
        Interest::always()
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _context: Context<'_, S>) {
        let site = sites::site_of(attributes.metadata()).filter(|site| site.is_on());
        let Some(site) = site else { return };
        let explicit = match attributes.parent() {
            _ if attributes.is_contextual() => None,
            parent => Some(parent.map_or(0, |id| own_id(id.into_u64()))),
        };
        spans::new(site, own_id(id.into_u64()), explicit, attributes);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(site) = site_of(id, &context) {
            spans::record(site, own_id(id.into_u64()), values);
        }
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, context: Context<'_, S>) {
        if site_of(id, &context).is_some() {
            span_records::follows(own_id(id.into_u64()), own_id(follows.into_u64()));
        }
    }

    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        let is_on = |site: &Site| site.is_on();
        if sites::is_log_callsite(metadata) || sites::site_of(metadata).is_some_and(is_on) {
            subscriber::emit(event, own_id);
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(site) = site_of(id, &context) {
            spans::enter(Some(site), own_id(id.into_u64()), session::now());
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let own = own_id(id.into_u64());
        if site_of(id, &context).is_some() {
            spans::exit(own);
        } else {
            spans::leave_disabled(own);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if site_of(&id, &context).is_some() {
            span_records::close(own_id(id.into_u64()));
        }
    }
}
