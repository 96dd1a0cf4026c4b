//! The stack of open spans as its thread and a reader see it: what is shown is what is open, in
//! whatever order spans end, at every depth.

use crate::heap;

use heap::{HeapRing, Shape};
use ringmark_format::TypeId;
use ringmark_format::open_span::{FRAMES, Head};
use ringmark_format::session::Mode;
use ringmark_ring::span_stack::{self, FRAME_WORDS};
use ringmark_ring::{RawSpan, SpanPlace, StackCopy};

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

const SMALL: Shape = Shape {
    page_words: 32,
    pages: 2,
};

fn ring() -> HeapRing {
    HeapRing::new(Mode::Overwrite, SMALL)
}

/// Payload word `index` of span `i`: no other word of a test is equal to it.
fn word(i: u32, index: usize) -> u64 {
    u64::from(i) << 32 | index as u64 | 1 << 63
}

/// Begins span `i` with as many words as its number says.
fn begin(ring: &HeapRing, i: u32) -> SpanPlace {
    let words = i % 7;
    ring.writer.push_span(TypeId(16 + i), words, |to| {
        assert_eq!(to.payload_words(), u64::from(words) + 1);
        (0..=words as usize).for_each(|index| to.set_word(index, word(i, index)));
    })
}

/// The head of the frame that a span stands in.
fn frame(ring: &HeapRing, place: SpanPlace) -> &'static AtomicU64 {
    let frame = place.frame_in(ring.stack).expect("a frame");
    &ring.stack[frame as usize * FRAME_WORDS]
}

/// The open spans as a reader sees them, each checked, and how many more there are.
fn shown(ring: &HeapRing) -> (Vec<u32>, u64) {
    let copy = StackCopy::of(ring.stack);
    assert!(!copy.moving, "no thread runs");
    let spans = copy.frames().iter().map(|frame| checked(frame).unwrap());
    (spans.collect(), copy.over)
}

/// Which span a frame is of; an error if its words are another one's.
fn checked(frame: &[u64; FRAME_WORDS]) -> Result<u32, String> {
    let head = Head::unpack(frame[0]).ok_or("not filled")?;
    let i = head.type_id.0 - 16;
    let expected = (0..=head.words as usize).map(|index| word(i, index));
    if head.words == i % 7
        && frame[1..]
            .iter()
            .copied()
            .take(head.words as usize + 1)
            .eq(expected)
    {
        Ok(i)
    } else {
        Err(format!("torn: {frame:x?}"))
    }
}

#[test]
fn spans_are_shown_while_they_are_open() {
    let ring = ring();
    assert_eq!(shown(&ring), (vec![], 0));
    let (a, b) = (begin(&ring, 1), begin(&ring, 2));
    assert_eq!(shown(&ring), (vec![1, 2], 0));
    ring.writer.pop_span(b);
    assert_eq!(shown(&ring), (vec![1], 0));
    let c = begin(&ring, 3);
    assert_eq!(shown(&ring), (vec![1, 3], 0));
    // Out of order: the lower one goes, its frame when it is on top.
    ring.writer.pop_span(a);
    assert_eq!(shown(&ring), (vec![3], 0));
    ring.writer.pop_span(c);
    assert_eq!(shown(&ring), (vec![], 0));
    assert_eq!(ring.frames_in_use(), (0, 0));
}

#[test]
fn spans_beyond_the_frames_are_counted() {
    let ring = ring();
    let mut open: Vec<_> = (0..FRAMES + 2).map(|i| begin(&ring, i)).collect();
    assert_eq!(shown(&ring), ((0..FRAMES).collect(), 2));
    // The two beyond, the two below them, one in the middle, and again up to the edge.
    for _ in 0..4 {
        ring.writer.pop_span(open.pop().unwrap());
    }
    ring.writer.pop_span(open.remove(30));
    let expected = (0..FRAMES - 2).filter(|i| *i != 30);
    assert_eq!(shown(&ring), (expected.collect(), 0));
    // The frame in the middle is used again, when there are none above.
    open.extend((100..104).map(|i| begin(&ring, i)));
    assert_eq!(shown(&ring).1, 1);
    open.into_iter().for_each(|span| ring.writer.pop_span(span));
    assert_eq!(shown(&ring), (vec![], 0));
    assert_eq!(ring.frames_in_use(), (0, 0));
}

/// Spans that begin and end at random, around the edge of the frames.
#[test]
fn nothing_leaks_in_any_order() {
    let ring = ring();
    let mut open: Vec<(u32, SpanPlace)> = Vec::new();
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    for i in 0..200_000 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let choice = (random >> 33) as usize;
        let target = if i % 4000 < 2000 { FRAMES as usize } else { 3 };
        if open.len() < target + choice % 3 {
            open.push((i, begin(&ring, i % 1_000_000)));
        } else {
            let at = if choice.is_multiple_of(4) {
                choice % open.len()
            } else {
                open.len() - 1
            };
            ring.writer.pop_span(open.remove(at).1);
        }
        if i % 64 == 0 {
            let kept = open
                .iter()
                .filter(|(_, place)| place.frame_in(ring.stack) <= Some(FRAMES));
            let mut kept: Vec<_> = kept.map(|(i, _)| *i).collect();
            let over = (open.len() - kept.len()) as u64;
            let (mut found, beyond) = shown(&ring);
            kept.sort_unstable();
            found.sort_unstable();
            assert_eq!((found, beyond), (kept, over));
        }
    }
    open.into_iter()
        .for_each(|(_, span)| ring.writer.pop_span(span));
    assert_eq!(ring.frames_in_use(), (0, 0));
}

