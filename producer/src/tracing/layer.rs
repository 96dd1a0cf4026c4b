//! The same records from a layer, for programs that already stack layers on a registry.
//!
//! A registry numbers its spans as each other one does. So a recorded span has an id of ours as well, which
//! the registry keeps for it; one that was off when it was made has none.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;

use ringmark_format::counters::Cause;
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::ids::SpanCell;
use super::site::Site;
use super::thread::Source;
use super::{ids, sites, spans, subscriber};
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
    source: Source,
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
        source: Source::of_layer(),
        subscriber: PhantomData,
    }
}

/// What a registry keeps for a recorded span.
#[derive(Clone, Copy)]
struct Recorded {
    /// Whose span it is: another layer may be on the same registry.
    source: Source,
    id: u64,
}

thread_local! {
    /// The last recorded span of this thread, by its id in its registry, which no later span has: most of what
    /// happens to a span happens to it, and the registry need not be asked.
    static LAST: Cell<(u64, Recorded)> = const {
        Cell::new((0, Recorded { source: Source::SUBSCRIBER, id: 0 }))
    };
}

impl<S> RecorderLayer<S>
where
    S: Subscriber + for<'l> LookupSpan<'l>,
{
    /// The id and site of a span, if it is recorded.
    fn recorded(&self, id: &Id, context: &Context<'_, S>) -> Option<(u64, &'static Site)> {
        let (of, last) = LAST.get();
        let own = match of == id.into_u64() && last.source == self.source {
            true => last.id,
            false => self.look_up(id, context)?,
        };
        Some((own, ids::cell(own)?.site()?))
    }

    #[inline(never)]
    fn look_up(&self, id: &Id, context: &Context<'_, S>) -> Option<u64> {
        let span = context.span(id)?;
        let recorded = *span.extensions().get::<Recorded>()?;
        if recorded.source != self.source {
            return None;
        }
        LAST.set((id.into_u64(), recorded));
        Some(recorded.id)
    }

    /// The id of the span, or of the innermost one around it that is recorded.
    fn recorded_around(&self, id: &Id, context: &Context<'_, S>) -> Option<u64> {
        let mut around = context.span_scope(id)?;
        around.find_map(|span| Some(self.recorded(&span.id(), context)?.0))
    }
}

impl<S> Layer<S> for RecorderLayer<S>
where
    S: Subscriber + for<'l> LookupSpan<'l>,
{
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if !sites::is_log_callsite(metadata)
            && let Some(site) = sites::site_of(metadata)
        {
            let _ = site.look();
        }
        Interest::always()
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let metadata = attributes.metadata();
        let site = sites::site_of(metadata).filter(|site| site.is_on());
        let (Some(site), Some(span)) = (site, context.span(id)) else {
            return;
        };
        let kind = ids::Kind {
            metadata,
            site: Some(site),
        };
        let Some((own, _)) = ids::new(kind) else {
            session::count_lost(Cause::NoMemory);
            return;
        };
        let parent = spans::stated_parent(attributes.is_contextual(), attributes.parent(), |id| {
            self.recorded_around(id, &context)
        });
        spans::new(self.source, site, own, parent, attributes);
        let recorded = Recorded {
            source: self.source,
            id: own,
        };
        span.extensions_mut().replace(recorded);
        LAST.set((id.into_u64(), recorded));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some((own, site)) = self.recorded(id, &context) {
            spans::record(site, own, values);
        }
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, context: Context<'_, S>) {
        if let Some((own, _)) = self.recorded(id, &context)
            && let Some((other, _)) = self.recorded(follows, &context)
        {
            span_records::follows(own, other);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let is_on = |site: &Site| site.is_on();
        if sites::is_log_callsite(metadata) || sites::site_of(metadata).is_some_and(is_on) {
            subscriber::emit(event, self.source, |id| self.recorded_around(id, &context));
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some((own, site)) = self.recorded(id, &context) {
            spans::enter(self.source, site, own, session::now());
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        if let Some((own, _)) = self.recorded(id, &context) {
            spans::exit(own);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if let Some((own, _)) = self.recorded(&id, &context) {
            span_records::close(own);
            ids::cell(own).map(SpanCell::remove_handle);
        }
    }
}
