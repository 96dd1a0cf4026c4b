//! A thread that is in a span of `tracing` has it on its stack in the ring file, with the subscriber and
//! with the layer: until it leaves it, in whatever order, and whatever the filter says by then.
#![cfg(feature = "tracing")]
#![forbid(unsafe_code)]

use std::path::Path;

use ringmark::{Keep, Mode, Session, span};
use ringmark_format::open_span::{FRAMES, Head};
use ringmark_format::slot::state;
use ringmark_ring::{RingFile, StackCopy};
use tracing::{Dispatch, info_span};
use tracing_subscriber::layer::SubscriberExt;

/// The first word of each open span of all threads, and how many are beyond the frames.
fn open(path: &Path) -> (Vec<u64>, u64) {
    let file = std::fs::File::open(path).expect("the ring file");
    let file = RingFile::observe(file, path).expect("a ring file");
    let slots = (0..file.slots_used()).filter_map(|index| file.slot(index));
    let mut found = (Vec::new(), 0);
    for slot in slots.filter(|slot| slot.state() == state::ACTIVE) {
        let copy = StackCopy::of(file.span_stack(slot).expect("a stack"));
        found.1 += copy.over;
        for frame in copy.frames() {
            let head = Head::unpack(frame[0]).expect("a filled frame");
            assert_eq!(head.words, 1, "its id");
            found.0.push(frame[2]);
        }
    }
    found
}

/// One session in this process.
#[test]
fn entered_spans_are_open() {
    let builder = Session::builder().mode(Mode::Overwrite).keep(Keep::Never);
    let session = builder.start().expect("a session");
    let layered = tracing_subscriber::registry().with(ringmark::tracing::layer());
    for (dispatch, is_layer) in [
        (Dispatch::new(ringmark::tracing::recorder()), false),
        (Dispatch::new(layered), true),
    ] {
        tracing::dispatcher::with_default(&dispatch, || {
            in_any_order(session.path(), is_layer);
            beyond_the_frames(session.path());
        });
        assert_eq!(open(session.path()), (vec![], 0));
    }
}

fn in_any_order(path: &Path, is_layer: bool) {
    let (a, b, c) = (info_span!("a"), info_span!("b"), info_span!("c"));
    assert_eq!(open(path), (vec![], 0), "made, and not entered");
    let (in_a, in_b, in_c) = (a.enter(), b.enter(), c.enter());
    let ids = open(path).0;
    let id = |span: &tracing::Span| span.id().expect("an id").into_u64();
    // The layer has other ids than the registry.
    assert!(is_layer || ids == [&a, &b, &c].map(id));
    assert!(ids.len() == 3 && ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
    drop(in_b);
    assert_eq!(open(path).0, [ids[0], ids[2]]);
    drop(in_a);
    assert_eq!(open(path).0, [ids[2]]);
    // Entered twice by one thread.
    let again = c.enter();
    assert_eq!(open(path).0, [ids[2], ids[2]]);
    drop(again);
    drop(in_c);
    assert_eq!(open(path).0, [0; 0]);
    // Between spans of Ringmark.
    let native = span!("native", n = 77_u64);
    let in_a = a.enter();
    assert_eq!(open(path).0, [77, ids[0]]);
    drop(native);
    assert_eq!(open(path).0, [ids[0]]);
    drop(in_a);
}

fn beyond_the_frames(path: &Path) {
    let mut entered: Vec<_> = (0..FRAMES + 10)
        .map(|_| info_span!("deep").entered())
        .collect();
    let (frames, over) = open(path);
    assert_eq!((frames.len() as u32, over), (FRAMES, 10));
    while let Some(innermost) = entered.pop() {
        drop(innermost);
    }
    assert_eq!(open(path), (vec![], 0));
}
