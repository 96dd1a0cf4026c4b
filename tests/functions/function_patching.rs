//! Promise 20: sites are found and switched in programs of several compilers while six threads run
//! through them; nothing is stopped, results and counts are right, text stays as it was protected.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ringmark_tests::compiler::can_build;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::library;
use ringmark_tests::{Finished, is_long, log_skip, require_tools, run, workspace_root};

/// Six threads and their reader share two processors with other tests.
const LIMIT: Duration = Duration::from_secs(120);
const LIMIT_LONG: Duration = Duration::from_secs(3600);

/// Compiles `source` of `tests/programs/functions` to `output`.
fn compile(fixture: &Fixture, compiler: &str, source: &str, output: &str, flags: &str) -> PathBuf {
    let out = fixture.path(output);
    let mut command = Command::new(compiler);
    command.current_dir(workspace_root().join("tests/programs/functions"));
    command
        .args(flags.split_whitespace())
        .arg(source)
        .arg("-o")
        .arg(&out);
    command.args(["-ldl", "-lpthread"]);
    let _ = run(&mut command, LIMIT).expect("a compiler").expect_code(0);
    out
}

/// Runs a program that loads the tracer late; `preload` has it there from the start.
fn traced(program: &Path, arguments: &str, preload: bool) -> Finished {
    let mut command = Command::new(program);
    // Programs built with -pg leave a profile where they run.
    command.current_dir(program.parent().expect("a file has a directory"));
    command.args(arguments.split_whitespace());
    command.env(if preload { "LD_PRELOAD" } else { "TRACER" }, library());
    run(&mut command, if is_long() { LIMIT_LONG } else { LIMIT }).expect("it starts")
}

/// Lines `key value` of a program that ended well.
fn figures(finished: Finished) -> BTreeMap<String, f64> {
    let text = finished.expect_code(0).stdout_text();
    let pair = |line: &str| {
        let (key, value) = line.split_once(' ')?;
        Some((key.to_owned(), value.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

/// `toggle` under `arguments`: `seconds batches …`.
fn toggled(program: &Path, arguments: &str, preload: bool) -> BTreeMap<String, f64> {
    let finished = traced(program, arguments, preload).expect_code(0);
    let text = finished.stdout_text();
    let found = figures(finished);
    if !found.contains_key("unlocked") {
        let open = text
            .lines()
            .find_map(|line| line.strip_prefix("open "))
            .unwrap_or("");
        let (counted, made) = open.split_once(" of ").unwrap_or(("", "?"));
        assert_eq!(
            counted, made,
            "every call of an open site is counted:\n{text}"
        );
        assert!(
            text.contains("\nrest 0 of "),
            "no call of a site at rest is:\n{text}"
        );
        assert_eq!(found["writable_code"], 0.0, "{text}");
        assert_eq!(found["counted_any"], 1.0, "{text}");
    }
    found
}

/// Seconds and batches.
fn share() -> &'static str {
    if is_long() { "20 20000" } else { "0.3 100" }
}

/// Ways to build with gcc, and whether sites are five NOPs of one byte.
const GCC: &[(&str, bool)] = &[
    ("-O0 -fpatchable-function-entry=5", true),
    ("-O2 -fpatchable-function-entry=5", true),
    ("-O2 -fno-pie -no-pie -fpatchable-function-entry=5", true),
    ("-O2 -flto -fpatchable-function-entry=5", true),
    (
        "-O2 -ffunction-sections -Wl,--gc-sections -s -fpatchable-function-entry=5",
        true,
    ),
    ("-O2 -fcf-protection -fpatchable-function-entry=7,2", true),
    ("-Os -falign-functions=1 -fpatchable-function-entry=5", true),
    ("-O2 -pg -mfentry -mrecord-mcount", false),
    (
        "-O2 -fno-pie -no-pie -pg -mfentry -mrecord-mcount -falign-functions=1",
        false,
    ),
    (
        "-O2 -fno-pie -no-pie -pg -mfentry -mrecord-mcount -mnop-mcount -falign-functions=1",
        false,
    ),
];

const CLANG: &[&str] = &[
    "-O0 -fpatchable-function-entry=5",
    "-Os -fpatchable-function-entry=5",
    "-O2 -fpatchable-function-entry=9",
    "-O2 -fpatchable-function-entry=12",
    "-O2 -fxray-instrument -fxray-instruction-threshold=1",
];

/// Builds whose symbols are stripped: their functions have no names to choose by.
fn is_nameless(flags: &str) -> bool {
    flags.contains(" -s ")
}

#[test]
fn late_start_beside_six_threads_and_whatever_rests_inside_a_site() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("late");
    for (flags, has_ones) in GCC {
        let program = compile(&fixture, "gcc", "toggle.c", "toggle", flags);
        let all = if is_nameless(flags) { "all" } else { "" };
        let found = toggled(&program, &format!("{} inside {all}", share()), false);
        println!("{flags}: {found:?}");
        assert_eq!(found["inside"] > 0.0, *has_ones, "{flags}: {found:?}");
        if flags.contains("-falign-functions=1") {
            assert!(found["offsets"] >= 7.0, "sites at any address: {found:?}");
        }
    }
}

#[test]
fn no_call_is_missed_while_open_sites_get_other_targets() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("retarget");
    for (flags, _) in &GCC[5..8] {
        let program = compile(&fixture, "gcc", "toggle.c", "toggle", flags);
        let found = toggled(&program, &format!("{} retarget", share()), false);
        println!("{flags}: {found:?}");
        assert_eq!(found["missed"], 0.0, "{flags}: {found:?}");
    }
}

#[test]
fn preloaded_sites_are_switched_before_threads_run_and_after() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("before");
    for flags in [
        "-O2 -fpatchable-function-entry=5",
        "-Os -falign-functions=1 -fpatchable-function-entry=5",
    ] {
        let program = compile(&fixture, "gcc", "toggle.c", "toggle", flags);
        let found = toggled(&program, &format!("{} before", share()), true);
        println!("{flags}: {found:?}");
    }
    // The programs notice where the promise is broken: threads rest inside sites, and we said none do.
    let program = compile(
        &fixture,
        "gcc",
        "toggle.c",
        "toggle",
        "-O2 -fpatchable-function-entry=5",
    );
    let broken = traced(&program, "0.3 100 before inside", true);
    assert!(
        broken.code() > 128,
        "code {}: {}",
        broken.code(),
        broken.stdout_text()
    );
}

