//! Sound dumps: what comes out, in which order, with which losses.

use crate::common;

use common::*;
use ringmark_decoder::{Filter, Output, Stats};
use ringmark_format::attribute::tag;
use ringmark_format::codec::write;
use ringmark_format::record::{BUSY, CANCELLED, TIME_EXTEND};
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;

fn small_page() -> PageOf {
    let mut page = PageOf::new(0, 0);
    page.event(5, 16, &[1])
        .event(7, 17, &[1 << 60])
        .span(CANCELLED, 3)
        .event(
            9,
            18,
            &[
                16 | (4 << 32),
                -3i64 as u64,
                u64::from_le_bytes(*b"a\"\x1bb\0\0\0\0"),
            ],
        );
    page
}

#[test]
fn text_and_json_say_what_was_recorded() {
    let mut bytes = start(Mode::Discard);
    small_page().close().write(true, &mut bytes);
    end(4, &mut bytes);
    let dump = read(&bytes).unwrap();
    assert_eq!(
        text(&dump),
        concat!(
            "2026-11-21T01:42:03.000000005Z worker[77] info  app::net: tick n=1\n",
            "2026-11-21T01:42:03.000000007Z worker[77] info  app::net: bytes size=1152921504606846976\n",
            "2026-11-21T01:42:03.000000009Z worker[77] info  app::net: named name=\"a\\\"\\x1bb\" delta=-3\n",
        )
    );
    let lines = json(&dump);
    let mut lines = lines.lines();
    assert_eq!(
        lines.next().unwrap(),
        concat!(
            r#"{"v":2,"session":"07070707-0707-0707-0707-070707070707","host":null,"#,
            r#""service":null,"pid":4242,"ring":5,"tid":77,"thread":"worker","seq":0,"#,
            r#""ts":"2026-11-21T01:42:03.000000005Z","ts_ns":"1795225323000000005","t_ns":5,"#,
            r#""dur_ns":null,"kind":"event","name":"tick","target":"app::net","category":null,"#,
            r#""level":"info","span":null,"parent":null,"flow":null,"trace":null,"#,
            r#""args":{"n":1},"exact":null}"#
        )
    );
    assert!(lines.next().unwrap().ends_with(concat!(
        r#""args":{"size":1152921504606846976},"#,
        r#""exact":{"size":"1152921504606846976"}}"#
    )));
    let third = lines.next().unwrap();
    assert!(
        third.ends_with(r#""args":{"name":"a\"\u001bb","delta":-3},"exact":null}"#),
        "{third}"
    );
    assert!(
        third.contains(r#""seq":3,"#),
        "the cancelled reservation took number 2: {third}"
    );
    let sum = dump.verify();
    assert_eq!((sum.events, sum.cancelled, sum.complete), (3, 1, true));
}

#[test]
fn a_time_extension_gives_the_next_record_its_tick() {
    let mut bytes = start(Mode::Discard);
    let mut page = PageOf::new(0, 0);
    page.event(1, 16, &[0]);
    page.event(0, TIME_EXTEND, &[1000 + (1 << 40)]);
    page.event(0, 16, &[1]).event(3, 16, &[2]);
    page.close().write(true, &mut bytes);
    let dump = read(&bytes).unwrap();
    let times: Vec<u64> = events(&dump).iter().map(|e| e.0).collect();
    assert_eq!(
        times,
        [1, 3, 1 << 40],
        "by time, though the last steps back"
    );
    assert_eq!(dump.verify().backward, 1);
}

/// (t_ns, seq, tid) of every event.
fn events(dump: &ringmark_decoder::Dump) -> Vec<(u64, u64, u32)> {
    let event = |item| match item {
        Output::Event(e) => Some((e.t_ns, e.seq, e.tid())),
        Output::Lost(_) => None,
    };
    dump.events().filter_map(event).collect()
}

#[test]
fn rings_are_merged_by_time_and_ties_stay_in_order() {
    let mut bytes = start(Mode::Discard);
    for ring in 0..3u32 {
        let mut page = PageOf::new(0, 0);
        page.header.ring_id = u64::from(ring);
        page.header.slot = ring;
        page.header.tid = ring;
        for i in 0..50 {
            page.event(i * 7 % (5 + ring) + i * 3, 16, &[0]);
        }
        page.close().write(true, &mut bytes);
    }
    let dump = read(&bytes).unwrap();
    let all = events(&dump);
    let mut items = dump.events();
    let stepped = std::iter::from_fn(|| items.next()).count();
    assert_eq!(all.len(), stepped, "next() and fold() give the same");
    let mut expected = all.clone();
    expected.sort_by_key(|(t, seq, ring)| (*t, *ring, *seq));
    assert_eq!(all.len(), 150);
    assert_eq!(all, expected);
}

#[test]
fn a_step_back_into_an_earlier_page_is_sorted_too() {
    let mut bytes = start(Mode::Discard);
    for number in 0..4u64 {
        let mut page = PageOf::new(number, 2 * number);
        page.header.tick_base = 1000 * number;
        page.event(500, 16, &[0]);
        let held = if number == 2 {
            1200
        } else {
            1000 * number + 600
        };
        page.event(0, TIME_EXTEND, &[held]).event(0, 16, &[1]);
        page.close().write(true, &mut bytes);
    }
    let seqs: Vec<u64> = events(&read(&bytes).unwrap()).iter().map(|e| e.1).collect();
    assert_eq!(seqs, [0, 1, 5, 2, 3, 4, 6, 7]);
}

#[test]
fn overwritten_events_are_counted_and_fine() {
    let mut bytes = start(Mode::Overwrite);
    PageOf::new(9, 900)
        .event(1, 16, &[0])
        .close()
        .write(true, &mut bytes);
    end(901, &mut bytes);
    let sum = read(&bytes).unwrap().verify();
    assert_eq!((sum.overwritten, sum.lost, sum.missing), (900, 0, 0));
    assert!(sum.complete && sum.is_clean());
}

#[test]
fn a_fuller_copy_fills_holes_and_the_same_one_is_dropped() {
    let mut bytes = start(Mode::Discard);
    let mut early = PageOf::new(0, 0);
    early.event(1, 16, &[1]).span(BUSY, 2).event(3, 16, &[3]);
    early.write(false, &mut bytes);
    let mut late = PageOf::new(0, 0);
    late.event(1, 16, &[1])
        .event(2, 16, &[2])
        .event(3, 16, &[3])
        .event(4, 16, &[4]);
    late.write(false, &mut bytes);
    early.write(false, &mut bytes);
    late.write(false, &mut bytes);
    late.close().write(true, &mut bytes);
    end(4, &mut bytes);
    let dump = read(&bytes).unwrap();
    let sum = dump.verify();
    assert_eq!((sum.events, sum.uncommitted, sum.repeated), (4, 0, 2));
    assert!(sum.complete, "{sum}");
}

#[test]
fn copies_that_differ_are_a_conflict() {
    let mut bytes = start(Mode::Discard);
    PageOf::new(0, 0)
        .event(1, 16, &[1])
        .close()
        .write(true, &mut bytes);
    PageOf::new(0, 0)
        .event(1, 16, &[2])
        .close()
        .write(true, &mut bytes);
    end(1, &mut bytes);
    let sum = read(&bytes).unwrap().verify();
    assert_eq!((sum.events, sum.conflicts, sum.complete), (1, 1, false));
    let said = sum.damage[0].to_string();
    assert!(
        said.contains(
            "page 0 of ring 5: two copies of the page differ at offset 104: 0x2, kept 0x1"
        ),
        "{said}"
    );
}

/// A session with spans in spans, and with a request that is entered and left.
fn with_spans() -> Vec<u8> {
    let number = |semantic: u32| semantic.to_le_bytes();
    let (duration, span, parent) = (
        number(semantic::DURATION),
        number(semantic::SPAN_ID),
        number(semantic::PARENT_ID),
    );
    let mut bytes = Vec::new();
    write::session(
        &mut bytes,
        SESSION,
        &session_content(session_header(Mode::Discard)),
    )
    .unwrap();
    let with = |name, offset, meaning| FieldOf {
        extra: meaning,
        ..field(name, Kind::U64, offset)
    };
    let took: &[(u16, &[u8])] = &[(tag::SEMANTIC, &duration)];
    let id: &[(u16, &[u8])] = &[(tag::SEMANTIC, &span)];
    let of: &[(u16, &[u8])] = &[(tag::SEMANTIC, &parent)];
    let entry =
        |n, name, shape, fields: &[FieldOf<'_>]| event_entry(n, name, Level::Debug, shape, fields);
    let stream = [
        entry(16, "point", Shape::Instant, &[]),
        entry(17, "work", Shape::Span, &[with("ticks", 0, took)]),
        entry(
            18,
            "request",
            Shape::SpanNew,
            &[with("id", 0, id), with("of", 8, of)],
        ),
        entry(19, "enter", Shape::SpanEnter, &[with("id", 0, id)]),
        entry(20, "exit", Shape::SpanExit, &[with("id", 0, id)]),
    ];
    write::schema(&mut bytes, SESSION, 0, &stream.concat()).unwrap();
    let mut page = PageOf::new(0, 0);
    page.event(10, 16, &[]) // in inner
        .event(12, 17, &[4]) // inner: 8..12
        .event(15, 16, &[]) // in outer
        .event(20, 17, &[15]) // outer: 5..20
        .event(30, 18, &[9, 0]) // request 9
        .event(31, 19, &[9])
        .event(32, 16, &[]) // in request 9
        .event(33, 20, &[9])
        .event(34, 16, &[]); // in nothing
    page.close().write(true, &mut bytes);
    bytes
}

#[test]
fn spans_know_what_they_lie_in() {
    let dump = read(&with_spans()).unwrap();
    let all: Vec<_> = dump
        .events()
        .filter_map(|item| match item {
            Output::Event(e) => Some((
                e.name().to_vec(),
                e.span,
                e.parent,
                e.duration_ns(),
                e.start_ns(),
            )),
            Output::Lost(_) => None,
        })
        .collect();
    let (inner, outer) = (all[1].1, all[3].1);
    assert!(inner.is_some() && outer.is_some() && inner != outer);
    assert_eq!((all[0].1, all[2].1), (inner, outer));
    assert_eq!((all[1].2, all[1].3, all[1].4), (outer, Some(4), 8));
    assert_eq!((all[3].2, all[3].3), (None, Some(15)));
    assert_eq!((all[5].0.as_slice(), all[5].1), (&b"request"[..], Some(9)));
    assert_eq!((all[6].1, all[8].1), (Some(9), None));
    let lines = json(&dump);
    assert!(lines.contains(r#""dur_ns":4,"kind":"span","name":"work""#));
    assert!(
        lines.contains(r#""span":"0x0000000000000009","parent":"#),
        "{lines}"
    );
}

#[test]
fn an_event_names_its_parent_where_no_span_is_recorded() {
    let mut bytes = Vec::new();
    let header = session_content(session_header(Mode::Discard));
    write::session(&mut bytes, SESSION, &header).unwrap();
    let parent = FieldOf {
        extra: &[(tag::SEMANTIC, &semantic::PARENT_ID.to_le_bytes())],
        ..field("of", Kind::U64, 0)
    };
    let said = event_entry(16, "said", Level::Info, Shape::Instant, &[parent]);
    let span = event_entry(17, "work", Level::Info, Shape::Span, &[]);
    write::schema(&mut bytes, SESSION, 0, &[said, span].concat()).unwrap();
    let mut page = PageOf::new(0, 0);
    page.event(10, 16, &[6]);
    page.close().write(true, &mut bytes);
    let dump = read(&bytes).unwrap();
    let found = dump.events().find_map(|item| match item {
        Output::Event(event) => Some((event.span, event.parent)),
        Output::Lost(_) => None,
    });
    assert_eq!(found, Some((None, Some(6))));
}

#[test]
fn schema_pieces_join_overlap_and_unknown_types_are_shown_raw() {
    let mut bytes = Vec::new();
    write::session(
        &mut bytes,
        SESSION,
        &session_content(session_header(Mode::Discard)),
    )
    .unwrap();
    let schema = schema();
    write::schema(&mut bytes, SESSION, 64, &schema[64..]).unwrap();
    write::schema(&mut bytes, SESSION, 0, &schema[..128]).unwrap();
    PageOf::new(0, 0)
        .event(1, 16, &[1])
        .event(2, 999, &[0x0102])
        .close()
        .write(true, &mut bytes);
    let dump = read(&bytes).unwrap();
    assert!(dump.damage.is_empty(), "{:?}", dump.damage);
    let text = text(&dump);
    assert!(
        text.contains("tick n=1\n") && text.contains("type#999 raw=0201000000000000\n"),
        "{text}"
    );
    let stats = Stats::collect(dump.events());
    assert_eq!(stats.types.len(), 2);
    assert_eq!((stats.rings.len(), stats.rings[0].events), (1, 2));
}

#[test]
fn two_inputs_two_sessions_one_container() {
    let plain = three_pages();
    let mut packed = Vec::new();
    write::container(
        &mut packed,
        SESSION,
        ringmark_format::block::codec::DELTA_SHUFFLE_LZ4,
        &plain,
    )
    .unwrap();
    assert!(packed.len() * 2 < plain.len());
    let mut builder = ringmark_decoder::DumpBuilder::new();
    builder.read("a", packed.as_slice()).unwrap();
    let alone = text(&read(&plain).unwrap());
    builder.read("b", plain.as_slice()).unwrap();
    let dump = builder.finish();
    assert_eq!(text(&dump), alone);
    assert_eq!((dump.repeated, dump.verify().complete), (3, true));
}

#[test]
fn filters_choose() {
    let dump = read(&three_pages()).unwrap();
    let count = |set: &dyn Fn(&mut Filter)| {
        let mut filter = Filter::new();
        set(&mut filter);
        dump.events()
            .filter(|item| filter.passes_item(item))
            .count()
    };
    let all = count(&|_| {});
    assert_eq!(all, 750);
    assert_eq!(
        count(&|f| {
            f.name("t?c*");
        }),
        375
    );
    assert_eq!(
        count(&|f| {
            f.name("app::*::bytes");
        }),
        375
    );
    assert_eq!(
        count(&|f| {
            f.condition("n>=10").unwrap().condition("n<20").unwrap();
        }),
        5
    );
    assert_eq!(
        count(&|f| {
            f.tid("78").unwrap();
        }),
        0
    );
    assert_eq!(
        count(&|f| {
            f.level("warn").unwrap();
        }),
        0
    );
    assert_eq!(
        count(&|f| {
            f.from("1us").unwrap();
        }),
        500
    );
    assert_eq!(
        count(&|f| {
            f.to("2026-11-21T01:42:03.000001Z").unwrap();
        }),
        250
    );
    let wrong = Filter::new().condition("=3").unwrap_err().to_string();
    assert!(wrong.contains("found \"=3\" at character 1"), "{wrong}");
    assert!(Filter::new().from("soon").is_err());
    assert_eq!(dump.closest_names("tock", 1), ["tick"]);
}
