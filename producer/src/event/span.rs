//! Spans: one record when the span ends, with its duration; its start is not needed earlier.

use core::marker::PhantomData;

use super::callsite::{self, Callsite};
use super::emit;
use super::fields::Fields;
use crate::description::Now;
use crate::session;

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
        Some(Running {
            id,
            start: session::now(),
            fields,
        })
    };
    SpanGuard {
        running,
        not_send: PhantomData,
    }
}

impl<F: Fields> SpanGuard<F> {
    /// Ends the span without a record.
    pub fn cancel(mut self) {
        self.running = None;
    }

    /// Replaces the arguments, for values that are known only at the end.
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
        if let Some(running) = &self.running {
            let end = session::now();
            let ticks = end.wrapping_sub(running.start);
            emit::record(running.id, Now::At(end), Some(ticks), &running.fields);
        }
    }
}
