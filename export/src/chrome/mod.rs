//! Chrome's trace events: JSON, one event a line.
//!
//! Times are µs since the first event, with the ns after the point: since 1970 they would have more
//! digits than a double holds. Rows of a thread other than its own are threads of their own, because
//! nothing else has a name there.

mod args;
pub(crate) mod writer;
