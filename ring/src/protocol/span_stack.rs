//! The stack of open spans of one thread: what it is in, readable at any instant by other processes.
//!
//! A span becomes a record when it ends. Until then it stands in a frame here, so that a reader of a
//! program that hangs, or was killed, sees what was under way. The bytes stand in
//! [`ringmark_format::open_span`].
//!
//! ```text
//!  header     frame 1    frame 2    frame 3                    frame 63
//! ┌──────────┬──────────┬──────────┬──────────┬─ ─ ─ ─ ─ ─ ─ ─┬──────────┐
//! │ serial 9 │ filled   │ ENDED    │ filled   │                │ FREE     │
//! │ depth 3  │ request  │          │ db.query │ FREE           │          │
//! │ over 0   │ since, … │          │ since, … │                │          │
//! └──────────┴──────────┴──────────┴──────────┴─ ─ ─ ─ ─ ─ ─ ─┴──────────┘
//! ```
//!
//! # Life of a frame
//!
//! ```text
//!         claim           head is stored            its span ends: on top
//!  FREE ─────────▶ FREE ─────────────────▶ filled ─────────────────────────▶ FREE
//!  above the depth  below it                  │                               ▲
//!                                             └──────▶ ENDED ─────────────────┘
//!                                        below others          it is on top
//! ```
//!
//! # A copy
//!
//! The head is loaded before the words (`[F3]`) and after them (`[F4]`). Heads carry the serial
//! number, so an equal head means the same span, and its words did not change in between.
//!
//! # Invariants
//!
//! 1. A stack is mapped as long as the process lives, and its words are aligned.
//! 2. One thread and its handlers change a stack. Other threads only exchange one head for ENDED,
//!    with a bus lock, when a span ends on a thread where it did not begin.
//! 3. A frame below the depth belongs to its span until its head is ENDED, or FREE by the pop of
//!    this very span. Frames above the depth are FREE.

use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::open_span::{self, ENDED, FREE, Head, LEXICAL};

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
/// Index of the word that counts frames in use and spans begun.
pub const DEPTH: usize = 0;
/// Index of the word that counts open spans beyond the frames.
pub const OVER: usize = 1;
/// What a push adds to [`DEPTH`]: one frame, one span.
pub const CLAIM: u64 = 1 << 32 | 1;

/// The words of a stack in the ring file.
pub type SpanStack = [AtomicU64; STACK_WORDS];

/// Where an open span stands. Kept by the span's guard, and given back to
/// [`Writer::pop_span`](crate::Writer::pop_span).
///
/// It is compared with the thread's own stack before anything is stored: in a forked child, and
/// after the thread's ring was sealed, there is no such stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanPlace {
    /// Address of the stack; 0: the span stands nowhere.
    pub stack: usize,
    /// Number of the frame, from 1; greater than [`FRAMES`]: the span is only counted.
    pub frame: u32,
}

impl SpanPlace {
    /// The place of a span that stands nowhere: its thread has no stack.
    pub const NONE: Self = Self { stack: 0, frame: 0 };
}

/// The head of a frame; of the last one where there is no such frame.
#[inline(always)]
pub(crate) fn head_of(stack: &SpanStack, frame: u32) -> &AtomicU64 {
    &stack[frame.min(FRAMES) as usize * FRAME_WORDS]
}

/// Ends the span of this frame, if it is the topmost one; `false`: it is not, or a handler has come
/// in between, and its head may be FREE already.
#[inline(always)]
pub(crate) fn is_popped(stack: &SpanStack, frame: u32) -> bool {
    let depth = stack[DEPTH].load(Relaxed);
    if depth as u32 != frame {
        return false;
    }
    let frame = frame.min(FRAMES) as usize;
    stack[frame * FRAME_WORDS].store(FREE, order::frame_release()); // [F2]
    let found =
        single_instruction::replace(&stack[DEPTH], depth, depth - 1, order::frame_release()); // [F2]
    if found != depth {
        return false;
    }
    // Below the first frame lies the word of the depth, which now ends in 32 zero bits.
    if stack[(frame - 1) * FRAME_WORDS].load(Relaxed) == ENDED {
        lower(stack);
    }
    true
}

/// Beyond the frames: the claim is given back, and the span is counted.
#[cold]
pub(crate) fn count_over(stack: &SpanStack) {
    single_instruction::decrement_shared(&stack[DEPTH]);
    single_instruction::increment_shared(&stack[OVER]);
    // Spans that other threads have ended may lie on top.
    lower(stack);
}

