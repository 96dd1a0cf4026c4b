//! Promise: a program's checks and output are those of the program untraced, started with the tracer and attached to,
//! in each kind: one with a sanitizer that forks, one that locks its memory, becomes another user, has
//! signals ignored, has 2,000 threads, or fibers.

use std::process::{Command, Stdio};

use crate::calls;

use calls::Program;
use ringmark_tests::compiler::can_build;
use ringmark_tests::functions::{library, ringmark, tool};
use ringmark_tests::{Finished, Running, is_long, log_skip, require_tools};
use rustix::process::geteuid;

const ROOM: &str = "mode=overwrite,page=4K,ring=64K,session=256M";
const SITES: &str = "-fpatchable-function-entry=5";
const KINDS: [&str; 3] = ["graph", "function", "profile"];
/// Whoever starts the program has these ignored.
const WITH_IGNORED: &str = r#"trap "" PIPE USR1; exec "$@""#;

fn start(mut command: Command) -> Running {
    command.stdin(Stdio::piped());
    Running::start(&mut command).expect("it starts")
}

/// It works when its standard input ends.
fn finish(mut running: Running) -> Finished {
    drop(running.child().stdin.take());
    running.finish(2 * calls::LIMIT)
}

fn compare(traced: &Finished, plain: &Finished, told: &str) {
    let told = format!("{told}: {}", traced.stderr_text());
    assert_eq!(traced.code(), plain.code(), "{told}");
    assert_eq!(traced.stdout_text(), plain.stdout_text(), "{told}");
}

/// Part of a program, and how often something is done in it. `front`: what starts it.
struct Case<'a> {
    program: &'a Program,
    front: &'a [&'a str],
    part: (&'a str, u32),
}

impl Case<'_> {
    /// A command that runs it, with these words before the program.
    fn command(&self, tracer: &[&str]) -> Command {
        let (part, times) = self.part;
        let (file, times) = (self.program.path().display().to_string(), times.to_string());
        let words = [self.front, tracer, &[&file, part, &times]].concat();
        let mut command = self.program.fixture().command(words[0]);
        command.args(&words[1..]).env("RINGMARK", ROOM);
        command.env("RINGMARK_LIB", library());
        command
    }

    fn plain(&self) -> Finished {
        let plain = finish(start(self.command(&[])));
        assert_eq!(plain.code(), 0, "untraced: {}", plain.stderr_text());
        plain
    }

    fn filter(&self) -> String {
        format!("*@{}", self.program.name())
    }

    /// Runs it with the tracer.
    fn check_started(&self, plain: &Finished, kind: &str) {
        let fixture = self.program.fixture();
        let tool = tool(fixture).get_program().to_string_lossy().into_owned();
        let dump = fixture.path("run.rmk").display().to_string();
        let filter = self.filter();
        let run = [
            &tool, "run", "--kind", kind, "--filter", &filter, "-o", &dump, "--",
        ];
        let traced = finish(start(self.command(&run)));
        compare(&traced, plain, &format!("{kind} {:?}", self.part));
    }

    /// Starts it, and the tracer in it; what the command says.
    fn attached(&self, kind: &str) -> (Running, Finished) {
        let running = start(self.command(&[]));
        running.wait_until_in(&["7 "]); // It polls its standard input.
        let words = format!(
            "trace start -p {} -T own --kind {kind} --filter {} --detach",
            running.id(),
            self.filter()
        );
        let answer = ringmark(self.program.fixture(), &words, &[]);
        (running, answer)
    }

    /// Runs it in each kind, by both ways.
    fn check(&self) {
        let plain = self.plain();
        for kind in KINDS {
            self.check_started(&plain, kind);
            let (running, answer) = self.attached(kind);
            println!("{}", answer.expect_code(0).stdout_text());
            let told = format!("{kind} {:?}, attached", self.part);
            compare(&finish(running), &plain, &told);
        }
    }
}

fn parts(flags: &str, front: &[&str], part: (&str, u32)) {
    if !require_tools(&["gcc"]) {
        return;
    }
    let program = Program::new("gcc", "circumstances.c", &format!("-O2 {SITES} {flags}"));
    let program = &program;
    Case {
        program,
        front,
        part,
    }
    .check();
}

/// How often a program with a sanitizer forks.
fn sanitized_forks() -> u32 {
    if is_long() { 40 } else { 6 }
}

fn sanitized(sanitizer: &str) {
    let flags = format!("-fsanitize={sanitizer}");
    if can_build("gcc", &flags) {
        parts(&flags, &[], ("forks", sanitized_forks()));
    }
}

#[test]
fn a_program_that_forks() {
    parts("", &[], ("forks", if is_long() { 200 } else { 20 }));
}

#[test]
fn a_program_with_address_sanitizer_that_forks() {
    sanitized("address");
}

/// Its children make no threads: ThreadSanitizer ends a child that does where the program has another thread, and the tracer's is
/// one. It is told when it begins to pass over the tracer: later nothing tells it, so a program that runs is refused.
#[test]
fn a_program_with_thread_sanitizer_that_forks() {
    const FLAGS: &str = "-fsanitize=thread";
    if !require_tools(&["gcc"]) || !can_build("gcc", FLAGS) {
        return;
    }
    let program = Program::new("gcc", "circumstances.c", &format!("-O2 {SITES} {FLAGS}"));
    let case = Case {
        program: &program,
        front: &[],
        part: ("forks-alone", sanitized_forks()),
    };
    let plain = case.plain();
    for kind in KINDS {
        case.check_started(&plain, kind);
    }
    let (running, answer) = case.attached("graph");
    let told = answer.expect_code(4).stderr_text();
    assert!(told.contains("it runs with ThreadSanitizer"), "{told}");
    compare(&finish(running), &plain, "refused");
}

#[test]
fn a_program_with_undefined_behaviour_sanitizer_that_forks() {
    sanitized("undefined");
}

#[test]
fn a_program_that_locks_its_memory() {
    parts("", &[], ("locked", 5));
}

#[test]
fn a_program_that_becomes_nobody() {
    if !geteuid().is_root() {
        log_skip("a_program_that_becomes_nobody: only root can");
        return;
    }
    parts("", &[], ("nobody", 4));
}

#[test]
fn a_program_with_signals_ignored() {
    parts("", &["sh", "-c", WITH_IGNORED, "sh"], ("ignored", 50));
}

#[test]
fn a_program_with_2000_threads() {
    parts("", &[], ("threads", 2000));
}

#[test]
fn fibers_that_a_timer_switches() {
    const FIBERS: &str = "-lboost_fiber -lboost_context";
    if require_tools(&["g++"]) && can_build("g++", FIBERS) {
        let program = Program::new(
            "g++",
            "fibers.cc",
            &format!("-O2 {SITES} -Wl,--no-as-needed {FIBERS}"),
        );
        let part = ("fibers", if is_long() { 200 } else { 10 });
        Case {
            program: &program,
            front: &[],
            part,
        }
        .check();
    }
}
