//! Promise: `#[ringmark::trace_fn]` makes Rust functions traceable, whatever their kind: each call
//! is there, with its end by a return, `?` or a panic. At rest a site is one NOP, and without the
//! feature the attribute leaves no byte.

use crate::calls;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use self::calls::{DISCARD, Program, own_counts};
use ringmark_reader::{Access, Session, control};
use ringmark_tests::binary::{BUILT, built};
use ringmark_tests::code::{Instruction, compare_with_golden, disassemble, disassemble_all};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{LIMIT, calls, library, ringmark, start, tool};
use ringmark_tests::{Finished, Running, is_long, require_tools, run, wait_until, workspace_root};

const PACKAGE: &str = "ringmark-test-functions";
/// In front of the names of its functions; types have it, too.
const KINDS: &str = "ringmark_test_functions::kinds::";
const LEAVES: &str = "ringmark_test_functions::leaves::";
/// What a site is at rest.
const NOP: &str = "nopl 0x0(%rax,%rax,1)";

/// The program with sites.
fn sites() -> PathBuf {
    built("functions-sites")
}

/// The same, built otherwise: what Cargo's configuration says of it.
fn sites_with(configuration: &str) -> PathBuf {
    let target = Path::new(BUILT).with_file_name("functions-otherwise");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace_root());
    cargo.args([
        "build",
        "-q",
        "--release",
        "--locked",
        "-p",
        PACKAGE,
        "--features=functions",
    ]);
    cargo.args([
        "--bin=functions-sites",
        "--config",
        configuration,
        "--target-dir",
    ]);
    let _ = run(cargo.arg(&target), 10 * LIMIT)
        .expect("cargo")
        .expect_code(0);
    target.join("release/functions-sites")
}

#[test]
fn each_call_is_there_with_its_end() {
    check_calls(sites(), "");
    let others = [
        "profile.release.opt-level=0",
        "profile.release.lto='fat'",
        "build.rustflags=['-Cforce-frame-pointers', '-Csymbol-mangling-version=v0']",
    ];
    for other in others.iter().take(if is_long() { others.len() } else { 0 }) {
        check_calls(sites_with(other), other);
    }
}

fn check_calls(program: PathBuf, build: &str) {
    let program = Program::at(program);
    let wishes = "tracer=graph;filter=*@functions-sites";
    let traced = program.trace(DISCARD, wishes, "10");
    println!("{build} {:?}", traced.books);
    traced.books.expect_closed(build);
    let own = own_counts(&traced.finished);
    traced.books.expect_calls(&own, build);
    let functions = &traced.books.functions;
    assert_eq!(functions.len(), own.len() + 2, "{functions:?}"); // Two leaves do not count.
    for (name, counts) in functions {
        assert_eq!(counts.loose, 0, "{name}");
        if name != "falls" {
            assert_eq!(counts.unwound, 0, "{name}");
        }
    }
    let falls = &functions["falls"];
    assert!(falls.unwound > 100 && falls.returned == 0, "{falls:?}");
}

/// At rest: no load, no branch, one NOP. A function that calls no other aligns its stack, too, as if
/// it did.
#[test]
fn a_site_is_one_nop() {
    if !require_tools(&["objdump"]) {
        return;
    }
    let (with, without) = (sites(), built("functions-plain"));
    for (function, of_a_call) in [("leaf_sum", 2), ("leaf_calls", 0)] {
        let name = format!("ringmark_test_functions::leaves::{function}");
        let (with, without) = (disassemble(&with, &name), disassemble(&without, &name));
        check_site(&with, &without, of_a_call).unwrap_or_else(|e| panic!("{function}: {e}"));
        compare_with_golden(function, &with);
    }
}

fn check_site(
    with: &[Instruction],
    without: &[Instruction],
    of_a_call: usize,
) -> Result<(), String> {
    let nops = with.iter().filter(|i| i.text == NOP).count();
    let aligns = |i: &&&Instruction| ["push %rax", "pop %rcx"].contains(&i.text.as_str());
    let aligning = |code: &[Instruction]| code.iter().filter(|i| aligns(&i)).count();
    let added = aligning(with).saturating_sub(aligning(without));
    if (nops, added) != (1, of_a_call) {
        return Err(format!("{nops} NOPs, {added} of a call: {with:?}"));
    }
    let rest = |code: &[Instruction]| {
        let rest = code.iter().filter(|i| i.text != NOP && !aligns(&i));
        // Where a jump goes to is another place now.
        let texts = rest.map(|i| i.text.split('<').next().unwrap_or("").to_owned());
        texts.collect::<Vec<_>>()
    };
    let (with, without) = (rest(with), rest(without));
    (with == without)
        .then_some(())
        .ok_or_else(|| format!("{with:#?}\ninstead of\n{without:#?}"))
}

