//! The page holds what the trace holds, and nothing in it that a program recorded can do anything.

use crate::common;
use crate::corpus;
use crate::page;

use common::*;
use corpus::{corpus, is_harmful, trace};
use page::{Page, Slice};
use ringmark_decoder::{Dump, escape};
use ringmark_export::{About, Cut, Plan, write_html};
use ringmark_format::attribute::tag;
use ringmark_format::codec::write as blocks;
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;

fn html(dump: &Dump) -> String {
    let plan = Plan::new(dump, Cut::default());
    let about = About {
        title: "</script> & \"\u{2028}".to_owned(),
        ..About::default()
    };
    let mut out = Vec::new();
    let written = write_html(&plan, &about, &mut out, |_, _| {}).unwrap();
    assert_eq!(written.bytes, out.len() as u64);
    String::from_utf8(out).unwrap()
}

fn shown(text: &[u8]) -> String {
    let mut out = Vec::new();
    escape::text(text, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_hostile_text_changes_nothing_but_the_data() {
    let mut frames = Vec::new();
    for text in corpus() {
        let whole = html(&read(&trace(&text)).unwrap());
        let (page, frame) = Page::read(&whole);
        frames.push(frame);
        let slices: Vec<&Slice> = page.tracks.iter().flatten().flatten().collect();
        let span = slices.iter().find(|slice| slice.end > slice.start).unwrap();
        assert_eq!((span.end - span.start, span.flags), (5, 0));
        assert_eq!(span.name, shown(&text[..text.len().min(1000)]));
        let args = span.args.as_ref().unwrap();
        let quoted = shown(&text).replace('"', "\\\"");
        assert!(args.contains(&quoted), "{args}");
        let texts = slices.iter().flat_map(|s| [Some(&s.name), s.args.as_ref()]);
        let harmful = texts.flatten().find(|text| text.chars().any(is_harmful));
        assert_eq!(harmful, None);
        let tracks = page.meta["tracks"].as_array().unwrap().iter();
        let counters = tracks.filter(|track| track[4] == 1 && track[5] != "");
        assert_eq!(counters.count(), 1, "a counter has a line of its own");
        assert_eq!(slices.len(), 3, "a span, an event, a counter's value");
    }
    frames.dedup();
    assert_eq!(
        frames.len(),
        1,
        "the page around the data is always the same"
    );
    assert!(frames[0].contains("default-src 'none'"));
    let outside = ["http:", "https:", "src=", "fetch(", "innerHTML", "eval("];
    assert_eq!(outside.map(|word| frames[0].contains(word)), [false; 6]);
}

#[test]
fn rows_are_those_of_the_trace() {
    let dump = read(&three_pages_without_one()).unwrap();
    let (page, _) = Page::read(&html(&dump));
    let found = dump.verify();
    let slices = page.tracks.iter().flatten().flatten();
    assert_eq!(slices.count() as u64, found.events);
    let losses = page.meta["losses"].as_array().unwrap();
    let lost: u64 = losses.iter().map(|loss| loss[4].as_u64().unwrap()).sum();
    assert_eq!(lost, found.lost + found.overwritten + found.missing);
    assert!(lost > 0);
    for loss in losses {
        let (from, to) = (loss[2].as_u64().unwrap(), loss[3].as_u64().unwrap());
        assert!(from <= to && to <= page.meta["length"].as_u64().unwrap());
    }
}

/// The beginning of a span is only known from its end, which is a record after the loss.
#[test]
fn a_loss_begins_at_the_last_record_before_it_and_not_at_a_span_that_ends_after_it() {
    let duration = semantic::DURATION.to_le_bytes();
    let field = FieldOf {
        extra: &[(tag::SEMANTIC, &duration[..])],
        ..field("took", Kind::U64, 0)
    };
    let span = event_entry(20, "work", Level::Info, Shape::Span, &[field]);
    let mut out = start(Mode::Discard);
    blocks::schema(&mut out, SESSION, schema().len() as u64, &span).unwrap();
    let mut before = PageOf::new(0, 0);
    before.event(10, 16, &[1]);
    before.close().write(true, &mut out);
    let mut after = PageOf::new(2, 9);
    after.event(100, 20, &[1500]);
    after.close().write(true, &mut out);
    end(10, &mut out);
    let (page, _) = Page::read(&html(&read(&out).unwrap()));
    let slices: Vec<&Slice> = page.tracks.iter().flatten().flatten().collect();
    let of = |name| *slices.iter().find(|slice| slice.name == name).unwrap();
    let (last, span) = (of("tick").start, of("work"));
    let loss = &page.meta["losses"][0];
    assert_eq!((loss[2].as_u64(), loss[4].as_u64()), (Some(last), Some(8)));
    assert!(last < span.start && span.start < loss[3].as_u64().unwrap());
}

/// Three pages of one ring, of which the second one is not there.
fn three_pages_without_one() -> Vec<u8> {
    let mut out = start(Mode::Discard);
    for (number, first) in [(0, 0), (2, 10)] {
        let mut page = PageOf::new(number, first);
        page.event(10, 16, &[1]);
        page.event(10, 16, &[2]);
        page.close().write(true, &mut out);
    }
    end(12, &mut out);
    out
}

/// Two spans over threads, one in the other, that a thread is in twice.
#[test]
fn spans_over_threads_say_what_is_around_them_and_when_threads_were_in_them() {
    let id = semantic::SPAN_ID.to_le_bytes();
    let id = FieldOf {
        extra: &[(tag::SEMANTIC, &id[..])],
        ..field("id", Kind::U64, 0)
    };
    let part = |number, name, shape| {
        event_entry(number, name, Level::Info, shape, std::slice::from_ref(&id))
    };
    let more = [
        part(20, "outer", Shape::SpanNew),
        part(21, "inner", Shape::SpanNew),
        part(22, "enter", Shape::SpanEnter),
        part(23, "exit", Shape::SpanExit),
        part(24, "close", Shape::SpanClose),
    ];
    let mut out = start(Mode::Discard);
    blocks::schema(&mut out, SESSION, schema().len() as u64, &more.concat()).unwrap();
    let mut page = PageOf::new(0, 0);
    for (at, ty, span) in [
        (10, 20, 1),
        (20, 22, 1),
        (30, 21, 2),
        (40, 22, 2),
        (50, 23, 2),
        (60, 23, 1),
        (70, 22, 1),
        (75, 24, 2),
        (80, 23, 1),
        (90, 24, 1),
    ] {
        page.event(at, ty, &[span]);
    }
    page.close().write(true, &mut out);
    end(10, &mut out);
    let (page, _) = Page::read(&html(&read(&out).unwrap()));
    let all: Vec<&Slice> = page.tracks.iter().flatten().flatten().collect();
    let lives: Vec<_> = all.iter().filter(|slice| slice.flags == 0).collect();
    let name = |slice: &Slice| slice.link.map(|around| &all[around as usize].name[..]);
    let mut shown: Vec<_> = lives.iter().map(|s| (&s.name[..], name(s))).collect();
    shown.sort_unstable();
    assert_eq!(shown, [("inner", Some("outer")), ("outer", None)]);
    let mut stays: Vec<_> = all.iter().filter(|slice| slice.flags == 4).collect();
    stays.sort_by_key(|slice| slice.start);
    let first = stays[0].start;
    let stays: Vec<_> = stays
        .iter()
        .map(|s| (&s.name[..], s.start - first, s.end - s.start, name(s)))
        .collect();
    assert_eq!(
        stays,
        [
            ("outer", 0, 40, Some("outer")),
            ("inner", 20, 10, Some("inner")),
            ("outer", 50, 10, Some("outer")),
        ]
    );
}

/// Two spans that began and ended at the same times, each of which names the other as the one around it.
#[test]
fn spans_that_say_they_are_around_each_other_make_no_circle() {
    let [id, parent] = [semantic::SPAN_ID, semantic::PARENT_ID].map(u32::to_le_bytes);
    let [id, parent]: [[(u16, &[u8]); 1]; 2] = [[(tag::SEMANTIC, &id)], [(tag::SEMANTIC, &parent)]];
    let of = |name, at, extra| FieldOf {
        extra,
        ..field(name, Kind::U64, at)
    };
    let new = [of("id", 0, &id), of("parent", 8, &parent)];
    let more = [
        event_entry(20, "new", Level::Info, Shape::SpanNew, &new),
        event_entry(24, "close", Level::Info, Shape::SpanClose, &new[..1]),
    ];
    let mut out = start(Mode::Discard);
    blocks::schema(&mut out, SESSION, schema().len() as u64, &more.concat()).unwrap();
    let mut page = PageOf::new(0, 0);
    page.event(10, 20, &[1, 2]);
    page.event(10, 20, &[2, 1]);
    page.event(50, 24, &[1]);
    page.event(50, 24, &[2]);
    page.close().write(true, &mut out);
    end(4, &mut out);
    let (page, _) = Page::read(&html(&read(&out).unwrap()));
    let all: Vec<&Slice> = page.tracks.iter().flatten().flatten().collect();
    assert_eq!(all.len(), 2);
    let linked = all.iter().filter(|slice| slice.link.is_some());
    assert_eq!(
        linked.count(),
        1,
        "one of them is around the other: {all:?}"
    );
}
