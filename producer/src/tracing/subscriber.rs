//! The subscriber: `tracing`'s calls, straight into this thread's ring.
//!
//! | call of `tracing` | record |
//! | --- | --- |
//! | `new_span`, and the last `try_close` | begin and end of a span's life |
//! | `enter`, `exit` | the thread is inside the span, and leaves it |
//! | `record`, `record_follows_from` | values and links that come later |
//! | `event` | an event, with its parent if the program names one |

use ringmark_format::counters::Cause;
use tracing_core::field::Visit;
use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Event, LevelFilter, Metadata, Subscriber};

use super::site::{Site, What};
use super::thread::{Inside, Source, Step};
use super::{ids, log_records, sites, spans, thread, watched};
use crate::description::Level;
use crate::description::Now;
use crate::event::span_records;
use crate::session;
use crate::session::span_gate;

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
        match sites::site_of(metadata).map(Site::look) {
            Some(Some(true)) => Interest::always(),
            Some(None) => Interest::sometimes(),
            _ => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Sites of the program are on or off by their interest; one is asked for here where another subscriber
        // lives, too, and while another thread registers it. A record of `log` has no site yet: its own one
        // decides when it comes.
        let site = sites::find(metadata);
        site.is_none_or(|site| site.is_log || site.is_on() || site.is_watched())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // Asked of each subscriber before anything comes to it.
        Source::note_subscriber();
        Some(level_filter(session::level_max()))
    }

    #[inline]
    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let metadata = attributes.metadata();
        let found = sites::site_of(metadata);
        let site = found.filter(|site| site.is_on());
        let Some((id, cell)) = ids::new(ids::Kind { metadata, site }) else {
            if site.is_some() {
                session::count_lost(Cause::NoMemory);
            }
            return Id::from_u64(ids::NONE);
        };
        let stated =
            || spans::stated_parent(attributes.is_contextual(), attributes.parent(), recorded_id);
        if let Some(site) = site {
            let ticks = spans::new(Source::SUBSCRIBER, site, id, stated(), attributes);
            thread::set_last(Step::New, id, cell, ticks);
        } else if let Some(site) = found.filter(|site| site.is_watched()) {
            let stated = stated();
            if let Some(watch) = watched::judge(site, stated, attributes) {
                let own = (id, cell);
                watched::new(Source::SUBSCRIBER, site, own, (watch, stated), attributes);
            }
        }
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let id = span.into_u64();
        if let Some(cell) = ids::cell(id) {
            match cell.site() {
                Some(site) => spans::record(site, id, values),
                None => watched::record(id, cell, values),
            }
        }
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        if let (Some(id), Some(other)) = (recorded_id(span), recorded_id(follows)) {
            span_records::follows(id, other);
        }
    }

    #[inline]
    fn event(&self, event: &Event<'_>) {
        emit(event, Source::SUBSCRIBER, recorded_id);
    }

    #[inline]
    fn enter(&self, span: &Id) {
        let id = span.into_u64();
        let Some(cell) = ids::cell(id) else {
            return;
        };
        match cell.site() {
            Some(site) => {
                let ticks = thread::ticks_after(Step::New, id, cell);
                spans::enter(Source::SUBSCRIBER, site, id, ticks);
                thread::forget_last(cell);
            }
            None => watched::enter(Source::SUBSCRIBER, id, cell),
        }
    }

    #[inline]
    fn exit(&self, span: &Id) {
        let id = span.into_u64();
        let Some(cell) = ids::cell(id) else {
            return;
        };
        if cell.site().is_some() {
            let ticks = spans::exit(id);
            thread::set_last(Step::Exit, id, cell, ticks);
        } else {
            watched::exit(id, cell);
        }
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
        let Some(cell) = ids::cell(id) else {
            return false;
        };
        // Before the cell can be another span's.
        if cell.site().is_none() {
            return watched::close(id, cell);
        }
        let last = cell.remove_handle();
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

/// The id of a span of ours, if it is recorded.
fn recorded_id(id: &Id) -> Option<u64> {
    let id = id.into_u64();
    ids::cell(id).filter(|cell| cell.is_recorded()).map(|_| id)
}

/// Records an event; `own_id` makes the recorded id of a span out of `tracing`'s.
#[inline(always)]
pub(super) fn emit(event: &Event<'_>, source: Source, own_id: impl FnOnce(&Id) -> Option<u64>) {
    let Some(site) = sites::site_of(event.metadata()) else {
        return;
    };
    let visit = |visitor: &mut dyn Visit| event.record(visitor);
    let is_inside_last = event.is_contextual() && thread::inside(source) == Inside::Last;
    if !is_inside_last || !site.record_numbers(What::Event, Now::Clock, [], visit) {
        let parent = spans::stated_parent(event.is_contextual(), event.parent(), own_id);
        emit_any(site, event, source, parent);
    }
}

/// Writes its record, unless it has been. `stated`: see [`spans::stated_parent`].
#[inline(never)]
fn emit_any(site: &'static Site, event: &Event<'_>, source: Source, stated: u64) {
    if site.is_log && log_records::emit(event) {
        return;
    }
    if site.is_watched() {
        if let Some(inside) = watched::inside(site, stated) {
            span_gate::as_if_inside(inside, || record_event(site, event, source, stated));
        }
        return;
    }
    record_event(site, event, source, stated);
}

/// Writes it, inside the stated span, or where its thread is.
fn record_event(site: &'static Site, event: &Event<'_>, source: Source, stated: u64) {
    let visit = |visitor: &mut dyn Visit| event.record(visitor);
    match (stated, thread::inside(source)) {
        (0, Inside::Last) => site.record_any(What::Event, Now::Clock, [], &visit),
        (0, Inside::Of(id)) => site.record(What::EventOf, Now::Clock, [id], visit),
        (stated, _) => site.record(What::EventOf, Now::Clock, [stated], visit),
    }
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
