//! The stack of open spans of one thread: what it is in, readable at any instant by other processes.
//!
//! A span becomes a record when it ends. Until then it stands in a frame here, so that a reader of a
//! program that hangs, or was killed, sees what was under way. The bytes stand in
//! [`ringmark_format::open_span`].
//!
//! ```text
//!  header     frame 1    frame 2    frame 3    frame 4              frame 63
//! ┌──────────┬──────────┬──────────┬──────────┬──────────┬─ ─ ─ ─ ─┬──────────┐
//! │          │ 7 filled │ 4 free   │ 9 filled │ 3 free   │         │ 0 free   │
//! │ over 0   │ request  │          │ db.query │          │         │          │
//! └──────────┴──────────┴──────────┴──────────┴──────────┴─ ─ ─ ─ ─┴──────────┘
//!                                              ▲ the writer's `top`, in its own memory
//! ```
//!
//! # Life of a frame
//!
//! ```text
//!          one instruction            head is stored              its span ends
//!  free n ─────────────────▶ CLAIMED n+1 ────────────▶ filled n+1 ─────────────▶ free n+1
//! ```
//!
//! # A copy
//!
//! The head is loaded before the words (`[F3]`) and after them (`[F4]`). Each claim of a frame has
//! the next serial number, so an equal head means the same span, and its words did not change in
//! between.
//!
//! # Invariants
//!
//! 1. A stack is mapped as long as the process lives, and its words are aligned.
//! 2. A frame belongs to the context that claimed it, until it stores the head free. Others change
//!    it in one case: a thread that ends a span of another thread exchanges exactly that span's
//!    head, with a bus lock.
//! 3. The head of a frame alone says whether the frame is in use. The writer's `top` is null, a frame of
//!    its stack, or the stack's end. The search for a free frame begins there. It may be another frame
//!    than the first free one, after a handler that ends what it did not begin.

use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::open_span::{self, CLAIMED, FREE, Head, LEXICAL};

use crate::protocol::order;
use crate::protocol::single_instruction;
use crate::protocol::sync::AtomicU64;

/// Words of a frame, and of the header in front of the first one.
#[cfg(not(loom))]
pub const FRAME_WORDS: usize = size_of::<open_span::Frame>() / 8;
/// Words of a frame in the models: head, tick and one more.
#[cfg(loom)]
pub const FRAME_WORDS: usize = 3;
/// Frames of a stack.
#[cfg(not(loom))]
pub const FRAMES: u32 = open_span::FRAMES;
/// Frames of a stack in the models.
#[cfg(loom)]
pub const FRAMES: u32 = 2;

/// Words of a stack.
pub const STACK_WORDS: usize = (FRAMES as usize + 1) * FRAME_WORDS;
/// Index of the word that counts open spans beyond the frames.
pub const OVER: usize = 1;
/// Index of the word that counts spans that began beyond the frames.
pub const OVER_BEGUN: usize = 2;
/// Words of the header that count spans: [`OVER`] and [`OVER_BEGUN`].
const COUNTS: usize = 2;

/// The words of a stack in the ring file.
pub type SpanStack = [AtomicU64; STACK_WORDS];

/// Where an open span stands. Kept by the span's guard, and given back to
/// [`Writer::pop_span`](crate::Writer::pop_span).
///
/// It is compared with the thread's own stack before anything is stored: in a forked child, and
/// after the thread's ring was sealed, there is no such stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanPlace {
    /// Address of the frame; of the stack's end: the span is only counted; 0: it stands nowhere.
    pub(crate) frame: usize,
}

impl SpanPlace {
    /// The place of a span that stands nowhere: its thread has no stack.
    pub const NONE: Self = Self { frame: 0 };

    /// Marks of a place are less than this.
    #[cfg(not(loom))]
    pub const MARKS: usize = FRAME_BYTES;

    /// The same place with a mark, from 1: so it is never the common case of a pop.
    #[cfg(not(loom))]
    #[must_use]
    pub fn with_mark(self, mark: usize) -> Self {
        Self {
            frame: self.frame | (mark % Self::MARKS),
        }
    }

