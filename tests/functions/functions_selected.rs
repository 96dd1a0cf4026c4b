//! Promise: a function tracer records exactly the calls up to a depth, inside a function, or leading to one, whichever
//! way they are entered and left. The model: the trace of all calls, from which the same rule chooses.

use std::collections::{BTreeMap, BTreeSet};

use crate::calls;

use calls::{DISCARD, ENTRIES, Program, RETURNS, XRAY, clang};
use ringmark_decoder::{Calls, Dump, Event, FunctionWords, Output, Step};
use ringmark_tests::binary::built;
use ringmark_tests::compiler::can_build;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{self, SITES, compile, ringmark, start, tool};
use ringmark_tests::json_schema::checked;
use ringmark_tests::{is_long, require_tools, run, wait_until};

/// A call, and what a trace says of it.
#[derive(Debug, Clone)]
struct Call {
    name: String,
    /// The call around it, by its index.
    around: Option<usize>,
    /// The innermost call on its thread's own stack when it began.
    began_in: Option<usize>,
    /// Whether it is on another stack.
    is_elsewhere: bool,
    thread: u32,
    /// The place of its end among all; `None`: it has none.
    ended: Option<usize>,
}

/// The calls of a trace, in the order in which they began.
#[derive(Debug, Default)]
struct Trace {
    calls: Vec<Call>,
    /// Open calls by thread, and those on other stacks by slot.
    open: BTreeMap<u32, Vec<usize>>,
    elsewhere: BTreeMap<u64, usize>,
    ends: usize,
}

/// Bytes between a call on another stack and the one around it at most.
const REACH: u64 = 16 << 10;

impl Trace {
    fn of(dump: &Dump) -> Self {
        let mut trace = Self::default();
        for item in dump.events() {
            match item {
                Output::Event(event) => trace.take(&event),
                Output::Lost(lost) => panic!("lost: {:?}", lost.loss),
            }
        }
        trace
    }

    fn take(&mut self, event: &Event<'_>) {
        let meaning = event.ty.function.expect("a function record");
        let functions = event.session.schema.functions();
        let function = functions.function(meaning.function).expect("a function");
        let name = String::from_utf8_lossy(&function.name);
        let name = name.split('.').next().unwrap_or_default().to_owned();
        let slot = FunctionWords::read(meaning, &event.payload).slot;
        let thread = event.thread();
        if meaning.timed {
            return self.add_whole(name, thread);
        }
        if meaning.exit {
            return self.end(slot, thread);
        }
        let open = self.open.entry(thread).or_default();
        let mut near = slot
            .map(|slot| self.elsewhere.range(slot + 1..slot + REACH))
            .into_iter()
            .flatten();
        let began_in = open.last().copied();
        let around = near.next().map(|(_, call)| *call).or(began_in);
        let number = self.calls.len();
        match slot {
            Some(slot) => drop(self.elsewhere.insert(slot, number)),
            None if meaning.loose => {}
            None => open.push(number),
        }
        self.calls.push(Call {
            name,
            around,
            began_in,
            is_elsewhere: slot.is_some(),
            thread,
            ended: None,
        });
    }

    fn end(&mut self, slot: Option<u64>, thread: u32) {
        let open = self.open.entry(thread).or_default();
        let ended = match slot {
            Some(slot) => self.elsewhere.remove(&slot),
            None => open.pop(),
        };
        self.calls[ended.expect("its entry")].ended = Some(self.ends);
        self.ends += 1;
    }

    fn add_whole(&mut self, name: String, thread: u32) {
        self.calls.push(Call {
            name,
            around: None,
            began_in: None,
            is_elsewhere: false,
            thread,
            ended: Some(self.ends),
        });
        self.ends += 1;
    }

