//! Promise: calls on stacks that are not their thread's own, such as those of coroutines, have their
//! ends, times and counts, in whatever order they end; and the program does what it does.

use crate::calls;

use std::collections::BTreeMap;

use calls::{DISCARD, Program, check_all, own_counts};
use ringmark_decoder::{Call, Calls, Ended, Output, Step};
use ringmark_tests::functions::{self, ringmark, tool};
use ringmark_tests::json_schema::checked;
use ringmark_tests::{is_long, recording, require_tools, run};

const GRAPH: &str = "tracer=graph;filter=*";

/// Runs a part of the program, and compares the books.
fn part(name: &str, also: impl Fn(&calls::Traced)) {
    let flags = ["-O2", "-O0"];
    for flags in &flags[..if is_long() { 2 } else { 1 }] {
        let program = Program::new("gcc", "stacks.c", flags);
        let traced = program.trace(DISCARD, GRAPH, name);
        println!("{name}: {:?}", traced.books);
        traced.books.expect_closed(name);
        traced
            .books
            .expect_calls(&own_counts(&traced.finished), name);
        also(&traced);
    }
}

#[test]
fn coroutines_end_in_any_order() {
    if !require_tools(&["gcc"]) {
        return;
    }
    // Sites at entries, and at exits.
    check_all("stacks.c", "", DISCARD, "", |traced, own, build| {
        let books = &traced.books;
        books.expect_closed(build);
        books.expect_calls(own, build);
        assert_eq!((books.open, books.left), (0, 0), "{build}");
        let sum = books.sum();
        assert_eq!(sum.loose + sum.unwound, 0, "{build}");
        assert!(books.elsewhere > 20_000, "{build}: {books:?}");
    });
}

#[test]
fn six_hundred_calls_of_coroutines_have_a_duration_each() {
    if !require_tools(&["gcc"]) {
        return;
    }
    part("600", |traced| {
        let books = &traced.books;
        assert_eq!(books.functions["nest"].calls, 600);
        assert_eq!(books.functions["nest"].returned, 600);
        assert_eq!((books.open, books.sum().loose), (0, 0));
    });
}

/// The calls that were open stay without an end; all others have theirs.
#[test]
fn coroutines_that_are_dropped_in_the_middle_of_calls() {
    if !require_tools(&["gcc"]) {
        return;
    }
    part("dropped", |traced| {
        let books = &traced.books;
        let endless = books.open + books.left + books.sum().unwound;
        assert!(endless > 400, "{books:?}");
        // Two of three calls of `leaf` come after what was dropped has left its slots behind.
        assert_eq!(books.functions["leaf"].unwound, 0, "{books:?}");
        assert!(books.sum().loose < books.sum().calls / 10, "{books:?}");
    });
}

/// What is on a stack may be copied away, and back when others have used it.
#[test]
fn coroutines_that_take_turns_on_one_stack() {
    if require_tools(&["gcc"]) {
        part("copied", |_| {});
    }
}

#[test]
fn jumps_on_a_coroutine() {
    if !require_tools(&["gcc"]) {
        return;
    }
    part("jumps", |traced| {
        let books = &traced.books;
        assert_eq!(books.functions["falls"].returned, 0);
        assert_eq!(books.functions["nest"].unwound, 0);
        assert_eq!(books.functions["nest"].loose, 0);
    });
}

/// The name of a function without what the compiler has added to that of a changed copy.
fn plain(name: &[u8]) -> &[u8] {
    name.split(|byte| *byte == b'.').next().unwrap_or(name)
}

