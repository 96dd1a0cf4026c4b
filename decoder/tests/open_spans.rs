//! Open spans of a trace file: the latest copy counts, what has a record is finished, texts are cut
//! where their frame ends.

use crate::common;
use crate::stored::Stored;

use common::*;
use ringmark_decoder::{Dump, DumpBuilder, Kept, Moment, OpenThread, Value};
use ringmark_format::TypeId;
use ringmark_format::codec::write;
use ringmark_format::ending::Ending;
use ringmark_format::open_span::{ENDED_SESSION, Frame, Head, MOVING, OpenSpans};
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;

const SPAN: u32 = 40;
const NEW: u32 = 41;
const EXIT: u32 = 42;
const CLOSE: u32 = 43;

/// A session with a type of each shape that is open, and its schema.
fn started() -> Vec<u8> {
    let meaning = |semantic: u32| semantic.to_le_bytes();
    let (duration, id) = (meaning(semantic::DURATION), meaning(semantic::SPAN_ID));
    let semantic = ringmark_format::attribute::tag::SEMANTIC;
    let with = |name, meaning: &'static [u8; 4]| FieldOf {
        extra: Box::leak(Box::new([(semantic, &meaning[..])])),
        ..field(name, Kind::U64, 0)
    };
    let [duration, id] = [duration, id].map(|m| &*Box::leak(Box::new(m)));
    let entry = |number, name, shape, fields: &[FieldOf<'_>]| {
        event_entry(number, name, Level::Info, shape, fields)
    };
    let schema = [
        entry(
            SPAN,
            "query",
            Shape::Span,
            &[
                with("duration", duration),
                field("rows", Kind::U64, 8),
                field("table", Kind::Str, 16),
                field("late", Kind::U64, 56),
            ],
        ),
        entry(
            NEW,
            "request",
            Shape::SpanNew,
            &[with("id", id), field("n", Kind::U64, 16)],
        ),
        entry(EXIT, "exit", Shape::SpanExit, &[with("id", id)]),
        entry(CLOSE, "close", Shape::SpanClose, &[with("id", id)]),
    ]
    .concat();
    let mut out = Vec::new();
    write::session(
        &mut out,
        SESSION,
        &session_content(session_header(Mode::Overwrite)),
    )
    .unwrap();
    write::schema(&mut out, SESSION, 0, &schema).unwrap();
    out
}

fn frame(type_id: u32, tick: u64, words: &[u64]) -> Frame {
    let mut payload = [0xDEAD; 6];
    payload[..words.len()].copy_from_slice(words);
    let head = Head {
        type_id: TypeId(type_id),
        words: words.len() as u32,
        serial: 9,
        lexical: false,
    };
    Frame {
        head: head.pack(),
        tick,
        payload,
    }
}

fn stack(ring_id: u64, tick: u64, over: u64, frames: &[Frame], out: &mut Vec<u8>) {
    let header = OpenSpans {
        ring_id,
        tick,
        over,
        tid: 77,
        slot: ring_id as u32,
        thread_name: *b"worker-1\0\0\0\0\0\0\0\0",
        frames: frames.len() as u32,
        flags: if ring_id == 8 { MOVING } else { 0 },
        ring_wait_ns: 0,
    };
    write::open_spans(out, SESSION, &header, frames).unwrap();
}

/// A query of `rows` rows in a table whose name begins in the frame.
fn query(tick: u64, rows: u64) -> Frame {
    frame(
        SPAN,
        tick,
        &[rows, 24 | 20 << 32, u64::from_le_bytes(*b"customer")],
    )
}

fn rows(thread: &OpenThread<'_>) -> Vec<u64> {
    let spans = thread.spans.iter();
    let rows = spans.filter_map(|span| {
        let mut args = span.args();
        args.find_map(|(field, kept)| match kept {
            Kept::Whole(Value::U64(n)) if field.name == b"rows" => Some(n),
            _ => None,
        })
    });
    rows.collect()
}

fn decoded(bytes: &[u8]) -> Dump {
    let dump = read(bytes).unwrap();
    assert!(dump.damage.is_empty(), "{:?}", dump.damage);
    dump
}