    /// Names and levels of the calls that are selected, thread by thread. `inside`: the lowest level of all
    /// but these functions is 1.
    fn selected(&self, depth: usize, inside: Option<&str>) -> Vec<Vec<(String, usize)>> {
        // The level that calls inside this one have.
        let mut inner: Vec<usize> = Vec::new();
        let mut threads: BTreeMap<u32, Vec<(String, usize)>> = BTreeMap::new();
        for call in &self.calls {
            let level = call.around.map_or(0, |around| inner[around]);
            let least = usize::from(inside.is_some_and(|name| call.name != name));
            let is_selected = (least..depth).contains(&level);
            inner.push(level + usize::from(is_selected));
            if is_selected {
                let thread = threads.entry(call.thread).or_default();
                thread.push((call.name.clone(), level));
            }
        }
        sorted(threads)
    }

    /// Names of the calls that have ended and led to one of `function`: those around it, and where it was on another
    /// stack, those of the thread that ran it. In the order of their ends, thread by thread.
    fn leading_to(&self, function: &str) -> Vec<Vec<String>> {
        let mut leading = BTreeSet::new();
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            if call.name == function {
                self.add_around(Some(number), &mut leading);
                self.add_around(call.began_in, &mut leading);
            }
        }
        self.ended(|number| leading.contains(&number))
    }

    /// Adds this call and those around it on the same stack.
    fn add_around(&self, mut next: Option<usize>, leading: &mut BTreeSet<usize>) {
        while let Some(call) = next {
            leading.insert(call);
            let is_same =
                |outer: &usize| self.calls[*outer].is_elsewhere == self.calls[call].is_elsewhere;
            next = self.calls[call].around.filter(is_same);
        }
    }

    fn ended(&self, is_wanted: impl Fn(usize) -> bool) -> Vec<Vec<String>> {
        let mut order: Vec<_> = (0..self.calls.len())
            .filter(|number| is_wanted(*number) && self.calls[*number].ended.is_some())
            .collect();
        order.sort_by_key(|number| self.calls[*number].ended);
        let mut threads: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for call in order.into_iter().map(|number| &self.calls[number]) {
            let thread = threads.entry(call.thread).or_default();
            thread.push(call.name.clone());
        }
        sorted(threads)
    }
}

/// Threads have no order of their own.
fn sorted<T: Ord>(threads: BTreeMap<u32, Vec<T>>) -> Vec<Vec<T>> {
    let mut threads: Vec<_> = threads.into_values().collect();
    threads.sort();
    threads
}

/// Every form of patch sites, each with its compiler.
fn forms() -> Vec<(String, String)> {
    let mut forms = Vec::new();
    if require_tools(&["gcc"]) {
        forms.push(("gcc".to_owned(), format!("-O2 {ENTRIES}")));
        forms.push((
            "gcc".to_owned(),
            format!("-O2 -fno-pie -no-pie -mnop-mcount {RETURNS}"),
        ));
        if is_long() {
            forms.push(("gcc".to_owned(), format!("-O0 {ENTRIES}")));
        }
    }
    let xray = format!("-O2 {XRAY}");
    let clang = clang().filter(|clang| can_build(clang, &xray));
    forms.extend(clang.map(|clang| (clang, xray)));
    forms
}

const PARTS: [&str; 5] = ["calls", "jumps", "signals", "coroutines", "threads"];

/// What is recorded of a part, which does what it does untraced.
fn traced(program: &Program, wishes: &str, part: &str) -> Trace {
    let wishes = format!("{wishes};filter=*@{}", program.name());
    let finished = program.run_as(DISCARD, &wishes, part);
    let mut plain = program.fixture().command(program.path());
    let plain = run(plain.arg(part), calls::LIMIT).expect("a program");
    assert_eq!(
        finished.stdout_text(),
        plain.stdout_text(),
        "{}",
        program.build
    );
    Trace::of(&program.recorded())
}

/// Compares what was recorded with what the model chooses, for each part of the program.
fn compare(also: impl Fn(&Program, &str, &Trace)) {
    for (compiler, flags) in forms() {
        for part in PARTS {
            let program = Program::new(&compiler, "selected.c", &flags);
            let all = traced(&program, "tracer=graph", part);
            assert!(all.calls.len() > 20, "{part}: {all:?}");
            also(&program, part, &all);
        }
    }
}

