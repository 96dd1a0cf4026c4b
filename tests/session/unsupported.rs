//! A program that depends on `ringmark` compiles where Ringmark cannot trace, runs there untraced,
//! and is told why. `--cfg ringmark_unsupported` stands for such a system here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use ringmark_tests::{run, workspace_root};

/// For a build of the producer and its dependencies, on a busy machine.
const BUILT_WITHIN: Duration = Duration::from_secs(1200);
const RUN_WITHIN: Duration = Duration::from_secs(60);

/// The example with every macro, for this system or, with a flag, as for one without tracing.
fn every_macro(flag: Option<&str>) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let mut target = target.unwrap_or_else(|| workspace_root().join("target"));
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace_root());
    if let Some(flag) = flag {
        cargo.env("RUSTFLAGS", flag);
        target = target.join("unsupported");
    }
    cargo.args(["build", "--quiet", "--locked", "--release"]);
    cargo.args(["--package", "ringmark"]);
    cargo.args(["--features", "functions,tracing", "--example"]);
    cargo.args(["every_macro", "--target-dir"]).arg(&target);
    let built = run(&mut cargo, BUILT_WITHIN).expect("cargo");
    let _ = built.expect_code(0);
    target.join("release/examples/every_macro")
}

/// What the program prints, in lines; `RINGMARK` asks it for a session.
fn lines(program: &Path) -> Vec<String> {
    let mut command = Command::new(program);
    command.env("RINGMARK", "memfd=on,keep=never");
    let done = run(&mut command, RUN_WITHIN).expect("the example");
    let done = done.expect_code(0);
    let text = String::from_utf8(done.stdout).expect("text");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_program_with_every_macro_runs_untraced_and_is_told_why() {
    let lines = lines(&every_macro(Some("--cfg ringmark_unsupported")));
    let expected = [
        "no session: Ringmark traces on Linux with glibc on x86-64 or aarch64, found linux on x86_64, \
         built with --cfg ringmark_unsupported",
        "current session: false",
        "thread has a ring: false",
        "bridge: session false",
        "evaluated: 0",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn the_same_program_is_traced_on_this_system() {
    let lines = lines(&every_macro(None));
    assert!(lines[0].starts_with("session "), "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("evaluated: 9"));
}

/// Names of the public functions in blocks `impl Session` of the Rust files in `dir`.
fn public_functions(dir: &str) -> BTreeSet<String> {
    let files = fs::read_dir(workspace_root().join(dir)).expect(dir);
    let texts = files.map(|file| fs::read_to_string(file.expect(dir).path()).expect(dir));
    let texts: Vec<String> = texts.collect();
    let blocks = texts.iter().flat_map(|text| {
        let blocks = text.split("\nimpl Session {").skip(1);
        blocks.filter_map(|rest| rest.split("\n}").next())
    });
    let functions = blocks.flat_map(|block| block.split("\n    pub ").skip(1));
    let functions = functions.map(|function| function.strip_prefix("const ").unwrap_or(function));
    let functions = functions.filter_map(|function| function.strip_prefix("fn "));
    let names = functions.filter_map(|function| function.split(['(', '<']).next());
    names.map(str::to_owned).collect()
}

#[test]
fn a_session_has_the_same_functions_everywhere() {
    let traced = public_functions("producer/src/session");
    assert!(traced.contains("set_filter"), "{traced:?}");
    assert_eq!(public_functions("producer/src/unsupported"), traced);
}
