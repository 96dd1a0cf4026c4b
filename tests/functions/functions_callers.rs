//! Promise: a traced function that ends in a jump to `dlopen`, `dlsym` and their kind gets what it
//! gets untraced: they ask who called them, and are told the truth.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, SITES, calls, compile, ringmark, tool};
use ringmark_tests::{Running, require_tools, run};

const ASKING: [&str; 7] = [
    "load",
    "load_by_pointer",
    "load_if",
    "load_in",
    "load_outer",
    "next",
    "next_with",
];

/// The program, whose RUNPATH leads to a module that it loads and to one that it needs.
fn program(fixture: &Fixture, flags: &str) -> PathBuf {
    program_of(fixture, "callers", flags)
}

fn program_of(fixture: &Fixture, name: &str, flags: &str) -> PathBuf {
    fs::create_dir_all(fixture.path("plug")).unwrap();
    let source = fixture.path("marker.c");
    fs::write(&source, "int marker(void) { return 1; }\n").unwrap();
    fs::write(fixture.path("map"), "MARKER_1 { marker; };\n").unwrap();
    let source = source.display();
    let _ = compile(
        fixture,
        &source.to_string(),
        "plug/libplug.so",
        "-shared -fPIC",
    );
    let version = format!("-Wl,--version-script={}", fixture.path("map").display());
    let flags_of_needed = format!("-shared -fPIC -Wl,-soname,libneeded.so {version}");
    let _ = compile(
        fixture,
        &source.to_string(),
        "plug/libneeded.so",
        &flags_of_needed,
    );
    let needed = format!(
        "-Wl,--no-as-needed -L{} -lneeded",
        fixture.path("plug").display()
    );
    let path = "-Wl,--enable-new-dtags,-rpath,$ORIGIN/plug";
    compile(
        fixture,
        &format!("{name}.c"),
        name,
        &format!("{SITES} {flags} {path} {needed}"),
    )
}

fn expected(rounds: usize) -> String {
    let mut text = String::new();
    for name in [
        "load",
        "load_if",
        "load_in",
        "load_outer",
        "load_by_pointer",
        "next",
        "next_with",
    ] {
        let _ = writeln!(text, "{name}: ok");
    }
    text.repeat(rounds)
}

fn recorded(fixture: &Fixture, tracer: &str, program: &Path) -> PathBuf {
    let dump = fixture.path(&format!("{tracer}.rmk"));
    let mut command = tool(fixture);
    command.args(["run", "--kind", tracer, "--all-functions", "-o"]);
    command.arg(&dump).arg("--").arg(program);
    let finished = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    assert_eq!(finished.stdout_text(), expected(1), "{tracer}");
    dump
}

#[test]
fn a_program_that_is_traced_from_its_start_loads_what_it_loads_untraced() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-callers");
    for flags in [
        "",
        "-fno-plt",
        "-fno-pie -no-pie",
        "-fcf-protection -Wl,-z,now",
    ] {
        let program = program(&fixture, flags);
        let native = run(&mut fixture.command(&program), LIMIT).expect("it starts");
        assert_eq!(native.expect_code(0).stdout_text(), expected(1), "{flags}");
        let graph = recorded(&fixture, "graph", &program);
        let shown = ringmark(&fixture, "graph", &[&graph]).stdout_text();
        let profile = calls(&fixture, "", &recorded(&fixture, "profile", &program));
        for name in ASKING {
            assert!(
                shown.contains(&format!("{name}()")),
                "{flags}: {name} in {shown}"
            );
            assert_eq!(profile.get(name), Some(&1), "{flags}: {name}");
        }
        // The others are seen from end to end.
        let mut of_plain = shown.lines().filter(|line| line.ends_with(" plain();"));
        assert!(
            of_plain.any(|line| line.contains(" us |")),
            "{flags}: {shown}"
        );
        assert_eq!(profile.get("plain"), Some(&1), "{flags}");
    }
}

#[test]
fn a_program_that_was_attached_to_loads_what_it_loads_untraced() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-callers-attached");
    for flags in ["", "-fno-plt"] {
        let program = program(&fixture, flags);
        let mut command = fixture.command(&program);
        let mut running = Running::start(command.stdin(Stdio::piped())).expect("it starts");
        // In `poll`.
        running.wait_until_in(&["7 "]);
        let start = format!("trace start -p {} --filter * --detach", running.id());
        let _ = ringmark(&fixture, &start, &[]).expect_code(0);
        let mut input = running.child().stdin.take().expect("its input");
        input.write_all(b"..").unwrap();
        drop(input);
        let finished = running.finish(LIMIT).expect_code(0);
        assert_eq!(finished.stdout_text(), expected(3), "{flags}");
    }
}

#[test]
fn why_says_that_the_end_of_such_a_function_is_not_seen() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-callers-why");
    let program = program(&fixture, "");
    let why = |name: &str| {
        let finished = ringmark(&fixture, &format!("functions --why {name}"), &[&program]);
        finished.expect_code(0).stdout_text()
    };
    for name in ASKING {
        let said = why(name);
        assert!(said.contains("its end is not seen"), "{said}");
    }
    for name in ["main", "plain", "all"] {
        assert!(why(name).trim_end().ends_with(": can be traced"), "{name}");
    }
}

/// The program imports `dlsym` alone, and gets the address of `dlopen` from it.
#[test]
fn a_program_that_looks_dlopen_up_loads_what_it_loads_untraced() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-looked-up");
    let program = program_of(&fixture, "looked_up", "");
    let native = run(&mut fixture.command(&program), LIMIT).expect("it starts");
    let expected = "load_looked_up: ok\nload_kept: ok\nload_given: ok\n";
    assert_eq!(native.expect_code(0).stdout_text(), expected);
    for tracer in ["graph", "profile"] {
        let dump = fixture.path(&format!("{tracer}.rmk"));
        let mut command = tool(&fixture);
        command.args(["run", "--kind", tracer, "--all-functions", "-o"]);
        command.arg(&dump).arg("--").arg(&program);
        let finished = run(&mut command, LIMIT).expect("it starts").expect_code(0);
        assert_eq!(finished.stdout_text(), expected, "{tracer}");
    }
}
