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
use super::{ids, sites, spans, subscriber, watched};
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
    /// The own id and the cell of a span that is recorded, or watched.
    fn known(&self, id: &Id, context: &Context<'_, S>) -> Option<(u64, &'static SpanCell)> {
        let (of, last) = LAST.get();
        let own = match of == id.into_u64() && last.source == self.source {
            true => last.id,
            false => self.look_up(id, context)?,
        };
        Some((own, ids::cell(own)?))
    }

    /// The own id of a span that is recorded.
    fn recorded(&self, id: &Id, context: &Context<'_, S>) -> Option<u64> {
        let (own, cell) = self.known(id, context)?;
        cell.is_recorded().then_some(own)
    }

    /// A span is made while a filter by spans is in force.
    #[cold]
    fn new_watched(
        &self,
        site: &'static Site,
        attributes: &Attributes<'_>,
        id: &Id,
        context: &Context<'_, S>,
    ) {
        let stated = self.stated_parent(attributes, context);
        let Some(watch) = watched::judge(site, stated, attributes) else {
            return;
        };
        let kind = ids::Kind {
            metadata: attributes.metadata(),
            site: None,
        };
        let Some(own) = ids::new(kind) else {
            session::count_lost(Cause::NoMemory);
            return;
        };
        watched::new(self.source, site, own, (watch, stated), attributes);
        self.keep(id, own.0, context);
    }

    fn stated_parent(&self, attributes: &Attributes<'_>, context: &Context<'_, S>) -> u64 {
        spans::stated_parent(attributes.is_contextual(), attributes.parent(), |id| {
            self.recorded_around(id, context)
        })
    }

    /// Has the registry keep the own id of a span.
    fn keep(&self, id: &Id, own: u64, context: &Context<'_, S>) {
        let recorded = Recorded {
            source: self.source,
            id: own,
        };
        if let Some(span) = context.span(id) {
            span.extensions_mut().replace(recorded);
            LAST.set((id.into_u64(), recorded));
        }
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
        around.find_map(|span| self.recorded(&span.id(), context))
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
        let Some(site) = sites::site_of(metadata) else {
            return;
        };
        if !site.is_on() {
            if site.is_watched() {
                self.new_watched(site, attributes, id, &context);
            }
            return;
        }
        let kind = ids::Kind {
            metadata,
            site: Some(site),
        };
        let Some((own, _)) = ids::new(kind) else {
            session::count_lost(Cause::NoMemory);
            return;
        };
        let parent = self.stated_parent(attributes, &context);
        spans::new(self.source, site, own, parent, attributes);
        self.keep(id, own, &context);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some((own, cell)) = self.known(id, &context) {
            match cell.site() {
                Some(site) => spans::record(site, own, values),
                None => watched::record(own, cell, values),
            }
        }
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, context: Context<'_, S>) {
        if let Some(own) = self.recorded(id, &context)
            && let Some(other) = self.recorded(follows, &context)
        {
            span_records::follows(own, other);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let is_on = |site: &Site| site.is_on() || site.is_watched();
        if sites::is_log_callsite(metadata) || sites::site_of(metadata).is_some_and(is_on) {
            subscriber::emit(event, self.source, |id| self.recorded_around(id, &context));
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some((own, cell)) = self.known(id, &context) {
            match cell.site() {
                Some(site) => spans::enter(self.source, site, own, session::now()),
                None => watched::enter(self.source, own, cell),
            }
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        if let Some((own, cell)) = self.known(id, &context) {
            match cell.site() {
                Some(_) => {
                    spans::exit(own);
                }
                None => watched::exit(own, cell),
            }
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if let Some((own, cell)) = self.known(&id, &context) {
            if cell.site().is_none() {
                watched::close(own, cell);
                return;
            }
            span_records::close(own);
            cell.remove_handle();
        }
    }
}
