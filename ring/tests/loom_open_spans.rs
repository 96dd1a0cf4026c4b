//! The stack of open spans over loom's atomics: what a reader copies of a frame is one span's, and
//! a span that has left the stack has its record.
#![cfg(loom)]

use crate::models;

use loom::thread;
use models::*;
use ringmark_format::TypeId;
use ringmark_format::open_span::Head;
use ringmark_format::session::Mode;
use ringmark_ring::span_stack::{self, FRAME_WORDS};
use ringmark_ring::{SpanPlace, StackCopy};

/// Begins span `i`: tick `10 i`, argument `100 + i`.
fn begin(model: &Model, i: u64) -> SpanPlace {
    model.writer.push_span(TypeId(16 + i as u32), 1, |to| {
        to.set_word(0, 10 * i);
        to.set_word(1, 100 + i);
    })
}

/// Every frame of a copy is whole; returns which spans are in it.
fn check(copy: &StackCopy) -> Vec<u64> {
    let spans = copy.frames().iter().map(|frame| {
        let head = Head::unpack(frame[0]).expect("a filled frame");
        let i = u64::from(head.type_id.0) - 16;
        let expected = [10 * i, 100 + i];
        assert_eq!(frame[1..], expected, "{VIOLATED}: frame of span {i}");
        i
    });
    spans.collect()
}

/// A reader looks while one span ends and the next one takes its frame.
fn frame_used_again() {
    let model = Model::new(Mode::Overwrite);
    let first = begin(&model, 1);
    let seen = model.clone();
    let reader = thread::spawn(move || drop(check(&StackCopy::of(seen.stack))));
    model.writer.pop_span(first);
    begin(&model, 2);
    reader.join().unwrap();
}

/// A reader that no longer finds a span finds its record.
fn ended_span_has_its_record() {
    let model = Model::new(Mode::Overwrite);
    model.fill(1);
    let span = begin(&model, 1);
    let seen = model.clone();
    let reader = thread::spawn(move || {
        let open = check(&StackCopy::of(seen.stack));
        if open.is_empty() {
            let word = seen.page(0)[ringmark_ring::observe::HEADER_WORDS + 2]
                .load(loom::sync::atomic::Ordering::Relaxed);
            assert_eq!(word, committed(1), "{VIOLATED}: neither open nor recorded");
        }
    });
    model.emit(1).unwrap();
    model.writer.pop_span(span);
    reader.join().unwrap();
}

/// A span ends on another thread while its own thread ends the one above it.
fn ended_elsewhere() {
    let model = Model::new(Mode::Overwrite);
    let lower = begin(&model, 1);
    let head = StackCopy::of(model.stack).frames()[0][0];
    let place = lower.frame_in(model.stack).unwrap() as usize * FRAME_WORDS;
    let upper = begin(&model, 2);
    let other = model.clone();
    let elsewhere = thread::spawn(move || {
        span_stack::end_elsewhere(&other.stack[place], head);
    });
    model.writer.pop_span(upper);
    elsewhere.join().unwrap();
    assert_eq!(
        check(&StackCopy::of(model.stack)),
        [0; 0],
        "{VIOLATED}: left"
    );
    let next = begin(&model, 3);
    assert_eq!(check(&StackCopy::of(model.stack)), [3], "{VIOLATED}: next");
    model.writer.pop_span(next);
}

#[test]
fn a_copied_frame_is_one_span() {
    holds_within_bound("frame used again", frame_used_again);
}

#[test]
fn a_span_is_open_or_recorded() {
    holds_within_bound("ended span", ended_span_has_its_record);
}

#[test]
fn a_span_may_end_on_another_thread() {
    holds_within_bound("ended elsewhere", ended_elsewhere);
}

#[test]
fn weakened_f1_is_caught() {
    caught("F1", frame_used_again);
}

#[test]
fn weakened_f2_is_caught() {
    caught("F2", frame_used_again);
    caught("F2", ended_span_has_its_record);
}

#[test]
fn weakened_f3_is_caught() {
    caught("F3", frame_used_again);
    // The fence before the head is loaded again orders the same.
    caught("F3+F4", ended_span_has_its_record);
}

#[test]
fn weakened_f4_is_caught() {
    caught("F4", frame_used_again);
}
