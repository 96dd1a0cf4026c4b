//! A dump of the last part of a session: what is earlier is left out, what reaches into it stays.

use crate::common;

use common::function_schema::{self, function_type, function_types};
use common::*;
use ringmark_decoder::{Dump, Output};
use ringmark_format::codec::write;
use ringmark_format::record;
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;

/// Ticks of the session's start to the window.
const FROM: u64 = 500;

/// Types 20 to 24: the life of a span; functions 0 and 1, recorded at both ends.
fn more_schema() -> Vec<u8> {
    let span_id = semantic::SPAN_ID.to_le_bytes();
    let extra: [(u16, &[u8]); 1] = [(ringmark_format::attribute::tag::SEMANTIC, &span_id)];
    let id = FieldOf {
        extra: &extra,
        ..field("id", Kind::U64, 0)
    };
    let fields = [id];
    let span = |id, name, shape| event_entry(id, name, Level::Info, shape, &fields);
    [
        span(20, "new", Shape::SpanNew),
        span(21, "enter", Shape::SpanEnter),
        span(22, "exit", Shape::SpanExit),
        span(23, "close", Shape::SpanClose),
        span(24, "record", Shape::SpanRecord),
        function_schema::function(0, "outer"),
        function_schema::function(1, "inner"),
        function_types(0, 2, 1, 0),
    ]
    .concat()
}

fn fill(page: &mut PageOf) {
    page.header.lost_before = 3;
    page.event(0, 16, &[0]);
    // Before the window, as what stands after it is.
    page.span(record::BUSY, 2);
    // Open: 1 is entered, 2 is not any more. Closed: 3.
    for span in 1..=3 {
        page.event(10, 20, &[span]).event(11, 21, &[span]);
    }
    page.event(12, 22, &[3]).event(13, 23, &[3]);
    // It comes after the close, from another thread.
    page.event(13, 24, &[3]);
    page.event(14, 22, &[2]);
    // Another span with the id of one that was closed.
    page.event(15, 20, &[3]).event(15, 24, &[3]);
    // The first call has not returned, the second has.
    page.event(20, function_type(0, false), &[0]);
    page.event(21, function_type(1, false), &[0]);
    page.event(22, function_type(1, true), &[]);
    page.event(FROM as u32 - 1, 16, &[1]);
    page.event(FROM as u32, 16, &[2]);
    page.span(record::BUSY, 2);
    page.event(600, 22, &[1]).event(601, 23, &[1]);
    page.event(602, function_type(0, true), &[]);
}

/// A dump with one such page in overwrite mode, with or without a window.
fn bytes(has_window: bool) -> Vec<u8> {
    let mut out = start(Mode::Overwrite);
    if has_window {
        write::window(&mut out, SESSION, MONO_ZERO_NS + FROM).unwrap();
    }
    let at = schema().len() as u64;
    write::schema(&mut out, SESSION, at, &more_schema()).unwrap();
    let mut page = PageOf::new(0, 100);
    fill(&mut page);
    page.write(false, &mut out);
    let slots = [slot_counters(124, [3, 0, 0, 0, 0, 0, 0, 0])];
    write::counters(&mut out, SESSION, &counters(&slots, [0; 8], false)).unwrap();
    out
}

/// Time since the start and type of each event; what is lost.
fn shown(dump: &Dump) -> (Vec<(u64, u32)>, u64) {
    let (mut events, mut lost) = (Vec::new(), 0);
    for item in dump.events() {
        match item {
            Output::Event(event) => events.push((event.t_ns, event.ty.id.0)),
            Output::Lost(item) => lost += item.loss.count,
        }
    }
    (events, lost)
}

#[test]
fn only_the_last_part_is_shown_and_what_reaches_into_it() {
    let dump = read(&bytes(true)).unwrap();
    assert!(dump.damage.is_empty(), "{:?}", dump.damage);
    let (events, lost) = shown(&dump);
    let expected = [
        (10, 20),
        (11, 21),
        (10, 20),
        (15, 20),
        (15, 24),
        (20, function_type(0, false)),
        (FROM, 16),
        (600, 22),
        (601, 23),
        (602, function_type(0, true)),
    ];
    let mut expected = expected.to_vec();
    expected.sort_by_key(|(t, _)| *t);
    assert_eq!((events, lost), (expected, 0));
    let found = dump.verify();
    assert_eq!((found.events, found.left_out), (10, 12));
    assert_eq!(found.uncommitted, 1);
    assert_eq!((found.lost, found.overwritten, found.missing), (0, 0, 0));
    assert_eq!(dump.sessions[0].window, Some(MONO_ZERO_NS + FROM));
}

#[test]
fn beside_a_dump_of_all_everything_is_shown() {
    let (all, part) = (bytes(false), bytes(true));
    let expected = shown(&read(&all).unwrap());
    assert_eq!((expected.0.len(), expected.1), (21, 103));
    for both in [[all.clone(), part.clone()], [part, all]] {
        let dump = read(&both.concat()).unwrap();
        assert_eq!(shown(&dump), expected);
        assert_eq!(dump.sessions[0].window, None);
    }
}