#[test]
fn a_load_or_a_branch_would_be_seen() {
    let code = |texts: &[&str]| {
        let one = |text: &&str| Instruction {
            offset: 0,
            text: (*text).to_owned(),
        };
        texts.iter().map(one).collect::<Vec<_>>()
    };
    let plain = code(&["add %rsi,%rax", "ret"]);
    assert!(check_site(&code(&[NOP, "add %rsi,%rax", "ret"]), &plain, 0).is_ok());
    let aligned = code(&["push %rax", NOP, "add %rsi,%rax", "pop %rcx", "ret"]);
    assert!(check_site(&aligned, &plain, 2).is_ok());
    assert!(check_site(&aligned, &plain, 0).is_err());
    for bad in [
        "cmpb $0x0,LINKED(%rip)",
        "jne <a+0x9>",
        NOP,
        "mov (%rdi),%rax",
    ] {
        let with = code(&[NOP, bad, "add %rsi,%rax", "ret"]);
        assert!(check_site(&with, &plain, 0).is_err(), "{bad}");
    }
}

#[test]
fn without_the_feature_no_byte_is_left() {
    if !require_tools(&["objdump", "readelf"]) {
        return;
    }
    let attribute = built("functions-attribute");
    let plain = built("functions-plain");
    let code = |program| {
        let mut all = disassemble_all(program, "ringmark_test_functions::");
        // Functions of one name, such as closures, come in the order of their hashes.
        let same_name = all.values_mut();
        same_name.for_each(|all| all.sort_by_key(|function| format!("{function:?}")));
        all
    };
    let (with, without) = (code(&attribute), code(&plain));
    assert!(without.len() > 5, "{:?}", without.keys());
    assert_eq!(format!("{with:#?}"), format!("{without:#?}"));
    for (program, expected) in [(sites(), true), (attribute, false), (plain, false)] {
        let mut readelf = Command::new("readelf");
        let sections = run(readelf.arg("-SW").arg(&program), LIMIT).expect("readelf");
        let found = sections.stdout_text().contains("ringmark_functions");
        assert_eq!(found, expected, "{}", program.display());
    }
}

/// `NAME() {`, `NAME();` and `}` of each thread, below the graph's head.
fn shapes(graph: &str) -> BTreeMap<String, String> {
    let mut shapes = BTreeMap::new();
    for line in graph.lines().skip(2) {
        if let [_, tid, call] = line.splitn(3, '|').collect::<Vec<_>>()[..] {
            let shape: &mut String = shapes.entry(tid.trim().to_owned()).or_default();
            *shape += &format!(
                "{}\n",
                call.replace(KINDS, "")
                    .replace(LEAVES, "")
                    .get(1..)
                    .unwrap_or("")
            );
        }
    }
    shapes
}

#[test]
fn their_graph() {
    let fixture = Fixture::new("fn-rust");
    let dump = fixture.path("run.rmk");
    let mut command = tool(&fixture);
    let words = "run --kind graph -F *kinds* --notrace *::all -N *::falls -o";
    command.args(words.split(' ')).arg(&dump).arg("--");
    let _ = run(command.arg(sites()).arg("1"), LIMIT)
        .expect("it starts")
        .expect_code(0);
    let graph = ringmark(&fixture, "graph -D 2", &[&dump]).expect_code(0);
    let shapes = shapes(&graph.stdout_text());
    assert_eq!(shapes.len(), 4, "{shapes:?}");
    let leaf = |name: &str| format!("{name}();\n");
    let outer = |name: &str, inner: &str| format!("{name}() {{\n  {inner}();\n}}\n");
    let begin = leaf("questions").repeat(2) + &leaf("leaves_early").repeat(2);
    let methods = leaf("Shape::method")
        + &outer("Form::provided", "<Shape as Form>::required")
        + &leaf("<Shape as Form>::required")
        + &leaf("module::in_module")
        + &outer("module::below::deeper", "module::in_module");
    for shape in shapes.values() {
        let shape = shape.replace("generic();\n", "");
        assert!(shape.starts_with(&begin), "{shape}");
        assert!(shape.contains(&methods), "{shape}");
        assert!(shape.ends_with(&leaf("Shape::by_value")), "{shape}");
    }
}