/// Ends the span of a frame that has others above it.
#[cold]
pub(crate) fn end_below(stack: &SpanStack, frame: u32) {
    head_of(stack, frame).store(ENDED, order::frame_release()); // [F2]
    lower(stack);
}

/// Ends all spans above this frame that end with a block of code.
#[cold]
pub(crate) fn end_lexical_above(stack: &SpanStack, frame: u32) {
    let depth = (stack[DEPTH].load(Relaxed) as u32).min(FRAMES);
    for above in (frame + 1..=depth).rev() {
        let head = head_of(stack, above);
        let found = head.load(Relaxed);
        if Head::unpack(found).is_some() && found & LEXICAL != 0 {
            single_instruction::replace(head, found, ENDED, order::frame_release()); // [F2]
        }
    }
}

/// Takes frames whose spans have ended off the top.
#[cold]
pub(crate) fn lower(stack: &SpanStack) {
    loop {
        let depth = stack[DEPTH].load(Relaxed);
        let top = depth as u32;
        // A claim that is being given back, by this context or one that it interrupted.
        if top == 0 || top > FRAMES {
            return;
        }
        let head = head_of(stack, top);
        if single_instruction::replace(head, ENDED, FREE, order::frame_release()) != ENDED {
            // [F2]
            return;
        }
        let found =
            single_instruction::replace(&stack[DEPTH], depth, depth - 1, order::frame_release()); // [F2]
        if found != depth {
            // A handler has begun spans in between, and may have left one above.
            head.store(ENDED, order::frame_release()); // [F2]
        }
    }
}

/// Ends a span of another thread's stack: exactly the one with this head, which may be gone.
///
/// The caller has made sure that this process wrote the stack: the child of a raw clone has its
/// parent's file mapped.
pub fn end_elsewhere(stack: &SpanStack, frame: u32, head: u64) {
    if (1..=FRAMES).contains(&frame) && Head::unpack(head).is_some() {
        let word = head_of(stack, frame);
        let _ = word.compare_exchange(head, ENDED, order::frame_release(), Relaxed); // [F2]
    }
}

/// Empties a stack for its next owner, or at the end of a claim. The serial number goes on, so
/// that no head of the last owner comes again.
pub(crate) fn clear(stack: &SpanStack) {
    for frame in 1..=FRAMES {
        head_of(stack, frame).store(FREE, order::frame_release()); // [F2]
    }
    stack[OVER].store(0, Relaxed);
    let depth = stack[DEPTH].load(Relaxed);
    stack[DEPTH].store(depth >> 32 << 32, Relaxed);
}

/// How often a copy of a stack that changes is tried again.
const TRIES: u32 = 16;

/// A copy of a stack: the spans that its thread has open.
///
/// A copy of a thread that runs is tried again until depth and heads are the same before and after:
/// then it is what was open at one moment. Where the thread is faster than every try, the frames
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
    /// Copies a stack whose thread may be running.
    #[must_use]
    pub fn of(stack: &SpanStack) -> Self {
        let mut copy = Self {
            frames: [[0; FRAME_WORDS]; FRAMES as usize],
            count: 0,
            over: 0,
            moving: true,
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
        stack[DEPTH].load(Relaxed) != 0
    }

    /// The frames, the outermost span first: head, tick, payload words. All are filled and whole.
    #[must_use]
    pub fn frames(&self) -> &[[u64; FRAME_WORDS]] {
        &self.frames[..self.count]
    }

    /// Copies once; whether the frames are all that were there at one moment.
    fn is_exact(&mut self, stack: &SpanStack) -> bool {
        let depth = stack[DEPTH].load(order::frame_acquire()); // [F3]
        self.over = stack[OVER].load(Relaxed);
        let in_use = (depth as u32).min(FRAMES);
        let mut heads = [FREE; FRAMES as usize];
        let mut kept = [0; FRAMES as usize];
        self.count = 0;
        let mut is_same = true;
        for frame in 1..=in_use {
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
        is_same &= stack[DEPTH].load(Relaxed) == depth
            && stack[OVER].load(Relaxed) == self.over
            && (1..=in_use).all(|frame| now(frame) == heads[frame as usize - 1]);
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
