//! Spans, calls and spans over threads lie in each other, in every output by the same rules.

use crate::common;

use std::collections::BTreeMap;

use common::function_schema::{function, function_type, function_types};
use common::*;
use ringmark_decoder::{Chosen, Column, Counted, Dump, Filter, Groups, PathRoot, Paths};
use ringmark_format::attribute::tag;
use ringmark_format::codec::write;
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;

const NEW: u32 = 20;
const ENTER: u32 = 21;
const EXIT: u32 = 22;
const CLOSE: u32 = 23;
const JOB: u32 = 24;
const DB: u32 = 25;

fn more_schema() -> Vec<u8> {
    let [id, duration] = [semantic::SPAN_ID, semantic::DURATION].map(u32::to_le_bytes);
    let id: [(u16, &[u8]); 1] = [(tag::SEMANTIC, &id)];
    let took: [(u16, &[u8]); 1] = [(tag::SEMANTIC, &duration)];
    let field = |name, extra| FieldOf {
        extra,
        ..field(name, Kind::U64, 0)
    };
    let event = |number, name, shape, fields: &[FieldOf<'_>]| {
        event_entry(number, name, Level::Info, shape, fields)
    };
    let (id, took) = ([field("id", &id)], [field("duration", &took)]);
    [
        event(NEW, "request", Shape::SpanNew, &id),
        event(ENTER, "enter", Shape::SpanEnter, &id),
        event(EXIT, "exit", Shape::SpanExit, &id),
        event(CLOSE, "close", Shape::SpanClose, &id),
        event(JOB, "job", Shape::Span, &took),
        event(DB, "db", Shape::Span, &took),
        function(0, "execute"),
        function(1, "parse"),
        function_types(0, 2, 1, 0),
    ]
    .concat()
}

/// A job that calls a function with a span in it, and is for some time in a span over threads in which a
/// function is called.
fn dump() -> Dump {
    let mut bytes = start(Mode::Discard);
    let at = schema().len() as u64;
    write::schema(&mut bytes, SESSION, at, &more_schema()).unwrap();
    let caller = 0x1000 | 1 << 48;
    let mut page = PageOf::new(0, 0);
    page.event(110, function_type(0, false), &[caller]);
    page.event(140, DB, &[20]);
    page.event(160, function_type(0, true), &[]);
    page.event(165, NEW, &[9]);
    page.event(166, ENTER, &[9]);
    page.event(167, function_type(1, false), &[caller]);
    page.event(170, function_type(1, true), &[]);
    page.event(175, EXIT, &[9]);
    page.event(180, CLOSE, &[9]);
    page.event(200, JOB, &[100]);
    page.close().write(true, &mut bytes);
    let dump = read(&bytes).unwrap();
    assert!(dump.damage.is_empty(), "{:?}", dump.damage);
    dump
}

/// Number, total and own time by path.
fn sums(paths: &Paths) -> BTreeMap<String, (u64, u64, u64)> {
    let mut all = BTreeMap::new();
    let mut shown: Vec<String> = Vec::new();
    for path in &paths.paths {
        let name = String::from_utf8_lossy(&paths.names[path.name].name).into_owned();
        shown.push(match path.around {
            Some(around) => format!("{};{name}", shown[around]),
            None => name,
        });
        let sums = path.sums;
        if sums.count > 0 || sums.self_ns > 0 {
            let figures = (sums.count, sums.total_ns, sums.self_ns);
            all.insert(shown[shown.len() - 1].clone(), figures);
        }
    }
    all
}

fn expected(all: &[(&str, (u64, u64, u64))]) -> BTreeMap<String, (u64, u64, u64)> {
    let all = all.iter();
    all.map(|(path, figures)| ((*path).to_owned(), *figures))
        .collect()
}

#[test]
fn spans_and_calls_lie_in_each_other() {
    let dump = dump();
    let paths = dump.paths(&Filter::new(), None);
    assert_eq!(
        sums(&paths),
        expected(&[
            ("job", (1, 100, 41)),
            ("job;execute", (1, 50, 30)),
            ("job;execute;db", (1, 20, 20)),
            ("job;request", (1, 15, 6)),
            ("job;request;parse", (1, 3, 3)),
        ])
    );
    let callees = paths.callees(|name| name.name == b"job");
    assert_eq!(callees.len(), 2, "{callees:?}");
}

