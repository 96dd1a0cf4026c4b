//! How a thread puts its open spans on its stack, and takes them off again.
//!
//! # A push, and what a handler may do around it
//!
//! 1. The frame at `top` is claimed: one `cmpxchg` of its head, from free to CLAIMED with the next
//!    serial number. From here on it belongs to this span alone.
//! 2. `top` moves on, and a handler's own frames lie above it.
//! 3. The words are written.
//! 4. The head is stored last (`[F2]`): readers see the span from here on.
//!
//! To fill a frame before it is claimed would be wrong: a handler between the two fills the same frame.
//!
//! # A pop
//!
//! The record is committed first, so a span is never neither here nor recorded. Then the head becomes
//! free, and `top` moves back to its frame. Both are plain stores.
//!
//! # Why `top` needs no care
//!
//! As a writer's cursor in its page, `top` is only where the search for a free frame begins. A handler
//! that comes between a load of it and a store, and leaves a span open, makes it wrong: too low, and
//! the next claim but one finds its frame in use; too high, and frames below it stay unused. The next
//! push or pop that is not the common case looks for the right place. Readers do not know `top`: they
//! look at all frames.
//!
//! | what a handler does between the load of `top` and the store | what is wrong afterwards |
//! | --- | --- |
//! | begins spans and ends them | nothing |
//! | leaves one open | `top` is at its frame, or below it |
//! | ends a span of the context that it interrupted | a free frame lies below `top` |
//! | jumps out of a push | a frame stays CLAIMED, and is not used again until the thread ends |
//!
//! # The states of a frame
//!
//! | head | state |
//! | --- | --- |
//! | less than 2^32 | free; the serial number of the span that had it last |
//! | CLAIMED | a push is under way, or was left by `longjmp` |
//! | FILLED | an open span, which readers show |
//!
//! Only the thread and its signal handlers change a frame, with one exception: a span of C code
//! that ends on another thread. That thread exchanges the head it knows for the free one, or does
//! nothing. The thread's own exchange has no bus lock: it starts from a free head, which no other
//! thread changes.

use core::mem;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::TypeId;
use ringmark_format::open_span::Head;

use crate::protocol::order;
use crate::protocol::reservation::Reservation;
use crate::protocol::single_instruction;
use crate::protocol::span_stack::{
    self, FRAME_WORDS, FRAMES, OVER, SpanPlace, SpanStack, count_over, end_lexical_inside, free,
    head_of, is_free,
};
use crate::protocol::sync::AtomicU64;
use crate::protocol::writer::Writer;

/// A frame that a push has claimed.
#[derive(Clone, Copy)]
struct Claimed<'w> {
    words: &'w [AtomicU64; FRAME_WORDS],
    serial: u32,
}

/// Gives a claimed frame back where what fills it panics: the span does not begin.
struct Unfilled<'w> {
    writer: &'w Writer,
    place: SpanPlace,
}

impl Drop for Unfilled<'_> {
    fn drop(&mut self) {
        self.writer.pop_span(self.place);
    }
}

