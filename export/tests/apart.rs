//! What belongs to one process, or to one span, stays apart from what has its number or name.

use crate::common;
use crate::packets;

use common::*;
use packets::flows;
use ringmark_export::{Cut, Format, Plan, write, write_ctf};
use ringmark_format::Uuid;
use ringmark_format::attribute::tag;
use ringmark_format::codec::write as blocks;
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;

const FLOW: u32 = 30;

/// The schema of a flow, and of the life of a span that has a field `polls`.
fn more_schema() -> Vec<u8> {
    let [flow, id] = [semantic::FLOW, semantic::SPAN_ID].map(u32::to_le_bytes);
    let of = |name, at, semantic| FieldOf {
        extra: semantic,
        ..field(name, Kind::U64, at)
    };
    let flow: [(u16, &[u8]); 1] = [(tag::SEMANTIC, &flow)];
    let id: [(u16, &[u8]); 1] = [(tag::SEMANTIC, &id)];
    let new = [of("id", 0, &id), field("polls", Kind::U64, 8)];
    let part =
        |number, name, shape| event_entry(number, name, Level::Info, shape, &[of("id", 0, &id)]);
    [
        event_entry(
            FLOW,
            "job",
            Level::Info,
            Shape::Flow,
            &[of("flow", 0, &flow)],
        ),
        event_entry(31, "new", Level::Info, Shape::SpanNew, &new),
        part(32, "enter", Shape::SpanEnter),
        part(33, "exit", Shape::SpanExit),
        part(34, "close", Shape::SpanClose),
    ]
    .concat()
}

/// A session of a process of its own, with what `fill` writes.
fn session(number: u8, fill: impl FnOnce(&mut PageOf), out: &mut Vec<u8>) {
    let uuid = Uuid([number; 16]);
    let mut header = session_header(Mode::Discard);
    (header.session, header.pid) = (uuid.0, number.into());
    blocks::session(out, uuid, &session_content(header)).unwrap();
    blocks::schema(out, uuid, 0, &[schema(), more_schema()].concat()).unwrap();
    let mut page = PageOf::new(0, 0);
    page.session = uuid;
    fill(&mut page);
    page.close().write(true, out);
}

fn perfetto(trace: &[u8]) -> Vec<u8> {
    let dump = read(trace).unwrap();
    let mut out = Vec::new();
    let plan = Plan::new(&dump, Cut::default());
    write(&plan, Format::Perfetto, &mut out, |_, _| {}).unwrap();
    out
}

#[test]
fn flows_of_two_processes_with_one_number_are_two_flows() {
    let mut trace = Vec::new();
    for process in [1, 2] {
        let fill = |page: &mut PageOf| {
            for at in 1..=4 {
                page.event(at, FLOW, &[u64::from(at % 2)]);
            }
        };
        session(process, fill, &mut trace);
    }
    let found = flows(&perfetto(&trace));
    assert_eq!(found.len(), 8);
    let mut apart = found.clone();
    apart.sort_unstable();
    apart.dedup();
    assert_eq!(apart.len(), 4, "two flows in each process: {found:?}");
    for flow in apart {
        let ends = found.iter().filter(|other| **other == flow).count();
        assert_eq!(ends, 2, "both ends of {flow}");
    }
}

#[test]
fn a_field_of_the_program_keeps_its_name_and_value() {
    let mut trace = Vec::new();
    let fill = |page: &mut PageOf| {
        page.event(1, 31, &[7, 4]);
        page.event(2, 32, &[7]);
        page.event(3, 33, &[7]);
        page.event(4, 34, &[7]);
    };
    session(1, fill, &mut trace);
    let out = perfetto(&trace);
    let count = |name: &[u8]| out.windows(name.len()).filter(|part| *part == name).count();
    // Names of arguments stand in the file once each, with a number.
    assert_eq!(count(b"polls of the span"), 1);
    assert_eq!(
        count(b"polls"),
        2,
        "its own field, and the figure of the span"
    );
    assert_eq!(count(b"busy_ns"), 1);
    assert_eq!(count(b"busy_ns of the span"), 0);
}

#[test]
fn an_event_that_no_reader_of_ctf_takes_is_left_out_and_counted() {
    let mut trace = Vec::new();
    let fill = |page: &mut PageOf| {
        page.event(1, 16, &[1]);
        page.header.tick_base = u64::MAX / 2 + 1_000_000;
    };
    session(
        1,
        |page| {
            page.event(1, 16, &[1]);
        },
        &mut trace,
    );
    session(2, fill, &mut trace);
    let dump = read(&trace).unwrap();
    let plan = Plan::new(&dump, Cut::default());
    let folder = std::env::temp_dir().join(format!("ringmark-ctf-{}", std::process::id()));
    let written = write_ctf(&plan, &folder, |_, _| {}).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(written.shown.instants, 1);
    let left: u64 = written.left_out.iter().map(|(_, events)| events).sum();
    assert_eq!(left, 1, "{:?}", written.left_out);
}
