//! Promise: of each span it is known how long its thread ran, was ready and waited: the kernel counts the same, it makes up the
//! whole span, and what is not known is not guessed.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use ringmark_decoder::{Dump, Event, Output, Span, ThreadTimes, Value};
use ringmark_profile::SwitchWatch;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{LIMIT, compile};
use ringmark_tests::recording::decode;
use ringmark_tests::{
    Finished, Running, binary, is_long, log_skip, require_tools, run, wait_until,
};

const TURNS: &str = ringmark_tests::program!("turns");
/// Number of `perf_event_open`.
const PERF: &str = "298";
const REFUSED: &str = "--sched: what threads do is not recorded: this user may not watch it here";

/// A span of the program, what it counted in it and around it, and what is known of its thread.
#[derive(Debug)]
struct Phase {
    name: String,
    total_ns: u64,
    inside: Counts,
    around: Counts,
    did: Option<ThreadTimes>,
}

#[derive(Debug, Clone, Copy)]
struct Counts {
    cpu_ns: u64,
    waits: u64,
    preemptions: u64,
}

impl Counts {
    fn of(event: &Event<'_>, suffix: &str) -> Self {
        let number = |name: &str| match value(event, &format!("{name}{suffix}")) {
            Some(Value::U64(number)) => number,
            other => panic!("{name}: {other:?}"),
        };
        Self {
            cpu_ns: number("cpu_ns"),
            waits: number("waits"),
            preemptions: number("preemptions"),
        }
    }
}

fn value<'e>(event: &'e Event<'_>, name: &str) -> Option<Value<'e>> {
    let mut args = event.args();
    args.find_map(|(field, value)| (field.name == name.as_bytes()).then_some(value))
}

/// The phases of a trace: each span with the event of its thread that follows it.
fn phases(dump: &Dump) -> Vec<Phase> {
    let events: Vec<_> = dump
        .events()
        .filter_map(|item| match item {
            Output::Event(event) => Some(event),
            Output::Lost(_) => None,
        })
        .collect();
    let measured = |span: &Event<'_>| {
        let mut later = events.iter();
        later.find(|event| {
            event.tid() == span.tid() && event.tick > span.tick && event.ty.name == b"measured"
        })
    };
    let spans = events.iter().filter(|event| event.ty.name == b"phase");
    let phase = |end: &Event<'_>| {
        let counts = measured(end)?;
        let span = Span::of_event(end)?;
        let name = match value(end, "name")? {
            Value::Str(name) => String::from_utf8_lossy(name).into_owned(),
            other => panic!("{other:?}"),
        };
        Some(Phase {
            name,
            total_ns: span.total_ns,
            inside: Counts::of(counts, ""),
            around: Counts::of(counts, "_around"),
            did: span.times,
        })
    };
    spans.filter_map(phase).collect()
}

/// What one per cent and 100 us allow.
const fn with_slack(ns: u64) -> u64 {
    ns + ns / 100 + 100_000
}

/// Whether what is known of a phase is what its program counted.
fn check(phase: &Phase, did: ThreadTimes) {
    assert_eq!(did.all_ns(), phase.total_ns, "{phase:?}");
    let (inside, around) = (phase.inside, phase.around);
    let is_between = |low, found, high| low <= found && found <= high;
    assert!(
        is_between(inside.waits, did.waits, around.waits),
        "{phase:?}"
    );
    assert!(
        is_between(inside.preemptions, did.preemptions, around.preemptions),
        "{phase:?}"
    );
    // Interrupts, and what another virtual machine took, count as running.
    assert!(inside.cpu_ns <= with_slack(did.running_ns), "{phase:?}");
}

fn recorded(said: &Finished) -> bool {
    let said = said.stderr_text();
    if said.contains(REFUSED) {
        log_skip("switches are refused here");
        return false;
    }
    assert!(!said.contains("--sched:"), "{said}");
    true
}

#[test]
fn is_what_the_kernel_counts_and_makes_up_the_whole() {
    let rounds = if is_long() { 100 } else { 6 };
    let fixture = Fixture::new("what-spans-did");
    let trace = fixture.path("a.rmk");
    let mut record = fixture.command(binary::path());
    record.args(["record", "--sched", "-o"]).arg(&trace);
    let done = run(record.args(["--", TURNS, &rounds.to_string()]), LIMIT).expect("ringmark");
    if !recorded(&done.expect_code(0)) {
        return;
    }
    let dump = decode(&[trace]);
    let phases = phases(&dump);
    // Those of the new thread that has the mutex, too.
    assert_eq!(phases.len(), 5 * rounds, "{phases:?}");
    // It is watched from a moment after its beginning on, which is later where the machine is busy.
    for phase in phases.iter().skip_while(|phase| phase.did.is_none()) {
        check(phase, phase.did.unwrap_or_else(|| panic!("{phase:?}")));
    }
    let best = |name: &str, is_so: fn(&Phase, ThreadTimes) -> bool| {
        let of_name: Vec<_> = phases.iter().filter(|phase| phase.name == name).collect();
        let is_one = |phase: &&Phase| phase.did.is_some_and(|did| is_so(phase, did));
        assert!(of_name.iter().any(is_one), "{of_name:?}");
    };
    let runs_as_counted =
        |phase: &Phase, did: ThreadTimes| did.running_ns <= with_slack(phase.around.cpu_ns);
    for name in ["spin", "sleep", "mutex", "held", "beside"] {
        best(name, runs_as_counted);
    }
    for name in ["sleep", "mutex", "held"] {
        best(name, |_, did| {
            did.waits > 0 && did.waiting_ns > did.running_ns
        });
    }
    best("spin", |_, did| did.waits == 0 && did.waiting_ns == 0);
    best("beside", |phase, did| did.ready_ns > phase.total_ns / 4);
}

