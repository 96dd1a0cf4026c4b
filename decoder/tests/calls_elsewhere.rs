//! Calls on stacks that are not their thread's own: paired by their slots, nested by them.

use crate::common;

use common::function_schema::{function, function_types, module};
use common::*;
use ringmark_decoder::{Call, CallGraph, CallLimits, Calls, Dump, Ended, Filter, Output, Step};
use ringmark_format::codec::write;
use ringmark_format::function::FunctionType;
use ringmark_format::session::Mode;

const MAIN: u32 = 0;
const WORK: u32 = 1;
const LEAF: u32 = 2;
/// Slots on two stacks far from each other, and further in on the first.
const OUTER: u64 = 0x7000_8000;
const INNER: u64 = OUTER - 0x100;
const OTHER: u64 = 0x7100_8000;

fn ty(number: u32, exit: bool, loose: bool, has_slot: bool) -> u32 {
    let ty = FunctionType {
        number,
        exit,
        loose,
        has_slot,
    };
    ty.pack()
}

fn enter(number: u32) -> u32 {
    ty(number, false, false, true)
}

fn leave(number: u32) -> u32 {
    ty(number, true, false, true)
}

fn dump_of(fill: impl FnOnce(&mut PageOf)) -> Dump {
    let mut bytes = start(Mode::Discard);
    let functions = [
        module("/usr/bin/server"),
        function(MAIN, "main"),
        function(WORK, "work"),
        function(LEAF, "leaf"),
        function_types(0, 3, 1, 0),
    ];
    let at = schema().len() as u64;
    write::schema(&mut bytes, SESSION, at, &functions.concat()).unwrap();
    let mut page = PageOf::new(0, 0);
    fill(&mut page);
    page.close().write(true, &mut bytes);
    let dump = read(&bytes).unwrap();
    assert!(dump.damage.is_empty(), "{:?}", dump.damage);
    dump
}

fn walked(dump: &Dump) -> (Vec<Call<'_>>, Calls<'_>) {
    let (mut calls, mut ended) = (Calls::new(None), Vec::new());
    for item in dump.events() {
        if let Output::Event(event) = item {
            calls.take(&event, |step| match step {
                Step::Left(call) | Step::Whole(call) => ended.push(call),
                Step::Entered { .. } => {}
            });
        }
    }
    (ended, calls)
}

/// Function, depth, duration, own time.
fn figures(calls: &[Call<'_>]) -> Vec<(u32, u32, Option<u64>, Option<u64>)> {
    let figures = calls.iter();
    let figures = figures.map(|c| (c.id, c.depth, c.duration_ns(), c.self_ns()));
    figures.collect()
}

/// Two coroutines take turns inside a call of the thread's own.
fn taking_turns() -> Dump {
    dump_of(|page| {
        page.event(10, ty(MAIN, false, false, false), &[]);
        page.event(20, enter(WORK), &[OUTER]);
        page.event(30, enter(LEAF), &[INNER]);
        page.event(40, enter(WORK), &[OTHER]);
        page.event(60, leave(LEAF), &[INNER]);
        page.event(70, leave(WORK), &[OTHER]);
        page.event(90, leave(WORK), &[OUTER]);
        page.event(95, ty(MAIN, true, false, false), &[]);
    })
}

#[test]
fn they_end_in_any_order() {
    let dump = taking_turns();
    let (ended, calls) = walked(&dump);
    let ns = |ticks: u64| Some(ticks * 10);
    let unit = ended[0].duration_ns().unwrap() / 30;
    let all: Vec<_> = figures(&ended)
        .into_iter()
        .map(|(id, depth, took, own)| {
            (
                id,
                depth,
                took.map(|t| t / unit * 10),
                own.map(|t| t / unit * 10),
            )
        })
        .collect();
    assert_eq!(
        all,
        [
            (LEAF, 2, ns(30), ns(30)),
            (WORK, 1, ns(30), ns(30)),
            (WORK, 1, ns(70), ns(40)),
            // Both coroutines began and ended in it, and overlap.
            (MAIN, 0, ns(85), ns(15)),
        ]
    );
    assert!(ended.iter().all(|call| call.ended == Ended::Returned));
    assert_eq!(calls.open().count(), 0);
}

#[test]
fn a_call_of_the_same_function_around_one_is_a_recursion() {
    let dump = dump_of(|page| {
        page.event(10, enter(WORK), &[OUTER]);
        page.event(20, enter(WORK), &[INNER]);
        page.event(25, enter(WORK), &[OTHER]);
        page.event(30, leave(WORK), &[INNER]);
        page.event(40, leave(WORK), &[OUTER]);
        page.event(50, leave(WORK), &[OTHER]);
    });
    let (ended, _) = walked(&dump);
    let recursive: Vec<_> = ended.iter().map(|call| call.recursive).collect();
    assert_eq!(
        recursive,
        [true, false, false],
        "another stack is no recursion"
    );
}

#[test]
fn a_slot_that_is_used_again_ends_what_had_it() {
    let dump = dump_of(|page| {
        page.event(10, enter(WORK), &[OUTER]);
        page.event(20, enter(LEAF), &[INNER]);
        // The stack was freed, and another begins there.
        page.event(30, enter(LEAF), &[OUTER]);
        page.event(40, leave(LEAF), &[OUTER]);
        page.event(50, leave(WORK), &[INNER]);
    });
    let (ended, calls) = walked(&dump);
    let how: Vec<_> = ended.iter().map(|call| (call.id, call.ended)).collect();
    assert_eq!(
        how,
        [
            (WORK, Ended::Unseen),
            (LEAF, Ended::Returned),
            (WORK, Ended::Returned),
        ]
    );
    assert_eq!(
        ended[2].entered_ns, None,
        "of another function than the entry"
    );
    let open: Vec<_> = calls.open_elsewhere().map(|call| call.id).collect();
    assert_eq!(open, [LEAF]);
}

#[test]
fn a_graph_has_a_line_for_each() {
    let dump = taking_turns();
    let (mut graph, mut lines) = (CallGraph::new(CallLimits::default()), Vec::new());
    let mut keep = |line: &ringmark_decoder::GraphLine<'_>| {
        let mut text = vec![b' '; 2 * line.depth as usize];
        line.text(&mut text);
        lines.push(String::from_utf8(text).unwrap());
    };
    let mut calls = Calls::new(None);
    calls.walk(&dump, &Filter::default(), |item, steps, depth| {
        graph.take(item, steps, depth as u32, &mut keep);
    });
    graph.finish(keep);
    let expected = ["main() {", "    leaf();", "  work();", "  work();", "}"];
    assert_eq!(lines, expected);
}

#[test]
fn paths_begin_with_the_outermost_call_of_the_stack() {
    let dump = taking_turns();
    let paths = dump.paths(&Filter::default(), None);
    let name = |place: usize| String::from_utf8(paths.names[place].name.clone()).unwrap();
    let of = |path: &ringmark_decoder::Path| {
        let around = path.around.map(|place| name(paths.paths[place].name));
        (around, name(path.name), path.sums.count)
    };
    let mut all: Vec<_> = paths.paths.iter().map(of).collect();
    all.sort();
    let expected = [
        (None, "main", 1),
        (None, "work", 2),
        (Some("work"), "leaf", 1),
    ];
    let expected =
        expected.map(|(around, name, n)| (around.map(str::to_owned), name.to_owned(), n));
    assert_eq!(all, expected);
}
