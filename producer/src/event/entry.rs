//! What the macros call at a call site.

use super::async_span::{self, AsyncSpan};
use super::callsite::Callsite;
use super::emit;
use super::fields::Fields;
use super::span::{self, SpanGuard};
use crate::description::Now;

/// The ways in from a call site. Each evaluates `arguments` only if the type is enabled.
pub trait Entry: Callsite + Sized {
    /// Emits an event that happened at `now`.
    #[inline(always)]
    fn emit<F: Fields>(self, now: Now, arguments: impl FnOnce() -> F) {
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
