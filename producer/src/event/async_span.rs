//! Spans of futures: one id, a segment for each poll, on whatever thread polls.

use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::callsite::{self, Callsite};
use super::description::Now;
use super::emit;
use super::fields::Fields;
use super::span_records;

/// A span that may move between threads. Closed when it is dropped.
#[derive(Debug)]
#[must_use = "a span closes when it is dropped: give it to a future by `in_span`"]
pub struct AsyncSpan {
    /// 0: its type was off.
    id: u64,
}

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
    emit::record(type_id, Now::Clock, None, &fields);
    AsyncSpan { id }
}

impl AsyncSpan {
    /// A span that records nothing.
    pub const fn none() -> Self {
        Self { id: 0 }
    }

    /// Its id in this process; `None` if its type was off when it was made.
    #[must_use]
    pub const fn id(&self) -> Option<u64> {
        if self.id == 0 { None } else { Some(self.id) }
    }

    /// Records that this span follows from `other`: not inside it, but because of it.
    pub fn follows(&self, other: &Self) {
        if self.id != 0 && other.id != 0 {
            span_records::follows(self.id, other.id);
        }
    }

    /// Enters the span on this thread until the guard is dropped. Do not hold the guard over an
    /// `await`: that is what [`InSpan`] is for.
    #[inline]
    pub fn enter(&self) -> Entered<'_> {
        let outer = if self.id == 0 {
            0
        } else {
            span_records::enter(self.id);
            span_records::set_current(self.id)
        };
        Entered {
            id: self.id,
            outer,
            span: PhantomData,
        }
    }
}

impl Drop for AsyncSpan {
    #[inline]
    fn drop(&mut self) {
        if self.id != 0 {
            span_records::close(self.id);
        }
    }
}

/// This thread is in a span. Left when dropped, also by a panic.
///
/// Not `Send`: a thread leaves what it entered.
#[derive(Debug)]
#[must_use = "a span is left when this is dropped: bind it to a name"]
pub struct Entered<'s> {
    id: u64,
    outer: u64,
    span: PhantomData<(&'s AsyncSpan, *const ())>,
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.id != 0 {
            span_records::set_current(self.outer);
            span_records::exit(self.id);
        }
    }
}

/// Futures that run in a span.
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
