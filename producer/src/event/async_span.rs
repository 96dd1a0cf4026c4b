//! Spans of futures: one id, a segment for each poll, on whatever thread polls.

use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::callsite::{self, Callsite};
use super::emit;
use super::fields::Fields;
use super::{span, span_records};
use crate::description::Now;
use crate::ring::SpanPlace;
use crate::session;
use crate::session::span_gate;

/// A span that may move between threads, closed when it is dropped; made by
/// [`async_span!`](crate::async_span!).
///
/// A record says that it was made; entering, leaving and closing it are records of their own. A
/// span that is made inside another one, on the thread that is in it, is its child.
///
/// ```
/// use ringmark::{AsyncSpan, Session, async_span};
///
/// assert_eq!(AsyncSpan::none().id(), None);
/// let session = Session::builder().start().expect("a session");
/// let (job, batch) = (async_span!("job"), async_span!("batch", jobs = 3_u32));
/// assert_ne!(job.id(), batch.id());
/// batch.follows(&job);
/// drop((job, batch));
/// assert_eq!(session.records(), 5);
/// ```
#[derive(Debug)]
#[must_use = "a span closes when it is dropped: give it to a future by `in_span`"]
pub struct AsyncSpan {
    /// 0: its type was disabled. With [`WATCHED`]: it has bits.
    id: u64,
    /// Its event type, for the stack of the threads that enter it.
    type_id: u32,
    /// Conditions of the filter that are met inside it.
    bits: u32,
}

/// What an id has above it while its span has bits: so the others need no look at theirs.
const WATCHED: u64 = 1 << 63;

/// Makes a span if its type is enabled; only then are the arguments evaluated. They begin with the
/// ids of the span and of its parent, which `arguments` is given.
#[inline(always)]
pub(crate) fn make<C: Callsite, F: Fields>(arguments: impl FnOnce(u64, u64) -> F) -> AsyncSpan {
    callsite::declare::<C, F>();
    let type_id = C::state().enabled();
    if type_id == 0 {
        return AsyncSpan::none();
    }
    let id = span_records::fresh_id();
    let fields = arguments(id, span_records::current());
    match emit::record_at_once(type_id, &fields) {
        true => AsyncSpan {
            id,
            type_id,
            bits: 0,
        },
        false => make_slow::<C, F>(id, type_id, fields),
    }
}

/// Off the straight line, as with a filter by spans.
#[cold]
#[inline(never)]
fn make_slow<C: Callsite, F: Fields>(id: u64, type_id: u32, fields: F) -> AsyncSpan {
    let bits = match span_gate::is_on() {
        true => span_gate::inside() | span::met::<C, F>(&fields),
        false => 0,
    };
    if !span_gate::permits_in(type_id, bits) {
        return AsyncSpan::none();
    }
    span_gate::as_if_inside(bits, || emit::record(type_id, Now::Clock, None, fields));
    AsyncSpan {
        id: id | if bits == 0 { 0 } else { WATCHED },
        type_id,
        bits,
    }
}

impl AsyncSpan {
    /// A span that records nothing.
    pub const fn none() -> Self {
        Self {
            id: 0,
            type_id: 0,
            bits: 0,
        }
    }

    /// The span's id, unique in this process; `None` if its type was disabled when it was made.
    #[must_use]
    pub const fn id(&self) -> Option<u64> {
        if self.id == 0 {
            None
        } else {
            Some(self.id & !WATCHED)
        }
    }

    /// Records that this span follows from `other`: `other` caused it, and does not enclose it.
    pub fn follows(&self, other: &Self) {
        if let (Some(id), Some(other)) = (self.id(), other.id()) {
            span_records::follows(id, other);
        }
    }

    /// Enters the span on this thread until the guard is dropped. A guard must not be held over an
    /// `await`: use [`InSpan`] there.
    #[inline]
    pub fn enter(&self) -> Entered<'_> {
        let id = self.id;
        if id.cast_signed() <= 0 {
            return self.enter_other();
        }
        let (outer, place) = self.enter_as(id);
        Entered {
            id,
            outer,
            place,
            span: PhantomData,
        }
    }

    /// Enters it under its id; returns the span before, and its place.
    #[inline(always)]
    fn enter_as(&self, id: u64) -> (u64, SpanPlace) {
        let now = session::now();
        span_records::enter_at(now, id);
        let place = span::push_entered(self.type_id, now, id);
        (span_records::set_current(id), place)
    }

    /// Enters a span that is disabled, or has bits.
    /// Inlined, so that this library records no event itself: the slow way of events is then the program's own.
    #[cold]
    #[inline]
    fn enter_other(&self) -> Entered<'_> {
        let id = self.id & !WATCHED;
        let (outer, place) = match id {
            0 => (0, SpanPlace::NONE),
            id => self.enter_as(id),
        };
        Entered {
            id,
            outer,
            place: span_gate::enter_at(place, self.bits),
            span: PhantomData,
        }
    }
}

impl Drop for AsyncSpan {
    #[inline]
    fn drop(&mut self) {
        if self.id.cast_signed() > 0 {
            span_records::close(self.id);
        } else if let Some(id) = self.id() {
            span_records::close(id);
        }
    }
}

/// Says that this thread is in a span, until it is dropped, also by a panic; made by
/// [`AsyncSpan::enter`].
///
/// Not `Send`: a thread leaves what it entered.
///
/// ```
/// use ringmark::{Entered, Session, async_span};
///
/// let session = Session::builder().start().expect("a session");
/// let job = async_span!("job");
/// let entered: Entered<'_> = job.enter();
/// drop(entered);
/// drop(job);
/// assert_eq!(session.records(), 4, "made, entered, left, closed");
/// ```
#[derive(Debug)]
#[must_use = "a span is left when this is dropped: bind it to a name"]
pub struct Entered<'s> {
    id: u64,
    outer: u64,
    place: SpanPlace,
    span: PhantomData<(&'s AsyncSpan, *const ())>,
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.id != 0 {
            span_records::set_current(self.outer);
            span_records::exit(self.id);
            span::pop(self.place);
        }
    }
}

/// Gives a future a span that it runs in.
///
/// ```
/// use ringmark::{InSpan, Session, async_span};
///
/// let session = Session::builder().start().expect("a session");
/// let mut answer = std::pin::pin!(async { 42 }.in_span(async_span!("request", id = 7_u64)));
/// let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// let polled = Future::poll(answer.as_mut(), &mut context);
/// assert_eq!(polled, std::task::Poll::Ready(42));
/// assert_eq!(session.records(), 3, "made, entered, left");
/// ```
pub trait InSpan: Sized {
    /// The same future; each poll enters `span` before and leaves it after. The span closes after
    /// the future was dropped.
    fn in_span(self, span: AsyncSpan) -> Spanned<Self>;
}

impl<F: Future> InSpan for F {
    fn in_span(self, span: AsyncSpan) -> Spanned<Self> {
        Spanned { future: self, span }
    }
}

pin_project! {
    /// A future in a span; made by [`InSpan::in_span`].
    ///
    /// ```
    /// use ringmark::{AsyncSpan, InSpan, Spanned};
    ///
    /// let future: Spanned<_> = std::future::ready(1_u8).in_span(AsyncSpan::none());
    /// assert!(size_of_val(&future) >= size_of::<AsyncSpan>());
    /// ```
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Spanned<F> {
        // Dropped in this order: what the future's end records comes before the span's close.
        #[pin]
        future: F,
        span: AsyncSpan,
    }
}

impl<F: Future> Future for Spanned<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _entered = this.span.enter();
        this.future.poll(context)
    }
}