#[test]
fn calls_up_to_a_depth() {
    compare(|program, part, all| {
        let depths = [2, 3, 1, 5, 100];
        for &depth in &depths[..if is_long() { 5 } else { 2 }] {
            let told = format!("{} {part}, depth {depth}", program.build);
            let program = program.again();
            let found = traced(&program, &format!("tracer=graph;max_depth={depth}"), part);
            assert_eq!(
                found.selected(usize::MAX, None),
                all.selected(depth, None),
                "{told}"
            );
            assert!(found.calls.len() <= all.calls.len(), "{told}");
        }
    });
}

#[test]
fn calls_inside_a_function() {
    compare(|program, part, all| {
        let depths = [(usize::MAX, ""), (2, ";max_depth=2"), (1, ";max_depth=1")];
        let functions = ["root", "resume", "catch_jump", "tail_middle", "nothing"];
        let long = is_long();
        for (depth, lines) in &depths[..if long { 3 } else { 2 }] {
            for function in &functions[..if long { 5 } else { 3 }] {
                let told = format!("{} {part}, {function}, depth {depth}", program.build);
                let program = program.again();
                let wishes = format!("tracer=graph;inside={function}{lines}");
                let found = traced(&program, &wishes, part);
                let expected = all.selected(*depth, Some(function));
                assert_eq!(found.selected(usize::MAX, None), expected, "{told}");
            }
        }
    });
}

#[test]
fn calls_that_lead_to_a_function() {
    compare(|program, part, all| {
        let functions = ["root", "fall", "leaf", "nothing"];
        for function in &functions[..if is_long() { 4 } else { 2 }] {
            let told = format!("{} {part}, {function}", program.build);
            let program = program.again();
            let found = traced(&program, &format!("tracer=graph;caller={function}"), part);
            assert_eq!(found.ended(|_| true), all.leading_to(function), "{told}");
        }
    });
}

#[test]
fn calls_that_exceptions_leave() {
    if !require_tools(&["g++"]) {
        return;
    }
    let flags = format!("-O2 -fnon-call-exceptions {ENTRIES}");
    let program = Program::new("g++", "calls_exceptions.cc", &flags);
    let all = traced(&program, "tracer=graph", "");
    for (lines, depth, inside) in [
        ("max_depth=2", 2, None),
        ("max_depth=4", 4, None),
        ("inside=catcher", usize::MAX, Some("catcher(int, int)")),
    ] {
        let found = traced(&program.again(), &format!("tracer=graph;{lines}"), "");
        assert_eq!(
            found.selected(usize::MAX, None),
            all.selected(depth, inside),
            "{lines}"
        );
    }
}

/// Rust's sites lie inside the functions.
#[test]
fn calls_of_rust_functions() {
    let program = Program::at(built("functions-sites"));
    let all = traced(&program, "tracer=graph", "10");
    for depth in [1, 2, 3] {
        let wishes = format!("tracer=graph;max_depth={depth}");
        let found = traced(&program.again(), &wishes, "10");
        assert_eq!(
            found.selected(usize::MAX, None),
            all.selected(depth, None),
            "{depth}"
        );
    }
}

