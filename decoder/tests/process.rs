//! Several sessions of one process: one order by raw tick, nested by thread.

use crate::common;

use common::function_schema::{function, function_type, function_types, module, tracer};
use common::*;
use ringmark_decoder::{
    CallGraph, CallLimits, Calls, Dump, DumpBuilder, Filter, GraphLine, Output, SpanPairs, Step,
};
use ringmark_format::attribute::tag;
use ringmark_format::block::PageState;
use ringmark_format::codec::write;
use ringmark_format::page::FIRST_OF_CLAIM;
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::{Clock, Mode, SessionHeader};
use ringmark_format::{PageNumber, RingId, Uuid};
use zerocopy::IntoBytes;

const EVENT: u32 = 16;
const SPAN: u32 = 19;
const TID: u32 = 77;
/// A payload that says nothing.
const EMPTY: &[u64] = &[0];
const TICK_ZERO: u64 = 1_000_000;

/// The header of one of the copies in a process. Two ticks make a nanosecond.
fn header(copy: u8) -> SessionHeader {
    let mut header = session_header(Mode::Discard);
    header.clock = Clock::Tsc as u32;
    header.session = [copy; 16];
    header.start_time = 99;
    header.tick_zero = TICK_ZERO;
    header.tick_shift = 1;
    header
}

/// Types 0 and 1: functions `main` and `work`; events and spans as the other sessions have.
fn whole_schema() -> Vec<u8> {
    let duration = semantic::DURATION.to_le_bytes();
    let duration: &[(u16, &[u8])] = &[(tag::SEMANTIC, &duration)];
    let took = FieldOf {
        extra: duration,
        ..field("took", Kind::U64, 0)
    };
    [
        schema(),
        event_entry(SPAN, "request", Level::Info, Shape::Span, &[took]),
        module("/bin/server"),
        function(0, "main"),
        function(1, "work"),
        function_types(0, 2, 1, 0),
        tracer(),
    ]
    .concat()
}

/// A ring of a session: slot, thread, and records as (tick after the zero, type, payload).
struct Ring<'a> {
    slot: u32,
    tid: u32,
    records: &'a [(u32, u32, &'a [u64])],
}

