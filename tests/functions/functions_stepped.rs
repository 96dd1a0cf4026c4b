//! Promise: at every instruction of a traced call, from the patch site to the return, an unwinder
//! finds the callers that it finds in the program untraced.

use crate::calls;

use calls::{Program, RETURNS, XRAY, clang};
use ringmark_tests::compiler::can_build;
use ringmark_tests::tools::log_skip;
use ringmark_tests::{Finished, is_long, require_tools, run};

/// Small pages, so that they are filled.
const ROOM: &str = "mode=overwrite,page=4K,ring=64K,session=64M";
/// The program has no such unwinder here.
const NO_UNWINDER: i32 = 77;

/// What the tracers do with each call.
const WISHES: [(&str, &str); 5] = [
    ("graph", "tracer=graph;filter=*"),
    ("function", "tracer=function;filter=*"),
    ("profile", "tracer=profile;filter=*"),
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

fn parts() -> Vec<&'static str> {
    let mut parts = vec!["plain", "left", "thread", "coroutine", "alternate"];
    parts.extend(is_long().then_some("pages"));
    parts
}

fn untraced(program: &Program, unwinder: &str) -> Option<Finished> {
    let mut command = program.fixture().command(program.path());
    let finished = run(command.arg(unwinder).args(parts()), calls::LIMIT).expect("it starts");
    if finished.code() == NO_UNWINDER {
        log_skip(&format!("{unwinder} is not installed"));
        return None;
    }
    Some(finished.expect_code(0))
}

fn check(unwinder: &str, wishes: &[(&str, &str)]) {
    for (compiler, flags) in forms() {
        let program = Program::new(&compiler, "stepped_calls.c", &flags);
        let Some(plain) = untraced(&program, unwinder) else {
            return;
        };
        for (name, wishes) in wishes {
            let mut command = program.command(ROOM, wishes);
            let traced = run(command.arg(unwinder).args(parts()), calls::LIMIT);
            let traced = traced.expect("it starts");
            let told = format!("{name}, {}: {}", program.build, traced.stderr_text());
            println!("{told}");
            assert_eq!(traced.code(), 0, "{told}");
            assert_eq!(traced.stdout_text(), plain.stdout_text(), "{told}");
            assert!(!told.contains(" 0 of them elsewhere"), "{told}");
        }
    }
}

#[test]
fn unwinders_of_libgcc_find_the_callers_at_every_instruction() {
    check(
        "libgcc",
        &WISHES[..if is_long() { WISHES.len() } else { 3 }],
    );
}
