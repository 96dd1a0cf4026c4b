//! The subscriber: `tracing`'s calls, straight into this thread's ring.
//!
//! | call of `tracing` | record |
//! | --- | --- |
//! | `new_span`, and the last `try_close` | begin and end of a span's life |
//! | `enter`, `exit` | the thread is inside the span, and leaves it |
//! | `record`, `record_follows_from` | values and links that come later |
//! | `event` | an event, with its parent if the program names one |

use tracing_core::field::Visit;
use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Event, LevelFilter, Metadata, Subscriber};

use super::ids::SpanCell;
use super::site::{Site, What};
use super::thread::Step;
use super::{ids, log_records, sites, spans, thread};
use crate::description::Level;
use crate::description::Now;
use crate::event::span_records;
use crate::session;

/// Writes the events and spans of `tracing` as Ringmark's records.
///
/// Without a session everything is disabled. A span that is entered before anything else was
/// recorded on its thread counts as entered when it was made. One that is closed before anything
/// else was recorded counts as closed when it was left. This halves the readings of the clock.
///
/// ```
/// use ringmark::tracing::{Recorder, recorder};
///
/// let subscriber: Recorder = recorder();
/// let dispatch = tracing::Dispatch::new(subscriber);
/// assert!(dispatch.is::<Recorder>());
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Recorder;

impl Subscriber for Recorder {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if sites::is_log_callsite(metadata) {
            // Each record has a target of its own, looked at when it comes.
            return Interest::sometimes();
        }
        match sites::site_of(metadata) {
            Some(site) if site.look() => Interest::always(),
            _ => Interest::never(),
        }
    }

    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        // Sites of the program are on or off by their interest. What asks here are records of
        // `log` that the level lets pass; each one's own site decides when it comes.
        true
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(level_filter(session::level_max()))
    }

    #[inline]
    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let metadata = attributes.metadata();
        let site = sites::site_of(metadata);
        let (id, cell) = ids::new(ids::Kind { metadata, site });
        if let Some(site) = site {
            let ticks = spans::new(site, id, explicit_parent(attributes), attributes);
            thread::set_last(Step::New, id, cell, ticks);
        }
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let id = span.into_u64();
        if let Some(site) = ids::cell(id).and_then(SpanCell::site) {
            spans::record(site, id, values);
        }
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        span_records::follows(span.into_u64(), follows.into_u64());
    }

    #[inline]
    fn event(&self, event: &Event<'_>) {
        emit(event, |id| id);
    }

    #[inline]
    fn enter(&self, span: &Id) {
        let id = span.into_u64();
        let cell = ids::cell(id);
        let site = cell.and_then(SpanCell::site);
        spans::enter(site, id, thread::ticks_after(Step::New, id, cell));
        thread::forget_last(cell);
    }

    #[inline]
    fn exit(&self, span: &Id) {
        let id = span.into_u64();
        let ticks = spans::exit(id);
        thread::set_last(Step::Exit, id, ids::cell(id), ticks);
    }

    fn clone_span(&self, id: &Id) -> Id {
        if let Some(cell) = ids::cell(id.into_u64()) {
            cell.add_handle();
        }
        id.clone()
    }

    #[inline]
    fn try_close(&self, id: Id) -> bool {
        let id = id.into_u64();
        let cell = ids::cell(id);
        let last = cell.is_some_and(SpanCell::remove_handle);
        if last {
            span_records::close_at(thread::ticks_after(Step::Exit, id, cell), id);
        }
        last
    }

    fn current_span(&self) -> Current {
        match thread::innermost(ids::metadata) {
            Some((id, metadata)) => Current::new(Id::from_u64(id), metadata),
            None => Current::none(),
        }
    }
}

/// Records an event; `own_id` makes the recorded id of a span out of `tracing`'s.
#[inline(always)]
pub(super) fn emit(event: &Event<'_>, own_id: fn(u64) -> u64) {
    let Some(site) = sites::site_of(event.metadata()) else {
        return;
    };
    let visit = |visitor: &mut dyn Visit| event.record(visitor);
    let done = event.is_contextual() && site.record_numbers(What::Event, Now::Clock, [], visit);
    if !done {
        emit_any(site, event, own_id);
    }
}

#[inline(never)]
fn emit_any(site: &'static Site, event: &Event<'_>, own_id: fn(u64) -> u64) {
    if site.is_log && log_records::emit(event) {
        return;
    }
    let visit = |visitor: &mut dyn Visit| event.record(visitor);
    if event.is_contextual() {
        site.record_any(What::Event, Now::Clock, [], &visit);
    } else {
        let parent = event.parent().map_or(0, |id| own_id(id.into_u64()));
        site.record(What::EventOf, Now::Clock, [parent], visit);
    }
}

fn explicit_parent(attributes: &Attributes<'_>) -> Option<u64> {
    if attributes.is_contextual() {
        return None;
    }
    Some(attributes.parent().map_or(0, Id::into_u64))
}

fn level_filter(level: Option<Level>) -> LevelFilter {
    match level {
        None => LevelFilter::OFF,
        Some(Level::Error) => LevelFilter::ERROR,
        Some(Level::Warn) => LevelFilter::WARN,
        Some(Level::Info) => LevelFilter::INFO,
        Some(Level::Debug) => LevelFilter::DEBUG,
        Some(Level::Trace) => LevelFilter::TRACE,
    }
}
