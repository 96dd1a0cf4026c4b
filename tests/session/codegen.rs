//! The machine code of the event path: what the straight line must not hold, and a golden file of
//! it. The rules hold under every compiler.

use crate::c;

use std::path::{Path, PathBuf};
use std::process::Command;

use ringmark_tests::code::{
    Instruction, Processor, compare_with_golden, compare_with_golden_of, disassemble,
};
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::library;
use ringmark_tests::{require_tools, run, workspace_root};

const FUNCTIONS: [&str; 3] = [
    "hot_path_event_u64",
    "hot_path_event_empty",
    "hot_path_event_mixed",
];

#[test]
fn straight_line_has_no_lock_fence_or_call() {
    if !require_tools(&["objdump"]) {
        return;
    }
    let program = build("hot_path");
    for function in FUNCTIONS {
        let code = disassemble(&program, function);
        let line = straight_line(&code);
        check_straight_line(function, &line).unwrap_or_else(|error| panic!("{error}\n{line:#?}"));
        check_ways_out(function, &code).unwrap_or_else(|error| panic!("{error}\n{code:#?}"));
        compare_with_golden(function, &code);
    }
}

#[test]
fn straight_line_in_c_has_no_lock_fence_or_call() {
    if !require_tools(&["gcc", "objdump"]) {
        return;
    }
    let fixture = Fixture::new("codegen-c");
    for compiler in c::compilers() {
        let program = c::compile(&fixture, compiler, "hot_path.c", "-O2", "hot_path");
        for function in FUNCTIONS.map(|function| format!("c_{function}")) {
            let code = disassemble(&program, &function);
            let line = straight_line(&code);
            check_straight_line(&function, &line).unwrap_or_else(|e| panic!("{e}\n{line:#?}"));
            check_ways_out(&function, &code).unwrap_or_else(|e| panic!("{e}\n{code:#?}"));
            if compiler.c == c::GCC.c {
                compare_with_golden_of((Processor::X86_64, compiler.c), &function, &code);
            }
        }
    }
}

/// A span reads the clock twice, keeps its frame and writes one record, without an instruction that is locked.
#[test]
fn a_span_has_no_lock_or_fence() {
    if !require_tools(&["objdump"]) {
        return;
    }
    let program = build("hot_span");
    let mut code = disassemble(&program, "hot_path_span");
    code.extend(disassemble(
        &program,
        "ringmark::event::span::Running<F>::end",
    ));
    let clocks = code.iter().filter(|i| i.is("rdtsc")).count();
    assert_eq!(clocks, 2, "{code:#?}");
    for forbidden in ["lock", "mfence", "lfence", "sfence", "xchg", "syscall"] {
        let found = code.iter().find(|i| i.is(forbidden));
        assert!(found.is_none(), "{forbidden}: {code:#?}");
    }
    compare_with_golden("hot_path_span", &code);
}

/// What a call of a traced function runs through, from the trampoline to its record.
#[test]
fn call_stubs_have_no_lock_or_fence() {
    const STUBS: [&str; 13] = [
        "ringmark_enter",
        "ringmark_enter_inside",
        "ringmark_enter_sleds",
        "ringmark_enter_called",
        "ringmark_enter_any",
        "ringmark_enter_profile",
        "ringmark_leave_sled",
        "ringmark_leave_called",
        "ringmark_leave_tail",
        "ringmark_select_calls",
        "ringmark_select_inside",
        "ringmark_enter_timed",
        "ringmark_return_timed",
    ];
    if !require_tools(&["objdump"]) {
        return;
    }
    let library = library();
    let mut all = Vec::new();
    for stub in STUBS {
        let code = disassemble(library, stub);
        for forbidden in ["lock", "mfence", "lfence", "sfence", "syscall"] {
            let found = code.iter().find(|i| i.is(forbidden));
            assert!(found.is_none(), "{stub}: {forbidden}");
        }
        all.extend(code);
    }
    compare_with_golden("call_stubs", &all);
}

/// Counted by a simulator of the processor: the same on every machine.
#[test]
fn c_needs_no_more_instructions_than_rust() {
    if !require_tools(&["gcc", "valgrind"]) {
        return;
    }
    let fixture = Fixture::new("codegen-count");
    let in_rust = build("hot_path");
    let in_c = c::compile(&fixture, c::GCC, "hot_path.c", "-O2", "hot_path");
    for function in FUNCTIONS {
        let rust = instructions(&fixture, &in_rust, function, &[]);
        let c = instructions(&fixture, &in_c, &format!("c_{function}"), &[]);
        println!("{function}: {rust:.2} instructions an event in Rust, {c:.2} in C");
        assert!(c > 20.0, "{function}: only {c} instructions: is it on?");
        assert!(c <= rust * 1.02, "{function}: {c} in C, {rust} in Rust");
    }
}

