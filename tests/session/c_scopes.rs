//! Promise: what a C or C++ program reports is what it had: a scope's values are those of its beginning, a value
//! that is cut says so, one with an impossible length is counted, and macros of the program change nothing.

use std::process::Command;

use crate::c::{GCC, LIMIT, compile, compilers};
use ringmark_tests::compiler::can_build;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::{require_tools, run, workspace_root};

use crate::c_interface::said::lines;

const DISCARD: &str = "mode=discard,keep=always,ring=8M,session=64M";
const ASAN: &str = "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all";

/// What the program recorded, compiled so.
fn recorded(
    fixture: &Fixture,
    compiler: crate::c::Compiler,
    source: &str,
    flags: &str,
) -> Vec<String> {
    let program = compile(fixture, compiler, source, flags, "program");
    let mut command = fixture.program(&program.to_string_lossy(), DISCARD);
    command.env("ASAN_OPTIONS", "detect_leaks=0");
    let done = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    assert_eq!(done.stderr_text(), "", "{source} {flags}");
    let ring_file = fixture.ring_file();
    let lines = lines(fixture, &ring_file);
    std::fs::remove_file(ring_file).expect("the ring file");
    lines
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// A span of `scope_texts.c` with these values.
fn query(rows: usize, text: &str, raw: &str) -> String {
    let raw = hex(raw);
    format!("query span info {{\"raw\":\"{raw}\",\"rows\":{rows},\"text\":\"{text}\"}}")
}

fn expected_of_scopes() -> Vec<String> {
    let whole = "x".repeat(512);
    let cut = format!("{}…", "x".repeat(509));
    // 169 characters of 3 bytes are 507, the mark is 3 more.
    let euros = format!("{}…", "€".repeat(169));
    vec![
        query(1, "select a from b where c", "raw"),
        query(512, &whole, &whole),
        query(513, &cut, &cut),
        query(2001, &euros, &euros),
        "lone span info {\"text\":\"inner\"}".to_owned(),
        "lone span info {\"text\":\"outer\"}".to_owned(),
        query(0, "", ""),
        format!("got event info {{\"data\":\"{}\",\"n\":7}}", hex("seven..")),
    ]
}

#[test]
fn a_scope_has_the_values_of_its_beginning() {
    if !require_tools(&["gcc", "g++"]) {
        return;
    }
    let fixture = Fixture::new("c-scopes");
    for compiler in compilers() {
        for flags in ["-O2", "-O0", ASAN, "-x c++ -O2"] {
            if !can_build(compiler.of(flags.contains("c++")), flags) {
                continue;
            }
            let all = recorded(&fixture, compiler, "scope_texts.c", flags);
            let (lost, kept): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|line| line.starts_with("lost "));
            assert_eq!(kept, expected_of_scopes(), "{} {flags}", compiler.c);
            // Nine events and nine spans had a length that is no length.
            let count = |line: &String| line.rsplit(' ').next()?.parse::<u64>().ok();
            let is_oversize = |line: &String| line.starts_with("lost oversize ");
            assert!(lost.iter().all(is_oversize), "{lost:?}");
            assert_eq!(lost.iter().filter_map(count).sum::<u64>(), 18, "{lost:?}");
        }
    }
}

#[test]
fn macros_of_the_program_change_nothing() {
    if !require_tools(&["gcc", "g++"]) {
        return;
    }
    let fixture = Fixture::new("c-macros");
    let expected = [
        "done event info {\"N\":100,\"e\":true,\"value\":\"three\"}",
        "less event debug {}",
        "depth counter info {\"value\":101}",
        "held span info {\"id\":1,\"name\":\"ended\"}",
        "held span info {\"id\":2,\"name\":\"scope\"}",
    ];
    for compiler in compilers() {
        for flags in ["-O2", "-x c++ -O2"] {
            let all = recorded(&fixture, compiler, "own_macros.c", flags);
            assert_eq!(all, expected, "{} {flags}", compiler.c);
        }
    }
}

#[test]
fn a_seventeenth_field_is_refused_by_name() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let root = workspace_root();
    let mut command = Command::new(GCC.c);
    command.args(["-std=c11", "-fsyntax-only", "-DSEVENTEEN", "-I"]);
    command.arg(root.join("c-api/include"));
    command.arg(root.join("tests/programs/c/own_macros.c"));
    let said = run(&mut command, LIMIT).expect("gcc").stderr_text();
    let first = said.lines().find(|line| line.contains("error"));
    let first = first.unwrap_or_default();
    assert!(first.contains("a type has at most 16 fields"), "{said}");
}