    /// The place without its mark, and the mark; 0: it has none.
    #[cfg(not(loom))]
    #[must_use]
    pub fn without_mark(self) -> (Self, usize) {
        let mark = self.frame % Self::MARKS;
        let frame = self.frame - mark;
        (Self { frame }, mark)
    }

    /// Number of the frame in this stack, from 1; [`FRAMES`] + 1: the span is only counted; `None`:
    /// it does not stand here.
    #[must_use]
    pub fn frame_in(self, stack: &SpanStack) -> Option<u32> {
        let bytes = self.frame.checked_sub(stack.as_ptr().addr())?;
        let frame = bytes / FRAME_BYTES;
        let is_frame =
            bytes.is_multiple_of(FRAME_BYTES) && (1..=FRAMES as usize + 1).contains(&frame);
        is_frame.then_some(frame as u32)
    }
}

/// Bytes of a frame. In the models a word takes more than eight.
const FRAME_BYTES: usize = FRAME_WORDS * size_of::<AtomicU64>();

/// What stands in a frame whose span has ended: its serial number.
#[inline(always)]
pub(crate) fn freed(head: u64) -> u64 {
    u64::from(head as u32)
}

/// Whether no span has the frame with this head.
#[inline(always)]
pub(crate) fn is_free(head: u64) -> bool {
    freed(head) == head
}

/// One exchange without a bus lock: whole for handlers of this thread. Other threads change no head
/// that is free.
///
/// Claims a frame whose head was `free`; `None`: a handler was faster. What comes back is the serial
/// number of the claim.
#[inline(always)]
pub(crate) fn claim(head: &AtomicU64, free: u64) -> Option<u32> {
    let serial = (free as u32).wrapping_add(1);
    let claimed = CLAIMED | u64::from(serial);
    (single_instruction::replace(head, free, claimed, Relaxed) == free).then_some(serial)
}

/// The head of a frame, from 1; of the last one where there is no such frame.
#[inline(always)]
pub(crate) fn head_of(stack: &SpanStack, frame: u32) -> &AtomicU64 {
    &stack[frame.min(FRAMES) as usize * FRAME_WORDS]
}

/// The tick at which the span in this frame began.
fn tick_of(stack: &SpanStack, frame: u32) -> &AtomicU64 {
    &stack[frame.min(FRAMES) as usize * FRAME_WORDS + 1]
}

/// Counts a span beyond the frames.
pub(crate) fn count_over(stack: &SpanStack) {
    single_instruction::increment_shared(&stack[OVER_BEGUN], order::frame_release()); // [F2]
    single_instruction::increment_shared(&stack[OVER], order::frame_release()); // [F2]
}

/// Ends the span in this frame.
#[inline(always)]
pub(crate) fn free(head: &AtomicU64) {
    let serial = freed(head.load(Relaxed));
    head.store(serial, order::frame_release()); // [F2]
}

/// Ends all spans inside that of this frame that end with a block of code: those that began later, or
/// at the same tick and in a higher frame.
#[cold]
pub(crate) fn end_lexical_inside(stack: &SpanStack, frame: u32) {
    let place = |frame: u32| (tick_of(stack, frame).load(Relaxed), frame);
    for other in (1..=FRAMES).filter(|other| place(*other) > place(frame)) {
        let head = head_of(stack, other);
        let found = head.load(Relaxed);
        if Head::unpack(found).is_some() && found & LEXICAL != 0 {
            single_instruction::replace(head, found, freed(found), order::frame_release()); // [F2]
        }
    }
}

/// Ends a span of another thread's stack: exactly the one with this head, which may be gone.
///
/// The caller has made sure that this process wrote the stack: a child has its parent's file mapped.
pub fn end_elsewhere(frame: &AtomicU64, head: u64) {
    if Head::unpack(head).is_some() {
        let _ = frame.compare_exchange(head, freed(head), order::frame_release(), Relaxed); // [F2]
    }
}

/// Empties a stack for its next owner, or at the end of a claim. Serial numbers go on, so that no
/// head of the last owner comes again.
pub(crate) fn clear(stack: &SpanStack) {
    for frame in 1..=FRAMES {
        free(head_of(stack, frame));
    }
    stack[OVER].store(0, Relaxed);
}