/// A call lasts while its coroutine is suspended; what is inside it has its own time.
#[test]
fn times_and_nesting_on_coroutines() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let program = Program::new("gcc", "stacks.c", "-O2");
    let wishes = format!("{GRAPH};tracer=profile;filter=*");
    let _ = program.run_as(DISCARD, &wishes, "timed");
    let dump = program.recorded();
    let (mut calls, mut ended) = (Calls::new(None), Vec::new());
    for item in dump.events() {
        if let Output::Event(event) = item {
            calls.take(&event, |step| {
                if let Step::Whole(call) = step {
                    ended.push(call);
                }
            });
        }
    }
    let of = |name: &str| -> Vec<Call<'_>> {
        let calls = ended.iter().cloned();
        calls
            .filter(|call| plain(&call.function.name) == name.as_bytes())
            .collect()
    };
    let ms = 1_000_000;
    assert_eq!((of("sleeps").len(), of("works").len()), (3, 6));
    for call in of("sleeps") {
        assert_eq!(call.ended, Ended::Returned);
        let (took, own) = (call.duration_ns().unwrap(), call.self_ns().unwrap());
        assert!(took >= 14 * ms, "{took}: 10 ms are of others");
        let inside = of("works")
            .into_iter()
            .filter(|inner| inner.depth == call.depth + 1 && inner.entered_ns > call.entered_ns);
        assert!(inside.count() >= 2);
        assert!(took - own >= 4 * ms, "{own} of {took}: two calls inside it");
    }
    for call in of("works") {
        assert!(call.duration_ns().unwrap() >= 2 * ms);
        assert_eq!(call.duration_ns(), call.self_ns());
    }
}

/// The child goes on with the coroutine's calls, and has some of its own.
#[test]
fn a_fork_on_a_coroutine() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let program = Program::new("gcc", "stacks_forked.c", "-O2");
    let rounds: u64 = if is_long() { 400 } else { 10 };
    let dump = program.fixture().path("forked.rmk");
    let mut command = tool(program.fixture());
    command.args(["run", "--kind", "graph", "-o"]).arg(&dump);
    for function in ["forks", "in_child", "nest", "twice"] {
        command.args(["--filter", function]);
    }
    command
        .arg("--")
        .arg(program.path())
        .arg(rounds.to_string());
    let _ = run(&mut command, calls::LIMIT)
        .expect("it starts")
        .expect_code(0);
    let found = functions::calls(program.fixture(), "", &dump);
    let of = [("forks", 1), ("in_child", 1), ("nest", 14), ("twice", 1)];
    let expected = of.map(|(name, calls)| (name.to_owned(), calls * rounds));
    assert_eq!(found, BTreeMap::from(expected));
}

/// In the process a profile counts them as well.
#[test]
fn a_profile_of_coroutines() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let program = Program::new("gcc", "stacks.c", "-O2");
    let wishes = "tracer=profile;kind=profile;filter=*";
    let finished = program.run_as(DISCARD, wishes, "");
    let dump = program.fixture().path("profile.rmk");
    recording::record(&program.fixture().ring_file(), &dump);
    let report = ringmark(program.fixture(), "report --json", &[&dump]);
    let text = report.expect_code(0).stdout_text();
    let objects = checked(&text);
    let of = |name: &str| {
        objects
            .iter()
            .find(|object| {
                object["name"]
                    .as_str()
                    .is_some_and(|found| plain(found.as_bytes()) == name.as_bytes())
            })
            .expect("a row")
    };
    for (name, calls) in own_counts(&finished).into_iter().filter(|own| own.1 > 0) {
        assert_eq!(of(&name)["count"], calls, "{name}");
        assert_eq!(of(&name)["open"], 0, "{name}");
    }
    // `nest` is in itself and in `rounds`; `leaf` is in `nest`, and nothing is in it.
    let number = |name: &str, key: &str| of(name)[key].as_u64().expect("a number");
    assert!(number("nest", "total_ns") <= number("rounds", "total_ns"));
    assert_eq!(number("leaf", "total_ns"), number("leaf", "self_ns"));
    let inside =
        number("rounds", "self_ns") + number("nest", "self_ns") + number("leaf", "self_ns");
    assert!(inside.abs_diff(number("rounds", "total_ns")) < number("rounds", "total_ns") / 100);
}