impl Writer {
    /// The stack of this writer's thread; `None`: it has no ring, or this is a forked child.
    pub(crate) fn span_stack(&self) -> Option<&'static SpanStack> {
        // SAFETY: invariant 1 of `span_stack`: null, or stored by `attach` or `join` from a `&'static`.
        unsafe { self.stack.load(Relaxed).as_ref() }
    }

    /// The first frame above the last claimed one; at the stack's end, or null without a stack.
    #[inline(always)]
    fn top(&self) -> *mut AtomicU64 {
        self.top.load(Relaxed)
    }

    /// Moves `top`: one plain store, which a handler in between may have made wrong.
    #[inline(always)]
    fn set_top(&self, top: *mut AtomicU64) {
        self.top.store(top, Relaxed);
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
        let claimed = match self.claim_top() {
            Some(claimed) => claimed,
            None => match self.claim_span() {
                Ok(claimed) => claimed,
                Err(place) => return place,
            },
        };
        let head = Head {
            type_id,
            words,
            serial: claimed.serial,
            lexical: false,
        };
        order::frame_fence(); // [F1]
        let kept = (words as usize + 1).min(FRAME_WORDS - 1);
        let place = SpanPlace {
            frame: claimed.words.as_ptr().addr(),
        };
        let unfilled = Unfilled {
            writer: self,
            place,
        };
        fill(&mut Reservation::in_frame(self, &claimed.words[1..=kept]));
        mem::forget(unfilled);
        claimed.words[0].store(head.pack(), order::frame_release()); // [F2]
        place
    }

    /// Claims the frame at `top`. `None`: there is none, or it is in use, and nothing has changed.
    #[inline(always)]
    fn claim_top(&self) -> Option<Claimed<'_>> {
        let top = self.top();
        if self.is_end(top) {
            return None;
        }
        // SAFETY: invariant 3 of `span_stack`: `top` is a frame, as it is neither null nor the end.
        let words = unsafe { &*top.cast::<[AtomicU64; FRAME_WORDS]>() };
        let found = words[0].load(Relaxed);
        if !is_free(found) {
            return None;
        }
        let serial = span_stack::claim(&words[0], found)?;
        self.set_top(top.wrapping_add(FRAME_WORDS));
        Some(Claimed { words, serial })
    }

    /// Claims any frame, from `top` on upwards and then from the first one on; else the span is
    /// counted beyond them, or stands nowhere.
    #[cold]
    fn claim_span(&self) -> Result<Claimed<'static>, SpanPlace> {
        let Some(stack) = self.span_stack() else {
            return Err(SpanPlace::NONE);
        };
        let (frames, _) = stack.as_chunks::<FRAME_WORDS>();
        let top = SpanPlace {
            frame: self.top().addr(),
        };
        let first = top.frame_in(stack).unwrap_or(1);
        for frame in (first..=FRAMES).chain(1..first) {
            let words = &frames[frame as usize];
            let found = words[0].load(Relaxed);
            if is_free(found)
                && let Some(serial) = span_stack::claim(&words[0], found)
            {
                self.set_top(words.as_ptr().wrapping_add(FRAME_WORDS).cast_mut());
                return Ok(Claimed { words, serial });
            }
        }
        count_over(stack);
        Err(SpanPlace {
            frame: stack.as_ptr_range().end.addr(),
        })
    }

    /// Claims a frame for code that does the common case in its own way. Returns its address, or that of
    /// the stack's end for a span that is only counted; null: it stands nowhere.
    #[cold]
    pub fn claim_raw(&self) -> *const AtomicU64 {
        let beyond = || {
            self.span_stack()
                .map_or(ptr::null(), |stack| stack.as_ptr_range().end)
        };
        match self.claim_span() {
            Ok(claimed) => claimed.words.as_ptr(),
            Err(SpanPlace::NONE) => ptr::null(),
            Err(_) => beyond(),
        }
    }

    /// Whether this `top` is no frame: a stack's end, or null. Stacks are aligned to their size, so
    /// one test of the address tells both.
    #[cfg(not(loom))]
    #[inline(always)]
    fn is_end(&self, top: *mut AtomicU64) -> bool {
        top.addr().is_multiple_of(size_of::<SpanStack>())
    }

    /// The same in the models, whose stacks lie anywhere.
    #[cfg(loom)]
    fn is_end(&self, top: *mut AtomicU64) -> bool {
        let end = self.span_stack().map(|stack| stack.as_ptr_range().end);
        end.is_none_or(|end| ptr::eq(end, top))
    }

    /// Takes a span off the stack again, after its record was committed or given up. Nothing
    /// happens where the place is none of this thread's.
    #[inline(always)]
    pub fn pop_span(&self, place: SpanPlace) {
        if !self.pop_top(place) {
            self.pop_below(place);
        }
    }

    /// The same in the common case. `false`: it is not, and nothing has changed.
    #[inline(always)]
    #[must_use]
    pub fn pop_top(&self, place: SpanPlace) -> bool {
        let frame = self.top().wrapping_sub(FRAME_WORDS);
        let is_top = frame.addr() == place.frame;
        if is_top {
            // SAFETY: invariant 3 of `span_stack`: a place is a frame of a stack, or its end, which
            // lies after every `top`.
            free(unsafe { &*frame });
            self.set_top(frame);
        }
        is_top
    }

    /// The same for a span that others lie above, or that is none of this thread's.
    #[cold]
    pub fn pop_below(&self, place: SpanPlace) {
        if let Some(stack) = self.span_stack()
            && let Some(frame) = place.frame_in(stack)
        {
            self.end_span(stack, frame);
        }
    }

    /// Ends a span of this thread, wherever it stands.
    fn end_span(&self, stack: &'static SpanStack, frame: u32) {
        if frame > FRAMES {
            // A span of C code may end twice.
            if stack[OVER].load(Relaxed) > 0 {
                single_instruction::decrement_shared(&stack[OVER], order::frame_release()); // [F2]
            }
            return;
        }
        free(head_of(stack, frame));
        self.lower_top(stack);
    }

    /// Moves `top` back over free frames.
    fn lower_top(&self, stack: &'static SpanStack) {
        let top = SpanPlace {
            frame: self.top().addr(),
        };
        let top = top.frame_in(stack).unwrap_or(FRAMES + 1);
        let in_use = |frame: &u32| !is_free(head_of(stack, *frame).load(Relaxed));
        let below = (1..top).rev().find(in_use).unwrap_or(0);
        let words = &stack[(below as usize + 1) * FRAME_WORDS..];
        self.set_top(words.as_ptr().cast_mut());
    }

    /// As [`Writer::pop_span`], for a span of C code, which may have ended before: by the end of a
    /// block around it, or on another thread. `head` is what stands in the frame while this span is
    /// open; nothing happens if another span stands there.
    ///
    /// A span that ends with its block of code ends all of its kind inside it, which `longjmp`
    /// has left. `false`: the span stands in no frame of this thread.
    #[cold]
    pub(crate) fn pop_raw(&self, place: SpanPlace, head: u64, is_lexical: bool) -> bool {
        let Some(stack) = self.span_stack() else {
            return false;
        };
        let Some(frame) = place.frame_in(stack) else {
            return false;
        };
        if frame > FRAMES {
            self.end_span(stack, frame);
        } else if head_of(stack, frame).load(Relaxed) == head {
            if is_lexical {
                end_lexical_inside(stack, frame);
            }
            self.end_span(stack, frame);
        }
        true
    }

    /// Begins with an empty stack, or with none.
    pub(crate) fn set_stack(&self, stack: Option<&'static SpanStack>) {
        // Stacks of a damaged directory may lie anywhere: `is_end` needs them aligned.
        let fits = |stack: &&SpanStack| {
            cfg!(loom) || stack.as_ptr().addr().is_multiple_of(size_of::<SpanStack>())
        };
        let stack = stack.filter(fits);
        stack.inspect(|stack| span_stack::clear(stack));
        let first = stack.map_or(ptr::null(), |stack| stack[FRAME_WORDS..].as_ptr());
        self.stack
            .store(stack.map_or(ptr::null(), ptr::from_ref).cast_mut(), Relaxed);
        self.top.store(first.cast_mut(), Relaxed);
    }

    /// Goes on in the stack of `first`, another ring of the same thread.
    pub(crate) fn share_stack(&self, first: &Self) {
        self.stack.store(first.stack.load(Relaxed), Relaxed);
        self.top.store(first.top.load(Relaxed), Relaxed);
    }
}
