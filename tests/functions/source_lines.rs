//! Promise: `graph --srcline` shows where each function stands in the source, as `addr2line` has it, from the program's
//! file or from what was stripped from it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, SITES, ringmark, tool};
use ringmark_tests::{require_tools, run};

const FUNCTIONS: usize = 20;

/// Two files with a function of the same name each, at different lines, among others.
fn write_sources(fixture: &Fixture) {
    let mut first =
        String::from("int same_of_second(int);\nstatic F int same(int n) { return n + 1; }\n");
    for number in 0..FUNCTIONS {
        let space = "\n".repeat(number % 3);
        let _ = write!(
            first,
            "{space}F int f{number:02}(int n)\n{{\n    return n * {number};\n}}\n"
        );
    }
    first += "int main(void) {\n    int sum = same(1) + same_of_second(1);\n";
    for number in 0..FUNCTIONS {
        let _ = writeln!(first, "    sum += f{number:02}(sum);");
    }
    first += "    return sum == -1;\n}\n";
    fs::write(fixture.path("first.c"), first).expect("a source");
    let second = "\n\n\nstatic F int same(int n) { return n + 2; }\nF int same_of_second(int n) { return same(n); }\n";
    fs::write(fixture.path("second.c"), second).expect("a source");
}

fn command(fixture: &Fixture, program: &str, words: &str) -> String {
    let mut command = Command::new(program);
    command
        .current_dir(fixture.path("."))
        .args(words.split_whitespace());
    run(&mut command, LIMIT)
        .expect(program)
        .expect_code(0)
        .stdout_text()
}

/// The places of functions, by name, as the graph shows them: `[path:line]`.
fn shown(fixture: &Fixture) -> BTreeMap<String, Vec<String>> {
    let text = ringmark(fixture, "graph --srcline", &[&fixture.path("a.rmk")]).stdout_text();
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let Some((call, place)) = line.split_once(" [") else {
            continue;
        };
        let name = call.rsplit(' ').next().unwrap_or(call);
        let name = name.trim_end_matches("()").to_owned();
        let place = place.split(']').next().expect("an end").to_owned();
        places.entry(name).or_default().push(place);
    }
    places.values_mut().for_each(|all| all.sort());
    places
}

/// The same as `nm` and `addr2line` have it.
fn expected(fixture: &Fixture) -> BTreeMap<String, Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in command(fixture, "nm", "whole").lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let [address, "t" | "T", name] = words[..]
            && (name.starts_with('f') && name.len() == 3
                || name.starts_with("same")
                || name == "main")
        {
            let place = command(fixture, "addr2line", &format!("-e whole {address}"));
            let place = place.trim().split(' ').next().expect("a place").to_owned();
            places.entry(name.to_owned()).or_default().push(place);
        }
    }
    places.values_mut().for_each(|all| all.sort());
    places
}

fn record(fixture: &Fixture, program: &Path) {
    let mut record = tool(fixture);
    record.args(["run", "--kind", "graph", "--all-functions", "-o"]);
    record.arg(fixture.path("a.rmk")).arg("--").arg(program);
    let _ = run(&mut record, LIMIT).expect("ringmark").expect_code(0);
}

#[test]
fn lines_are_those_of_addr2line() {
    if !require_tools(&["gcc", "nm", "addr2line", "objcopy", "strip"]) {
        return;
    }
    let fixture = Fixture::new("source-lines");
    write_sources(&fixture);
    let flags =
        format!("-g {SITES} -DF=__attribute__((noipa)) -Wl,--build-id -o whole first.c second.c");
    let _ = command(&fixture, "gcc", &flags);
    let expected = expected(&fixture);
    assert_eq!(expected.len(), FUNCTIONS + 3, "{expected:?}");
    // Functions of equal name are told apart.
    let same = &expected["same"];
    assert!(
        same[0].ends_with("first.c:2") && same[1].ends_with("second.c:4"),
        "{same:?}"
    );
    record(&fixture, &fixture.path("whole"));
    assert_eq!(shown(&fixture), expected);

    let _ = command(&fixture, "objcopy", "--only-keep-debug whole whole.debug");
    let _ = command(&fixture, "strip", "-g -o stripped whole");
    let _ = command(
        &fixture,
        "objcopy",
        "--add-gnu-debuglink=whole.debug stripped",
    );
    record(&fixture, &fixture.path("stripped"));
    assert_eq!(shown(&fixture), expected);

    // Without it, and with a file that was built anew, nothing is shown, and it is said why.
    fs::remove_file(fixture.path("whole.debug")).expect("it was there");
    let said = ringmark(&fixture, "graph --srcline", &[&fixture.path("a.rmk")]);
    assert!(
        said.stderr_text().contains("expected a file built with -g"),
        "{said:?}"
    );
    assert!(shown(&fixture).is_empty());
    let _ = command(
        &fixture,
        "gcc",
        "-g -DF= -Wl,--build-id -o stripped second.c first.c",
    );
    let said = ringmark(&fixture, "graph --srcline", &[&fixture.path("a.rmk")]);
    assert!(
        said.stderr_text().contains("found a file of another build"),
        "{said:?}"
    );
}