/// How often a copy of a stack that changes is tried again.
const TRIES: u32 = 16;

/// A copy of a stack: the spans that its thread has open.
///
/// A copy of a thread that runs is tried again until all heads are the same before and after: then it
/// is what was open at one moment. Where the thread is faster than every try, the frames
/// that did not change during the last one are kept, and the copy says that it is moving.
#[derive(Debug, Clone)]
pub struct StackCopy {
    frames: [[u64; FRAME_WORDS]; FRAMES as usize],
    count: usize,
    /// Spans that are open beyond the frames: neither their types nor their starts are known.
    pub over: u64,
    /// The stack changed during every try. The frames of the last one were open throughout it;
    /// others may be missing.
    pub moving: bool,
}

impl StackCopy {
    /// That of a stack on which no span is open.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            frames: [[0; FRAME_WORDS]; FRAMES as usize],
            count: 0,
            over: 0,
            moving: false,
        }
    }

    /// Copies a stack whose thread may be running.
    #[must_use]
    pub fn of(stack: &SpanStack) -> Self {
        let mut copy = Self {
            moving: true,
            ..Self::empty()
        };
        for _ in 0..TRIES {
            if copy.is_exact(stack) {
                copy.moving = false;
                break;
            }
        }
        copy
    }

    /// Whether a span was ever begun in this stack.
    #[must_use]
    pub fn is_used(stack: &SpanStack) -> bool {
        (1..=FRAMES).any(|frame| head_of(stack, frame).load(Relaxed) != FREE)
    }

    /// The frames, as they lie in the stack: head, tick, payload words. All are filled and whole. The
    /// outermost span is the one with the first tick.
    #[must_use]
    pub fn frames(&self) -> &[[u64; FRAME_WORDS]] {
        &self.frames[..self.count]
    }

    /// Copies once; whether the frames are all that were there at one moment.
    fn is_exact(&mut self, stack: &SpanStack) -> bool {
        let count = |at: usize| stack[OVER + at].load(order::frame_acquire()); // [F3]
        let before: [u64; COUNTS] = core::array::from_fn(count);
        self.over = before[0];
        let mut heads = [FREE; FRAMES as usize];
        let mut kept = [0; FRAMES as usize];
        self.count = 0;
        let mut is_same = true;
        for frame in 1..=FRAMES {
            let (head, words) = copy_frame(stack, frame);
            heads[frame as usize - 1] = head;
            if let Some(words) = words {
                kept[self.count] = frame;
                self.frames[self.count] = words;
                self.count += 1;
            } else {
                is_same &= Head::unpack(head).is_none();
            }
        }
        order::frame_recheck_fence(); // [F4]
        let now = |frame: u32| head_of(stack, frame).load(Relaxed);
        is_same &= (0..COUNTS).all(|at| stack[OVER + at].load(Relaxed) == before[at])
            && (1..=FRAMES).all(|frame| now(frame) == heads[frame as usize - 1]);
        if !is_same {
            let copied = core::mem::take(&mut self.count);
            for (at, frame) in kept.into_iter().enumerate().take(copied) {
                if now(frame) == self.frames[at][0] {
                    self.frames[self.count] = self.frames[at];
                    self.count += 1;
                }
            }
        }
        is_same
    }
}

/// A frame's head, and all its words if it is filled and did not change in between.
fn copy_frame(stack: &SpanStack, frame: u32) -> (u64, Option<[u64; FRAME_WORDS]>) {
    let at = frame as usize * FRAME_WORDS;
    let head = stack[at].load(order::frame_acquire()); // [F3]
    if Head::unpack(head).is_none() {
        return (head, None);
    }
    let mut words = [head; FRAME_WORDS];
    for (to, from) in words.iter_mut().zip(&stack[at..]).skip(1) {
        *to = from.load(Relaxed);
    }
    order::frame_recheck_fence(); // [F4]
    let is_same = stack[at].load(Relaxed) == head;
    (head, is_same.then_some(words))
}