#[test]
fn is_known_of_a_program_that_runs_already() {
    let fixture = Fixture::new("what-spans-did-beside");
    let trace = fixture.path("a.rmk");
    let mut program = fixture.program(TURNS, "mode=discard,ring=1M");
    let program = Running::start(program.arg("10000")).expect("a program");
    wait_until(SOON, "a session", || {
        (!fixture.ring_files().is_empty()).then_some(())
    });
    let mut record = fixture.command(binary::path());
    record.args(["record", "--sched", "--for", "700ms", "-o"]);
    let pid = program.id().to_string();
    let done = run(record.arg(&trace).args(["-p", &pid]), LIMIT).expect("ringmark");
    drop(program);
    if !recorded(&done.expect_code(0)) {
        return;
    }
    let phases = phases(&decode(&[trace]));
    let known: Vec<_> = phases.iter().filter(|phase| phase.did.is_some()).collect();
    // Those before the recording are not.
    assert!(!known.is_empty(), "{phases:?}");
    for phase in known {
        check(phase, phase.did.expect("it is known"));
    }
}

#[test]
fn is_said_to_be_refused_and_the_recording_goes_on() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("what-spans-did-refused");
    let filtered = compile(&fixture, "filtered.c", "filtered", "-O1");
    let trace = fixture.path("a.rmk");
    let mut record = fixture.command(&filtered);
    record.args(["fails", PERF, "13"]).arg(binary::path());
    record.args(["record", "--sched", "-o"]).arg(&trace);
    let done = run(record.args(["--", TURNS, "1"]), LIMIT).expect("ringmark");
    let said = done.expect_code(0);
    let said = said.stderr_text();
    let lines = said.lines().filter(|line| line.contains(REFUSED));
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines[0].contains("setcap cap_perfmon+ep"), "{said}");
    let dump = decode(&[trace]);
    assert!(!dump.sessions[0].has_switches());
    let phases = phases(&dump);
    assert_eq!(phases.len(), 5);
    assert!(phases.iter().all(|phase| phase.did.is_none()));
}

/// A user whose locked memory is little has smaller buffers.
#[test]
fn is_known_where_little_memory_may_be_locked() {
    const USER: u32 = 65534;
    if !require_tools(&["prlimit", "setpriv"]) {
        return;
    }
    let fixture = Fixture::new("what-spans-did-memory");
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        let everyone = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(fixture.path("."), everyone).expect("our folder");
    }
    let trace = fixture.path("a.rmk");
    let mut record = fixture.command("prlimit");
    record.arg("--memlock=0:0");
    if is_root {
        let user = USER.to_string();
        record.args(["setpriv", "--reuid", &user, "--regid", &user]);
        record.arg("--clear-groups");
    }
    record.arg(binary::path()).args(["record", "--sched", "-o"]);
    let done = run(record.arg(&trace).args(["--", TURNS, "2"]), LIMIT).expect("ringmark");
    let done = done.expect_code(0);
    let said = done.stderr_text();
    assert!(!said.contains("locked memory"), "{said}");
    if !recorded(&done) {
        return;
    }
    let phases = phases(&decode(&[trace]));
    assert!(phases.iter().any(|phase| phase.did.is_some()), "{phases:?}");
}

/// Without `take` the buffers of the kernel fill.
#[test]
fn is_not_known_where_switches_had_no_room() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("switches-lost");
    let program = compile(&fixture, "../c/ping_pong.c", "ping_pong", "-O2 -pthread");
    let mut child = Command::new(program)
        .arg("100000")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a program");
    let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut says = |expected: &str| {
        let mut line = String::new();
        said.read_line(&mut line).expect("text");
        assert_eq!(line.trim(), expected);
    };
    says("ready");
    let watch = SwitchWatch::attach(child.id());
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"\n").expect("it reads");
    says("done");
    let taken = watch.map(|mut watch| (watch.take_rest(), watch));
    drop(input);
    assert!(child.wait().expect("its end").success());
    let (mut ranges, mut watch) = match taken {
        Ok(taken) => taken,
        Err(why) => return log_skip(&format!("switches are refused here: {why}")),
    };
    ranges.extend(watch.take_rest());
    let ends = ranges.windows(2);
    let touch = |pair: &[ringmark_profile::SwitchRange]| {
        pair[0].head.to_mono_ns == pair[1].head.from_mono_ns
    };
    assert!(ends.clone().all(touch), "ranges without a gap");
    let lost: u64 = ranges.iter().map(|range| range.head.lost).sum();
    assert!(lost > 0 && lost == watch.without_room());
    for range in &ranges {
        let is_whole = range.head.lost == 0;
        assert!(is_whole || range.switches.is_empty(), "nothing of a part");
    }
}
