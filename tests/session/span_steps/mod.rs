//! Promise: at every instruction at which a program begins or ends a span, in Rust and in each form of
//! `ringmark.h`, a reader is shown what is open. The operation under way is there or recorded.
//!
//! `tests/programs/c/span_steps.c` and `tests/programs/span_steps.rs` say in a ledger what they know of
//! each span. What stands in the stack of the mapped ring file, or of a copy of the file, is compared
//! with that.

mod walk;

use std::iter::successors;
use std::path::PathBuf;
use std::sync::OnceLock;

use ringmark_format::open_span::FRAMES;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::{is_long, require_tools};

use crate::c::{GCC, compile, compilers};
use walk::{Plan, Report, Walk};

/// The same in Rust, which has no blocks that end a span and no jumps.
const RUST: &str = ringmark_tests::program!("span_steps");

/// The program in C, as each compiler that is here makes it, with the library in it.
fn programs() -> &'static [PathBuf] {
    static BUILT: OnceLock<(Fixture, Vec<PathBuf>)> = OnceLock::new();
    let build = || {
        let fixture = Fixture::new("span-steps-programs");
        let all = if is_long() { compilers() } else { vec![GCC] };
        let flags = "-O2 -l:libringmark.a";
        let built = all.into_iter().map(|compiler| {
            let name = format!("span_steps_{}", compiler.c);
            compile(&fixture, compiler, "span_steps.c", flags, &name)
        });
        let built = built.collect();
        (fixture, built)
    };
    &BUILT.get_or_init(build).1
}

/// Walks in one form of C through all depths.
fn walk(form: &'static str, handlers: &[&'static str], depths: &[u32]) {
    if require_tools(&["gcc"]) {
        walk_programs(programs(), form, handlers, depths);
    }
}

/// The same in Rust.
fn walk_rust(form: &'static str, handlers: &[&'static str], depths: &[u32]) {
    walk_programs(&[PathBuf::from(RUST)], form, handlers, depths);
}

/// Walks in one form through all depths, with a handler at one instruction of each process: the rounds
/// stay short, and a frame that a jump leaves claimed is not missing in the next one.
fn walk_programs(
    programs: &[PathBuf],
    form: &'static str,
    handlers: &[&'static str],
    depths: &[u32],
) {
    let mut sum = Report::default();
    // A ring that changes takes many times as many instructions.
    let of_c: u64 = if form == "ring" { 331 } else { 151 };
    // So does Rust, and where the frames are full all of them are looked through.
    let (daily, long) = match programs {
        [one] if one.as_os_str() == RUST => (41 * of_c, 11),
        _ => (of_c, 1),
    };
    let every = if is_long() { long } else { daily };
    let plans = depths
        .iter()
        .flat_map(|depth| handlers.iter().map(|handler| (*depth, *handler)));
    for (depth, handler) in plans {
        let plan = Plan::new(form, depth, handler);
        let first = if handler == "none" { u64::MAX } else { 0 };
        for program in programs {
            for at in successors(Some(first), |at| at.checked_add(every)) {
                let mut walk = Walk::start(&plan, program).expect("a program to step");
                let done = walk.go_once(at);
                let states = walk.report.states;
                sum.add(&walk.report);
                if !done.unwrap_or_else(|what| panic!("{plan:?} at {at}: state {states}: {what}")) {
                    break;
                }
            }
        }
    }
    sum.expect_some(form);
}

/// The edges of the stack; daily less of them.
fn depths() -> &'static [u32] {
    const ALL: [u32; 5] = [0, 1, FRAMES - 1, FRAMES, FRAMES + 1];
    if is_long() { &ALL } else { &ALL[1..4] }
}

#[test]
fn spans_of_begin_and_end_at_every_instruction() {
    walk("begin", &["nests", "crosses"], depths());
}

#[test]
fn a_jump_out_of_begin_and_end_at_every_instruction() {
    walk("begin", &["jumps"], depths());
}

#[test]
fn spans_of_blocks_at_every_instruction() {
    walk("scope", &["nests", "crosses"], depths());
}

#[test]
fn a_jump_out_of_blocks_at_every_instruction() {
    walk("scope", &["jumps"], depths());
}

#[test]
fn a_thread_that_begins_with_a_span_at_every_instruction() {
    walk("claim", &["none"], &[0]);
}

#[test]
fn spans_while_the_ring_changes_at_every_instruction() {
    walk("ring", &["nests"], if is_long() { depths() } else { &[1] });
}

#[test]
fn spans_of_rust_at_every_instruction() {
    walk_rust("begin", &["nests", "crosses"], depths());
}

#[test]
fn a_thread_of_rust_that_begins_with_a_span_at_every_instruction() {
    walk_rust("claim", &["none"], &[0]);
}

#[test]
fn spans_of_rust_while_the_ring_changes_at_every_instruction() {
    walk_rust("ring", &["nests"], if is_long() { depths() } else { &[1] });
}

/// The process is killed, and its file is that of a dead one.
#[test]
fn spans_of_a_program_that_is_killed_between_two_instructions() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let (kills, c, rust) = (
        if is_long() { 1000 } else { 40 },
        &programs()[0],
        PathBuf::from(RUST),
    );
    for kill in 0..kills {
        let (form, program) = [("begin", c), ("scope", c), ("begin", &rust)][kill % 3];
        let plan = Plan::new(form, [0, 1, FRAMES - 1, FRAMES][kill / 3 % 4], "none");
        let mut walk = Walk::start(&plan, program).expect("a program to step");
        for _ in 0..1 + kill * 37 % 400 {
            walk.step(0).expect("a step").expect("the program runs");
        }
        let killed = walk.kill();
        killed.unwrap_or_else(|what| panic!("{plan:?}, kill {kill}: {what}"));
    }
    println!("{kills} kills");
}