#[test]
fn arguments_are_whole_cut_or_not_kept() {
    let mut bytes = started();
    stack(5, 9000, 3, &[query(1500, 7)], &mut bytes);
    end(0, &mut bytes);
    let dump = decoded(&bytes);
    let [thread] = &dump.open_spans()[..] else {
        panic!("one thread");
    };
    assert_eq!(
        (thread.tid, thread.comm, thread.deeper, thread.moving),
        (77, &b"worker-1"[..], 3, false)
    );
    let span = &thread.spans[0];
    assert_eq!((span.since, span.since_ns, span.open_ns), (1500, 500, 7500));
    let args: Vec<_> = span.args().map(|(_, kept)| kept).collect();
    let expected = [
        Kept::Whole(Value::U64(7)),
        Kept::Cut(Value::Str(b"customer")),
        Kept::Not,
    ];
    assert_eq!(args, expected);
    let mut text = Vec::new();
    span.text_args(&mut text);
    assert_eq!(
        String::from_utf8_lossy(&text),
        " rows=7 table=\"customer\"… late=…"
    );
}

/// A span of a process that has died is open until its end, if a reader saw that: the earliest one that did.
#[test]
fn a_span_is_open_until_the_end_that_was_seen() {
    let killed = Ending::of_wait_status(9).unwrap();
    let dead = |seen: &[u64]| {
        let mut bytes = started();
        let frames = [query(1500, 7), query(1700, 8)];
        stack(5, ENDED_SESSION, 0, &frames, &mut bytes);
        for tick in seen {
            write::ending(&mut bytes, SESSION, killed, *tick).unwrap();
        }
        end(0, &mut bytes);
        decoded(&bytes)
    };
    for (seen, moment, open_ns) in [
        (&[0][..], Moment::LastEvent, 200),
        (&[0, 9500, 9900], Moment::End, 8000),
    ] {
        let dump = dead(seen);
        assert_eq!(dump.open_spans()[0].spans[0].open_ns, open_ns);
        let words = dump.last_words();
        assert_eq!((words[0].until, words[0].until_ns), (moment, 500 + open_ns));
        let end = dump.sessions[0].clock.wall_ns(500 + open_ns);
        assert_eq!(
            dump.end_ns(),
            Some(end),
            "the end of the trace is that of its process"
        );
    }
}

#[test]
fn the_latest_copy_counts() {
    let mut bytes = started();
    stack(5, 9000, 0, &[query(1500, 2)], &mut bytes);
    stack(5, 8000, 0, &[query(1500, 1)], &mut bytes);
    stack(8, 8000, 0, &[query(1500, 3)], &mut bytes);
    end(0, &mut bytes);
    let all =
        |bytes: &[u8]| -> Vec<u64> { decoded(bytes).open_spans().iter().flat_map(rows).collect() };
    assert_eq!(all(&bytes), [2]);
    // Read twice, nothing is there twice.
    assert_eq!(all(&[&bytes[..], &bytes].concat()), [2]);
    stack(
        8,
        ENDED_SESSION,
        0,
        &[query(1600, 4), query(1700, 5)],
        &mut bytes,
    );
    assert_eq!(all(&bytes), [4, 5]);
    assert!(decoded(&bytes).open_spans()[0].moving);
    stack(0, ENDED_SESSION, 0, &[], &mut bytes);
    assert_eq!(all(&bytes), [4, 5], "the same copy has more");
    let mut nothing = started();
    stack(5, 9000, 0, &[query(1500, 2)], &mut nothing);
    stack(0, 9500, 0, &[], &mut nothing);
    assert!(all(&nothing).is_empty());
}

#[test]
fn a_span_that_has_a_record_is_finished() {
    let mut bytes = started();
    let mut page = PageOf::new(0, 0);
    // Ended at 1700 after 200, left at 1800.
    page.event(700, SPAN, &[200, 1, 0]).event(800, EXIT, &[99]);
    page.write(false, &mut bytes);
    let entered = |tick, id| frame(NEW, tick, &[id]);
    let frames = [
        query(1500, 1),
        query(1501, 2),
        entered(1750, 99),
        entered(1750, 98),
        entered(1850, 99),
    ];
    stack(5, ENDED_SESSION, 0, &frames, &mut bytes);
    end(2, &mut bytes);
    let dump = decoded(&bytes);
    let threads = dump.open_spans();
    let open: Vec<_> = threads[0]
        .spans
        .iter()
        .map(|s| (s.since, s.span, s.open_ns))
        .collect();
    // The process ended when its last span was entered, for all that is known.
    assert_eq!(
        open,
        [
            (1501, None, 349),
            (1750, Some(98), 100),
            (1850, Some(99), 0)
        ]
    );
}