/// The tool loads the library into the one that was started without it.
#[test]
fn they_are_switched_while_the_program_runs() {
    for is_prepared in [true, false] {
        let fixture = Fixture::new("fn-rust");
        let program = if is_prepared {
            start(&fixture, &sites())
        } else {
            let mut command = fixture.command(sites());
            Running::start(command.args(["-1", "200"])).expect("it starts")
        };
        let pid = program.id();
        let ask = |words: &str| {
            let finished = ringmark(&fixture, &format!("trace {words} -p {pid}"), &[]);
            finished.expect_code(0).stdout_text()
        };
        let said = ask("start -F *::leaf_* --detach");
        assert!(
            said.contains("3 functions matched, 3 patch sites changed, 3 enabled"),
            "{said}"
        );
        let dump = fixture.path("now.rmk");
        let names = || {
            let snapshot = format!("snapshot -p {pid} -o");
            let _ = ringmark(&fixture, &snapshot, &[&dump]).expect_code(0);
            let names = calls(&fixture, "", &dump).into_keys();
            names
                .map(|name| name.replace(KINDS, "").replace(LEAVES, ""))
                .collect::<Vec<_>>()
        };
        wait_until(SOON, "calls", || {
            (names() == ["leaf_calls", "leaf_counted", "leaf_sum"]).then_some(())
        });
        assert!(ask("stop").ends_with("0 enabled; 0 refused\n"));
    }
}

/// Its result is that of a run without a tracer.
#[test]
fn switching_changes_nothing() {
    let rounds = if is_long() { "20000" } else { "2000" };
    let expected = run(Command::new(sites()).arg(rounds), LIMIT).expect("it starts");
    // Again, where it was soon done and the answers were late.
    let mut switched = 0;
    for _ in 0..20 {
        switched += switch_until_its_end(rounds, &expected);
        if switched > 10 {
            break;
        }
    }
    println!("switched {switched} times");
    assert!(switched > 10, "{switched}");
}

/// Runs it, switching all the time; how often.
fn switch_until_its_end(rounds: &str, expected: &Finished) -> usize {
    let fixture = Fixture::new("fn-rust");
    let mut command = fixture.command(sites());
    command.env("RINGMARK", "mode=overwrite,ring=64K,keep=always");
    command.env("LD_PRELOAD", library()).args([rounds, "100"]);
    let mut program = Running::start(&mut command).expect("it starts");
    let session = Session::open(&fixture.ring_file(), Access::Control).expect("a session");
    let is_done = |verb: &str| {
        // The last one may wait in vain: the program ends some time.
        let answer = control::request(&session, &format!("trace {verb}"), Duration::from_secs(5));
        answer.is_ok_and(|answer| answer.status == 0)
    };
    let mut has_ended = || program.child().try_wait().expect("a child").is_some();
    while !is_done("status") && !has_ended() {}
    let verbs = ["start\nfilter=*@functions-sites", "stop"];
    let answered = verbs.iter().cycle().take_while(|verb| is_done(verb));
    let switched = answered.count();
    let found = program.finish(LIMIT).expect_code(0);
    assert_eq!(found.stdout_text(), expected.stdout_text());
    assert_eq!(own_counts(&found), own_counts(expected));
    switched
}

#[test]
fn a_function_without_an_unwind_entry_is_refused() {
    if !require_tools(&["objcopy"]) {
        return;
    }
    let fixture = Fixture::new("fn-rust");
    let copy = fixture.path("copy");
    let mut objcopy = Command::new("objcopy");
    objcopy.args(["--rename-section", ".eh_frame_hdr=.other"]);
    let _ = run(objcopy.arg(sites()).arg(&copy), LIMIT)
        .expect("objcopy")
        .expect_code(0);
    let why = ringmark(&fixture, "functions --why *::leaf_sum", &[&copy]).expect_code(4);
    let said = why.stdout_text();
    let reason = "copy: no unwind entry says where its return address is";
    assert!(said.contains(reason), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// What nightly compilers offer: the sites of C.
#[test]
fn the_compilers_own_sites() {
    let fixture = Fixture::new("fn-rust");
    let source = "#[inline(never)] fn leaf(n: u64) -> u64 { std::hint::black_box(n) * 3 }
        fn main() { println!(\"{}\", (0..100).map(leaf).sum::<u64>()); }";
    std::fs::write(fixture.path("small.rs"), source).expect("a file");
    let mut rustc = Command::new("rustc");
    rustc
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["-O", "-Zpatchable-function-entry=5"]);
    let program = fixture.path("small");
    rustc.arg(fixture.path("small.rs")).arg("-o").arg(&program);
    let _ = run(&mut rustc, LIMIT).expect("rustc").expect_code(0);
    let dump = fixture.path("run.rmk");
    let mut command = tool(&fixture);
    command
        .args(["run", "--kind", "graph", "-F", "small::*", "-o"])
        .arg(&dump);
    let _ = run(command.arg("--").arg(&program), LIMIT)
        .expect("it starts")
        .expect_code(0);
    let found = calls(&fixture, "", &dump);
    assert_eq!(
        (found["small::leaf"], found["small::main"]),
        (100, 1),
        "{found:?}"
    );
}
