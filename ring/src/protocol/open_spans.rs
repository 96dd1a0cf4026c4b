//! How a thread puts its open spans on its stack, and takes them off again.
//!
//! # A push, and what a handler may do around it
//!
//! 1. One `xadd` adds 1 to the depth and to the serial number: from here on the frame belongs to
//!    this span, and a handler's own frames lie above it. The frame's head is FREE.
//! 2. The words are written.
//! 3. The head is stored last (`[F2]`): readers see the span from here on.
//!
//! To fill a frame and raise the depth afterwards would be wrong: a handler between the two fills
//! the same frame.
//!
//! # A pop
//!
//! The record is committed first, so a span is never neither here nor recorded. Then the head
//! becomes FREE, and the depth is lowered by a compare-exchange from the value that was looked at.
//! It fails if a handler has left a span above: the serial number is another one. A span that is
//! not the topmost becomes ENDED, and goes when it is on top.
//!
//! # The states of a frame
//!
//! | head | place | state |
//! | --- | --- | --- |
//! | FREE | above the depth | no span has it |
//! | FREE | within the depth | claimed and not filled yet, or ended and not given back yet |
//! | a type and a serial number | within the depth | an open span, which readers show |
//! | ENDED | within the depth | ended below a span that is still open |
//!
//! Only the thread and its signal handlers change a frame, with one exception: a span of C code
//! that ends on another thread. That thread exchanges the head it knows for ENDED, or does nothing.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::TypeId;
use ringmark_format::open_span::Head;

use crate::protocol::order;
use crate::protocol::planted;
use crate::protocol::raw_span::RawEnd;
use crate::protocol::reservation::Reservation;
use crate::protocol::single_instruction;
use crate::protocol::span_stack::{
    CLAIM, DEPTH, FRAME_WORDS, FRAMES, OVER, SpanPlace, SpanStack, count_over, end_below,
    end_lexical_above, head_of, is_popped, lower,
};
use crate::protocol::writer::Writer;

impl Writer {
    /// The stack of this writer's thread; `None`: it has no ring, or this is a forked child.
    #[inline(always)]
    fn span_stack(&self) -> Option<&'static SpanStack> {
        // SAFETY: invariant 1 of `span_stack`: null, or stored by `attach` or `join` from a `&'static`.
        unsafe { self.stack.load(Relaxed).as_ref() }
    }

    /// Puts a span of type `type_id` on the stack of its thread.
    ///
    /// `fill` writes what the frame holds, through a reservation of `1 + words` words: the tick of
    /// the begin, then what the record's payload begins with after the duration. `words` is at most
    /// [`KEPT_WORDS`](ringmark_format::open_span::KEPT_WORDS).
    #[inline(always)]
    pub fn push_span(
        &self,
        type_id: TypeId,
        words: u32,
        fill: impl FnOnce(&mut Reservation<'_>),
    ) -> SpanPlace {
        let Some(stack) = self.span_stack() else {
            return SpanPlace::NONE;
        };
        let too_early = planted::depth_before_claim(&stack[DEPTH]);
        let claimed =
            too_early.unwrap_or_else(|| single_instruction::add_shared(&stack[DEPTH], CLAIM));
        let below = claimed as u32;
        if below >= FRAMES {
            count_over(stack);
            return SpanPlace {
                stack: ptr::from_ref(stack).addr(),
                frame: FRAMES + 1,
            };
        }
        let frame = below + 1;
        let at = frame as usize * FRAME_WORDS;
        let head = Head {
            type_id,
            words,
            serial: (claimed >> 32) as u32,
            lexical: false,
        };
        order::frame_fence(); // [F1]
        let words = (words as usize + 1).min(FRAME_WORDS - 1);
        let mut to = Reservation::in_frame(self, &stack[at + 1..=at + words]);
        fill(&mut to);
        stack[at].store(head.pack(), order::frame_release()); // [F2]
        if too_early.is_some() {
            single_instruction::add_shared(&stack[DEPTH], CLAIM);
        }
        SpanPlace {
            stack: ptr::from_ref(stack).addr(),
            frame,
        }
    }

    /// Takes a span off the stack again, after its record was committed or given up. Nothing
    /// happens where the place is none of this thread's.
    #[inline(always)]
    pub fn pop_span(&self, place: SpanPlace) {
        let Some(stack) = self.span_stack() else {
            return;
        };
        if ptr::from_ref(stack).addr() != place.stack {
            return;
        }
        if place.frame > FRAMES {
            single_instruction::decrement_shared(&stack[OVER]);
        } else if !is_popped(stack, place.frame) {
            end_below(stack, place.frame);
        }
    }

    /// As [`Writer::pop_span`], for a span of C code, which may have ended before: by the end of a
    /// block around it, or on another thread. `head` is what stands in the frame while this span is
    /// open; nothing happens if another span stands there.
    ///
    /// A span that ends with its block of code ends all of its kind above it, which `longjmp` has
    /// left.
    #[cold]
    pub(crate) fn pop_raw(&self, place: SpanPlace, head: u64, how: RawEnd) {
        let Some(stack) = self.span_stack() else {
            return;
        };
        if !self.has_span(place) {
            return;
        }
        if place.frame > FRAMES {
            single_instruction::decrement_shared(&stack[OVER]);
        } else if how == RawEnd::Popped {
            lower(stack);
        } else if how == RawEnd::Freed {
            end_below(stack, place.frame);
        } else if place.frame > 0 && head_of(stack, place.frame).load(Relaxed) == head {
            if how == RawEnd::Lexical {
                end_lexical_above(stack, place.frame);
            }
            end_below(stack, place.frame);
        }
    }

    /// Counts a span beyond the frames, for code that has claimed a frame in its own way.
    #[cold]
    pub fn count_span_over(&self) {
        self.span_stack().inspect(|stack| count_over(stack));
    }

    /// Whether `place` lies in the stack of this writer's thread.
    pub(crate) fn has_span(&self, place: SpanPlace) -> bool {
        let stack = self.span_stack();
        stack.is_some_and(|stack| ptr::from_ref(stack).addr() == place.stack)
    }
}
