//! Where assembly finds a writer's fields, in bytes from its start. It does what
//! [`Writer::reserve`] does, in the same order, and leaves all other cases to Rust.
//!
//! Read by the stubs of the function tracer and by the inline path of `ringmark.h`. They are built
//! from this revision of the crate: the offsets are no format and may change.

use core::mem::offset_of;

use crate::protocol::counts;
pub use crate::protocol::full_ring::offsets as full;
use crate::protocol::writer::Writer;

/// Pointer to the word where the search for an empty one begins.
pub const CURSOR: usize = offset_of!(Writer, cursor);
/// Pointer to the end of the open page, after its last word; null: nothing fits.
pub const END: usize = offset_of!(Writer, end);
/// u64: reservations begun, each counted by one instruction before anything else is looked at.
pub const BEGUN: usize = offset_of!(Writer, counts) + counts::BEGUN * 8;
/// u64: reservations ended, in any order.
pub const ENDED: usize = offset_of!(Writer, counts) + counts::ENDED * 8;
/// u64: what the open page's ticks count from.
pub const TICK_BASE: usize = offset_of!(Writer, tick_base);
/// u64: records reserved so far.
pub const RESERVATIONS: usize = offset_of!(Writer, counts) + counts::RECORDS * 8;
/// u64: number of the clock; see `ringmark_format::session::Clock`.
pub const CLOCK: usize = offset_of!(Writer, clock);
/// Pointer to the frame that the next open span gets; null, or aligned to a stack's size: none.
pub const TOP: usize = offset_of!(Writer, top);
/// u64: nested losses in a row.
pub const NESTED_LOST: usize = offset_of!(Writer, nested_lost);
/// Where a full ring is remembered.
pub const FULL: usize = offset_of!(Writer, full);