fn ring<'a>(records: &'a [(u32, u32, &'a [u64])]) -> Ring<'a> {
    Ring {
        slot: 0,
        tid: TID,
        records,
    }
}

fn session(header: SessionHeader, rings: &[Ring<'_>]) -> Vec<u8> {
    let uuid = Uuid(header.session);
    let mut out = Vec::new();
    write::session(&mut out, uuid, &session_content(header)).unwrap();
    write::schema(&mut out, uuid, 0, &whole_schema()).unwrap();
    for (number, ring) in rings.iter().enumerate() {
        let mut page = PageOf::new(0, 0);
        page.header.slot = ring.slot;
        page.header.ring_id = 5 + number as u64;
        page.header.generation = 1 + number as u64;
        page.header.flags = FIRST_OF_CLAIM;
        page.header.tid = ring.tid;
        page.header.tick_base = TICK_ZERO + u64::from(ring.records.first().map_or(0, |r| r.0));
        for (tick, id, payload) in ring.records {
            let ticks = TICK_ZERO + u64::from(*tick) - page.header.tick_base;
            page.event(ticks as u32, *id, payload);
        }
        page.page_bytes = page
            .page_bytes
            .max(page.bytes.len().next_power_of_two() as u32);
        page.close();
        page.bytes[..page.header.as_bytes().len()].copy_from_slice(page.header.as_bytes());
        let block = write::page_header(
            uuid,
            RingId(page.header.ring_id),
            PageNumber(page.header.generation - 1),
            page.bytes.len() as u32,
            page.page_bytes,
            PageState::Sealed,
        );
        write::block(&mut out, block, &page.bytes).unwrap();
    }
    out
}

fn dump(sessions: &[Vec<u8>]) -> Dump {
    let mut builder = DumpBuilder::new();
    builder
        .read("test.rmk", sessions.concat().as_slice())
        .unwrap();
    let dump = builder.finish();
    assert!(dump.damage.is_empty(), "{:?}", dump.damage);
    dump
}

/// The same as [`order`], some items at a time.
fn in_pieces(dump: &Dump, most: u64) -> Vec<u64> {
    let (mut events, mut numbers) = (dump.events(), Vec::new());
    loop {
        let mut given = 0;
        let count = events.each(most, |item| {
            given += 1;
            if let Output::Event(event) = item {
                numbers.push(u64::from_le_bytes(event.payload[..8].try_into().unwrap()));
            }
        });
        assert!(given == count && count <= most, "{given}, {count}");
        if count == 0 {
            return numbers;
        }
    }
}

/// The first argument of each event, in order.
fn order(dump: &Dump) -> Vec<u64> {
    let mut numbers = Vec::new();
    dump.events().for_each(|item| {
        if let Output::Event(event) = item {
            numbers.push(u64::from_le_bytes(event.payload[..8].try_into().unwrap()));
        }
    });
    let one_by_one = dump.events().filter_map(|item| match item {
        Output::Event(event) => Some(event.payload[..8].to_vec()),
        Output::Lost(_) => None,
    });
    let one_by_one = one_by_one.map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
    assert_eq!(one_by_one.collect::<Vec<_>>(), numbers);
    for most in 1..4 {
        assert_eq!(in_pieces(dump, most), numbers, "{most} at a time");
    }
    numbers
}

#[test]
fn sessions_of_one_process_are_ordered_by_tick_and_not_by_ns() {
    // Two ticks make a ns, and the headers disagree by 0.7 ms about when tick zero was.
    let mut second = header(2);
    second.mono_zero_ns += 700_000;
    let one = session(
        header(1),
        &[ring(&[
            (11, EVENT, &[2]),
            (20, EVENT, &[3]),
            (31, EVENT, &[6]),
        ])],
    );
    let two = session(
        second,
        &[ring(&[
            (10, EVENT, &[1]),
            (21, EVENT, &[4]),
            (30, EVENT, &[5]),
        ])],
    );
    for sessions in [[one.clone(), two.clone()], [two, one]] {
        let dump = dump(&sessions);
        assert_eq!(order(&dump), [1, 2, 3, 4, 5, 6]);
        let zeros: Vec<_> = dump.sessions.iter().map(|s| s.clock.mono_zero_ns).collect();
        assert_eq!(zeros, [MONO_ZERO_NS; 2], "one zero");
        assert_eq!(
            dump.sessions[0].clock.t_ns(TICK_ZERO + 31),
            dump.sessions[1].clock.t_ns(TICK_ZERO + 31)
        );
        assert_eq!(dump.sessions[0].process, dump.sessions[1].process);
    }
}

#[test]
fn equal_ticks_are_in_the_order_of_the_sessions() {
    let one = session(header(1), &[ring(&[(10, EVENT, &[1])])]);
    let two = session(header(2), &[ring(&[(10, EVENT, &[2])])]);
    assert_eq!(order(&dump(&[one.clone(), two.clone()])), [1, 2]);
    assert_eq!(order(&dump(&[two, one])), [2, 1]);
}

#[test]
fn other_processes_keep_clocks_of_their_own() {
    let mut other = header(2);
    other.start_time += 1;
    other.mono_zero_ns += 700_000;
    other.real_zero_ns += 700_000;
    let dump = dump(&[
        session(header(1), &[ring(&[(20, EVENT, &[1])])]),
        session(other, &[ring(&[(10, EVENT, &[2])])]),
    ]);
    assert_eq!(order(&dump), [1, 2]);
    assert_ne!(dump.sessions[0].process, dump.sessions[1].process);
    assert_ne!(
        dump.sessions[0].clock.mono_zero_ns,
        dump.sessions[1].clock.mono_zero_ns
    );
}

/// Gives `to` the lines of the graph.
fn each_line(dump: &Dump, mut to: impl FnMut(&GraphLine<'_>)) {
    let (mut graph, mut calls) = (CallGraph::new(CallLimits::default()), Calls::new(None));
    calls.walk(dump, &Filter::new(), |item, steps, depth| {
        graph.take(item, steps, depth as u32, &mut to);
    });
    graph.finish(to);
}

/// The lines of the graph, with the depth of each.
fn graph(dump: &Dump) -> Vec<String> {
    let mut lines = Vec::new();
    each_line(dump, |line| {
        let mut text = Vec::new();
        line.text(&mut text);
        // Exits have a word in these traces, which is their result.
        let text = String::from_utf8(text).unwrap().replace(" = 0x0", "");
        let first = text.split(' ').take(2).collect::<Vec<_>>().join(" ");
        lines.push(format!("{} {first}", line.depth));
    });
    lines
}

#[test]
fn events_of_one_session_stand_inside_the_calls_of_another() {
    let functions = session(
        header(2),
        &[ring(&[
            (10, function_type(0, false), &[0]),
            (30, function_type(1, false), &[0]),
            (50, function_type(1, true), &[0]),
            (90, function_type(0, true), &[0]),
        ])],
    );
    // A span that began in `main`, before `work` was called, and ended inside `work`.
    let events = session(
        header(1),
        &[ring(&[
            (5, EVENT, &[0]),
            (20, EVENT, &[1]),
            (40, EVENT, &[2]),
            (45, SPAN, &[20]),
            (60, EVENT, &[3]),
            (95, EVENT, &[4]),
        ])],
    );
    let expected = [
        "0 /* tick",
        "0 main() {",
        "1 /* tick",
        "1 work() {",
        "2 /* tick",
        "1 /* request",
        "1 }",
        "1 /* tick",
        "0 }",
        "0 /* tick",
    ];
    assert_eq!(graph(&dump(&[events.clone(), functions.clone()])), expected);
    assert_eq!(graph(&dump(&[functions, events])), expected);
}

#[test]
fn a_line_of_a_graph_says_which_process_it_is_of() {
    let main = function_type(0, false);
    let calls = session(header(2), &[ring(&[(10, main, EMPTY)])]);
    let dump = dump(&[calls]);
    let mut labels = Vec::new();
    each_line(&dump, |line| labels.push(line.session.process_label()));
    assert_eq!(labels, ["-/server[4242]"]);
}

/// A long call does not keep more and more lines of other threads waiting for it.
#[test]
fn a_call_gets_braces_when_too_many_lines_would_wait_for_it() {
    let lines_of = |events_per_ring: u32| {
        let (main, left) = (function_type(0, false), function_type(0, true));
        let of_main: &[_] = &[(10, main, EMPTY), (900_000, left, EMPTY)];
        let records: Vec<_> = (0..events_per_ring)
            .map(|n| (20 + n, EVENT, EMPTY))
            .collect();
        let mut rings = vec![ring(of_main)];
        rings.extend((1..=10).map(|slot| Ring {
            slot,
            tid: TID + slot,
            records: &records,
        }));
        graph(&dump(&[session(header(2), &rings)]))
    };
    let few = lines_of(6_500);
    assert_eq!((few.len(), few[0].as_str()), (65_001, "0 main();"));
    let many = lines_of(6_600);
    assert_eq!((many.len(), many[0].as_str()), (66_002, "0 main() {"));
    assert_eq!(many[66_001], "0 } /*", "the end names its call");
}

/// A line of another thread between two braces hides which one the second closes.
#[test]
fn a_brace_after_lines_of_other_threads_names_its_call() {
    let (main, left) = (function_type(0, false), function_type(0, true));
    let of_main: &[_] = &[(10, main, EMPTY), (20, EVENT, EMPTY), (90, left, EMPTY)];
    let of_other: &[_] = &[(50, EVENT, EMPTY)];
    let alone = graph(&dump(&[session(header(2), &[ring(of_main)])]));
    assert_eq!((alone.len(), alone[2].as_str()), (3, "0 }"), "{alone:?}");
    let other = Ring {
        slot: 1,
        tid: TID + 1,
        records: of_other,
    };
    let both = graph(&dump(&[session(header(2), &[ring(of_main), other])]));
    let lines: Vec<_> = both.iter().map(|line| &line[..3]).collect();
    assert_eq!(lines, ["0 m", "1 /", "0 /", "0 }"]);
    assert_eq!(both[3], "0 } /*", "the end names its call");
}

#[test]
fn a_thread_id_that_is_used_again_is_another_thread() {
    const fn thread<'a>(slot: u32, records: &'a [(u32, u32, &'a [u64])]) -> Ring<'a> {
        Ring {
            slot,
            tid: TID,
            records,
        }
    }
    let (main, work, left) = (
        function_type(0, false),
        function_type(1, false),
        function_type(1, true),
    );
    // Killed inside `main`: no exit.
    let first: &[_] = &[(10, main, EMPTY), (15, work, EMPTY)];
    let second: &[_] = &[(50, work, EMPTY), (70, left, EMPTY)];
    let functions = session(header(2), &[thread(0, first), thread(1, second)]);
    let first: &[_] = &[(12, EVENT, EMPTY), (20, EVENT, EMPTY)];
    let second: &[_] = &[(45, EVENT, EMPTY), (60, EVENT, EMPTY)];
    let events = session(header(1), &[thread(0, first), thread(1, second)]);
    let dump = dump(&[events, functions]);
    assert_eq!(
        graph(&dump),
        [
            "0 main() {",
            "1 /* tick",
            "1 work() {",
            "2 /* tick",
            "0 /* tick",
            "0 work() {",
            "1 /* tick",
            "0 }",
        ]
    );
}

#[test]
fn a_span_of_one_session_holds_events_of_another() {
    let outer = session(header(1), &[ring(&[(50, SPAN, &[40])])]);
    let inner = session(
        header(2),
        &[ring(&[
            (5, EVENT, &[0]),
            (20, EVENT, &[1]),
            (40, SPAN, &[10]),
            (60, EVENT, &[3]),
        ])],
    );
    let dump = dump(&[outer, inner]);
    let mut spans = Vec::new();
    dump.events().for_each(|item| {
        if let Output::Event(event) = item {
            spans.push((event.tick - TICK_ZERO, event.span, event.parent));
        }
    });
    let outer = spans.iter().find(|s| s.0 == 50).unwrap().1;
    let own = spans.iter().find(|s| s.0 == 40).unwrap().1;
    assert!(
        outer.is_some() && own.is_some() && outer != own,
        "{spans:?}"
    );
    assert_eq!(
        spans,
        [
            (5, None, None),
            (20, outer, None),
            (40, own, outer),
            (50, outer, None),
            (60, None, None)
        ]
    );
}

#[test]
fn what_each_session_covers_is_told() {
    let mut late = header(2);
    late.mode = Mode::Overwrite as u32;
    let events = session(
        header(1),
        &[ring(&[(0, EVENT, &[0]), (4_000, EVENT, &[1])])],
    );
    // The first 90 reservations of the slot are gone.
    let uuid = Uuid(late.session);
    let mut functions = session(late, &[]);
    let mut page = PageOf::new(3, 90);
    page.header.tick_base = TICK_ZERO + 3_000;
    page.header.tid = TID;
    page.event(0, function_type(0, false), EMPTY);
    page.event(900, function_type(0, true), EMPTY).close();
    page.bytes[..page.header.as_bytes().len()].copy_from_slice(page.header.as_bytes());
    let block = write::page_header(
        uuid,
        RingId(5),
        PageNumber(3),
        page.bytes.len() as u32,
        4096,
        PageState::Sealed,
    );
    write::block(&mut functions, block, &page.bytes).unwrap();
    let dump = dump(&[events, functions]);
    let covers = dump.covers();
    let told = |n: usize| {
        let cover = &covers[n];
        (cover.from_ns, cover.to_ns, cover.overwritten)
    };
    assert_eq!(covers.len(), 2);
    assert_eq!(told(0), (0, 2_000, 0));
    assert_eq!(told(1), (1_500, 1_950, 90));
}

/// Own times of calls, by when they ended, as sums and rows have them.
fn own_times(dump: &Dump) -> Vec<(u64, Option<u64>)> {
    let (mut calls, mut pairs) = (Calls::new(None), SpanPairs::new(dump));
    let mut found = Vec::new();
    for item in dump.events() {
        let Output::Event(event) = &item else {
            continue;
        };
        let _ = pairs.whole(event);
        calls.take_with(&mut pairs, event, |step| {
            if let Step::Left(call) = step {
                found.push((call.left_ns, call.self_ns()));
            }
        });
    }
    found
}

/// The session of the events reaches back less far than that of the functions: which spans were in a call before is
/// not known.
#[test]
fn own_times_where_another_ring_of_the_thread_begins_later() {
    let functions = [
        (100, function_type(0, false), EMPTY),
        (700, function_type(0, true), EMPTY),
        (1000, function_type(0, false), EMPTY),
        (1400, function_type(1, false), EMPTY),
        (1600, function_type(1, true), EMPTY),
        (1800, function_type(0, true), EMPTY),
    ];
    let functions = session(header(1), &[ring(&functions)]);
    let events = [(600, EVENT, EMPTY), (1300, SPAN, &[200][..])];
    let whole = session(header(2), &[ring(&events)]);
    let dump_of = |events: &Vec<u8>| dump(&[functions.clone(), events.clone()]);
    let own = own_times(&dump_of(&whole));
    assert_eq!(own, [(350, Some(300)), (800, Some(100)), (900, Some(200))]);

    let mut header = header(2);
    header.mode = Mode::Overwrite as u32;
    let uuid = Uuid(header.session);
    let mut overwritten = Vec::new();
    write::session(&mut overwritten, uuid, &session_content(header)).unwrap();
    write::schema(&mut overwritten, uuid, 0, &whole_schema()).unwrap();
    let mut page = PageOf::new(3, 40);
    page.header.tid = TID;
    page.header.tick_base = TICK_ZERO + 600;
    for (tick, id, payload) in events {
        page.event(tick - 600, id, payload);
    }
    page.close();
    page.bytes[..page.header.as_bytes().len()].copy_from_slice(page.header.as_bytes());
    let number = PageNumber(3);
    let (bytes, ring) = (page.bytes.len() as u32, RingId(page.header.ring_id));
    let block = write::page_header(
        uuid,
        ring,
        number,
        bytes,
        page.page_bytes,
        PageState::Sealed,
    );
    write::block(&mut overwritten, block, &page.bytes).unwrap();
    let own = own_times(&dump_of(&overwritten));
    assert_eq!(own, [(350, None), (800, Some(100)), (900, Some(200))]);
}

/// Spans of two sessions that end at one tick: what the later one lies in is not known, so it stands beside the other.
#[test]
fn paths_of_two_sessions_with_a_coarse_clock() {
    let of = |copy, start: u64| {
        let mut header = header(copy);
        header.clock = Clock::Coarse as u32;
        session(header, &[ring(&[(700, SPAN, &[2 * (700 - start)])])])
    };
    for starts in [(100, 400), (400, 100)] {
        let both = dump(&[of(1, starts.0), of(2, starts.1)]);
        let paths = both.paths(&Filter::new(), None);
        assert_eq!(paths.unplaced, 1, "{starts:?}");
        let depths: Vec<usize> = paths.paths.iter().map(|path| path.depth).collect();
        assert_eq!(depths, [0], "one name, in nothing: {starts:?}");
    }
}

/// Records of two sessions that share a tick have no order: with a coarse clock what lay in what is not known.
#[test]
fn own_times_of_two_sessions_with_a_coarse_clock() {
    let functions = [
        (100, function_type(0, false), EMPTY),
        (700, function_type(0, true), EMPTY),
    ];
    let events = [(700, SPAN, &[400][..])];
    for (clock, expected) in [(Clock::Tsc, Some(100)), (Clock::Coarse, None)] {
        let of = |copy, records| {
            let mut header = header(copy);
            header.clock = clock as u32;
            session(header, &[ring(records)])
        };
        let both = dump(&[of(1, &events), of(2, &functions)]);
        assert_eq!(own_times(&both), [(350, expected)], "{clock:?}");
        let is_said = ringmark_decoder::unordered_notice(&both).is_some();
        assert_eq!(is_said, expected.is_none(), "{clock:?}");
        let alone = dump(&[of(2, &functions)]);
        assert_eq!(own_times(&alone), [(350, Some(300))], "{clock:?}");
    }
}
