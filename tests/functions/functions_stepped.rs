//! Promise: at every instruction of a traced call, from the patch site to the return, an unwinder
//! finds the callers that it finds in the program untraced.

use std::process::{Command, Stdio};

use crate::calls;

use calls::{Program, RETURNS, XRAY, clang};
use ringmark_tests::compiler::can_build;
use ringmark_tests::functions::ringmark;
use ringmark_tests::{Finished, Running, is_long, log_skip, require_tools};

/// Small pages, so that they are filled.
const ROOM: &str = "mode=overwrite,page=4K,ring=64K,session=64M";
/// The program has no such unwinder here.
const NO_UNWINDER: i32 = 77;

/// What the tracers do with each call.
const WISHES: [(&str, &str); 8] = [
    ("graph", "tracer=graph;filter=*"),
    ("function", "tracer=function;filter=*"),
    ("profile", "tracer=profile;filter=*"),
    ("levels", "tracer=graph;filter=*;max_depth=3"),
    ("short", "tracer=graph;filter=*;min_ns=60000000000"),
    ("callers", "tracer=graph;filter=*;caller=nothing"),
    (
        "arguments",
        "tracer=graph;filter=*;args=3;result=on;min_ns=1",
    ),
    ("both", "tracer=graph;filter=*;tracer=profile;filter=*"),
];

/// Compilers that are here, and the flags for each form of patch sites.
fn forms() -> Vec<(String, String)> {
    let mut forms = Vec::new();
    if require_tools(&["gcc"]) {
        let entries = "-O2 -fpatchable-function-entry=5".to_owned();
        forms.push(("gcc".to_owned(), entries));
        if is_long() {
            let entries = "-O0 -fpatchable-function-entry=5 -fno-pie -no-pie".to_owned();
            forms.push(("gcc".to_owned(), entries));
        }
        let flags = format!("-O2 -fno-pie -no-pie -mnop-mcount {RETURNS}");
        forms.push(("gcc".to_owned(), flags));
        // Sites inside functions, as Rust has them.
        let inside = "-O2 -fpatchable-function-entry=0 -DINSIDE -mno-red-zone".to_owned();
        forms.push(("gcc".to_owned(), inside));
    }
    let xray = format!("-O2 {XRAY}");
    let clang = clang().filter(|clang| can_build(clang, &xray));
    forms.extend(clang.map(|clang| (clang, xray)));
    forms
}

/// What `stepped_calls.c` asks for the callers: its name there, and what the program is built with. libunwind must be
/// there when the tracer is loaded.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unwinder {
    Libgcc,
    Libunwind,
}

impl Unwinder {
    pub(crate) fn flags(self) -> &'static str {
        match self {
            Self::Libgcc => "",
            Self::Libunwind => "-Wl,--no-as-needed -l:libunwind.so.8",
        }
    }

    /// Starts the program, which waits for its standard input.
    pub(crate) fn start(self, mut command: Command, parts: &[&str]) -> Running {
        let name = match self {
            Self::Libgcc => "libgcc",
            Self::Libunwind => "libunwind",
        };
        command.arg(name).args(parts).stdin(Stdio::piped());
        Running::start(&mut command).expect("it starts")
    }

    /// What it finds in the program untraced.
    pub(crate) fn untraced(self, command: Command, parts: &[&str]) -> Option<Finished> {
        let finished = finish(self.start(command, parts));
        if finished.code() == NO_UNWINDER {
            log_skip(&format!("{self:?} is not installed"));
            return None;
        }
        Some(finished.expect_code(0))
    }
}

/// Has the program do its work.
pub(crate) fn finish(mut running: Running) -> Finished {
    drop(running.child().stdin.take());
    running.finish(5 * calls::LIMIT)
}

/// That the callers were those of the untraced program, at instructions of the tracer's, too.
pub(crate) fn compare(traced: &Finished, plain: &Finished, told: &str) {
    let told = format!("{told}: {}", traced.stderr_text());
    println!("{told}");
    assert_eq!(traced.code(), 0, "{told}");
    assert_eq!(traced.stdout_text(), plain.stdout_text(), "{told}");
    assert!(!told.contains(" 0 of them elsewhere"), "{told}");
}

fn parts() -> Vec<&'static str> {
    let mut parts = vec!["plain", "left", "thread", "coroutine", "alternate"];
    parts.extend(is_long().then_some("pages"));
    parts
}

/// Each form of patch sites, in each of `run`'s programs.
fn check(unwinder: Unwinder, run: impl Fn(&Program, &str, &Finished)) {
    for (compiler, flags) in forms() {
        if !can_build(&compiler, unwinder.flags()) {
            continue;
        }
        let flags = format!("{flags} {}", unwinder.flags());
        let program = Program::new(&compiler, "stepped_calls.c", &flags);
        let Some(plain) = unwinder.untraced(program.fixture().command(program.path()), &parts())
        else {
            return;
        };
        let told = program.build.clone();
        run(&program, &told, &plain);
    }
}

fn check_started(unwinder: Unwinder) {
    let wishes = &WISHES[..if is_long() { WISHES.len() } else { 5 }];
    check(unwinder, |program, build, plain| {
        for (name, wishes) in wishes {
            let traced = finish(unwinder.start(program.command(ROOM, wishes), &parts()));
            compare(&traced, plain, &format!("{name}, {build}"));
        }
    });
}

fn check_attached(unwinder: Unwinder) {
    let kinds = ["graph", "function", "profile"];
    check(unwinder, |program, build, plain| {
        for kind in kinds.iter().take(if is_long() { 3 } else { 1 }) {
            let mut command = program.fixture().command(program.path());
            command.env("RINGMARK", ROOM); // The tracer reads it when it is there.
            let running = unwinder.start(command, &parts());
            attach(&running, program, kind);
            compare(
                &finish(running),
                plain,
                &format!("{kind}, attached, {build}"),
            );
        }
    });
}

fn attach(running: &Running, program: &Program, kind: &str) {
    running.wait_until_in(&["7 "]); // It polls its standard input.
    let words = format!(
        "trace start -p {} -T own --kind {kind} --filter *@{} --detach",
        running.id(),
        program.name()
    );
    let answer = ringmark(program.fixture(), &words, &[]).expect_code(0);
    println!("{}", answer.stdout_text());
}

#[test]
fn unwinders_of_libgcc_find_the_callers_at_every_instruction() {
    check_started(Unwinder::Libgcc);
}

#[test]
fn libunwind_finds_the_callers_at_every_instruction() {
    check_started(Unwinder::Libunwind);
}

#[test]
fn unwinders_of_libgcc_find_the_callers_in_a_program_that_was_attached_to() {
    check_attached(Unwinder::Libgcc);
}

#[test]
fn libunwind_finds_the_callers_in_a_program_that_was_attached_to() {
    check_attached(Unwinder::Libunwind);
}
