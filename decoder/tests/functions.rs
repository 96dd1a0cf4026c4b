//! Function records: their names, their callers, and the calls they make together.

use crate::common;

use common::function_schema::{function, function_types, module, tracer};
use common::*;
use ringmark_decoder::{
    Call, CallGraph, CallJsonWriter, CallLimits, Calls, Dump, Ended, Filter, Output, Profile, Step,
};
use ringmark_format::codec::write;
use ringmark_format::function::{FunctionType, TIMED};
use ringmark_format::session::Mode;

const MAIN: u32 = 0;
const WORK: u32 = 1;
const LEAF: u32 = 2;

/// Types 0, 1, 2: main, work and leaf for tracer 0; 10, 11, 12: for both tracers; 20, …: whole
/// calls for tracer 1.
fn function_schema() -> Vec<u8> {
    [
        module("/usr/bin/server"),
        function(MAIN, "main"),
        function(WORK, "_ZN4pool4workEi"),
        function(LEAF, "leaf"),
        function_types(0, 3, 0b01, 0),
        function_types(10, 3, 0b11, 0),
        function_types(20, 3, 0b10, TIMED),
        tracer(),
    ]
    .concat()
}

fn ty(number: u32, exit: bool, loose: bool) -> u32 {
    FunctionType {
        number,
        exit,
        loose,
        has_slot: false,
    }
    .pack()
}

const fn caller(address: u64, cpu: u64) -> u64 {
    address | ((cpu + 1) << 48)
}

fn dump_of(fill: impl FnOnce(&mut PageOf)) -> Dump {
    let mut bytes = start(Mode::Discard);
    let at = schema().len() as u64;
    write::schema(&mut bytes, SESSION, at, &function_schema()).unwrap();
    let mut page = PageOf::new(0, 0);
    fill(&mut page);
    page.close().write(true, &mut bytes);
    let dump = read(&bytes).unwrap();
    assert!(dump.damage.is_empty(), "{:?}", dump.damage);
    dump
}

fn calls<'d>(dump: &'d Dump, tracers: Option<u64>) -> (Vec<Call<'d>>, usize) {
    let mut calls = Calls::new(tracers.map(|bits| vec![bits]));
    let mut ended = Vec::new();
    for item in dump.events() {
        if let Output::Event(event) = item {
            calls.take(&event, |step| {
                if let Step::Left(call) | Step::Whole(call) = step {
                    ended.push(call);
                }
            });
        }
    }
    let open = calls.open().count();
    (ended, open)
}

#[test]
fn lines_name_functions_and_callers() {
    let dump = dump_of(|page| {
        page.event(5, ty(1, false, false), &[caller(0x101c, 1), 7, 8]);
        page.event(6, ty(2, false, false), &[caller(0x1800, 0)]);
        page.event(7, ty(2, true, false), &[42]);
        page.event(8, ty(1, true, true), &[]);
        page.event(9, ty(99, false, false), &[]);
    });
    let lines = text(&dump);
    let lines: Vec<_> = lines.lines().map(|line| &line[31..]).collect();
    assert_eq!(
        lines,
        [
            "CPU 1: worker:77 pool::work(int)+0x0/0x40 <-- main+0x1c/0x40 arg1=0x7 arg2=0x8",
            "CPU 0: worker:77 leaf+0x0/0x40 <-- server+0x800",
            "worker:77 leaf+0x0/0x40 returned result=0x2a",
            "worker:77 pool::work(int)+0x0/0x40 unwound",
            "worker[77] -     function#99",
        ]
    );
    let objects = json(&dump);
    let first = objects.lines().next().unwrap();
    assert!(
        first.ends_with(concat!(
            r#""kind":"function_entry","name":"pool::work(int)","target":"server","category":null,"#,
            r#""level":null,"span":null,"parent":null,"flow":null,"trace":null,"#,
            r#""args":{"cpu":1,"caller":"main+0x1c/0x40","arg1":7,"arg2":8},"exact":null}"#
        )),
        "{first}"
    );
}

