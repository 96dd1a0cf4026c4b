//! Promise: tracing changes nothing in a function that ends in a jump to another one on a condition. A sled stands
//! between a comparison and the jump that needs its flags there, and the function may go on.

use crate::calls;

use std::fs;

use calls::{LIMIT, Program, XRAY};
use ringmark_tests::compiler::first_that_builds;
use ringmark_tests::fixture::SOON;
use ringmark_tests::functions::{ringmark, tool};
use ringmark_tests::{Running, require_tools, run, wait_until};
use rustix::process::Signal;

/// Compilers that are here, and what they are told. The jumps are those of clang 14 with -Os, as it wrote them or by
/// hand; later releases make others of the same source.
fn ways() -> Vec<(&'static str, String)> {
    let mut ways = Vec::new();
    if require_tools(&["gcc"]) {
        ways.push((
            "gcc",
            "-O2 -DASSEMBLED -fpatchable-function-entry=0".to_owned(),
        ));
    }
    for clang in ["clang-14", "clang-19"] {
        for size in ["-Os", "-Oz"] {
            let flags = ["-fno-xray-link-deps", "-fnoxray-link-deps"]
                .map(|flag| format!("{size} {XRAY} {flag}"));
            let found = first_that_builds(clang, &flags.each_ref().map(String::as_str));
            ways.extend(found.map(|flags| (clang, flags.to_owned())));
        }
    }
    ways
}

#[test]
fn a_program_that_is_started_counts_right() {
    for (compiler, flags) in ways() {
        let program = Program::new(compiler, "condition.c", &flags);
        for kind in ["graph", "function", "profile"] {
            let mut command = tool(program.fixture());
            command
                .args(["run", "--kind", kind, "-o"])
                .arg(program.fixture().path("c.rmk"));
            command.arg("--").arg(program.path()).arg("100000");
            let done = run(&mut command, LIMIT).expect("ringmark").expect_code(0);
            assert!(
                done.stdout_text().starts_with("right"),
                "{}: {}",
                program.build,
                done.stdout_text()
            );
        }
        let found = ringmark(program.fixture(), "functions", &[program.path()]);
        let found = found.expect_code(0).stdout_text();
        for name in ["take", "look", "negative", "keep"] {
            assert!(
                found.contains(&format!(" {name} ")),
                "{}: {found}",
                program.build
            );
        }
        if flags.contains("ASSEMBLED") {
            assert!(
                !found.contains("sleds"),
                "their ends are seen by their return addresses: {found}"
            );
        }
    }
}

#[test]
fn a_program_that_runs_counts_right() {
    for (compiler, flags) in ways() {
        let program = Program::new(compiler, "condition.c", &flags);
        let mut command = program.fixture().command(program.path());
        let running = Running::start(command.arg("0")).expect("it starts");
        wait_until(SOON, "its handler of SIGTERM", || {
            let status = fs::read_to_string(format!("/proc/{}/status", running.id())).ok()?;
            let caught = status
                .lines()
                .find_map(|line| line.strip_prefix("SigCgt:"))?;
            let caught = u64::from_str_radix(caught.trim(), 16).ok()?;
            (caught >> 14 & 1 == 1).then_some(())
        });
        let pid = running.id();
        let dump = program.fixture().path("attached.rmk");
        let words = format!(
            "record -p {pid} --kind graph --filter take --filter look --filter keep --for 1s -o"
        );
        // Its rings may be overwritten.
        let recorded = ringmark(program.fixture(), &words, &[&dump]);
        assert!(recorded.code() <= 1, "{}", recorded.stderr_text());
        running.signal(Signal::TERM).expect("it runs");
        let done = running.finish(LIMIT).expect_code(0);
        assert!(
            done.stdout_text().contains("right"),
            "{}: {}",
            program.build,
            done.stdout_text()
        );
    }
}
