//! Records of spans that outlive a call or change threads. A record of the span's own type says that it was
//! made; entering, leaving and closing are one type each for all spans, 16 bytes a record.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::callsite::Callsite;
use super::emit;
use crate::description::{EventType, Level, Now, Shape, TypeState};

/// Target of the shared types.
const TARGET: &str = "ringmark::span";

static LAST_ID: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// A new span id, unique in this process; odd, because other sources of ids give even ones.
pub(crate) fn fresh_id() -> u64 {
    LAST_ID.fetch_add(2, Relaxed) + 1
}

/// The span that this thread is in; 0: none.
pub(crate) fn current() -> u64 {
    CURRENT.get()
}

/// Makes `id` the span that this thread is in; returns the one before.
pub(crate) fn set_current(id: u64) -> u64 {
    CURRENT.replace(id)
}

macro_rules! shared_types {
    ($($type:ident $shape:ident $name:literal $fields:expr;)*) => { $(
        enum $type {}

        impl Callsite for $type {
            const FIELDS: &'static [&'static str] = &$fields;
            const SHAPE: Shape = Shape::$shape;

            fn event() -> EventType {
                EventType {
                    name: $name,
                    target: TARGET,
                    category: "",
                    level: Level::Error,
                    shape: Self::SHAPE,
                    file: "",
                    line: 0,
                    state: Self::state(),
                }
            }

            #[inline(always)]
            fn state() -> &'static TypeState {
                static STATE: TypeState = TypeState::new();
                &STATE
            }
        }
    )* };
}

shared_types! {
    Enter SpanEnter "span.enter" ["span_id"];
    Exit SpanExit "span.exit" ["span_id"];
    Close SpanClose "span.close" ["span_id"];
    Follows SpanFollows "span.follows" ["span_id", "follows_id"];
}

/// This thread leaves a span.
#[inline]
pub(crate) fn exit(id: u64) {
    emit::emit::<Exit, _>(Now::Clock, || (id,));
}

/// A span ends for ever.
#[inline]
pub(crate) fn close(id: u64) {
    emit::emit::<Close, _>(Now::Clock, || (id,));
}

/// This thread enters a span, at a tick that the caller holds.
#[inline]
pub(crate) fn enter_at(ticks: u64, id: u64) {
    emit::emit::<Enter, _>(Now::At(ticks), || (id,));
}

/// As [`exit`], at a tick that the caller holds.
#[cfg(feature = "tracing")]
#[inline]
pub(crate) fn exit_at(ticks: u64, id: u64) {
    emit::emit::<Exit, _>(Now::At(ticks), || (id,));
}

/// As [`close`], at a tick that the caller holds.
#[cfg(feature = "tracing")]
#[inline]
pub(crate) fn close_at(ticks: u64, id: u64) {
    emit::emit::<Close, _>(Now::At(ticks), || (id,));
}

/// Span `id` follows from span `other`.
#[inline]
pub(crate) fn follows(id: u64, other: u64) {
    emit::emit::<Follows, _>(Now::Clock, || (id, other));
}