#[test]
fn functions_are_among_the_closest_names() {
    let dump = dump_of(|page| {
        page.event(0, ty(WORK, false, false), &[caller(0x1000, 0)]);
        page.event(9, ty(WORK, true, false), &[]);
    });
    // "tick" and "blob" are types without an event here, and no call of "main" is here.
    assert_eq!(dump.closest_names("pool::wrk", 9), ["pool::work(int)"]);
    let types = dump.closest_types("tck", 9);
    assert_eq!(types.first().map(String::as_str), Some("tick"));
    assert!(
        types
            .iter()
            .all(|name| !name.is_empty() && !name.contains("work")),
        "{types:?}"
    );
}

#[test]
fn calls_nest_with_their_durations() {
    let dump = dump_of(|page| {
        page.event(10, ty(MAIN, false, false), &[]);
        page.event(20, ty(WORK, false, false), &[]);
        page.event(30, ty(LEAF, false, false), &[]);
        page.event(35, ty(LEAF, true, false), &[]);
        page.event(50, ty(WORK, true, false), &[]);
        page.event(90, ty(MAIN, true, false), &[]);
    });
    let (ended, open) = calls(&dump, None);
    let short: Vec<_> = ended
        .iter()
        .map(|c| (c.id, c.depth, c.duration_ns().unwrap(), c.children_ns))
        .collect();
    assert_eq!(
        short,
        [(LEAF, 2, 5, 0), (WORK, 1, 30, 5), (MAIN, 0, 80, 30)]
    );
    assert_eq!(open, 0);
}

#[test]
fn exits_that_are_missing_or_alone_are_told_apart() {
    let dump = dump_of(|page| {
        page.event(5, ty(LEAF, true, false), &[]); // entered before the dump began
        page.event(10, ty(MAIN, false, false), &[]);
        page.event(20, ty(WORK, false, false), &[]); // its exit was lost
        page.event(30, ty(LEAF, false, true), &[]); // has none
        page.event(40, ty(MAIN, true, true), &[]);
        page.event(50, ty(WORK, false, false), &[]); // still open
    });
    let (ended, open) = calls(&dump, None);
    let short: Vec<_> = ended
        .iter()
        .map(|c| (c.id, c.entered_ns, c.ended))
        .collect();
    assert_eq!(
        short,
        [
            (LEAF, None, Ended::Returned),
            (WORK, Some(20), Ended::Unseen),
            (MAIN, Some(10), Ended::Unwound),
        ]
    );
    assert_eq!(open, 1);
}

#[test]
fn each_tracer_sees_its_own() {
    let dump = dump_of(|page| {
        page.event(10, ty(MAIN, false, false), &[]);
        page.event(20, ty(10 + WORK, false, false), &[]);
        page.event(30, ty(20 + LEAF, true, false), &[4]);
        page.event(40, ty(10 + WORK, true, false), &[]);
        page.event(50, ty(MAIN, true, false), &[]);
    });
    let ids = |tracers| -> Vec<u32> { calls(&dump, tracers).0.iter().map(|c| c.id).collect() };
    assert_eq!(ids(Some(0b01)), [WORK, MAIN]);
    assert_eq!(ids(Some(0b10)), [LEAF, WORK]);
    assert_eq!(ids(Some(0b100)), []);
    let tracers = dump.sessions[0].schema.functions().tracers();
    let names: Vec<_> = tracers.map(|(n, t)| (n, t.name.clone())).collect();
    assert_eq!(names, [(0, b"calls".to_vec())]);
}

#[test]
fn whole_calls_count_for_the_calls_around_them() {
    let dump = dump_of(|page| {
        page.event(30, ty(20 + LEAF, true, false), &[5]);
        page.event(60, ty(20 + LEAF, true, false), &[10]);
        page.event(90, ty(20 + WORK, true, false), &[70]);
        page.event(99, ty(20 + LEAF, true, false), &[2]);
    });
    let (ended, _) = calls(&dump, None);
    let short: Vec<_> = ended
        .iter()
        .map(|c| (c.id, c.duration_ns().unwrap(), c.children_ns))
        .collect();
    assert_eq!(
        short,
        [(LEAF, 5, 0), (LEAF, 10, 0), (WORK, 70, 15), (LEAF, 2, 0)]
    );
    assert!(
        text(&dump)
            .lines()
            .next()
            .unwrap()
            .ends_with("leaf+0x0/0x40 took=5ns")
    );
}

