//! From a call site to a committed record.

pub mod description;
pub(crate) mod fields;
pub mod typed;
pub mod value;

mod async_span;
mod emit;
mod macros;
mod snapshot;
mod span;
pub(crate) mod span_records;

pub use async_span::{AsyncSpan, Entered, InSpan, Spanned, async_span, never};
pub use description::{Description, EventType, Field, Kind, Level, Now, Place, Shape, TypeState};
pub use emit::{Callsite, emit, emit_at, reserve_words, reserve_words_extended};
pub use fields::Fields;
pub use snapshot::{KeptBytes, Snapshot};
pub use span::{Span, SpanGuard, span};
pub use typed::is_fixed;
pub use value::{Encoder, Redacted, Text, Value, debug, display, redact};
