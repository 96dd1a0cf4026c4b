//! Promise: where a compiler left sites at the exits of functions, too (XRay, `-minstrument-return`),
//! calls are recorded without a return address being replaced, and nothing else is different.

use crate::calls;

use std::io::Write;
use std::process::Stdio;

use calls::{Books, DISCARD, Program, RETURNS, XRAY, clang};
use ringmark_tests::compiler::{can_build, first_that_builds};
use ringmark_tests::functions::ringmark;
use ringmark_tests::{Running, is_long, require_tools};

/// Compilers that are here and leave sites at exits, and what they are told.
fn ways() -> Vec<(String, String)> {
    let mut ways = Vec::new();
    if require_tools(&["gcc"]) {
        ways.push(("gcc".to_owned(), format!("-O2 {RETURNS}")));
        let flags = format!("-O2 -fno-pie -no-pie -mnop-mcount {RETURNS}");
        ways.push(("gcc".to_owned(), flags));
    }
    if let Some(clang) = clang() {
        let flags = format!("-O2 -DNO_NESTED {XRAY}");
        // The flag has had two names, and the oldest releases have neither.
        let without = ["-fno-xray-link-deps", "-fnoxray-link-deps"];
        let without = without.map(|flag| format!("{flags} {flag}"));
        let found = first_that_builds(&clang, &without.each_ref().map(String::as_str));
        ways.extend(found.map(|flags| (clang.clone(), flags.to_owned())));
        ways.extend(can_build(&clang, &flags).then_some((clang, flags)));
    }
    ways
}

/// Names of functions in the order of their entries and exits.
fn order(books: &Books) -> Vec<(&str, bool)> {
    let words = books.words.iter();
    words
        .map(|(name, exit, _)| (name.as_str(), *exit))
        .collect()
}

#[test]
fn which_functions_have_them() {
    for (compiler, flags) in ways() {
        let program = Program::new(&compiler, "calls_plain.c", &flags);
        let text = ringmark(program.fixture(), "functions", &[program.path()]);
        let text = text.expect_code(0).stdout_text();
        let lines = || text.lines().filter(|line| line.contains(" tail_"));
        assert_eq!(lines().count(), 4, "{text}");
        assert!(
            lines().all(|line| line.ends_with("  sleds")),
            "{flags}: {text}"
        );
    }
    if require_tools(&["gcc"]) {
        let program = Program::new("gcc", "calls_plain.c", "-O2");
        let text = ringmark(program.fixture(), "functions", &[program.path()]);
        let text = text.expect_code(0).stdout_text();
        assert!(
            text.contains("tail_end") && !text.contains("sleds"),
            "{text}"
        );
    }
}

/// A function that ends with a jump to another has ended when the other begins; what it returns is
/// not known then.
#[test]
fn tail_calls_arguments_and_results() {
    for (compiler, flags) in ways() {
        let program = Program::new(&compiler, "calls_plain.c", &flags);
        let wishes = "tracer=graph;filter=tail_*;filter=eight;args=6;result=on";
        let traced = program.trace(DISCARD, wishes, "10");
        let books = &traced.books;
        books.expect_closed(&flags);
        assert_eq!(books.sum().unwound + books.sum().loose, 0, "{flags}");
        let expected = [
            ("tail_start", false),
            ("tail_start", true),
            ("tail_loop", false),
            ("tail_loop", true),
            ("tail_other", false),
        ];
        assert_eq!(order(books)[..5], expected, "{flags}");
        let of = |name: &str, exit: bool| -> Vec<Vec<u64>> {
            let words = books.words.iter();
            let words = words.filter(|(n, e, _)| n == name && *e == exit);
            words.map(|(_, _, words)| words.clone()).collect()
        };
        assert!(of("tail_start", true).iter().all(Vec::is_empty));
        let results: Vec<_> = of("tail_end", true).iter().map(|words| words[0]).collect();
        assert_eq!(results[..2], [1507, 757], "{flags}");
        let entries = of("eight", false);
        let arguments: Vec<_> = entries.iter().map(|words| &words[1..]).collect();
        let expected = [0, 1, 2].map(|round| [round, 2, 3, 4, 5, 6]);
        assert_eq!(arguments, expected, "{flags}");
        let results: Vec<_> = of("eight", true).iter().map(|words| words[0]).collect();
        assert_eq!(results, [471, 472, 473], "{flags}");
    }
}

/// Only long calls: their time is known at the exit.
#[test]
fn durations() {
    let ways = ways();
    let share = if is_long() { ways.len() } else { 1 };
    for (compiler, flags) in ways.into_iter().rev().take(share) {
        let program = Program::new(&compiler, "calls_plain.c", &flags);
        let traced = program.trace(DISCARD, "tracer=graph;filter=*;min_ns=1", "100");
        let own = calls::own_counts(&traced.finished);
        traced.books.expect_calls(&own, &flags);
    }
}

#[test]
fn switched_while_they_run() {
    let ways = ways();
    let share = if is_long() { ways.len() } else { 1 };
    for (compiler, flags) in ways.into_iter().rev().take(share) {
        let program = Program::new(&compiler, "calls_switched.c", &flags);
        let room = "mode=discard,keep=always,ring=32M,session=256M";
        let mut command = program.command(room, "tracer=graph;filter=*");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = Running::start(&mut command).expect("it starts");
        let _ = program.fixture().ring_file();
        let pid = running.id();
        for _ in 0..if is_long() { 100 } else { 8 } {
            for words in ["stop", "start --filter * --detach"] {
                let mut input = running.child().stdin.as_ref().expect("a pipe");
                input.write_all(b"x").expect("it reads");
                let asked = ringmark(program.fixture(), &format!("trace {words} -p {pid}"), &[]);
                let text = asked.expect_code(0).stdout_text();
                assert!(text.ends_with("; 0 refused\n"), "{flags}: {text}");
            }
        }
        let status = ringmark(program.fixture(), &format!("trace status -p {pid}"), &[]);
        let text = status.expect_code(0).stdout_text();
        assert!(text.contains("with sleds at all exits"), "{text}");
        drop(running.child().stdin.take());
        let finished = running.finish(calls::LIMIT).expect_code(0);
        assert_eq!(finished.stdout_text(), "right\n", "{flags}");
        let books = Books::of(&program.recorded());
        println!("{flags}: {books:?}");
        books.expect_closed(&flags);
        assert!(books.functions["leaf"].returned > 0, "{books:?}");
    }
}

/// What a profiler comes to that follows frame pointers.
#[test]
fn frame_pointers_lead_to_the_callers() {
    const FRAMES: &str = "-fno-omit-frame-pointer -fno-optimize-sibling-calls -rdynamic";
    let shown = |compiler: &str, flags: &str| {
        let program = Program::new(compiler, "frames.c", &format!("{flags} {FRAMES}"));
        let traced = program.run_as(DISCARD, "tracer=graph;filter=*", "");
        let books = Books::of(&program.recorded());
        books.expect_closed(flags);
        assert_eq!(books.sum().calls, 4, "{flags}: {books:?}");
        traced.stdout_text()
    };
    for (compiler, flags) in ways() {
        let found = shown(&compiler, &flags);
        assert_eq!(found, "middle\nouter\nmain\n", "{flags}");
    }
    if require_tools(&["gcc"]) {
        let found = shown("gcc", "-O2");
        assert_eq!(found, "elsewhere\n".repeat(3), "as the guide says");
    }
}