#[test]
fn a_profile_counts_recursion_once() {
    let dump = dump_of(|page| {
        page.event(10, ty(WORK, false, false), &[]);
        page.event(20, ty(WORK, false, false), &[]);
        page.event(25, ty(LEAF, false, false), &[]);
        page.event(30, ty(LEAF, true, false), &[]);
        page.event(40, ty(WORK, true, false), &[]);
        page.event(50, ty(WORK, true, false), &[]);
        page.event(60, ty(WORK, false, false), &[]);
        page.event(63, ty(WORK, true, true), &[]);
    });
    let mut profile = Profile::default();
    for call in calls(&dump, None).0 {
        profile.add(&dump.sessions[0], &call, None);
    }
    let functions = profile.finish();
    let work = &functions[0];
    assert_eq!(
        (work.name.as_slice(), work.module.as_slice()),
        (&b"pool::work(int)"[..], &b"server"[..])
    );
    assert_eq!((work.calls, work.not_returned), (3, 1));
    assert_eq!((work.total_ns, work.self_ns), (43, 38));
    let percentiles = [1, 50, 99, 100].map(|p| work.durations.percentile_ns(p));
    assert_eq!(
        (work.durations.mean_ns(), percentiles),
        (21, [3, 20, 40, 40])
    );
    assert_eq!((functions[1].calls, functions[1].total_ns), (1, 5));
}

/// Calls that end in every way, with an event between them.
fn mixed_calls() -> Dump {
    dump_of(|page| {
        page.event(5, ty(LEAF, true, false), &[]); // entered before the first record
        page.event(10, ty(MAIN, false, false), &[]);
        page.event(20, ty(WORK, false, false), &[]);
        page.event(22, ty(99, false, false), &[]);
        page.event(25, ty(LEAF, false, true), &[]); // no exit comes
        page.event(28, ty(20 + LEAF, true, false), &[2]); // a whole call
        page.event(50, ty(WORK, true, true), &[]);
        page.event(60, ty(WORK, false, false), &[]); // its exit is not there
        page.event(90, ty(MAIN, true, false), &[]);
        page.event(95, ty(WORK, false, false), &[]); // still open
    })
}

/// Walks the calls of a dump; `to` gets each item with its steps and the depth before it.
fn steps<'d>(dump: &'d Dump, mut to: impl FnMut(&Output<'d>, &[Step<'d>], u32)) {
    let mut calls = Calls::new(None);
    for item in dump.events() {
        let mut steps = Vec::new();
        let mut depth = 0;
        if let Output::Event(event) = &item {
            depth = calls.depth(event) as u32;
            calls.take(event, |step| steps.push(step));
        }
        to(&item, &steps, depth);
    }
}

fn call_lines<'d>(dump: &'d Dump, mut writer: CallJsonWriter<'d>) -> String {
    let mut lines = Vec::new();
    steps(dump, |item, steps, _| {
        let Output::Event(event) = item else { return };
        for step in steps {
            writer.write(event, step, &mut lines);
        }
    });
    writer.finish(&mut lines);
    String::from_utf8(lines).unwrap()
}

