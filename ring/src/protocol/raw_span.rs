//! A running span of code that is not Rust: the header of C begins it inline, and ends it here
//! where its end is not the common case.
//!
//! | what the header found | what it has done | [`RawEnd`] |
//! | --- | --- | --- |
//! | another thread, or no ring | nothing | Begun, Lexical |
//! | the span is beyond the frames | nothing | Begun, Lexical |
//! | others lie above it, or it has ended before | nothing | Begun, Lexical |
//! | a handler has left a span above it in between | its head is FREE | Freed |
//! | the span below it has ended | head and depth are its own no more | Popped |
//!
//! Unlike a guard of Rust, a span of C may end twice, on another thread, or in a block that
//! `longjmp` leaves. So its head is compared before anything is stored: a head that is another
//! one, or FREE, is another span's or none.

use crate::protocol::span_stack::{SpanPlace, SpanStack, end_elsewhere};
use crate::protocol::writer::Writer;

/// A running span, as `ringmark.h` lays it out. All zeros: its type was disabled.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawSpan {
    /// Its event type; 0: disabled.
    pub id: u32,
    /// Its frame, from 1; more than there are: it is only counted.
    pub frame: u32,
    /// Tick of its begin.
    pub start: u64,
    /// The stack of the thread on which it began; null: it stands nowhere.
    pub stack: *const u64,
    /// What stands in its frame while it is open.
    pub head: u64,
}

/// How far the inline path has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum RawEnd {
    /// Nothing was changed. The span may end anywhere, also on another thread.
    Begun = 0,
    /// Nothing was changed. The span ends with its block of code.
    Lexical = 1,
    /// The frame is FREE, and a handler has left another one above it.
    Freed = 2,
    /// The span has ended; the one below it is to go, too.
    Popped = 3,
}

impl RawEnd {
    /// The step with this number; of one that is not known, the first.
    #[must_use]
    pub const fn from_u32(number: u32) -> Self {
        match number {
            1 => Self::Lexical,
            2 => Self::Freed,
            3 => Self::Popped,
            _ => Self::Begun,
        }
    }
}

impl RawSpan {
    /// Ends the span. `writer` is that of the calling thread. `is_ours`: this process wrote the
    /// stack, and is not the child of a raw clone, which has its parent's file mapped.
    ///
    /// # Safety
    /// `stack` is null, or was loaded from a writer's stack in this process or in one that forked it.
    pub unsafe fn end(&self, how: RawEnd, writer: Option<&Writer>, is_ours: bool) {
        let place = SpanPlace {
            stack: self.stack.addr(),
            frame: self.frame,
        };
        if let Some(writer) = writer.filter(|writer| writer.has_span(place)) {
            writer.pop_raw(place, self.head, how);
        } else if is_ours {
            // SAFETY: invariant 1 of `span_stack`: stacks stay mapped; null is none.
            let stack = unsafe { self.stack.cast::<SpanStack>().as_ref() };
            stack.inspect(|stack| end_elsewhere(stack, self.frame, self.head));
        }
    }
}
