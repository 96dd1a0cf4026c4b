//! What a sample of pages says of a session: events that were not looked at are estimated, those that
//! were looked at before do not count again.

use crate::common;

use common::*;
use ringmark_decoder::{Sampled, SampledKind, SampledName, Samples};
use ringmark_format::codec::write;
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;

const EVENT: u32 = 16;
const SPAN: u32 = 17;

/// Session and schema: events, and spans with their duration.
fn preamble() -> Vec<u8> {
    let duration = semantic::DURATION.to_le_bytes();
    let extra: &[(u16, &[u8])] = &[(ringmark_format::attribute::tag::SEMANTIC, &duration)];
    let took = FieldOf {
        extra,
        ..field("duration", Kind::U64, 0)
    };
    let schema = [
        event_entry(EVENT, "tick", Level::Info, Shape::Instant, &[]),
        event_entry(SPAN, "db", Level::Info, Shape::Span, &[took]),
    ]
    .concat();
    let mut out = Vec::new();
    let session = session_content(session_header(Mode::Overwrite));
    write::session(&mut out, SESSION, &session).unwrap();
    write::schema(&mut out, SESSION, 0, &schema).unwrap();
    out
}

/// Page `number` of a slot, its first event being the `first`: a tick, then spans of these durations.
fn page(slot: u32, number: u64, first: u64, spans: &[u64], out: &mut Vec<u8>) {
    let mut page = PageOf::new(number, first);
    page.header.slot = slot;
    page.header.ring_id = 5 + u64::from(slot);
    page.header.tid = 70 + slot;
    page.event(0, EVENT, &[]);
    for (place, took) in spans.iter().enumerate() {
        page.event(1000 * (place as u32 + 1), SPAN, &[*took]);
    }
    page.close().write(true, out);
}

fn of(sampled: &Sampled, kind: SampledKind) -> &SampledName {
    let mut names = sampled.names.iter().filter(|name| name.kind == kind);
    let found = names.next().expect("it was met");
    assert!(names.next().is_none(), "{sampled:?}");
    found
}

#[test]
fn what_was_not_looked_at_is_estimated_ring_by_ring() {
    let mut samples = Samples::default();
    let nothing = read(&preamble()).unwrap();
    let first = samples.take(&nothing, [(0, 100), (1, 10)].into_iter());
    assert_eq!(first, None, "there was no look before");
    let mut blocks = preamble();
    // A page with 3 of the 300 new events of slot 0, and one with all 3 of slot 1.
    page(0, 9, 397, &[10, 30], &mut blocks);
    page(1, 1, 10, &[500, 500], &mut blocks);
    let dump = read(&blocks).unwrap();
    let sampled = samples
        .take(&dump, [(0, 400), (1, 13)].into_iter())
        .unwrap();
    assert_eq!((sampled.events, sampled.looked_at), (303, 6));
    let spans = of(&sampled, SampledKind::Span);
    assert_eq!(
        (spans.name.as_slice(), spans.target.as_slice()),
        (&b"db"[..], &b"app::net"[..])
    );
    assert_eq!((spans.count, spans.timed), (202.0, 202.0));
    assert_eq!(spans.total_ns, 100.0 * 40.0 + 1000.0);
    assert_eq!(spans.max_ns, 500);
    assert_eq!(spans.mean_ns(), Some(5000.0 / 202.0));
    // They are not nested, and lie in their pages: all of it is their own.
    assert_eq!(spans.self_ns(), Some(5000.0));
    let ticks = of(&sampled, SampledKind::Event);
    assert_eq!((ticks.count, ticks.timed), (101.0, 0.0));
    assert_eq!((ticks.mean_ns(), ticks.self_ns()), (None, None));
}

#[test]
fn a_page_that_has_grown_counts_with_what_is_new() {
    let mut samples = Samples::default();
    let mut blocks = preamble();
    page(0, 0, 0, &[10], &mut blocks);
    let _ = samples.take(&read(&blocks).unwrap(), [(0, 2)].into_iter());
    let mut blocks = preamble();
    page(0, 0, 0, &[10, 20, 30], &mut blocks);
    let sampled = samples.take(&read(&blocks).unwrap(), [(0, 4)].into_iter());
    let sampled = sampled.unwrap();
    assert_eq!((sampled.events, sampled.looked_at), (2, 2));
    assert_eq!(of(&sampled, SampledKind::Span).total_ns, 50.0);
    assert_eq!(sampled.names.len(), 1, "the tick was there before");
    // A slot that is new has only new events, and totals that go back are no events.
    let mut blocks = preamble();
    page(7, 0, 0, &[], &mut blocks);
    let sampled = samples.take(&read(&blocks).unwrap(), [(0, 1), (7, 1)].into_iter());
    let sampled = sampled.unwrap();
    assert_eq!((sampled.events, sampled.looked_at), (1, 1));
    // Nothing is new.
    let sampled = samples.take(&read(&blocks).unwrap(), [(0, 1), (7, 1)].into_iter());
    assert_eq!(sampled, Some(Sampled::default()));
}