#[test]
fn sites_of_clang_where_it_is_installed() {
    if !can_build("clang", "") {
        return;
    }
    let fixture = Fixture::new("clang");
    for flags in CLANG.iter().filter(|flags| can_build("clang", flags)) {
        let program = compile(&fixture, "clang", "toggle.c", "toggle", flags);
        let found = toggled(&program, &format!("{} inside", share()), false);
        println!("{flags}: {found:?}");
        if flags.contains("xray") {
            let exits = toggled(&program, &format!("{} exits", share()), false);
            println!("{flags} exits: {exits:?}");
        }
    }
}

#[test]
fn sites_of_rust_where_its_nightly_compiler_is_installed() {
    let fixture = Fixture::new("rust");
    let source = workspace_root().join("tests/programs/functions/plugin.rs");
    let object = fixture.path("plugin.so");
    let mut compiler = Command::new("rustc");
    compiler
        .args(["+nightly", "-Zpatchable-function-entry=5", "-O", "-o"])
        .arg(&object)
        .arg(source);
    let is_built = run(&mut compiler, LIMIT).is_ok_and(|finished| finished.code() == 0);
    if !is_built {
        return log_skip("patch sites of Rust: need rustc +nightly");
    }
    if !require_tools(&["gcc"]) {
        return;
    }
    let program = compile(&fixture, "gcc", "modules.c", "modules", "-O2");
    let arguments = format!("{0} {0}", object.display());
    let found = figures(traced(&program, &arguments, false));
    println!("{found:?}");
    for name in [
        "plugin_sites",
        "switched",
        "counted",
        "again",
        "again_counted",
    ] {
        assert_eq!(found[name], 2.0, "{name}: {found:?}");
    }
}