#[test]
fn calls_are_objects_with_the_keys_of_events() {
    let dump = mixed_calls();
    let lines = call_lines(&dump, CallJsonWriter::new(CallLimits::default()));
    let lines: Vec<_> = lines.lines().collect();
    let unwound = concat!(
        r#"{"v":2,"session":"07070707-0707-0707-0707-070707070707","host":null,"service":null,"#,
        r#""pid":4242,"ring":5,"tid":77,"thread":"worker","ts":"2026-11-21T01:42:03.000000020Z","#,
        r#""ts_ns":"1795225323000000020","t_ns":20,"dur_ns":30,"kind":"call","#,
        r#""name":"pool::work(int)","target":"server","depth":1,"self_ns":28,"running_ns":null,"ready_ns":null,"throttled_ns":null,"waiting_ns":null,"waits":null,"preemptions":null,"ended":"unwound"}"#
    );
    assert_eq!((lines.len(), lines[3]), (7, unwound));
    // In the order of their ends.
    let leaf = r#""name":"leaf","target":"server""#;
    let work = r#""name":"pool::work(int)","target":"server""#;
    let main = r#""name":"main","target":"server""#;
    let expected = [
        (leaf, ["null", "null"], ("0", "null", "returned")),
        (leaf, ["25", "null"], ("2", "null", "unseen")),
        // One record: what of that kind is around it comes later.
        (leaf, ["26", "2"], ("null", "2", "returned")),
        (work, ["20", "30"], ("1", "28", "unwound")),
        (work, ["60", "30"], ("1", "30", "unseen")),
        (main, ["10", "80"], ("0", "20", "returned")),
        (work, ["95", "null"], ("0", "null", "open")),
    ];
    for (line, (name, [start, took], (depth, own, ended))) in lines.iter().zip(expected) {
        let tail = format!(
            r#""t_ns":{start},"dur_ns":{took},"kind":"call",{name},"depth":{depth},"self_ns":{own},"running_ns":null,"ready_ns":null,"throttled_ns":null,"waiting_ns":null,"waits":null,"preemptions":null,"ended":"{ended}"}}"#
        );
        assert!(line.ends_with(&tail), "{line}, expected {tail}");
    }
    let start = r#""ts":null,"ts_ns":null,"t_ns":null,"dur_ns":null,"#;
    assert!(lines[0].contains(start), "{}", lines[0]);
    let short = CallLimits {
        depth: Some(2),
        min_ns: Some(31),
    };
    let lines = call_lines(&dump, CallJsonWriter::new(short));
    assert_eq!(lines.lines().count(), 1, "{lines}");
    assert!(lines.contains(r#""name":"main""#), "{lines}");
}

#[test]
fn a_call_of_one_record_may_be_unwound() {
    let dump = dump_of(|page| {
        page.event(20, ty(22, true, true), &[5]);
        page.event(40, ty(21, true, false), &[30]);
    });
    let (ended, _) = calls(&dump, None);
    let found = ended
        .iter()
        .map(|call| (call.id, call.ended, call.self_ns()));
    let expected = [
        (LEAF, Ended::Unwound, Some(5)),
        (WORK, Ended::Returned, Some(25)),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert!(ended.iter().all(|call| call.known_depth().is_none()));
}

/// Depth, duration and text of each line of a graph of the calls that `limits` allow.
fn graph_lines(dump: &Dump, limits: CallLimits) -> Vec<(u32, Option<u64>, String)> {
    let mut lines = Vec::new();
    let mut add = |line: &ringmark_decoder::GraphLine<'_>| {
        let mut text = Vec::new();
        line.text(&mut text);
        let text = String::from_utf8(text).unwrap();
        lines.push((line.depth, line.duration_ns(), text));
    };
    let mut graph = CallGraph::new(limits);
    steps(dump, |item, steps, depth| {
        graph.take(item, steps, depth, &mut add);
    });
    graph.finish(add);
    lines
}

#[test]
fn a_graph_nests_calls_in_braces() {
    let dump = mixed_calls();
    let of = |(depth, ns, text): (u32, Option<u64>, &str)| (depth, ns, text.to_owned());
    // What has nothing inside it has one line. Whatever its end was like, it is said there.
    let expected = [
        (0, None, "} /* leaf() */"),
        (0, None, "main() {"),
        (1, None, "pool::work(int) {"),
        (2, None, "/* function#99 */"),
        (2, None, "leaf();"),
        (2, Some(2), "leaf();"),
        (1, Some(30), "} /* unwound */"),
        (
            1,
            Some(30),
            "pool::work(int); /* its exit was not recorded */",
        ),
        (0, Some(80), "}"),
        (0, None, "pool::work(int) {"),
    ];
    assert_eq!(graph_lines(&dump, CallLimits::default()), expected.map(of));
    // What is left out does not keep the call around it open.
    let limits = CallLimits {
        depth: Some(2),
        min_ns: Some(31),
    };
    let left: Vec<_> = graph_lines(&dump, limits)
        .into_iter()
        .map(|(_, _, text)| text)
        .collect();
    assert_eq!(left, ["} /* leaf() */", "main();", "pool::work(int) {"]);
}

#[test]
fn names_of_functions_are_found_as_they_are_shown() {
    let dump = dump_of(|page| {
        page.event(1, ty(1, false, false), &[caller(0x1000, 0)]);
        page.event(2, ty(1, true, false), &[]);
    });
    for (pattern, found) in [
        ("pool::work(int)", 2),
        ("pool::*", 2),
        ("*::work*", 2),
        ("server::pool::work(int)", 2),
        ("pool::other", 0),
    ] {
        let mut filter = Filter::new();
        filter.name(pattern);
        let passed = dump.events().filter(|item| filter.passes_item(item));
        assert_eq!(passed.count(), found, "{pattern}");
    }
}
