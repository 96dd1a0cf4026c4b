//! The span that a wait for room in a full ring is recorded as.
//!
//! It is an ordinary finished span, so a reader that does not know it shows it like any other. One
//! that does finds it by [`CATEGORY`] and takes its time out of the calls around it.

/// Name of the event type.
pub const NAME: &str = "wait for reader";
/// Target of the event type, which filters of readers compare.
pub const TARGET: &str = "ringmark::wait";
/// Category of the event type, by which readers recognise it.
pub const CATEGORY: &str = "ringmark.wait";