#[test]
fn the_table_has_the_own_times_of_the_paths() {
    let dump = dump();
    let figures = dump.figures(Counted::default());
    let spans = figures.spans.iter().map(|of| (&of.name, of.own_ns()));
    let calls = figures.functions.iter().map(|of| (&of.name, of.own_ns()));
    let own: BTreeMap<String, u64> = spans
        .chain(calls)
        .map(|(name, own)| (String::from_utf8_lossy(name).into_owned(), own.unwrap()))
        .collect();
    let expected = [
        ("job", 41),
        ("execute", 30),
        ("db", 20),
        ("request", 6),
        ("parse", 3),
    ];
    let expected = expected.map(|(name, own)| (name.to_owned(), own));
    assert_eq!(own, BTreeMap::from(expected));
}

#[test]
fn stacks_begin_with_their_roots_and_short_ones_are_part_of_those_around() {
    let dump = dump();
    let roots = |root: PathRoot<'_, '_>| match root {
        PathRoot::Thread(event) => vec![b"server".to_vec(), event.comm().to_vec()],
        PathRoot::Process(_) => vec![b"server".to_vec()],
    };
    let found = dump.paths_from(&roots, &Filter::new(), 18);
    assert_eq!(
        sums(&found),
        expected(&[
            ("server;worker;job", (1, 100, 50)),
            ("server;worker;job;execute", (1, 50, 30)),
            ("server;worker;job;execute;db", (1, 20, 20)),
        ])
    );
}

#[test]
fn the_total_of_spans_in_each_other_has_their_time_once() {
    let mut bytes = start(Mode::Discard);
    let at = schema().len() as u64;
    write::schema(&mut bytes, SESSION, at, &more_schema()).unwrap();
    let mut page = PageOf::new(0, 0);
    // A job of 60 with two of 10 in it, and one of 20 beside it.
    page.event(20, JOB, &[10]);
    page.event(40, JOB, &[10]);
    page.event(70, JOB, &[60]);
    page.event(90, JOB, &[20]);
    // A request of 50 with one of 30 in it, both over threads.
    page.event(100, NEW, &[1]);
    page.event(101, ENTER, &[1]);
    page.event(110, NEW, &[2]);
    page.event(140, CLOSE, &[2]);
    page.event(141, EXIT, &[1]);
    page.event(150, CLOSE, &[1]);
    page.close().write(true, &mut bytes);
    let dump = read(&bytes).unwrap();
    let figures = dump.figures(Counted::default());
    let of = |name: &[u8]| {
        let of = figures.spans.iter().find(|of| of.name == name).unwrap();
        (of.spans(), of.total_ns, of.durations.sum_ns())
    };
    assert_eq!(of(b"job"), (4, 80, 100));
    assert_eq!(of(b"request"), (2, 50, 80));
    let by = |column| {
        let mut groups = Groups::new(vec![Column::named(column)]);
        let rows = dump.each_row(Chosen::default(), |row| {
            groups.add(row);
            Ok::<(), ()>(())
        });
        assert!(rows.is_ok());
        let sorted = groups.sorted(|group| group.total_ns);
        let totals = sorted.iter().map(|(_, group)| group.total_ns);
        totals.collect::<Vec<_>>()
    };
    assert_eq!(
        by("name"),
        [80, 80],
        "what spans over threads are in is not looked for"
    );
    assert_eq!(by("thread"), [160]);
}

#[test]
fn rows_summed_up_by_a_column_have_the_same_own_times() {
    let dump = dump();
    for column in ["kind", "name"] {
        let mut groups = Groups::new(vec![Column::named(column)]);
        let rows = dump.each_row_by_pages(Chosen::default(), |row| {
            groups.add(row);
            Ok::<(), ()>(())
        });
        assert!(rows.is_ok());
        let sorted = groups.sorted(|group| group.own_ns);
        let own: Vec<_> = sorted
            .iter()
            .map(|(key, group)| (&key[..], group.own_ns))
            .collect();
        let expected: &[(&[u8], u64)] = match column {
            "kind" => &[(b"span,", 67), (b"call,", 33)],
            _ => &[
                (b"job,", 41),
                (b"execute,", 30),
                (b"db,", 20),
                (b"request,", 6),
                (b"parse,", 3),
            ],
        };
        assert_eq!(own, expected, "all of the job's 100 ns, once");
    }
}
