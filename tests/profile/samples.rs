//! Promise: which functions ran in a span or a call stands beside it, by samples, and their sums are the running time that the
//! kernel counts. What kept a thread from running is said, if it was the limit of its control group.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringmark_decoder::{Counted, Filter, RanFunctions};
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, SITES, compile, tool};
use ringmark_tests::recording::decode;
use ringmark_tests::{binary, log_skip, require_tools, run};
use serde_json::Value;

/// Number of `perf_event_open`.
const PERF: &str = "298";
const REFUSED: &str = "--sample: which functions run in threads is not recorded";

/// The shop of the guide, with patch sites.
fn shop(fixture: &Fixture) -> PathBuf {
    let flags = format!("{SITES} -pthread");
    compile(fixture, "../c/shop.c", "shop", &flags)
}

/// What ran in the calls of a function.
fn ran_in(trace: &Path, name: &str) -> RanFunctions {
    let dump = decode(&[trace.to_owned()]);
    let mut conditions = Filter::new();
    conditions.name(name);
    let counted = Counted {
        conditions: Some(conditions),
        ..Counted::default()
    };
    dump.figures(counted).ran.expect("samples")
}

/// Lines of JSON that the command prints of a trace.
fn printed(fixture: &Fixture, trace: &Path, words: &str) -> Vec<Value> {
    let mut command = tool(fixture);
    command.args(words.split(' ')).arg(trace);
    let said = run(&mut command, LIMIT).expect("ringmark");
    let said = said.expect_code(0).stdout_text();
    let lines = said.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect()
}

#[test]
fn make_up_the_running_time_of_the_calls_that_they_met() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("samples");
    let trace = fixture.path("shop.rmk");
    let mut record = tool(&fixture);
    record.args(["run", "--sched", "--sample", "997", "--kind", "graph", "-o"]);
    record.arg(&trace).arg("--").arg(shop(&fixture));
    let said = run(&mut record, LIMIT).expect("ringmark");
    let said = said.expect_code(0).stderr_text();
    if said.contains(REFUSED) || said.contains("--sched:") {
        return log_skip(&format!("samples or switches are refused here: {said}"));
    }
    assert!(!said.contains("--sample:"), "{said}");
    let rows = printed(&fixture, &trace, "report --json");
    let running = |name: &str| {
        let is_it = |row: &&Value| row["of"] == "function" && row["name"] == name;
        let row = rows.iter().find(is_it).expect("a row");
        row["running_ns"].as_u64().expect("switches") as f64
    };
    for name in ["knead", "bake"] {
        let ran = ran_in(&trace, name);
        let functions = ran.functions.iter();
        let own = functions.filter(|of| of.name == name.as_bytes() || of.is_kernel());
        let ratio = own.map(|of| of.self_ns).sum::<u64>() as f64 / running(name);
        // Of 1,500 samples the deviation is 2.6 %.
        assert!((0.85..1.15).contains(&ratio), "{name}: {ratio}, {ran:?}");
        let row = rows
            .iter()
            .find(|row| row["of"] == "sample" && row["name"] == name);
        let samples = row.and_then(|row| row["count"].as_u64());
        assert!(
            samples >= ran.functions.first().map(|of| of.samples),
            "{row:?}"
        );
    }
    let slow = printed(&fixture, &trace, "report --name knead --slowest 1 --json");
    let ran = slow[0]["ran_in"].as_array().expect("stacks");
    let is_in = |of: &Value, name: &str| {
        of["functions"]
            .as_array()
            .is_some_and(|all| all.contains(&name.into()))
    };
    assert!(is_in(&ran[0], "knead"), "the most: {slow:?}");
    // One may come while the tracer opens or closes the call.
    let is_own = |of: &Value| is_in(of, "knead") || is_in(of, "libringmark_functions.so");
    assert!(ran.iter().all(is_own), "{slow:?}");
    let mut folded = tool(&fixture);
    folded.args(["export", "--format", "folded", "--samples", "-o", "-"]);
    let folded = run(folded.arg(&trace), LIMIT).expect("ringmark");
    let folded = folded.expect_code(0).stdout_text();
    let line = folded
        .lines()
        .find_map(|line| line.split_once("shop;baker;knead "));
    assert!(line.is_some(), "{folded}");
}

