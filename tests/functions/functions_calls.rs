//! Promise: tracing every function of a program changes nothing that the program does, and each
//! call is there: entries are exits, calls that were unwound and calls that are open, per thread.

use crate::calls;
use crate::functions_stepped::Unwinder;

use std::io::Write;
use std::process::Stdio;

use calls::{Books, DISCARD, Program, SMALL, check, check_all, own_counts};
use ringmark_reader::{Access, Session, SessionInfo};
use ringmark_tests::compiler::can_build;
use ringmark_tests::wait::wait_until;
use ringmark_tests::{Running, is_long, recording, require_tools};

const GRAPH: &str = "tracer=graph;filter=*";

#[test]
fn whatever_is_passed_and_returned_before_main_and_after_exit() {
    if require_tools(&["gcc"]) {
        check("calls_plain.c", "", DISCARD, "1000", |traced| {
            assert_eq!(traced.books.open, 0);
            assert_eq!(traced.books.sum().loose, 0);
        });
    }
}

/// Each with its end; deeper than a thread has places, the innermost are recorded without.
#[test]
fn calls_100_000_deep_and_140_000() {
    if !require_tools(&["gcc"]) {
        return;
    }
    for (depth, loose) in [("100000", 0..1), ("140000", 26_000..28_000)] {
        let program = Program::new("gcc", "calls_plain.c", "-O2");
        let traced = program.trace(DISCARD, GRAPH, depth);
        traced.books.expect_closed(depth);
        let own = own_counts(&traced.finished);
        traced.books.expect_calls(&own, depth);
        let found = traced.books.sum().loose;
        assert!(loose.contains(&found), "{depth}: {found}");
    }
}

#[test]
fn jumps_and_signals() {
    if require_tools(&["gcc"]) {
        check("calls_jumps.c", "", DISCARD, "", |traced| {
            assert!(traced.books.functions["fall"].unwound > 5000);
            assert_eq!(traced.books.functions["fall"].returned, 0);
            assert_eq!(traced.books.functions["builtin_fall"].returned, 0);
            assert_eq!(traced.books.functions["catch_jump"].unwound, 0);
            assert_eq!(traced.books.functions["on_jump"].returned, 0);
            // On the alternate signal stack, too.
            assert_eq!(traced.books.functions["on_jump"].unwound, 100);
            assert_eq!(traced.books.functions["on_timer"].returned, 50);
            assert_eq!(traced.books.sum().loose, 0);
        });
    }
}

/// On the thread's own stack and on an alternate one. What handlers do in the middle of a page's turn
/// is lost, and counted.
#[test]
fn signals_at_any_instruction() {
    if !require_tools(&["gcc"]) {
        return;
    }
    for way in ["often", "elsewhere"] {
        let program = Program::new("gcc", "calls_jumps.c", "-O2");
        let traced = program.trace(DISCARD, GRAPH, way);
        println!("{way}: {:?}", traced.books);
        let own = own_counts(&traced.finished);
        assert_eq!(traced.books.sum().unwound, 0, "{way}");
        let timed = &traced.books.functions["on_timer"];
        assert!(timed.returned > timed.calls / 2, "{way}: {timed:?}");
        traced.books.expect_all_but("nested", 0, &own, way);
    }
}

#[test]
fn exceptions_and_what_unwinders_find() {
    if require_tools(&["g++"]) {
        check(
            "calls_exceptions.cc",
            "-fnon-call-exceptions",
            DISCARD,
            "",
            |traced| {
                assert!(traced.books.functions["thrower"].unwound > 1000);
                assert_eq!(traced.books.functions["catcher"].unwound, 0);
                assert_eq!(traced.books.open, 0);
            },
        );
    }
}

/// A program that is linked to libunwind throws by it. It writes where it goes on into the place of a return address.
#[test]
fn exceptions_that_libunwind_throws() {
    let flags = format!("-fnon-call-exceptions {}", Unwinder::Libunwind.flags());
    if require_tools(&["g++"]) && can_build("g++", &flags) {
        check("calls_exceptions.cc", &flags, DISCARD, "", |traced| {
            assert!(traced.books.functions["thrower"].unwound > 1000);
            assert_eq!(traced.books.functions["catcher"].unwound, 0);
            assert_eq!(traced.books.open, 0);
        });
    }
}

/// What destructors of thread-specific data do after the thread's ring was sealed is lost, and
/// counted.
#[test]
fn threads_that_end_early() {
    if !require_tools(&["gcc"]) {
        return;
    }
    check_all(
        "calls_threads.c",
        "",
        SMALL,
        "1000",
        |traced, own, build| {
            let books = &traced.books;
            books.expect_all_but("thread exited", books.open, own, build);
            let text = traced.finished.stderr_text();
            let grown = text.lines().find_map(|line| line.strip_prefix("grown "));
            let grown: u64 = grown.and_then(|n| n.parse().ok()).expect("a figure");
            // A node of its own for each would be more than 500 MB.
            assert!(grown < 200_000, "{grown} kB for 980 threads");
        },
    );
}

#[test]
fn stacks_that_change_hands() {
    if require_tools(&["gcc"]) {
        check("calls_coroutines.c", "", DISCARD, "", |_| {});
    }
}

#[test]
fn processes_that_come_of_calls() {
    if require_tools(&["gcc"]) {
        check("calls_processes.c", "", SMALL, "", |traced| {
            assert!(traced.books.taken_over > 0);
        });
    }
}

