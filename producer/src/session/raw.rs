//! Records and spans of C code, where its inline path cannot go on.

pub use ringmark_ring::reservation::RawReservation;
use ringmark_ring::{RawEnd, Writer};
pub use ringmark_ring::{RawSpan, span_stack};

use super::attach;
use crate::thread_block;

/// The writer of a thread that begins a span as the first thing it records; `None`: it gets none.
#[cold]
pub fn attach_for_span() -> Option<&'static Writer> {
    attach::attach_for_span();
    thread_block::writer()
}

/// Where the calling thread's block of this copy of the library lies.
#[must_use]
pub fn thread_block_address() -> usize {
    thread_block::address()
}

/// Counts a span that has claimed a frame beyond the last one.
#[cold]
pub fn count_over() {
    thread_block::writer().inspect(|writer| writer.count_span_over());
}

/// Ends a span in the stack of open spans; `how`: a number of [`RawEnd`].
///
/// # Safety
/// As [`RawSpan::end`].
#[cold]
pub unsafe fn end(span: &RawSpan, how: u32) {
    let how = RawEnd::from_u32(how);
    // SAFETY: as the caller promises.
    unsafe { span.end(how, thread_block::writer(), attach::is_of_this_process()) };
}
