//! Spans of several records: what one is when it is read, and what is said where records are
//! missing.

use crate::common;

use std::collections::BTreeMap;

use common::*;
use ringmark_decoder::{Dump, Entered, Follower, Output, Paired, Span, SpanPairs, Value};
use ringmark_format::attribute::tag;
use ringmark_format::codec::write;
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;

const ORDER: u32 = 16;
const LATER: u32 = 17;
const ENTER: u32 = 18;
const EXIT: u32 = 19;
const CLOSE: u32 = 20;
const NATIVE: u32 = 21;
const STATUS: u32 = 22;

fn with_spans() -> Vec<u8> {
    let semantics = [semantic::SPAN_ID, semantic::PARENT_ID, semantic::DURATION];
    let [id, parent, duration] = semantics.map(u32::to_le_bytes);
    let number = |name, offset, meaning: Option<&'static [u8]>| FieldOf {
        extra: match meaning {
            Some(bytes) => Box::leak(Box::new([(tag::SEMANTIC, bytes)])),
            None => &[],
        },
        ..field(name, Kind::U64, offset)
    };
    let leak = |bytes: [u8; 4]| -> Option<&'static [u8]> { Some(Box::leak(Box::new(bytes))) };
    let (id, parent, duration) = (leak(id), leak(parent), leak(duration));
    let own = || number("span_id", 0, id);
    let of =
        |ty, name, shape, fields: &[FieldOf<'_>]| event_entry(ty, name, Level::Info, shape, fields);
    let made = [
        own(),
        number("parent_id", 8, parent),
        number("size", 16, None),
    ];
    let schema = [
        of(ORDER, "order", Shape::SpanNew, &made),
        of(
            LATER,
            "order",
            Shape::SpanRecord,
            &[own(), number("size", 8, None)],
        ),
        of(ENTER, "span.enter", Shape::SpanEnter, &[own()]),
        of(EXIT, "span.exit", Shape::SpanExit, &[own()]),
        of(CLOSE, "span.close", Shape::SpanClose, &[own()]),
        of(
            NATIVE,
            "db",
            Shape::Span,
            &[number("duration", 0, duration)],
        ),
        of(
            STATUS,
            "order",
            Shape::SpanRecord,
            &[own(), number("status", 8, None)],
        ),
    ]
    .concat();
    let mut out = Vec::new();
    write::session(
        &mut out,
        SESSION,
        &session_content(session_header(Mode::Discard)),
    )
    .unwrap();
    write::schema(&mut out, SESSION, 0, &schema).unwrap();
    out
}

/// A record: its ring, the time in ns, its type and payload.
type Step<'a> = (u32, u64, u32, &'a [u64]);

/// Loses this many records of a ring between its records around it.
const LOST: u32 = u32::MAX;

