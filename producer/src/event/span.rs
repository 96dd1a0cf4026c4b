//! Spans: one record when the span ends, with its duration. Until then the span stands in the stack
//! of open spans of its thread, where readers see it.

use core::marker::PhantomData;

use super::callsite::{self, Callsite};
use super::emit;
use super::fields::{self, Fields};
use crate::description::Now;
use crate::ring::SpanPlace;
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
        if thread_block::writer().is_none() {
            session::attach_for_span();
        }
        let start = session::now();
        Some(Running {
            id,
            start,
            place: push(id, start, &fields),
            fields,
        })
    };
    SpanGuard {
        running,
        not_send: PhantomData,
    }
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
    if let Some(writer) = thread_block::writer() {
        writer.pop_span(place);
    }
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
