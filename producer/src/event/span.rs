//! Spans: one record when the span ends, with its duration. Until then the span stands in the stack
//! of open spans of its thread, where readers see it.

use core::marker::PhantomData;
use core::sync::atomic::AtomicU64;

use super::callsite::{self, Callsite};
use super::emit;
use super::fields::{self, Fields};
use super::seen;
use crate::description::Now;
use crate::ring::{Reservation, SpanPlace, Writer};
use crate::session::span_gate::{self, Matching};
use crate::{session, thread_block};
use ringmark_format::{TypeId, open_span};

/// A running span: it ends, and is recorded with its duration, when it is dropped. Made by
/// [`span!`](crate::span!).
///
/// Not `Send`: begin and end belong to one thread. `F` is the tuple of the arguments.
///
/// ```
/// use ringmark::{Session, SpanGuard, span};
///
/// let session = Session::builder().start().expect("a session");
/// let mut query: SpanGuard<_> = span!("db.query", table = "users", rows = 0_u64);
/// query.set(("users", 42));
/// drop(query);
/// span!("db.retry").cancel();
/// assert_eq!(session.records(), 1);
/// ```
#[must_use = "a span ends when its guard is dropped: bind it to a name"]
pub struct SpanGuard<F: Fields> {
    running: Option<Running<F>>,
    not_send: PhantomData<*const ()>,
}

struct Running<F> {
    id: u32,
    start: u64,
    place: SpanPlace,
    fields: F,
}

/// Begins a span if its type is enabled; only then are the arguments evaluated.
#[inline(always)]
pub(crate) fn begin<C: Callsite, F: Fields>(arguments: impl FnOnce() -> F) -> SpanGuard<F> {
    callsite::declare::<C, F>();
    let id = C::state().enabled();
    let running = if id == 0 {
        None
    } else {
        let fields = arguments();
        let begun = match begin_at_once(id, &fields) {
            Some((start, place)) => Some((start, place, fields)),
            None => begin_slow::<C, F>(id, fields),
        };
        begun.map(|(start, place, fields)| Running {
            id,
            start,
            place,
            fields,
        })
    };
    SpanGuard {
        running,
        not_send: PhantomData,
    }
}

/// When a span begins, and its place on the stack of its thread. `None`: the thread has not recorded before, has
/// another clock than the counter, or a filter by spans is in force.
#[inline(always)]
fn begin_at_once<F: Fields>(id: u32, fields: &F) -> Option<(u64, SpanPlace)> {
    let start = session::now_at_once()?;
    Some((start, push(id, start, fields)))
}

/// The same in these cases, with the arguments again. `None`: the filter does not want the span.
#[cold]
#[inline(never)]
fn begin_slow<C: Callsite, F: Fields>(id: u32, fields: F) -> Option<(u64, SpanPlace, F)> {
    attach();
    let bits = match span_gate::is_on() {
        true => met::<C, F>(&fields),
        false => 0,
    };
    if !span_gate::permits_in(id, span_gate::inside() | bits) {
        return None;
    }
    let start = session::now();
    let place = span_gate::enter_at(push(id, start, &fields), bits);
    Some((start, place, fields))
}

fn attach() {
    if thread_block::writer().is_none() {
        session::attach_for_span();
    }
}

/// Words of values that are compared with a filter by spans; what lies beyond is not seen.
const SEEN_WORDS: usize = 128;

/// The conditions of the filter that a span with these arguments meets.
pub(crate) fn met<C: Callsite, F: Fields>(fields: &F) -> u32 {
    attach();
    let names = C::FIELDS
        .iter()
        .map(|name| name.strip_prefix("r#").unwrap_or(name));
    let mut matching = Matching::of_span(C::event().name, names.clone());
    if names.clone().any(|name| matching.asks_for(name))
        && let Some(writer) = thread_block::writer()
    {
        let words = [const { AtomicU64::new(0) }; SEEN_WORDS];
        Reservation::fill_words(writer, &words, |to| fields::write_seen(to, fields));
        let words = words.map(AtomicU64::into_inner);
        for ((name, place), redacted) in names.zip(F::PLACES).zip(F::REDACTED) {
            if !redacted && matching.asks_for(name) {
                seen::value(&words, *place, |value| matching.see(name, value));
            }
        }
    }
    matching.met().0
}

/// Puts a span on the stack of its thread, with the arguments that fit.
#[inline(always)]
fn push<F: Fields>(id: u32, start: u64, fields: &F) -> SpanPlace {
    let Some(writer) = thread_block::writer() else {
        return SpanPlace::NONE;
    };
    let words = fields::payload_words(8, fields) - 1;
    let words = words.min(open_span::KEPT_WORDS.into()) as u32;
    writer.push_span(TypeId(id), words, |frame| {
        fields::write_frame(frame, start, fields);
    })
}

/// Puts a span that may change threads on the stack of the one that enters it, with its id.
#[inline(always)]
pub(crate) fn push_entered(type_id: u32, now: u64, id: u64) -> SpanPlace {
    let Some(writer) = thread_block::writer() else {
        return SpanPlace::NONE;
    };
    writer.push_span(TypeId(type_id), 1, |frame| {
        frame.set_word(0, now);
        frame.set_word(1, id);
    })
}

/// Takes a span off the stack again, after its record.
#[inline(always)]
pub(crate) fn pop(place: SpanPlace) {
    if let Some(writer) = thread_block::writer()
        && !writer.pop_top(place)
    {
        pop_slow(writer, place);
    }
}

/// The same for a span that others lie above, or that met a condition of the filter.
#[cold]
#[inline(never)]
fn pop_slow(writer: &Writer, place: SpanPlace) {
    writer.pop_span(span_gate::leave_at(place));
}

impl<F: Fields> SpanGuard<F> {
    /// Ends the span without a record.
    pub fn cancel(mut self) {
        if let Some(running) = self.running.take() {
            pop(running.place);
        }
    }

    /// Replaces the arguments, for values that are known only at the end. While the span is open,
    /// readers see those of its begin.
    #[inline]
    pub fn set(&mut self, fields: F) {
        if let Some(running) = &mut self.running {
            running.fields = fields;
        }
    }
}

impl<F: Fields> Drop for SpanGuard<F> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.end();
        }
    }
}

impl<F: Fields> Running<F> {
    /// Records the span. Not inlined: so the end of a disabled span is one test at each of its call
    /// sites, not a call of a function that tests.
    #[inline(never)]
    fn end(self) {
        let end = session::now();
        let ticks = end.wrapping_sub(self.start);
        emit::record(self.id, Now::At(end), Some(ticks), self.fields);
        pop(self.place);
    }
}