/// After a pause that 32 bits of ticks do not bear, an event needs one short way more: it is found to
/// be late, and reserved with the clock reading that is there.
#[test]
fn an_event_in_an_old_page_needs_little_more() {
    if !require_tools(&["gcc", "valgrind"]) {
        return;
    }
    let fixture = Fixture::new("codegen-old-page");
    let in_rust = build("hot_path");
    let in_c = c::compile(&fixture, c::GCC, "hot_path.c", "-O2", "hot_path");
    for (program, prefix) in [(&in_rust, ""), (&in_c, "c_")] {
        let function = format!("{prefix}hot_path_event_u64");
        let fresh = instructions(&fixture, program, &function, &[]);
        let old = instructions(&fixture, program, &function, &["pause"]);
        println!("{function}: {fresh:.2} instructions an event, {old:.2} in an old page");
        assert!(old > fresh + 20.0, "{function}: {old}: is the page old?");
        assert!(
            old <= fresh * 2.5,
            "{function}: {old}, in a fresh page {fresh}"
        );
    }
}

/// Instructions per call of a function that the program calls a thousand times, with what it calls:
/// the first event of a thread and the turns of pages are among them.
fn instructions(fixture: &Fixture, program: &Path, function: &str, arguments: &[&str]) -> f64 {
    let mut command = fixture.program("valgrind", "mode=overwrite,keep=never");
    command.args(["--tool=callgrind", "--collect-atstart=no"]);
    command.arg(format!("--toggle-collect={function}"));
    command.arg(format!(
        "--callgrind-out-file={}",
        fixture.path("out").display()
    ));
    command.arg(program).args(arguments);
    let done = run(&mut command, c::LIMIT)
        .expect("valgrind")
        .expect_code(0);
    let text = done.stderr_text();
    let collected = text.split("Collected : ").nth(1);
    let number = collected.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    number.unwrap_or_else(|| panic!("no count in {text}")) / 1000.0
}

#[test]
fn a_locked_instruction_would_be_seen() {
    let line = |text: &str| Instruction {
        offset: 0,
        text: text.to_owned(),
    };
    let good = [line("rdtsc"), line("cmpxchg %r8,(%rsi)"), line("ret")];
    assert!(check_straight_line("good", &good).is_ok());
    for bad in [
        "lock cmpxchg %r8,(%rsi)",
        "mfence",
        "call *(%rip)",
        "xchg %rax,(%rsi)",
    ] {
        let mut with = good.to_vec();
        with.insert(1, line(bad));
        assert!(check_straight_line("bad", &with).is_err(), "{bad}");
    }
}

/// Builds the example as a user's release build would be.
fn build(example: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| workspace_root().join("target"));
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(workspace_root())
        .args(["rustc", "--release", "--locked", "-q"]);
    cargo
        .args(["-p", "ringmark", "--example", example, "--target-dir"])
        .arg(&target);
    // Whether the slow path lies in the unit of its callers decides how it is called: one unit.
    cargo.args(["--", "-C", "codegen-units=1"]);
    assert!(
        cargo.status().expect("cargo").success(),
        "the example {example} does not build"
    );
    target.join("release/examples").join(example)
}

/// The instructions of an event that is on, in a warm ring, with the counter as clock: no branch
/// is taken but the one that says that `cmpxchg` found an empty word.
fn straight_line(code: &[Instruction]) -> Vec<Instruction> {
    let mut line: Vec<Instruction> = Vec::new();
    let mut at = 0;
    while let Some(instruction) = code.get(at) {
        line.push(instruction.clone());
        let marked = line
            .iter()
            .rev()
            .skip(1)
            .take(2)
            .any(|i| i.text.contains("cmpxchg"));
        let taken = instruction.is("jmp") || (marked && instruction.is("je"));
        at = match instruction.target().filter(|_| taken) {
            Some(target) => code
                .iter()
                .position(|i| i.offset == target)
                .expect("a target inside"),
            None => at + 1,
        };
        if instruction.is("ret") || line.len() > code.len() {
            break;
        }
    }
    line
}

fn check_straight_line(function: &str, line: &[Instruction]) -> Result<(), String> {
    let forbidden = [
        "lock", "call", "mfence", "lfence", "sfence", "xchg", "syscall",
    ];
    for instruction in line {
        if forbidden.iter().any(|word| instruction.is(word)) {
            return Err(format!(
                "{function}: {} on the straight line",
                instruction.text
            ));
        }
    }
    let count = |word: &str| line.iter().filter(|i| i.is(word)).count();
    match (
        count("rdtsc"),
        count("cmpxchg"),
        line.last().is_some_and(|i| i.is("ret")),
    ) {
        (1, 1, true) => Ok(()),
        found => Err(format!(
            "{function}: (rdtsc, cmpxchg, ends in ret) = {found:?}, expected (1, 1, true)"
        )),
    }
}

/// Off the straight line there are at most three calls, all to cold functions: `reserve_slow`, the
/// one that reads another clock than the counter, and the unwinder's of the landing pad.
fn check_ways_out(function: &str, code: &[Instruction]) -> Result<(), String> {
    let calls = code.iter().filter(|i| i.is("call")).count();
    let branches = code.iter().filter(|i| i.is_conditional_jump()).count();
    if calls > 3 || branches > 10 {
        return Err(format!(
            "{function}: {calls} calls and {branches} branches, expected at most 3 and 10"
        ));
    }
    Ok(())
}