/// Where a page is never given back, the ring fills up: the account closes with what was lost.
#[test]
fn a_full_ring() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let program = Program::new("gcc", "calls_plain.c", "-O2");
    let ringmark = "mode=discard,keep=always,page=4K,ring=64K,session=1M";
    let traced = program.trace(ringmark, GRAPH, "100");
    println!("{:?}", traced.books);
    let own = own_counts(&traced.finished);
    let (open, lost) = (traced.books.open, &traced.books.lost);
    assert!(lost["ring full"] > 10_000, "{lost:?}");
    traced.books.expect_full(&own, open);
}

/// A ring that is full, given back and full again: what is lost until then is counted to the call.
#[test]
fn a_ring_that_is_full_at_times() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let program = Program::new("gcc", "calls_switched.c", "-O2");
    // Only the first of these calls goes the slow way.
    let wishes = "tracer=graph;filter=descend";
    let mut command = program.command("mode=discard,keep=always,page=4K,ring=16K", wishes);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = Running::start(&mut command).expect("it starts");
    let ring_file = program.fixture().ring_file();
    let rounds = if is_long() { 200 } else { 10 };
    let mut dumps = Vec::new();
    let lost = || {
        let session = Session::open(&ring_file, Access::Observe).expect("a session");
        SessionInfo::of(&session).lost_total()
    };
    for round in 0..rounds {
        let before = lost();
        let mut input = running.child().stdin.as_ref().expect("a pipe");
        input.write_all(b"x").expect("it reads");
        wait_until(calls::LIMIT, "a full ring", || {
            (lost() > before).then_some(())
        });
        let dump = program.fixture().path(&format!("{round}.rmk"));
        recording::record(&ring_file, &dump);
        dumps.push(dump);
    }
    drop(running.child().stdin.take());
    let finished = running.finish(calls::LIMIT).expect_code(0);
    let last = program.fixture().path("last.rmk");
    recording::record(&ring_file, &last);
    dumps.push(last);
    let books = Books::of(&recording::decode(&dumps));
    println!("{books:?}");
    let sum = books.sum();
    let found = sum.calls + sum.returned + sum.unwound;
    // A ring of 16 KiB holds fewer than 2048 records.
    assert!(found > 2048 * rounds / 2, "written again: {books:?}");
    let lost: u64 = books.lost.values().sum();
    assert_eq!(lost, books.lost["ring full"], "{books:?}");
    let calls = own_counts(&finished)["descend"];
    assert_eq!(found + lost, 2 * calls, "{books:?}");
}

/// Only what the filter names, with arguments and results; tail calls have the same result.
#[test]
fn arguments_and_results() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let program = Program::new("gcc", "calls_plain.c", "-O2");
    let wishes = "tracer=graph;filter=tail_*;filter=pair_of;filter=eight;args=6;result=on";
    let traced = program.trace(DISCARD, wishes, "10");
    traced.books.expect_closed("arguments");
    let of = |name: &str, exit: bool| -> Vec<Vec<u64>> {
        let words = traced.books.words.iter();
        let words = words.filter(|(n, e, _)| n == name && *e == exit);
        words.map(|(_, _, words)| words.clone()).collect()
    };
    let entries = of("pair_of", false);
    let second: Vec<_> = entries.iter().map(|words| words[1..3].to_vec()).collect();
    assert_eq!(second, [[0, 0], [1, u64::MAX], [2, u64::MAX - 1]]);
    let results: Vec<_> = of("pair_of", true).iter().map(|words| words[0]).collect();
    assert_eq!(results, [0x5555, 0x5554, 0x5557]);
    let entries = of("eight", false);
    assert_eq!(entries.len(), 3);
    for (round, words) in entries.iter().enumerate() {
        assert_eq!(words[1..7], [round as u64, 2, 3, 4, 5, 6]);
        assert_eq!((words[0] >> 48) as usize, (words[0] >> 48) as usize & 0xFFF);
    }
    // The chain tail_start → tail_loop → tail_other → … → tail_end returns once, for all of them.
    let results = |name| of(name, true).into_iter().map(|w| w[0]).collect::<Vec<_>>();
    assert_eq!(results("tail_end"), results("tail_start"));
    assert_eq!(results("tail_start")[..2], [1507, 757]);
}

/// Calls that take long enough, each as one record.
#[test]
fn only_long_calls() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let program = Program::new("gcc", "calls_plain.c", "-O2");
    let wishes = "tracer=graph;filter=*;min_ns=1";
    let traced = program.trace(DISCARD, wishes, "100");
    // The clock does not tell the begin of the shortest calls from their end.
    let mut recorded = 0;
    for (name, own) in own_counts(&traced.finished) {
        let calls = traced.books.functions.get(&name).map_or(0, |f| f.calls);
        assert!(calls <= own, "{name}: {calls} of {own}");
        recorded += calls;
    }
    assert!(recorded > 10_000, "{:?}", traced.books);
    let none = format!("tracer=graph;filter=recurse;min_ns={}", 60_000_000_000_u64);
    let program = Program::new("gcc", "calls_plain.c", "-O2");
    let traced = program.trace(DISCARD, &none, "100");
    assert!(traced.books.functions.is_empty(), "{:?}", traced.books);
}

/// The debugger finds the callers although their return addresses were replaced.
#[test]
fn a_debugger_finds_the_callers_also_in_a_core_dump() {
    if !require_tools(&["gdb", "g++"]) {
        return;
    }
    let program = Program::new("g++", "calls_exceptions.cc", "-O0 -fnon-call-exceptions");
    for text in program.backtraces("stop_here", GRAPH) {
        let frames = text.lines().filter(|line| line.contains("stops_at"));
        assert_eq!(frames.count(), 6, "{text}");
        assert!(text.lines().any(|line| line.contains(" main ()")), "{text}");
        assert!(
            text.contains("ringmark_return"),
            "they were replaced: {text}"
        );
    }
}