/// What C code in a block does: marks its frame as lexical.
fn begin_lexical(ring: &HeapRing, i: u32) -> (SpanPlace, u64) {
    let place = begin(ring, i);
    let head = frame(ring, place);
    let marked = Head {
        lexical: true,
        ..Head::unpack(head.load(Relaxed)).unwrap()
    };
    head.store(marked.pack(), Relaxed);
    (place, marked.pack())
}

/// The end of the block, where it is not the common case.
fn end_block(ring: &HeapRing, (place, head): (SpanPlace, u64)) {
    let raw = RawSpan {
        id: 1,
        start: 0,
        frame: frame(ring, place).as_ptr(),
        head,
    };
    // SAFETY: a frame of a ring that is never freed.
    unsafe { raw.end(true, Some(ring.writer), true) };
}

#[test]
fn the_end_of_a_block_ends_what_a_jump_has_left_in_it() {
    let ring = ring();
    let outer = begin_lexical(&ring, 1);
    let _jumped_over = begin_lexical(&ring, 2);
    let other = begin(&ring, 3);
    let _jumped_over = begin_lexical(&ring, 4);
    end_block(&ring, outer);
    // A span that is not bound to a block stays until it ends.
    assert_eq!(shown(&ring), (vec![3], 0));
    ring.writer.pop_span(other);
    assert_eq!(shown(&ring), (vec![], 0));
    assert_eq!(ring.frames_in_use(), (0, 0));
    // Its frame is another span's by now.
    let next = begin(&ring, 5);
    end_block(&ring, outer);
    assert_eq!(shown(&ring), (vec![5], 0));
    ring.writer.pop_span(next);
}

#[test]
fn a_span_that_ends_on_another_thread_is_not_shown() {
    let ring = ring();
    let places = [1, 2, 3].map(|i| begin(&ring, i));
    let frames = places.map(|place| frame(&ring, place));
    let heads = frames.map(|head| head.load(Relaxed));
    span_stack::end_elsewhere(frames[0], heads[0]);
    span_stack::end_elsewhere(frames[2], heads[2]);
    assert_eq!(shown(&ring), (vec![2], 0));
    // Not twice, and not another one's.
    span_stack::end_elsewhere(frames[1], heads[0]);
    span_stack::end_elsewhere(frames[1], 0);
    assert_eq!(shown(&ring), (vec![2], 0));
    ring.writer.pop_span(places[1]);
    assert_eq!(shown(&ring), (vec![], 0));
    let next = begin(&ring, 4);
    ring.writer.pop_span(next);
    assert_eq!(ring.frames_in_use(), (0, 0));
}

/// The next owner of a ring starts with an empty stack, and none of its heads is an old one.
#[test]
fn a_seal_empties_the_stack() {
    let ring = ring();
    let open = begin(&ring, 1);
    let head = frame(&ring, open).load(Relaxed);
    for i in 0..FRAMES + 3 {
        begin(&ring, i);
    }
    ring.writer.seal();
    assert_eq!(shown(&ring), (vec![], 0));
    assert_eq!(begin(&ring, 2), SpanPlace::NONE);
    ring.writer.pop_span(open);
    span_stack::end_elsewhere(frame(&ring, open), head);
    assert_eq!(ring.frames_in_use(), (0, 0));
    let next = frame(&ring, open).load(Relaxed);
    assert_eq!(next, head as u32 as u64, "the serial number goes on");
}

/// A reader on another processor never sees a frame that mixes two spans, and sees many.
#[test]
fn a_reader_beside_the_writer_sees_whole_frames() {
    let long = std::env::var_os("RINGMARK_LONG").is_some();
    let pushes: u64 = if long { 1_000_000_000 } else { 10_000_000 };
    let (accepted, copies, torn) = beside_a_reader(pushes);
    println!("{pushes} pushes, {copies} copies, {accepted} accepted, {torn} torn");
    assert_eq!(torn, 0);
    assert!(accepted * 10 >= copies, "{accepted} of {copies}");
}

fn beside_a_reader(pushes: u64) -> (u64, u64, u64) {
    let ring = ring();
    let (stack, done) = (ring.stack, AtomicBool::new(false));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut accepted, mut copies, mut torn) = (0, 0, 0);
            while !done.load(Relaxed) {
                let copy = StackCopy::of(stack);
                copies += 1;
                // The outermost frame never changes: it does not count.
                accepted += u64::from(!copy.moving || copy.frames().len() > 1);
                torn += copy.frames().iter().filter(|f| checked(f).is_err()).count() as u64;
            }
            (accepted, copies, torn)
        });
        let outer = begin(&ring, 6);
        for i in 0..pushes / 2 {
            let first = begin(&ring, (i % 1000) as u32);
            let second = begin(&ring, (i % 999) as u32);
            ring.writer.pop_span(second);
            ring.writer.pop_span(first);
        }
        ring.writer.pop_span(outer);
        done.store(true, Relaxed);
        reader.join().unwrap()
    })
}