#[test]
fn what_ran_in_a_span_of_tracing_is_that_of_its_threads() {
    let fixture = Fixture::new("samples-tracing");
    let trace = fixture.path("a.rmk");
    let mut record = fixture.command(binary::path());
    record
        .args(["record", "--sample", "997", "--waits", "-o"])
        .arg(&trace);
    record.args(["--", ringmark_tests::program!("spins")]);
    let said = run(&mut record, LIMIT).expect("ringmark");
    let said = said.expect_code(0).stderr_text();
    if said.contains(REFUSED) {
        return log_skip(&format!("samples are refused here: {said}"));
    }
    let functions = |name: &str| {
        let ran = ran_in(&trace, name);
        let names = ran
            .functions
            .iter()
            .map(|of| String::from_utf8_lossy(&of.name).into_owned());
        names.collect::<Vec<_>>()
    };
    let spins = functions("spins");
    let is_spin = |name: &str| name.ends_with("::spin");
    assert!(spins.iter().any(|name| is_spin(name)), "{spins:?}");
    // It waits; a sample may meet it on the way there.
    let sleeps = functions("sleeps");
    assert!(!sleeps.iter().any(|name| is_spin(name)), "{sleeps:?}");
    let words = "report --name sleeps --slowest 1 --json";
    let slow = printed(&fixture, &trace, words);
    let waits = slow[0]["waited_for"].as_array().expect("waits");
    let what = waits.first().and_then(|wait| wait["for"].as_str());
    assert!(
        what.is_some_and(|what| what.contains("nanosleep")),
        "{slow:?}"
    );
}

#[test]
fn where_they_are_refused_that_is_said() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("samples-refused");
    let filtered = compile(&fixture, "filtered.c", "filtered", "-O1");
    let trace = fixture.path("shop.rmk");
    let mut record = fixture.command(&filtered);
    record.args(["fails", PERF, "13"]).arg(binary::path());
    record.args(["run", "--sample", "99", "--kind", "graph", "-o"]);
    record.arg(&trace).arg("--").arg(shop(&fixture));
    let said = run(&mut record, LIMIT).expect("ringmark");
    let said = said.expect_code(0).stderr_text();
    assert_eq!(said.matches(REFUSED).count(), 1, "{said}");
    assert!(!decode(&[trace]).sessions[0].has_samples());
}

/// A control group with a limit of 5 % of a processor, which a busy machine leaves it, too.
struct Limited(PathBuf);

impl Limited {
    fn new() -> Option<Self> {
        let name = format!("ringmark-test-{}", std::process::id());
        let folder = Path::new("/sys/fs/cgroup");
        let first = folder.join("cpu").join(&name);
        let made = |path: &Path| fs::create_dir(path).is_ok();
        let write = |path: PathBuf, text: &str| fs::write(path, text).is_ok();
        if made(&first) {
            let group = Self(first.clone());
            let is_limited = write(first.join("cpu.cfs_period_us"), "100000")
                && write(first.join("cpu.cfs_quota_us"), "5000");
            return is_limited.then_some(group);
        }
        let second = folder.join(&name);
        let group = made(&second).then(|| Self(second.clone()))?;
        write(second.join("cpu.max"), "5000 100000").then_some(group)
    }

    fn members(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // Its last process may not have gone yet.
        let is_removed = || fs::remove_dir(&self.0).is_ok().then_some(());
        ringmark_tests::wait_until(Duration::from_secs(60), "an empty group", is_removed);
    }
}

#[test]
fn a_thread_without_a_processor_by_the_limit_of_its_group_is_told_from_others() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let Some(group) = Limited::new() else {
        return log_skip("no control group can be made here");
    };
    let fixture = Fixture::new("samples-throttled");
    let traced = |limited: bool| {
        let trace = fixture.path(if limited { "limited.rmk" } else { "free.rmk" });
        let members = group.members().display().to_string();
        let members = if limited { &members } else { "/dev/null" };
        let script = format!("echo $$ > {members}; exec \"$0\"");
        let mut record = tool(&fixture);
        record.args(["run", "--sched", "--kind", "graph", "-F", "knead", "-o"]);
        record
            .arg(&trace)
            .args(["--", "sh", "-c", &script])
            .arg(shop(&fixture));
        let said = run(&mut record, LIMIT).expect("ringmark");
        let said = said.expect_code(0).stderr_text();
        if said.contains("--sched:") {
            log_skip(&format!("switches are refused here: {said}"));
            return None;
        }
        let rows = printed(&fixture, &trace, "report --name knead --json");
        let row = rows.first().expect("a row");
        let ns = |key: &str| row[key].as_u64().expect("switches");
        Some([ns("running_ns"), ns("ready_ns"), ns("throttled_ns")])
    };
    let (Some(limited), Some(free)) = (traced(true), traced(false)) else {
        return;
    };
    // It ran for 5 ms of 100, and waited for its group's limit, whatever else ran.
    let [running, ready, throttled] = limited;
    assert!(throttled > running && throttled <= ready, "{limited:?}");
    assert_eq!(free[2], 0, "{free:?}");
}
