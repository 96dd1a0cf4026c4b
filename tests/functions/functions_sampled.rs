//! Promise: stacks that a profiler takes by frame pointers are right where exits are patch sites; where
//! return addresses are replaced, the trace puts the callers back.

use std::path::Path;
use std::process::Command;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, SITES, compile, tool};
use ringmark_tests::{binary, has_tools, run, workspace_root};

const FRAMES: &str = "-O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls";
/// Exits that are patch sites: gcc leaves NOPs in front of each return.
const EXITS: &str = "-fno-pie -no-pie -pg -mfentry -mrecord-mcount -mnop-mcount \
                     -minstrument-return=nop5 -mrecord-return";

/// The frames of each sample in the program's own code, innermost first, without addresses.
fn sampled(fixture: &Fixture, program: &Path, dump: &Path) -> String {
    let data = fixture.path("perf.data");
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-k", "CLOCK_REALTIME", "-e", "cpu-clock"]);
    command
        .args(["-F", "999", "--call-graph", "fp", "-o"])
        .arg(&data);
    // The tool with its own environment.
    let traced = tool(fixture);
    for (name, value) in traced.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.arg("--").arg(traced.get_program());
    command
        .args(["run", "--kind", "graph", "-A", "1", "-o"])
        .arg(dump);
    command.arg("--").arg(program).arg("2000");
    let finished = run(&mut command, LIMIT).expect("perf was found");
    let _ = finished.expect_code(0);
    let mut command = Command::new("perf");
    let name = program.file_name().expect("a name");
    command.args([
        "script",
        "--ns",
        "-F",
        "comm,tid,time,ip,sym,symoff,dso",
        "--comm",
    ]);
    command.arg(name).arg("-i").arg(&data);
    let script = run(&mut command, LIMIT).expect("perf").expect_code(0);
    script.stdout_text()
}

/// Whether the innermost frame is of `leaf` where it has a frame pointer: in its first and last instructions that is
/// its caller's, which is then left out.
fn in_leaf(sample: &str, bytes: u64) -> bool {
    let offset = sample.lines().nth(1).and_then(|frame| {
        let (_, offset) = frame.split_once(" leaf+0x")?;
        u64::from_str_radix(offset.split(' ').next()?, 16).ok()
    });
    offset.is_some_and(|offset| (16..bytes - 8).contains(&offset))
}

/// Bytes of the program's function `leaf`.
fn bytes_of_leaf(program: &Path) -> u64 {
    let listed = run(Command::new("nm").arg("-S").arg(program), LIMIT).expect("nm was found");
    let listed = listed.stdout_text();
    let line = listed.lines().find(|line| line.ends_with(" leaf"));
    let bytes = line.and_then(|line| line.split(' ').nth(1)).expect("leaf");
    u64::from_str_radix(bytes, 16).expect("a number")
}

/// The names of the frames of each sample that was taken [in `leaf`](in_leaf).
fn stacks(script: &str, bytes: u64) -> Vec<Vec<String>> {
    let name = |line: &str| {
        let mut words = line.split_whitespace();
        let word = words.find(|word| !word.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        Some(word.split("+0x").next()?.to_owned())
    };
    let samples = script.split("\n\n").map(str::trim_start);
    let samples = samples.filter(|sample| in_leaf(sample, bytes));
    let frames = samples.map(|sample| sample.lines().skip(1).filter_map(name).collect());
    frames.collect()
}

#[test]
fn the_trace_puts_callers_back_into_stacks_by_frame_pointers() {
    if !has_tools(&["gcc", "nm", "perf", "python3"]) {
        return;
    }
    let fixture = Fixture::new("fn-sampled");
    let flags = format!("{SITES} {FRAMES}");
    let program = compile(&fixture, "sampled.c", "sampled", &flags);
    let dump = fixture.path("sampled.rmk");
    let script = sampled(&fixture, &program, &dump);
    let bytes = bytes_of_leaf(&program);
    let found = stacks(&script, bytes);
    assert!(found.len() > 20, "{} samples", found.len());
    let is_replaced = |name: &String| name == "ringmark_return";
    assert!(found.iter().all(|frames| frames.iter().any(is_replaced)));
    let text = fixture.path("script.txt");
    std::fs::write(&text, &script).expect("written");
    let reader = workspace_root().join("examples/functions/perf_stacks.py");
    let mut command = Command::new("sh");
    command.env("RINGMARK_COMMAND", binary::path());
    command.args(["-c", "\"$0\" \"$1\" < \"$2\""]);
    command.arg(reader).arg(&dump).arg(&text);
    let right = run(&mut command, LIMIT).expect("sh").expect_code(0);
    let right = stacks(&right.stdout_text(), bytes);
    assert_eq!(right.len(), found.len());
    let mut ways = [0, 0];
    for frames in &right {
        let frames: Vec<_> = frames.iter().map(String::as_str).collect();
        // `plain` has no patch site: the trace has its place in the program's file.
        match frames[..] {
            ["leaf", "outer", "main", ..] => ways[0] += 1,
            ["leaf", "inner", "sampled", "outer", "main", ..] => ways[1] += 1,
            _ => panic!("{frames:?}"),
        }
    }
    assert!(ways.iter().all(|samples| *samples > 0), "{ways:?}");
}

#[test]
fn where_exits_are_patch_sites_frame_pointers_lead_to_the_callers() {
    if !has_tools(&["gcc", "nm", "perf"]) {
        return;
    }
    let fixture = Fixture::new("fn-sampled-exits");
    let flags = format!("{EXITS} {FRAMES}");
    let program = compile(&fixture, "sampled.c", "sampled", &flags);
    let script = sampled(&fixture, &program, &fixture.path("sampled.rmk"));
    let found = stacks(&script, bytes_of_leaf(&program));
    assert!(found.len() > 20, "{} samples", found.len());
    for frames in found {
        let frames: Vec<_> = frames.iter().map(String::as_str).collect();
        assert!(
            matches!(frames[..], ["leaf", "outer", "main", ..])
                || matches!(frames[..], ["leaf", "inner", "plain", "outer", "main", ..]),
            "{frames:?}"
        );
    }
}
