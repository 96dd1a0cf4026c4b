//! Promise: listing, starting, stopping and reporting take time that grows as the functions do, also
//! for 240,000 of them; 2,000 threads with a call or two each lose none.

use std::io::Write;
use std::process::{Command, Stdio};

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, SITES, compile, library, ringmark, tool};
use ringmark_tests::json_schema::checked;
use ringmark_tests::{Running, is_long, log_skip, require_tools, run};

/// Functions of the program.
fn functions() -> u64 {
    if is_long() { 240_000 } else { 40_000 }
}

/// Memory of its own that the process may need more for 240,000 functions.
const OWN_KIB: u64 = 64 << 10;
/// What fewer functions may need besides their part of that.
const FIXED_KIB: u64 = 2 << 10;

/// CPU time in ms that `report` itself may take for 240,000 functions: it takes a third of that.
const REPORT_MS: u64 = 4000;

/// CPU time of a process, in ms.
fn cpu_ms(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it lives");
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<u64>().expect("a number");
    (ticks(12) + ticks(13)) * 10
}

/// Memory of its own that a process has, in KiB: what lies in ring files is not counted.
fn own_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it lives");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let words = line.and_then(|line| line.split_whitespace().next());
    words.and_then(|kib| kib.parse().ok()).expect("a number")
}

/// What `work` costs the process in CPU time may not be more than these ms per 240,000 functions.
/// Counted, not waited for, so other work on the machine does not matter much.
fn within<R>(name: &str, process: u32, ms: u64, work: impl FnOnce() -> R) -> R {
    let before = cpu_ms(process);
    let done = work();
    let took = cpu_ms(process) - before;
    let most = ms * functions() / 240_000;
    println!("{name}: {took} ms of CPU in the process, at most {most}");
    assert!(took <= most, "{name} took {took} ms of CPU, at most {most}");
    done
}

/// A process with many functions, all of them called once per `call_all`.
struct Program {
    fixture: Fixture,
    running: Running,
}

impl Program {
    fn start() -> Self {
        let fixture = Fixture::new("fn-many");
        let object = fixture.path("many_functions.o");
        let mut command = Command::new("gcc");
        let size = format!("-Wa,--defsym,FUNCTIONS={}", functions());
        let source = "tests/programs/functions/many_functions.s";
        command.args(["-c", &size, "-o"]).arg(&object);
        command.arg(ringmark_tests::workspace_root().join(source));
        let _ = run(&mut command, 5 * LIMIT).expect("gcc").expect_code(0);
        let flags = format!("-O2 {}", object.display());
        let program = compile(&fixture, "many_functions.c", "many", &flags);
        let mut command = fixture.command(&program);
        command.env("RINGMARK", "mode=overwrite,ring=1M");
        command.env("LD_PRELOAD", library());
        let running = Running::start(command.stdin(Stdio::piped())).expect("it starts");
        let _ = fixture.ring_file();
        Self { fixture, running }
    }

    fn call_all(&mut self) {
        let mut input = self.running.child().stdin.as_ref().expect("its input");
        input.write_all(b"x").expect("it reads");
        // In `pause`.
        self.running.wait_until_in(&["34 "]);
    }

    /// The output of the tool, and its CPU time in ms.
    fn tell_timed(&self, words: &str) -> (String, u64) {
        let words = words.replace("PID", &self.running.id().to_string());
        let mut command = self.fixture.command("sh");
        // The shell's own line, and that of its children.
        let script = format!(
            "{} {words}; times >&2",
            ringmark_tests::binary::path().display()
        );
        let finished = run(command.args(["-c", &script]), LIMIT)
            .expect("sh")
            .expect_code(0);
        let times = finished.stderr_text();
        let of_children = times.lines().last().expect("times");
        let ms = |text: &str| {
            let (minutes, seconds) = text.trim_end_matches('s').split_once('m')?;
            let seconds = seconds.parse::<f64>().ok()?;
            Some((minutes.parse::<f64>().ok()? * 60_000.0 + seconds * 1000.0) as u64)
        };
        let took = of_children.split_whitespace().filter_map(ms).sum();
        (finished.stdout_text(), took)
    }

    /// The tool's output.
    fn tell(&self, words: &str) -> String {
        let words = words.replace("PID", &self.running.id().to_string());
        let finished = ringmark(&self.fixture, &words, &[]).expect_code(0);
        finished.stdout_text()
    }
}

