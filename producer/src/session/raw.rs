//! Records and spans of C code, where its inline path cannot go on.

use core::ptr;

use ringmark_ring::Writer;
pub use ringmark_ring::environment::is_verbose;
pub use ringmark_ring::reservation::RawReservation;
pub use ringmark_ring::writer::PAYLOAD_WORDS_MAX;
pub use ringmark_ring::{RawSpan, SpanStack, span_stack};

use super::{attach, span_gate};
use crate::thread_block;

/// The writer of a thread that begins a span as the first thing it records; `None`: it gets none.
#[cold]
pub fn attach_for_span() -> Option<&'static Writer> {
    attach::attach_for_span();
    thread_block::writer()
}

/// Whether a filter by spans lets this thread record this type now.
#[must_use]
pub fn is_permitted(type_id: u32) -> bool {
    span_gate::permits(type_id)
}

/// Where the calling thread's block of this copy of the library lies.
#[must_use]
pub fn thread_block_address() -> usize {
    thread_block::address()
}

/// Claims a frame for a span where the inline path could not: see `Writer::claim_raw`.
#[cold]
pub fn claim() -> *const u64 {
    let writer = thread_block::writer();
    writer.map_or(ptr::null(), |writer| writer.claim_raw().cast())
}

/// Ends a span in the stack of open spans.
///
/// # Safety
/// As [`RawSpan::end`].
#[cold]
pub unsafe fn end(span: &RawSpan, is_lexical: bool) {
    let is_ours = attach::is_own_frame(span.frame);
    // SAFETY: as the caller promises.
    unsafe { span.end(is_lexical, thread_block::writer(), is_ours) };
}
