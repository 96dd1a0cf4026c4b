//! What the macros call at a call site.

use super::async_span::{self, AsyncSpan};
use super::callsite::Callsite;
use super::emit;
use super::fields::Fields;
use super::span::{self, SpanGuard};
use crate::description::{Kind, Now, Place, Shape};
use crate::session::span_gate;

/// The ways in from a call site. Each evaluates `arguments` only if the type is enabled.
pub trait Entry: Callsite + Sized {
    /// Emits an event that happened at `now`.
    #[inline(always)]
    fn emit<F: Fields>(self, now: Now, arguments: impl FnOnce() -> F) {
        const { check_first(Self::SHAPE, F::PLACES) }
        // One of this moment is asked about on the slow way.
        if now != Now::Clock && span_gate::is_on() && !span_gate::permits(Self::state().enabled()) {
            return;
        }
        emit::emit::<Self, F>(now, arguments);
    }

    /// Begins a span that ends on this thread.
    #[inline(always)]
    fn span<F: Fields>(self, arguments: impl FnOnce() -> F) -> SpanGuard<F> {
        span::begin::<Self, F>(arguments)
    }

    /// Makes a span that may move between threads. Its arguments begin with its own id and its
    /// parent's, which `arguments` is given.
    #[inline(always)]
    fn async_span<F: Fields>(self, arguments: impl FnOnce(u64, u64) -> F) -> AsyncSpan {
        async_span::make::<Self, F>(arguments)
    }
}

impl<C: Callsite> Entry for C {}

/// Refuses, when the program is compiled, a counter or a flow whose first argument cannot be its
/// value or its id.
const fn check_first(shape: Shape, places: &[Place]) {
    let Some(Place { kind, count, .. }) = places.first() else {
        return;
    };
    let is_integer = *count == 0 && (*kind as u8) <= Kind::I128 as u8;
    let is_float = *count == 0 && matches!(kind, Kind::F32 | Kind::F64);
    match shape {
        Shape::Counter => assert!(
            is_integer || is_float,
            "the value of a counter is an integer or a float"
        ),
        Shape::Flow => assert!(is_integer, "the id of a flow is an integer"),
        _ => {}
    }
}
