//! A running span of code that is not Rust: the header of C begins and ends it inline, and comes
//! here where that is not the common case: another thread, no ring, a span beyond the frames,
//! others above it, or one that has ended before.
//!
//! | what the header finds | what happens here |
//! | --- | --- |
//! | another thread's frame | its head is exchanged for the free one, with a bus lock |
//! | no ring, or a forked child | nothing |
//! | the span is beyond the frames | one less is counted |
//! | others lie above it | its frame becomes free, and is used again later |
//! | its frame is free, or has another span's head | nothing: it has ended before |
//!
//! Unlike a guard of Rust, a span of C may end twice, on another thread, or in a block that
//! `longjmp` leaves. So its head is compared before anything is stored: a head that is another
//! one, or free, is another span's or none.

use crate::protocol::span_stack::{SpanPlace, end_elsewhere};
use crate::protocol::sync::AtomicU64;
use crate::protocol::writer::Writer;

/// A running span, as `ringmark.h` lays it out. All zeros: its type was disabled.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawSpan {
    /// Its event type; 0: disabled.
    pub id: u32,
    /// Tick of its begin.
    pub start: u64,
    /// Its frame in the stack of the thread on which it began; the stack's end: it is only counted;
    /// null: it stands nowhere.
    pub frame: *const u64,
    /// What stands in its frame while it is open; 0: it has none.
    pub head: u64,
}

impl RawSpan {
    /// Ends the span. `writer` is that of the calling thread. `is_lexical`: it ends with its block of
    /// code. `is_ours`: this process wrote the stack; a child has its parent's file mapped, and
    /// leaves it alone.
    ///
    /// # Safety
    /// `frame` and `head` are what the begin has made of them, in this process or in one that
    /// forked it.
    pub unsafe fn end(&self, is_lexical: bool, writer: Option<&Writer>, is_ours: bool) {
        let place = SpanPlace {
            frame: self.frame.addr(),
        };
        let is_here = writer.is_some_and(|writer| writer.pop_raw(place, self.head, is_lexical));
        if !is_here && is_ours && self.head != 0 {
            // SAFETY: invariant 1 of `span_stack`: stacks stay mapped; a span with a head has a frame.
            let frame = unsafe { self.frame.cast::<AtomicU64>().as_ref() };
            frame.inspect(|frame| end_elsewhere(frame, self.head));
        }
    }
}