/// A thread left and closed what another one had entered.
#[test]
fn a_span_that_was_closed_is_open_in_no_thread() {
    let mut bytes = started();
    let mut page = PageOf::new(0, 0);
    page.header.tid = 78;
    page.event(800, EXIT, &[98])
        .event(810, EXIT, &[99])
        .event(820, CLOSE, &[99]);
    page.write(false, &mut bytes);
    let entered = |tick, id| frame(NEW, tick, &[id]);
    // The last one has the number of one that was closed before it began.
    let frames = [entered(1750, 98), entered(1760, 99), entered(1850, 99)];
    stack(6, ENDED_SESSION, 0, &frames, &mut bytes);
    end(3, &mut bytes);
    let dump = decoded(&bytes);
    let open: Vec<_> = dump.open_spans()[0]
        .spans
        .iter()
        .map(|span| (span.since, span.span))
        .collect();
    assert_eq!(open, [(1750, Some(98)), (1850, Some(99))]);
}

/// The pages say what a thread was called when it came, a stack what it was called last.
#[test]
fn a_thread_has_the_name_that_was_seen_last() {
    let mut bytes = started();
    for number in 0..2 {
        let mut page = PageOf::new(number, number);
        page.event(100, SPAN, &[0, 1, 0]);
        page.write(number == 0, &mut bytes);
    }
    stack(5, 8000, 0, &[], &mut bytes);
    end(2, &mut bytes);
    let names = |bytes: &[u8]| -> Vec<String> {
        let dump = decoded(bytes);
        assert!(dump.open_spans().is_empty(), "no span is open");
        let pages = dump.sessions[0].slots.iter().flat_map(|slot| &slot.pages);
        pages
            .map(|page| String::from_utf8_lossy(page.thread_name()).into_owned())
            .collect()
    };
    assert_eq!(names(&bytes), ["worker-1", "worker-1"]);
    stack(6, 9000, 0, &[], &mut bytes);
    assert_eq!(names(&bytes), ["worker", "worker"], "another ring's");
}

/// Pages stay in their file, and are read again where they may say what became of an open span.
#[test]
fn pages_are_read_again_for_open_spans_alone() {
    let reads_again = |frames: &[Frame]| {
        let mut bytes = started();
        let mut page = PageOf::new(0, 0);
        page.event(700, SPAN, &[200, 1, 0]).event(800, EXIT, &[99]);
        page.write(false, &mut bytes);
        stack(5, 9000, 0, frames, &mut bytes);
        end(2, &mut bytes);
        let stored = Stored::new(&bytes);
        let mut builder = DumpBuilder::new();
        stored.read_into(&mut builder);
        let dump = builder.finish();
        std::fs::write(&stored.0, b"").unwrap();
        assert_eq!(dump.open_spans().is_empty(), frames.is_empty());
        !dump.gone().is_empty()
    };
    assert!(reads_again(&[query(1500, 1)]));
    assert!(!reads_again(&[]), "the thread has a name, and no open span");
}

/// A thread without open spans has a block for how long it waited, and verify says the longest.
#[test]
fn the_longest_wait_for_a_ring_is_known() {
    let waited = |waits: &[u64]| {
        let mut bytes = started();
        for (ring_id, ns) in waits.iter().enumerate() {
            let header = OpenSpans {
                ring_id: ring_id as u64 + 1,
                tick: 9000,
                over: 0,
                tid: 77,
                slot: ring_id as u32,
                thread_name: [0; 16],
                frames: 0,
                flags: 0,
                ring_wait_ns: *ns,
            };
            write::open_spans(&mut bytes, SESSION, &header, &[]).unwrap();
        }
        end(0, &mut bytes);
        decoded(&bytes).verify()
    };
    let long = waited(&[3_000_000, 12_000_000, 0]);
    assert_eq!(long.ring_wait_ns, 12_000_000);
    assert!(
        long.to_string().contains("\nring_wait_ns: 12000000: "),
        "{long}"
    );
    assert!(long.to_json().contains("\"ring_wait_ns\":12000000,"));
    let short = waited(&[999_999]);
    assert_eq!(short.ring_wait_ns, 0);
    assert!(!short.to_string().contains("ring_wait"), "{short}");
}

#[test]
fn damaged_stacks_are_told() {
    let mut bytes = started();
    let header = OpenSpans {
        ring_id: 5,
        tick: 1,
        over: 0,
        tid: 77,
        slot: 0,
        thread_name: [0; 16],
        frames: 2,
        flags: 0,
        ring_wait_ns: 0,
    };
    write::open_spans(&mut bytes, SESSION, &header, &[query(1500, 1)]).unwrap();
    let many = OpenSpans {
        frames: u32::MAX,
        ..header
    };
    write::open_spans(&mut bytes, SESSION, &many, &[]).unwrap();
    end(0, &mut bytes);
    let dump = read(&bytes).unwrap();
    assert_eq!(dump.damage.len(), 2);
    assert!(dump.open_spans().is_empty());
}
