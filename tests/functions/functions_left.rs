//! Promise: what was counted and is not in a trace is named there, however a process ends; functions of one name
//! stay apart; a module that a forked child loads is traced; sanitizers start.

use std::path::{Path, PathBuf};

use ringmark_tests::compiler::can_build;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, SITES, calls, compile, ringmark, tool};
use ringmark_tests::json_schema::checked;
use ringmark_tests::{Finished, require_tools, run};

/// The program, which has two files.
fn build(fixture: &Fixture) -> PathBuf {
    compile(
        fixture,
        "left.c",
        "left",
        &format!("{SITES} -pthread left_other.c"),
    )
}

/// `ringmark run` of this command.
fn traced(fixture: &Fixture, kind: &str, program: &Path, words: &[&str]) -> Finished {
    let mut command = tool(fixture);
    command
        .args(["run", "--kind", kind, "-o"])
        .arg(fixture.path("left.rmk"));
    command.arg("--").arg(program).args(words);
    run(&mut command, LIMIT).expect("ringmark")
}

/// The object of `verify --json`.
fn verified(fixture: &Fixture) -> serde_json::Value {
    let found = ringmark(fixture, "verify --json", &[&fixture.path("left.rmk")]);
    checked(&found.stdout_text()).remove(0)
}

/// Rows of functions with this name.
fn rows(fixture: &Fixture, name: &str) -> Vec<u64> {
    let found = ringmark(fixture, "report --json", &[&fixture.path("left.rmk")]);
    let rows = checked(&found.stdout_text()).into_iter();
    let rows = rows.filter(|row| row["name"] == name);
    let mut counts: Vec<_> = rows
        .map(|row| row["count"].as_u64().expect("a number"))
        .collect();
    counts.sort_unstable();
    counts
}

#[test]
fn a_profile_is_written_or_named_however_the_process_ends() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("left-ends");
    let program = build(&fixture);
    for (how, counted, unwritten) in [
        ("exit", &[1000][..], 0),
        ("quick_exit", &[1000], 0),
        ("_exit", &[], 1),
        // The program that it becomes makes as many calls.
        ("exec", &[1000], 1),
        ("children", &[100, 100, 1000], 2),
    ] {
        let told = traced(&fixture, "profile", &program, &[how])
            .expect_code(0)
            .stderr_text();
        let found = verified(&fixture);
        assert_eq!(rows(&fixture, "leaf"), counted, "{how}: {told}");
        assert_eq!(found["unwritten_profiles"], unwritten, "{how}: {found}");
        assert_eq!(found["complete"], unwritten == 0, "{how}: {found}");
        assert_eq!(
            told.contains("was NOT written"),
            unwritten > 0,
            "{how}: {told}"
        );
        assert!(!told.contains("does --filter match"), "{how}: {told}");
    }
}

#[test]
fn calls_of_threads_that_could_not_be_set_up_are_counted() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("left-descriptors");
    let program = build(&fixture);
    let _ = traced(&fixture, "profile", &program, &["descriptors"]).expect_code(0);
    let found = verified(&fixture);
    let counted: u64 = rows(&fixture, "leaf").iter().sum();
    let uncounted = found["uncounted_calls"].as_u64().expect("a number");
    assert_eq!(counted + uncounted, 5000, "{found}");
    assert!(uncounted > 0 && found["complete"] == false, "{found}");
}

#[test]
fn functions_of_one_name_stay_apart() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("left-names");
    let program = build(&fixture);
    let _ = traced(&fixture, "profile", &program, &["names"]).expect_code(0);
    assert_eq!(rows(&fixture, "helper"), [100, 200]);
}

/// Its calls of the module are the first that it records.
#[test]
fn a_module_that_a_forked_child_loads_is_traced() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("left-load");
    let program = build(&fixture);
    let plugin = compile(
        &fixture,
        "plugin.c",
        "plugin.so",
        &format!("{SITES} -shared -fPIC"),
    );
    let plugin = plugin.display().to_string();
    let _ = traced(&fixture, "graph", &program, &["load", &plugin]).expect_code(0);
    let found = calls(&fixture, "", &fixture.path("left.rmk"));
    assert_eq!((found["plugin_outer"], found["plugin_inner"]), (100, 100));
}