/// The number of calls of each function among these.
fn counted(threads: Vec<Vec<(String, usize)>>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (name, _) in threads.into_iter().flatten() {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// What `ringmark run WORDS` records of a part.
fn ran(program: &Program, words: &str, part: &str) -> BTreeMap<String, u64> {
    let dump = program.fixture().path("run.rmk");
    let mut command = tool(program.fixture());
    command.args(["run", "-o"]).arg(&dump);
    command.args(words.split_whitespace()).arg("--");
    command.arg(program.path()).arg(part);
    let _ = run(&mut command, calls::LIMIT)
        .expect("ringmark")
        .expect_code(0);
    functions::calls(program.fixture(), "", &dump)
}

#[test]
fn every_kind_selects_the_same_calls() {
    for (compiler, flags) in forms() {
        let program = Program::new(&compiler, "selected.c", &flags);
        for part in PARTS {
            let all = traced(&program.again(), "tracer=graph", part);
            for kind in ["graph", "function", "profile"] {
                let told = format!("{} {part}, {kind}", program.build);
                let own = format!("--kind {kind} -F *");
                let found = ran(&program, &format!("{own} --max-depth 3"), part);
                assert_eq!(found, counted(all.selected(3, None)), "{told}");
                let found = ran(&program, &format!("{own} --inside root -D 2"), part);
                assert_eq!(found, counted(all.selected(2, Some("root"))), "{told}");
            }
        }
    }
}

/// Where the compiler left no sites.
#[test]
fn calls_of_a_program_as_it_is() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let prepared = Program::new("gcc", "selected.c", &format!("-O2 {ENTRIES}"));
    let program = Program::new("gcc", "selected.c", "-O2 -fpatchable-function-entry=0");
    let names = "-F main -F branch -F leaf";
    for part in ["calls", "signals", "coroutines", "threads"] {
        let wishes = "tracer=graph;filter=main;filter=branch;filter=leaf;filter=root";
        let all = prepared.again();
        let _ = all.run_as(DISCARD, wishes, part);
        let all = Trace::of(&all.recorded());
        let found = ran(
            &program,
            &format!("--kind graph {names} -F root -D 3"),
            part,
        );
        assert_eq!(found, counted(all.selected(3, None)), "{part}");
        // The function is traced, though it is not among the names.
        let found = ran(
            &program,
            &format!("--kind graph {names} --inside root"),
            part,
        );
        assert_eq!(
            found,
            counted(all.selected(usize::MAX, Some("root"))),
            "{part}"
        );
    }
}

/// The child has the calls around it that its parent had.
#[test]
fn calls_after_a_fork() {
    for (compiler, flags) in forms() {
        let program = Program::new(&compiler, "selected.c", &flags);
        let mut outer = [("main", 1), ("forks", 1)]
            .map(|(name, n)| (name.to_owned(), n))
            .to_vec();
        let found = ran(&program, "--kind graph -F * -D 2", "fork");
        assert_eq!(found, outer.iter().cloned().collect(), "{}", program.build);
        outer.push(("in_child".to_owned(), 2));
        let found = ran(&program, "--kind graph -F * -D 3", "fork");
        assert_eq!(found, outer.iter().cloned().collect(), "{}", program.build);
        let inside = [("in_child", 2), ("leaf", 4)].map(|(name, n)| (name.to_owned(), n));
        let found = ran(&program, "--kind graph -F * --inside in_child", "fork");
        assert_eq!(found, BTreeMap::from(inside), "{}", program.build);
    }
}

#[test]
fn long_calls_have_a_record_and_no_others() {
    const LEAST: u64 = 10_000_000;
    for (compiler, flags) in forms() {
        let program = Program::new(&compiler, "selected.c", &flags);
        for (lines, slow) in [("", 4), (";max_depth=3", 0)] {
            let program = program.again();
            let wishes = format!(
                "tracer=graph;filter=*@{};min_ns={LEAST}{lines}",
                program.name()
            );
            let _ = program.run_as(DISCARD, &wishes, "durations");
            let dump = program.recorded();
            let (mut calls, mut found) = (Calls::new(None), BTreeMap::<String, u64>::new());
            for item in dump.events() {
                let Output::Event(event) = item else {
                    panic!("a loss")
                };
                calls.take(&event, |step| {
                    let Step::Whole(call) = step else {
                        panic!("{step:?}")
                    };
                    assert!(call.duration_ns() >= Some(LEAST), "{call:?}");
                    let name = String::from_utf8_lossy(&call.function.name).into_owned();
                    *found.entry(name).or_default() += 1;
                });
            }
            let of = |name: &str| found.get(name).copied().unwrap_or(0);
            let told = format!("{}: {found:?}", program.build);
            assert_eq!(
                (of("main"), of("durations"), of("slow")),
                (1, 1, slow),
                "{told}"
            );
            // Others may have had to wait for a processor.
            assert!(of("mixed") >= 4, "{told}");
        }
    }
}

#[test]
fn the_selection_is_switched_while_the_program_runs() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-selected");
    let program = start(&fixture, &compile(&fixture, "nested.c", "nested", SITES));
    let pid = program.id();
    let ask = |words: &str| ringmark(&fixture, &format!("trace {words} -p {pid}"), &[]);
    let now = || {
        let dump = fixture.path("now.rmk");
        let _ = ringmark(&fixture, &format!("snapshot -p {pid} -o"), &[&dump]).expect_code(0);
        functions::calls(&fixture, "", &dump)
    };
    let wait_for = |function: &str, more_than: u64| {
        wait_until(SOON, function, || {
            let found = now();
            let count = found.get(function).copied().unwrap_or(0);
            (count > more_than).then_some(found)
        })
    };
    // One call may have been under way when its sites were switched: what is inside it looks like the outermost.
    let few =
        |found: &BTreeMap<String, u64>, name: &str| found.get(name).copied().unwrap_or(0) <= 2;
    let _ = ask("start --all-functions --max-depth 1 --detach").expect_code(0);
    let found = wait_for("outer", 20);
    let is_rest_missing = ["middle", "other", "leaf"]
        .iter()
        .all(|name| few(&found, name));
    assert!(is_rest_missing, "{found:?}");
    let _ = ask("set --max-depth 2").expect_code(0);
    let found = wait_for("middle", 20);
    assert!(few(&found, "leaf"), "{found:?}");
    let status = ask("status").expect_code(0).stdout_text();
    assert!(status.contains("\ngraph: --max-depth 2\n"), "{status}");
    let refused = ask("start -T function -F leaf --detach");
    let expected = "the tracer \"graph\" selects calls by those around them (--max-depth, --inside, --caller), which only \
                    one tracer can that is on alone: stop \"graph\" first";
    functions::expect_error(refused, 4, expected);
    let _ = ask("set --max-depth off --inside middle --caller leaf").expect_code(0);
    let status = checked(&ask("status --json").expect_code(0).stdout_text());
    let tracer = status.iter().find(|object| object["default"] == true);
    let tracer = tracer.expect("a default tracer");
    let keys = ["max_depth", "inside", "caller"].map(|key| tracer[key].clone());
    assert_eq!(
        serde_json::json!(keys),
        serde_json::json!([null, "middle", "leaf"])
    );
    let before = now();
    let found = wait_for("leaf", before.get("leaf").copied().unwrap_or(0) + 20);
    assert!(
        found["other"] <= before["other"] + 2,
        "{before:?} {found:?}"
    );
    // All of it again.
    let _ = ask("start --all-functions --detach").expect_code(0);
    let _ = wait_for("other", found["other"] + 20);
    let said = ask("set --inside nosuch").expect_code(0).stderr_text();
    assert!(
        said.contains("\"nosuch\" is no function here: none of its calls is recorded"),
        "{said}"
    );
    drop(program.kill());
}