#[test]
fn a_profile_of_many_functions_is_reported_in_time_that_grows_as_they_do() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let mut program = Program::start();
    let process = program.running.id();
    // Bars are four times and more what a busy machine took; what grows with the square is over that
    // of the report.
    let before = own_kib(process);
    within("first start", process, 3000, || {
        program.tell("trace start -p PID --tracer graph --filter function_* --detach")
    });
    let more = own_kib(process) - before;
    let fixed = if is_long() { 0 } else { FIXED_KIB };
    let most = OWN_KIB * functions() / 240_000 + fixed;
    println!("first start: {more} KiB more, at most {most}");
    assert!(more <= most, "{more} KiB more, at most {most}");
    let _ = program.tell("trace stop -p PID --tracer graph");
    let start = "trace start -p PID --tracer profile --filter function_* --detach";
    within("start of a profile", process, 6000, || program.tell(start));
    program.call_all();
    let report = "report -p PID --tracer profile --json";
    let (text, took) = within("report", process, 2500, || program.tell_timed(report));
    let most = REPORT_MS * functions() / 240_000;
    println!("report: {took} ms of CPU in the tool, at most {most}");
    assert!(
        took <= most,
        "the tool took {took} ms of CPU, at most {most}"
    );
    let counted = text.lines().filter(|line| line.contains("\"function_"));
    assert_eq!(counted.count() as u64, functions());
    assert!(text.lines().all(|line| !line.contains("\"count\":2")));
    within("stop", process, 4000, || {
        program.tell("trace stop -p PID --tracer profile")
    });
    let listed = within("list", process, 2000, || program.tell("functions -p PID"));
    let listed = listed.lines().filter(|line| line.contains("function_"));
    assert_eq!(listed.count() as u64, functions());
}

/// All alive at one time: each has a ring.
#[test]
fn many_threads_with_few_calls_lose_none() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-threads");
    let threads: u64 = if is_long() { 2000 } else { 600 };
    let flags = format!("{SITES} -O2 -pthread");
    let program = compile(&fixture, "many_threads.c", "many_threads", &flags);
    let dump = fixture.path("threads.rmk");
    let words = format!(
        "run --kind graph -o {} -- {} {threads}",
        dump.display(),
        program.display()
    );
    let finished = ringmark(&fixture, &words, &[]);
    println!("{}", finished.stderr_text());
    let _ = finished.expect_code(0);
    let report = ringmark(&fixture, "report --json", &[&dump]).expect_code(0);
    for object in checked(&report.stdout_text()) {
        let count = if object["name"] == "main" { 1 } else { threads };
        assert_eq!(
            (&object["count"], &object["no_end"]),
            (&count.into(), &0.into()),
            "{object}"
        );
    }
}

/// In a pid namespace of its own, with the file system of processes of another one, a process finds its threads there under
/// numbers that are not theirs.
#[test]
fn threads_of_a_pid_namespace_keep_what_is_theirs() {
    if !require_tools(&["gcc", "unshare"]) {
        return;
    }
    let fixture = Fixture::new("fn-threads-namespace");
    let mut probe = fixture.command("unshare");
    let may = run(probe.args(["-p", "-f", "true"]), LIMIT).expect("unshare");
    if may.code() != 0 {
        return log_skip(&format!("pid namespaces: {}", may.stderr_text().trim()));
    }
    let flags = format!("{SITES} -fno-optimize-sibling-calls -pthread");
    let program = compile(&fixture, "many_deep.c", "many_deep", &flags);
    for kind in ["graph", "profile"] {
        let trace = fixture.path(&format!("{kind}.rmk"));
        let mut command = tool(&fixture);
        command.args(["run", "--wait", "10s", "--kind", kind, "-F", "deep", "-o"]);
        command
            .arg(&trace)
            .args(["--", "unshare", "-p", "-f"])
            .arg(&program);
        let finished = run(&mut command, LIMIT).expect("it starts").expect_code(0);
        assert_eq!(finished.stdout_text(), "0 wrong\n", "{kind}");
        let report = ringmark(&fixture, "report --json --name deep", &[&trace]);
        // What `unshare` counted itself before it became the program is not written.
        let report = report.stdout_text();
        let row: serde_json::Value = serde_json::from_str(report.trim()).expect("one row");
        assert_eq!(row["count"], 20 * 200 * 21, "{kind}: {row}");
        assert!(row["no_end"].as_u64().unwrap_or(0) == 0, "{kind}: {row}");
        assert!(
            row["not_returned"].as_u64().unwrap_or(0) == 0,
            "{kind}: {row}"
        );
    }
}