/// A dump of these records, each ring in a slot of its own.
fn trace(steps: &[Step<'_>]) -> Dump {
    read(&blocks(steps)).unwrap()
}

fn blocks(steps: &[Step<'_>]) -> Vec<u8> {
    let mut rings: BTreeMap<u32, Vec<&Step<'_>>> = BTreeMap::new();
    steps
        .iter()
        .for_each(|step| rings.entry(step.0).or_default().push(step));
    let mut out = with_spans();
    for (ring, steps) in rings {
        let (mut number, mut events, mut lost) = (0, 0, 0);
        for piece in steps.split(|step| step.2 == LOST) {
            let mut page = PageOf::new(number, events);
            page.header.slot = ring;
            page.header.ring_id = 5 + u64::from(ring);
            page.header.tid = 70 + ring;
            page.header.lost_before = lost;
            page.header.tick_base = 1000 + piece.first().map_or(0, |step| step.1);
            for (_, at, ty, payload) in piece {
                page.event((1000 + at - page.header.tick_base) as u32, *ty, payload);
                events += 1;
            }
            page.close().write(true, &mut out);
            number += 1;
            lost += 3;
        }
    }
    out
}

/// The spans that end, and the pairs after the last event.
fn spans(dump: &Dump) -> (Vec<Span<'_>>, SpanPairs) {
    let mut pairs = SpanPairs::new(dump);
    let mut found = Vec::new();
    for item in dump.events() {
        match (pairs.take(&item), &item) {
            (Paired::Ended(span), _) => found.push(*span),
            (Paired::Alone, Output::Event(event)) => found.extend(pairs.whole(event)),
            _ => {}
        }
    }
    (found, pairs)
}

fn entered(busy_ns: u64, idle_ns: u64, polls: u64) -> Option<Entered> {
    Some(Entered {
        busy_ns,
        idle_ns,
        polls,
        is_whole: true,
    })
}

/// (no start, no end), summed over all types.
fn cut(pairs: &SpanPairs, dump: &Dump) -> (u64, u64) {
    let cut = pairs.cut(dump);
    cut.iter()
        .fold((0, 0), |sum, c| (sum.0 + c.no_start, sum.1 + c.no_end))
}

fn args(span: &Span<'_>) -> Vec<(String, u64)> {
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let number = |value| match value {
        Value::U64(n) => n,
        other => panic!("{other:?}"),
    };
    let args = span.args().into_iter();
    args.map(|(field, value)| (text(&field.name), number(value)))
        .collect()
}

#[test]
fn a_span_over_several_threads_is_one() {
    let dump = trace(&[
        (0, 100, ORDER, &[2, 0, 7]),
        (0, 110, ENTER, &[2]),
        (0, 130, EXIT, &[2]),
        (1, 150, ENTER, &[2]),
        (1, 155, LATER, &[2, 9]),
        (1, 156, STATUS, &[2, 500]),
        (1, 157, STATUS, &[2, 200]),
        (1, 160, EXIT, &[2]),
        (2, 200, CLOSE, &[2]),
    ]);
    let (found, pairs) = spans(&dump);
    let [span] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((span.start_ns, span.total_ns), (100, 100));
    assert_eq!(span.entered, entered(30, 70, 2));
    assert_eq!(
        (span.self_ns, span.parent, span.id),
        (Some(30), None, Some(2))
    );
    assert_eq!(span.end.tid(), 72, "the thread that closed it");
    assert_eq!(
        args(span),
        [("size".to_owned(), 9), ("status".to_owned(), 200)]
    );
    assert_eq!(cut(&pairs, &dump), (0, 0));
}

#[test]
fn bookkeeping_is_not_among_the_closest_names() {
    let dump = trace(&[
        (0, 0, ORDER, &[1, 0, 5]),
        (0, 1, ENTER, &[1]),
        (0, 2, LATER, &[1, 6]),
        (0, 3, NATIVE, &[1]),
        (0, 4, EXIT, &[1]),
        (0, 5, CLOSE, &[1]),
    ]);
    assert_eq!(dump.closest_names("span.entr", 9), ["order", "db"]);
    assert_eq!(dump.closest_types("span.entr", 9), ["order", "db"]);
}

#[test]
fn a_thread_in_a_span_twice_and_two_threads_at_once() {
    let dump = trace(&[
        (0, 100, ORDER, &[2, 0, 7]),
        (0, 100, ENTER, &[2]),
        (0, 110, ENTER, &[2]),
        (1, 120, ENTER, &[2]),
        (0, 130, EXIT, &[2]),
        (0, 140, EXIT, &[2]),
        (1, 150, EXIT, &[2]),
        (1, 160, CLOSE, &[2]),
    ]);
    let (found, _) = spans(&dump);
    // 40 and 30 on two threads, which together cover 50 of 60.
    assert_eq!(found[0].entered, entered(70, 10, 3));
}

#[test]
fn self_leaves_out_what_the_same_thread_did_inside() {
    let dump = trace(&[
        (0, 100, ORDER, &[2, 0, 1]),
        (0, 100, ENTER, &[2]),
        (0, 110, ORDER, &[4, 2, 1]),
        (0, 110, ENTER, &[4]),
        // Another thread works for the same parent: that is no time of the parent's thread.
        (1, 110, ORDER, &[6, 2, 1]),
        (1, 110, ENTER, &[6]),
        (0, 130, EXIT, &[4]),
        (0, 130, CLOSE, &[4]),
        (1, 180, EXIT, &[6]),
        (1, 180, CLOSE, &[6]),
        (0, 190, EXIT, &[2]),
        (0, 190, CLOSE, &[2]),
    ]);
    let (found, _) = spans(&dump);
    let times: Vec<_> = found.iter().map(|s| (s.id, s.parent, s.self_ns)).collect();
    assert_eq!(times[0], (Some(4), Some(2), Some(20)));
    assert_eq!(times[1], (Some(6), Some(2), Some(70)));
    assert_eq!(times[2], (Some(2), None, Some(70)));
}

#[test]
fn native_spans_are_spans_too() {
    let dump = trace(&[
        (0, 120, NATIVE, &[20]),
        (0, 150, NATIVE, &[10]),
        (0, 200, NATIVE, &[150]),
        (0, 300, NATIVE, &[50]),
    ]);
    let (found, _) = spans(&dump);
    let times: Vec<_> = found
        .iter()
        .map(|s| (s.start_ns, s.total_ns, s.self_ns))
        .collect();
    assert_eq!(
        times,
        [
            (100, 20, Some(20)),
            (140, 10, Some(10)),
            (50, 150, Some(120)),
            (250, 50, Some(50))
        ]
    );
}

#[test]
fn a_cancelled_future_and_one_that_never_ran() {
    let dump = trace(&[
        (0, 100, ORDER, &[2, 0, 1]),
        (0, 100, ORDER, &[4, 0, 1]),
        (0, 110, ENTER, &[2]),
        (0, 120, EXIT, &[2]),
        (0, 150, CLOSE, &[2]),
        (0, 160, CLOSE, &[4]),
    ]);
    let (found, _) = spans(&dump);
    assert_eq!(
        (found[0].total_ns, found[0].entered),
        (50, entered(10, 40, 1))
    );
    assert_eq!(
        (found[1].total_ns, found[1].entered),
        (60, entered(0, 60, 0))
    );
}

#[test]
fn an_id_that_is_given_again_is_another_span() {
    let dump = trace(&[
        (0, 100, ORDER, &[2, 0, 1]),
        (0, 150, CLOSE, &[2]),
        (1, 200, ORDER, &[2, 0, 5]),
        (1, 210, CLOSE, &[2]),
        // Its close is not there.
        (0, 300, ORDER, &[2, 0, 6]),
        (0, 400, ORDER, &[2, 0, 8]),
        (0, 430, CLOSE, &[2]),
    ]);
    let (found, pairs) = spans(&dump);
    let times: Vec<_> = found.iter().map(|s| (s.total_ns, args(s)[0].1)).collect();
    assert_eq!(times, [(50, 1), (10, 5), (30, 8)]);
    assert_eq!(cut(&pairs, &dump), (0, 1));
}

#[test]
fn late_records_of_a_closed_span_are_no_span() {
    let dump = trace(&[
        (0, 100, ORDER, &[2, 0, 1]),
        (0, 150, CLOSE, &[2]),
        (1, 151, LATER, &[2, 7]),
        (1, 152, ENTER, &[2]),
        (1, 153, EXIT, &[2]),
    ]);
    let (found, pairs) = spans(&dump);
    assert_eq!((found.len(), cut(&pairs, &dump)), (1, (0, 0)));
}

#[test]
fn what_the_trace_cuts_has_no_duration() {
    let dump = trace(&[
        (0, 100, LATER, &[2, 1]),
        (0, 110, EXIT, &[2]),
        (0, 120, CLOSE, &[2]),
        (0, 130, CLOSE, &[4]),
        (0, 140, ORDER, &[6, 0, 1]),
        (0, 150, ENTER, &[6]),
        (0, 160, ENTER, &[8]),
    ]);
    let (found, pairs) = spans(&dump);
    assert!(found.is_empty());
    let cut: Vec<_> = pairs
        .cut(&dump)
        .iter()
        .map(|c| (c.ty.map(|ty| ty.id.0), c.no_start, c.no_end))
        .collect();
    assert_eq!(
        cut,
        [(None, 2, 0), (Some(ORDER), 0, 1), (Some(LATER), 1, 0)]
    );
}

#[test]
fn records_at_one_time_may_come_from_threads_in_any_order() {
    // Ring 0 is merged first: the span is entered there before ring 1 says that it was made.
    let dump = trace(&[
        (0, 100, ENTER, &[2]),
        (1, 100, ORDER, &[2, 0, 1]),
        (0, 130, EXIT, &[2]),
        (0, 140, CLOSE, &[2]),
    ]);
    let (found, pairs) = spans(&dump);
    assert_eq!(
        (found[0].total_ns, found[0].entered),
        (40, entered(30, 10, 1))
    );
    assert_eq!(cut(&pairs, &dump), (0, 0));
}

#[test]
fn spans_with_lost_records_are_marked() {
    let dump = trace(&[
        (0, 100, ORDER, &[2, 0, 1]),
        (0, 110, ENTER, &[2]),
        (0, 0, LOST, &[]),
        (0, 200, ENTER, &[2]),
        (0, 210, EXIT, &[2]),
        (0, 220, CLOSE, &[2]),
        (0, 230, ORDER, &[4, 0, 1]),
        (0, 231, ENTER, &[4]),
        (0, 235, EXIT, &[4]),
        (0, 240, CLOSE, &[4]),
        // On another ring, in the time of the loss, and closed before the loss is met.
        (1, 90, NATIVE, &[20]),
        (1, 120, ORDER, &[6, 0, 1]),
        (1, 130, CLOSE, &[6]),
        (0, 250, NATIVE, &[100]),
    ]);
    let (found, _) = spans(&dump);
    let times: Vec<_> = found.iter().map(|s| (s.total_ns, s.self_ns)).collect();
    // The total is known all the same; the ring's own gap makes no other's native span unknown.
    assert_eq!(times[0], (20, Some(20)));
    assert_eq!(times[1], (10, None));
    assert_eq!(times[2], (120, None));
    assert_eq!(times[3], (10, Some(4)));
    assert_eq!(times[4], (100, None));
    let marked = Entered {
        busy_ns: 10,
        idle_ns: 110,
        polls: 2,
        is_whole: false,
    };
    assert_eq!(found[2].entered, Some(marked));
    assert_eq!(found[3].entered, entered(4, 6, 1));
}

#[test]
fn a_follower_pairs_over_its_pieces() {
    let first = blocks(&[(0, 100, ORDER, &[2, 0, 7]), (0, 110, ENTER, &[2])]);
    let mut page = PageOf::new(1, 2);
    page.header.tick_base = 1130;
    page.event(0, EXIT, &[2]).event(20, CLOSE, &[2]);
    let mut second = Vec::new();
    page.write(false, &mut second);
    let (mut follower, mut pairs) = (Follower::default(), SpanPairs::default());
    let mut found = Vec::new();
    for piece in [first, second] {
        let dump = follower.read("piece", &piece).unwrap();
        follower.news(&dump, |item| {
            if let Paired::Ended(span) = pairs.take(item) {
                found.push((span.total_ns, span.entered, args(&span)));
            }
        });
    }
    assert_eq!(
        found,
        [(50, entered(20, 30, 1), vec![("size".to_owned(), 7)])]
    );
}

#[test]
fn memory_is_that_of_open_spans() {
    // One span is open for ever; the others come and go.
    let mut steps: Vec<Step<'_>> = vec![(0, 0, ORDER, &[1, 0, 0])];
    let ids: Vec<[u64; 3]> = (1..=60).map(|n| [2 * n, 1, n]).collect();
    for (n, made) in ids.iter().enumerate() {
        let at = 10 + 2 * n as u64;
        steps.push((0, at, ORDER, made));
        steps.push((0, at + 1, CLOSE, &made[..1]));
    }
    let dump = trace(&steps);
    let (found, pairs) = spans(&dump);
    assert_eq!((found.len(), pairs.open(), pairs.left_out()), (60, 1, 0));
    assert_eq!(cut(&pairs, &dump), (0, 1));
}
