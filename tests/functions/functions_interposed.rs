//! Promise: a program may define any function that the tracer's shared object calls, and have it
//! traced: what happens on the way of an event calls none of them before it is safe to come back.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, SITES, calls, compile, library, tool};
use ringmark_tests::recording::decode;
use ringmark_tests::{require_tools, run};

/// What the object imports and no program can sensibly define, and why.
const NOT_DEFINED: [(&str, &str); 5] = [
    (
        "_ITM_deregisterTMCloneTable",
        "start-up code calls it if it is there, which it never is",
    ),
    (
        "_ITM_registerTMCloneTable",
        "start-up code calls it if it is there, which it never is",
    ),
    (
        "__gmon_start__",
        "start-up code calls it if it is there, which it never is",
    ),
    ("environ", "it is a variable"),
    ("__environ", "it is a variable"),
];

/// Calls that are not recorded, of five threads: a thread misses what getting its ring calls.
const MISSED_MAX: u64 = 64;

/// The functions that the object imports, with their versions.
fn imports() -> Vec<(String, String)> {
    let mut nm = Command::new("nm");
    nm.args(["-D", "--undefined-only"]).arg(library());
    let listed = run(&mut nm, LIMIT)
        .expect("nm")
        .expect_code(0)
        .stdout_text();
    let names = listed
        .lines()
        .filter_map(|line| line.split_whitespace().last());
    let pairs = names.map(|name| name.split_once('@').unwrap_or((name, "")));
    let defined = pairs.filter(|(name, _)| !NOT_DEFINED.iter().any(|(other, _)| other == name));
    let owned = defined.map(|(name, version)| {
        let version = version.trim_start_matches('@');
        (name.to_owned(), version.to_owned())
    });
    owned.collect()
}

/// A function for each import: it counts its call and jumps on to the one that it hides.
fn definitions(imports: &[(String, String)]) -> String {
    let mut text = format!("#define COUNT {}\n", imports.len());
    text.push_str("struct real { void *found; const char *name, *version; };\n");
    text.push_str("struct real reals[COUNT] = {\n");
    for (name, version) in imports {
        let _ = writeln!(text, "    {{0, \"{name}\", \"{version}\"}},");
    }
    text.push_str("};\nunsigned long counts[COUNT];\n");
    for (place, (name, _)) in imports.iter().enumerate() {
        let _ = writeln!(text, "HIDING({name}, {place})");
    }
    text
}

/// `NAME FROM TO` of each function: its calls when `main` began and when it ended.
fn counted(said: &str) -> BTreeMap<&str, u64> {
    let lines = said.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let (from, to): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((name, to - from))
    });
    lines.collect()
}

#[test]
fn a_program_may_define_and_trace_all_that_the_object_calls() {
    if !require_tools(&["gcc", "nm"]) {
        return;
    }
    let fixture = Fixture::new("fn-interposed");
    let imports = imports();
    assert!(
        imports.iter().any(|(name, _)| name == "malloc"),
        "{imports:?}"
    );
    fs::write(fixture.path("imports.h"), definitions(&imports)).unwrap();
    let flags = format!(
        "{SITES} -fno-builtin -pthread -I{}",
        fixture.path("").display()
    );
    let program = compile(&fixture, "interposed.c", "interposed", &flags);
    let dump = fixture.path("run.rmk");
    for tracer in ["graph", "function", "profile"] {
        let said = traced(&fixture, tracer, &[&program], &dump);
        let lost = Delivery::of(&decode(std::slice::from_ref(&dump))).lost();
        assert!(lost <= MISSED_MAX, "{tracer}: {lost} lost");
        let seen = calls(&fixture, "", &dump);
        let expected = counted(&said);
        assert!(expected.get("getpid") > Some(&500), "{said}");
        for (name, expected) in expected {
            let found = seen.get(name).copied().unwrap_or(0);
            // Records of the kind `function` have no end; how they are reported is not of interest.
            assert!(
                tracer == "function" || found + MISSED_MAX >= expected,
                "{tracer}: {name}: {expected} calls, {found} recorded"
            );
        }
    }
    // Children, whose sessions begin with their first event: what that calls is lost.
    for tracer in ["graph", "profile"] {
        let with_children = [program.as_path(), Path::new("children")];
        let _ = traced(&fixture, tracer, &with_children, &dump);
    }
}

#[test]
fn a_program_may_have_a_getpid_of_its_own() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-getpid");
    let program = compile(&fixture, "own_getpid.c", "own_getpid", SITES);
    let dump = fixture.path("run.rmk");
    assert_eq!(traced(&fixture, "graph", &[&program], &dump), "3000\n");
    let expected = [("getpid", 3000), ("main", 1), ("thread", 2)];
    let expected = expected.map(|(name, calls)| (name.to_owned(), calls));
    assert_eq!(calls(&fixture, "", &dump), BTreeMap::from(expected));
}

/// What the program says that runs with all its functions traced.
fn traced(fixture: &Fixture, tracer: &str, command_line: &[&Path], dump: &Path) -> String {
    let _ = fs::remove_file(dump);
    let mut command = tool(fixture);
    command.args(["run", "--kind", tracer, "--all-functions", "-o"]);
    command
        .env("RINGMARK", "mode=discard,session=256M")
        .arg(dump)
        .arg("--")
        .args(command_line);
    let finished = run(&mut command, LIMIT).expect("it starts");
    // 1: all went well, and some events were lost.
    assert!(
        matches!(finished.code(), 0 | 1),
        "{}",
        finished.stderr_text()
    );
    finished.stdout_text()
}