#[test]
fn what_a_kind_cannot_select_is_refused() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-selected-refused");
    let program = start(&fixture, &compile(&fixture, "nested.c", "nested", SITES));
    let pid = program.id();
    let ask = |words: &str| ringmark(&fixture, &format!("trace {words} -p {pid}"), &[]);
    let profile = "start -T profile --kind profile -F leaf --detach";
    for option in ["--min-time 1us", "--caller leaf"] {
        let expected =
            "a tracer of kind profile acts where a call begins: expected kind graph or function";
        functions::expect_error(ask(&format!("{profile} {option}")), 4, expected);
        let run = ringmark(
            &fixture,
            &format!("run --kind profile {option} -- true"),
            &[],
        );
        functions::expect_error(run, 2, expected);
    }
    let outside = "start -F leaf --inside middle --trigger leaf:exit=snapshot --detach";
    let expected = "calls outside the functions of --inside are not followed to their end";
    functions::expect_error(ask(outside), 4, expected);
    let text = ask("status").expect_code(0).stdout_text();
    assert!(text.contains("0 of 5 patch sites enabled"), "{text}");
    for wrong in ["--max-depth 0", "--max-depth x", "--inside ["] {
        let words = format!("start -F leaf --match regex --detach {wrong}");
        functions::expect_error(ask(&words), 2, "ringmark: ");
    }
    drop(program.kill());
}