#[test]
fn twenty_thousand_sites_in_one_switch() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("many");
    let program = compile(&fixture, "gcc", "toggle.c", "toggle", "-O2 -DSITES=20000");
    for preload in [false, true] {
        let how = if preload { "before" } else { "" };
        let found = toggled(&program, &format!("0.5 10 {how}"), preload);
        println!("preload {preload}: {found:?}");
        assert!(found["sites"] >= 20_000.0);
        // Processor time, because other tests run here too.
        assert!(found["cpu_us"] <= 10_000.0, "{found:?}");
    }
}

#[test]
fn a_process_that_may_not_write_code_is_traced_too() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("locked");
    let program = compile(
        &fixture,
        "gcc",
        "toggle.c",
        "toggle",
        "-O2 -fpatchable-function-entry=5",
    );
    let found = toggled(&program, "0.3 20 inside locked", false);
    println!("{found:?}");
}

#[test]
fn modules_come_and_go_and_forks_happen_meanwhile() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("modules");
    let flags = "-O2 -fPIC -shared -fpatchable-function-entry=5";
    let plugin = compile(&fixture, "gcc", "plugin.c", "plugin.so", flags);
    let storm = compile(&fixture, "gcc", "plugin.c", "storm.so", flags);
    let program = compile(&fixture, "gcc", "modules.c", "modules", "-O2");
    let arguments = format!("{} {}", plugin.display(), storm.display());
    let found = figures(traced(&program, &arguments, false));
    println!("{found:?}");
    let expected = [
        ("without", 0.0),
        ("with", 2.0),
        ("plugin_sites", 2.0),
        ("switched", 2.0),
        ("result", 42.0),
        ("counted", 2.0),
        ("gone", 0.0),
        ("stale", 0.0),
        ("renumbered", 1.0),
        ("again", 2.0),
        ("again_result", 42.0),
        ("again_counted", 2.0),
        ("tampered", 1.0),
        ("tampered_result", 42.0),
        ("tampered_counted", 2.0),
    ];
    for (name, value) in expected {
        assert_eq!(found.get(name), Some(&value), "{name}: {found:?}");
    }
    assert!(found["rescan_ns"] < 20_000.0, "nothing changed: {found:?}");
    assert!(found["loads"] >= 300.0 && found["forked"] >= 100.0);
}

#[test]
fn what_cannot_be_traced_is_named_with_its_reason() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("refused");
    let program = compile(&fixture, "gcc", "refused.c", "refused", "-O1");
    let text = traced(&program, "", false).expect_code(0).stdout_text();
    for line in [
        "yes plain ",
        "yes both_sides ",
        "no few 3 bytes of NOP, expected 5",
        "no few_behind 4 bytes of NOP, expected 5",
        "no broken found [66, 90, 0f, 1f, 00, c3, cc, 1f], expected one NOP of 5 bytes or NOPs of one byte each",
        "no changed found [cc, 1f, 44, 00, 00, c3",
        "no - no symbol or unwind entry says that a function begins here",
        "no - the entry points outside the code of its module",
        "switched 2",
        "counted 2",
    ] {
        assert!(
            text.lines().any(|found| found.starts_with(line)),
            "{line:?} in:\n{text}"
        );
    }
    assert!(!text.contains("without"), "{text}");
}

#[test]
fn a_file_replaced_since_it_was_loaded_is_not_believed() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("replaced");
    let flags = "-O2 -fPIC -shared -fpatchable-function-entry=5";
    let plugin = compile(&fixture, "gcc", "plugin.c", "plugin.so", flags);
    let program = compile(&fixture, "gcc", "replaced.c", "replaced", "-O2");
    let text = traced(&program, &plugin.display().to_string(), false)
        .expect_code(0)
        .stdout_text();
    assert!(
        text.contains("plugin.so: replaced or removed since it was loaded"),
        "{text}"
    );
}

#[test]
fn a_million_switches_of_batches() {
    if !is_long() || !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("million");
    let flags = "-Os -falign-functions=1 -fpatchable-function-entry=5";
    let program = compile(&fixture, "gcc", "toggle.c", "toggle", flags);
    let found = toggled(&program, "1 1000000 inside", false);
    println!("{found:?}");
    assert!(found["batches"] >= 1e6);
}
