//! The event that a panic of a Rust program is recorded as.
//!
//! It is an ordinary event, so a reader that does not know it shows it like any other. One that does
//! finds it by [`CATEGORY`].

/// Name of the event type.
pub const NAME: &str = "panic";
/// Target of the event type, which filters compare.
pub const TARGET: &str = "ringmark::panic";
/// Category of the event type, by which readers recognise it.
pub const CATEGORY: &str = "ringmark.panic";
/// Fields in the order of the payload: message, source file, line. An empty message is one that was
/// no text.
pub const FIELDS: [&str; 3] = ["message", "file", "line"];
/// Most bytes of each of the two texts.
pub const TEXT_BYTES_MAX: usize = 512;