/// Threads have some MiB each for their open calls, of which only what they use may take memory.
#[test]
fn a_program_that_locks_its_memory_grows_by_little() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("left-locked");
    let program = build(&fixture);
    for kind in ["graph", "profile"] {
        let mut command = tool(&fixture);
        command.env("RINGMARK", "mode=discard,ring=64K,session=8M");
        command
            .args(["run", "--kind", kind, "-o"])
            .arg(fixture.path("left.rmk"));
        command.arg("--").arg(&program).arg("locked");
        let done = run(&mut command, LIMIT).expect("ringmark");
        if done.code() == 77 {
            return println!("skipped: memory cannot be locked here");
        }
        let grown: u64 = done.stdout_text().trim().parse().expect("KiB");
        // The threads' own stacks are filled too, 8 MiB each, as far as the system has them kept.
        let stacks = 16 * 8 * 1024;
        assert!(
            grown < stacks + 16 * 1024,
            "{kind}: {grown} KiB more with 16 threads"
        );
    }
}

#[test]
fn programs_with_sanitizers_start_as_they_are() {
    for (flags, is_ordered) in [
        ("-fsanitize=address", true),
        ("-fsanitize=undefined", false),
        ("-fsanitize=thread", false),
    ] {
        let flags = format!("{SITES} {flags}");
        if !require_tools(&["gcc"]) || !can_build("gcc", &flags) {
            continue;
        }
        let fixture = Fixture::new("left-sanitized");
        let program = compile(
            &fixture,
            "left.c",
            "left",
            &format!("{flags} -pthread left_other.c"),
        );
        // TSan ends a child that makes a thread.
        let done = traced(&fixture, "graph", &program, &["children"]).expect_code(0);
        assert_eq!(
            rows(&fixture, "leaf"),
            [1400],
            "{flags}: {}",
            done.stderr_text()
        );
        if is_ordered {
            // A user who names it keeps the order.
            let runtime = std::process::Command::new("gcc")
                .arg("-print-file-name=libasan.so")
                .output()
                .expect("gcc");
            let runtime = String::from_utf8_lossy(&runtime.stdout).trim().to_owned();
            let mut command = tool(&fixture);
            command
                .env("LD_PRELOAD", runtime)
                .env("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=1");
            command
                .args(["run", "--kind", "graph", "-o"])
                .arg(fixture.path("left.rmk"));
            let _ = run(command.arg("--").arg(&program), LIMIT)
                .expect("ringmark")
                .expect_code(0);
            assert_eq!(rows(&fixture, "leaf"), [1000], "{flags}");
        }
    }
}

/// `functions` says of a program what `run` would.
#[test]
fn a_static_program_is_refused_everywhere_for_one_reason() {
    if !can_build("gcc", "-static") {
        return;
    }
    let fixture = Fixture::new("left-static");
    let program = compile(
        &fixture,
        "left.c",
        "left",
        &format!("{SITES} -static -pthread left_other.c"),
    );
    const REASON: &str = "is linked statically: nothing can be preloaded";
    let listed = ringmark(&fixture, "functions", &[&program])
        .expect_code(4)
        .stderr_text();
    let why = ringmark(&fixture, "functions --why leaf", &[&program])
        .expect_code(4)
        .stdout_text();
    let done = traced(&fixture, "graph", &program, &[]);
    let told = done.stderr_text();
    for said in [&listed, &why, &told] {
        assert!(said.contains(REASON), "{said}");
    }
    assert!(!told.contains("no session appeared"), "{told}");
    let imported = ringmark(&fixture, "functions --why fork", &[&build(&fixture)]).expect_code(4);
    assert!(
        imported
            .stdout_text()
            .contains("a function of another object"),
        "{}",
        imported.stdout_text()
    );
}
