//! The bytes of Ringmark: the types of the ring file, of pages and records, of the schema and of
//! the trace file, as `SPEC.md` next to this crate describes them.
//!
//! Nothing here is atomic, does input or output, or needs `unsafe`. Every struct is declared by
//! [`layout!`](crate::layout_table), which proves each offset and the size at compile time and
//! keeps the table that a test compares with `SPEC.md`.
//!
//! All integers are little-endian. This crate compiles everywhere; the crates that read or write
//! its types in place compile only for little-endian processors.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[macro_use]
mod layout;
mod align;
pub mod attribute;
pub mod block;
#[cfg(feature = "codec")]
pub mod block_at;
pub mod clock;
#[cfg(feature = "codec")]
pub mod codec;
pub mod counters;
#[cfg(feature = "demangle")]
pub mod demangle;
pub mod ending;
pub mod function;
pub mod glob;
pub mod ids;
pub mod json;
mod layout_table;
pub mod mailbox;
pub mod objects;
pub mod open_span;
pub mod page;
pub mod panics;
pub mod progress;
pub mod record;
pub mod removals;
pub mod samples;
pub mod schema;
pub mod seen_waits;
pub mod session;
pub mod session_text;
pub mod slot;
pub mod span_condition;
pub mod store;
pub mod stream;
pub mod switches;
pub mod tracer_text;
pub mod waits;

pub use align::align8;
pub use ids::{PageNumber, RingId, SlotIndex, TypeId, Uuid};
pub use layout::{FieldLayout, StructLayout};
pub use layout_table::layout_table;

/// Major version of the format. A reader refuses a newer major by name.
pub const VERSION_MAJOR: u16 = 1;
/// Minor version of the format. A reader accepts a newer minor and skips what it does not know.
pub const VERSION_MINOR: u16 = 4;
/// Written as a native integer; reads as `0x0D0C_0B0A` on a machine of the other byte order.
pub const ENDIAN_MARK: u32 = 0x0A0B_0C0D;
