//! Promise: functions of a program are switched while it runs; a start ends with its tool; tracers
//! with overlapping functions each see their own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ringmark_reader::{Access, Session, control};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{LIMIT, SITES, calls, compile, ringmark, start, tool};
use ringmark_tests::json_schema::checked;
use ringmark_tests::{Running, require_tools, wait_until};
use rustix::process::Signal;

/// The same of what a running program's rings hold now.
fn calls_now(fixture: &Fixture, program: &Running, words: &str) -> BTreeMap<String, u64> {
    let dump = fixture.path("now.rmk");
    let snapshot = format!("snapshot -p {} -o", program.id());
    let _ = ringmark(fixture, &snapshot, &[&dump]).expect_code(0);
    calls(fixture, words, &dump)
}

/// How many records a running program has written.
fn recorded(fixture: &Fixture, program: &Running) -> u64 {
    let dump = fixture.path("now.rmk");
    let snapshot = format!("snapshot -p {} -o", program.id());
    let _ = ringmark(fixture, &snapshot, &[&dump]).expect_code(0);
    let text = ringmark(fixture, "verify --json", &[&dump]).stdout_text();
    let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let number = |key: &str| found[key].as_u64().expect("a number");
    number("events") + number("overwritten")
}

/// No record comes any more, but those of calls that are under way.
fn expect_quiet(fixture: &Fixture, program: &Running) {
    wait_until(SOON, "the end of records", || {
        let before = recorded(fixture, program);
        // It calls its functions between any two sleeps.
        program.wait_for_sleeps(10);
        (recorded(fixture, program) == before).then_some(())
    });
}

#[test]
fn functions_are_switched_while_the_program_runs() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-switch");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    let program = start(&fixture, &program);
    let pid = program.id();
    let ask = |words: &str| {
        let finished = ringmark(&fixture, &format!("trace {words} -p {pid}"), &[]);
        finished.expect_code(0).stdout_text()
    };
    assert!(ask("status").contains("0 of 5 patch sites enabled; 0 cannot be traced"));
    let said = ask("start --filter m* --filter leaf --notrace main --detach");
    assert_eq!(
        said,
        "2 functions matched, 2 patch sites changed, 2 enabled; 0 refused\n"
    );
    let names = |words: &str| {
        calls_now(&fixture, &program, words)
            .into_keys()
            .collect::<Vec<_>>()
    };
    wait_until(SOON, "calls", || {
        (names("") == ["leaf", "middle"]).then_some(())
    });
    assert!(ask("start --detach").starts_with("2 functions matched, 0 patch sites changed"));
    assert!(ask("filter o*").starts_with("2 functions matched, 4 patch sites changed, 2 enabled"));
    assert!(
        ask("notrace outer").starts_with("1 function matched, 1 patch site changed, 1 enabled")
    );
    wait_until(SOON, "another function", || {
        names("").contains(&"other".to_owned()).then_some(())
    });
    assert!(ask("stop").ends_with("0 enabled; 0 refused\n"));
    assert!(ask("stop").contains("0 patch sites changed, 0 enabled"));
    expect_quiet(&fixture, &program);
    expect_short_answers(&fixture);
}

/// The answer itself, without a tool around it. What a request costs is mostly the wait until the process looks, which a
/// question that changes nothing costs, too.
fn expect_short_answers(fixture: &Fixture) {
    let session = Session::open(&fixture.ring_file(), Access::Control).expect("a session");
    let mut took = [Vec::new(), Vec::new()];
    for verb in ["start\nfilter=*", "status", "stop", "status"].repeat(10) {
        let begun = Instant::now();
        let request = format!("trace {verb}");
        let answer = control::request(&session, &request, LIMIT).expect("an answer");
        took[usize::from(verb == "status")].push(begun.elapsed());
        assert_eq!(answer.status, 0, "{}", answer.text);
    }
    took.iter_mut().for_each(|took| took.sort());
    let [switched, asked] = took.map(|took| took[took.len() / 2]);
    println!("start and stop answered within {switched:?}, status within {asked:?} (medians)");
    assert!(switched < 5 * asked, "{switched:?}, {asked:?}");
}

#[test]
fn tracers_and_functions_are_told_as_json() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-json");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    let running = start(&fixture, &program);
    let pid = running.id();
    let ask = |words: &str| {
        let finished = ringmark(&fixture, &format!("{words} -p {pid} --json"), &[]);
        checked(&finished.expect_code(0).stdout_text())
    };
    let start = ask("trace start --filter m* --filter leaf --notrace main --detach");
    assert_eq!(
        (&start[0]["kind"], &start[0]["request"]),
        (&"tracer_change".into(), &"start".into())
    );
    assert_eq!(
        (&start[0]["functions"], &start[0]["sites_enabled"]),
        (&2.into(), &2.into())
    );
    let _ = ask("trace trigger middle:entry=start");
    let status = ask("trace status");
    let kinds: Vec<_> = status.iter().map(|object| &object["kind"]).collect();
    assert_eq!(kinds.last(), Some(&&serde_json::json!("patch_sites")));
    let tracer = status
        .iter()
        .find(|object| object["default"] == true)
        .expect("a default tracer");
    assert_eq!(
        (&tracer["state"], &tracer["functions"]),
        (&"on".into(), &2.into())
    );
    assert_eq!(tracer["triggers"][0]["trigger"], "middle:entry=start");
    let listed = ask("trace trigger");
    assert!(
        listed
            .iter()
            .any(|object| object["triggers"] == tracer["triggers"])
    );
    let functions = ask("functions");
    let on = functions.iter().filter(|function| function["on"] == true);
    let mut on: Vec<_> = on
        .filter_map(|function| function["name"].as_str())
        .collect();
    on.sort_unstable();
    assert_eq!(on, ["leaf", "middle"]);
    assert_eq!(ask("trace stop")[0]["sites_enabled"], 0);
    let in_file = ringmark(&fixture, "functions --json", &[&program]).expect_code(0);
    let in_file = checked(&in_file.stdout_text());
    let traceable = in_file
        .iter()
        .filter(|function| function["traceable"] == true);
    assert_eq!(traceable.count(), 5);
    assert!(in_file.iter().all(|function| function["on"].is_null()));
}

#[test]
fn a_start_that_names_functions_owes_nothing_to_an_earlier_one() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-anew");
    let program = start(&fixture, &compile(&fixture, "nested.c", "nested", SITES));
    let pid = program.id();
    let ask =
        |words: &str| ringmark(&fixture, &format!("trace {words} -p {pid}"), &[]).expect_code(0);
    let detail = || {
        let status = checked(&ask("status --json").stdout_text());
        let tracer = status.into_iter().find(|object| object["default"] == true);
        let tracer = tracer.expect("a default tracer");
        let keys = ["arguments", "results", "min_time_ns", "budget_percent"];
        serde_json::json!(keys.map(|key| tracer[key].clone()))
    };
    let given = "-A 2 -R --min-time 1s --budget 50%";
    let _ = ask(&format!("start -F leaf --detach {given}"));
    let all = serde_json::json!([2, true, 1_000_000_000, 50.0]);
    assert_eq!(detail(), all);
    let _ = ask("start --detach");
    assert_eq!(detail(), all, "without functions it goes on");
    let _ = ask("start -F middle --detach");
    let none = serde_json::json!([0, false, null, null]);
    assert_eq!(detail(), none);
    let _ = ask("start -T profile -F leaf --detach");
    let said = ask("stop").stderr_text();
    let expected = format!("profile is on: 'ringmark trace stop -p {pid} --tracer profile'");
    assert!(said.contains(&expected), "{said}");
    assert_eq!(ask("stop -T profile").stderr_text(), "");
}

/// Takes a lease by a tool that dies, and waits until it is over: those that were not renewed since are, too.
fn wait_for_a_lease_to_end(fixture: &Fixture, pid: &str) {
    let holds = || {
        let status = ringmark(fixture, &format!("trace status -p {pid}"), &[]).stdout_text();
        let mut lines = status.lines();
        lines.any(|line| line.starts_with("function ") && line.contains(" leased "))
    };
    let mut command = tool(fixture);
    command.args(["trace", "start", "-T", "function", "-F", "leaf", "-p", pid]);
    let holder = Running::start(&mut command).expect("it starts");
    wait_until(SOON, "a short lease", || holds().then_some(()));
    assert_eq!(holder.kill().expect("it lives").code(), 137);
    wait_until(SOON, "its end", || (!holds()).then_some(()));
}

#[test]
fn a_start_ends_with_its_tool() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-lease");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    let program = start(&fixture, &program);
    let pid = program.id().to_string();
    let is_on = |on: bool| {
        let text = ringmark(&fixture, &format!("trace status -p {pid}"), &[]).stdout_text();
        text.contains(if on {
            " leased "
        } else {
            "0 of 5 patch sites enabled"
        })
    };
    let holder = |more: &[&str]| {
        let mut command = tool(&fixture);
        command
            .args(["trace", "start", "-p", &pid, "--all-functions"])
            .args(more);
        let holder = Running::start(&mut command).expect("it starts");
        wait_until(SOON, "the start", || is_on(true).then_some(()));
        holder
    };
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let holder = holder(&[]);
        holder.signal(signal).expect("it lives");
        let _ = holder.finish(SOON).expect_code(0);
        assert!(is_on(false), "{signal:?}");
    }
    let begun = Instant::now();
    let _ = holder(&["--for", "1500ms"]).finish(SOON).expect_code(0);
    assert!(is_on(false) && begun.elapsed() >= Duration::from_millis(1500));
    // It is renewed for longer than a lease holds, then the tool dies.
    let holder = holder(&[]);
    wait_for_a_lease_to_end(&fixture, &pid);
    assert!(is_on(true), "a start that its tool renews");
    assert_eq!(holder.kill().expect("it lives").code(), 137);
    wait_until(SOON, "the lease's end", || is_on(false).then_some(()));
    expect_quiet(&fixture, &program);
}

#[test]
fn a_start_that_another_one_made_permanent_ends_without_stopping_it() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-takeover");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    let program = start(&fixture, &program);
    let pid = program.id().to_string();
    let status = || ringmark(&fixture, &format!("trace status -p {pid}"), &[]).stdout_text();
    let mut command = tool(&fixture);
    command.args(["trace", "start", "-p", &pid, "--all-functions"]);
    let holder = Running::start(&mut command).expect("it starts");
    wait_until(SOON, "the start", || {
        status().contains(" leased ").then_some(())
    });
    let detached = format!("trace start --all-functions --detach -p {pid}");
    let _ = ringmark(&fixture, &detached, &[]).expect_code(0);
    let said = holder.finish(SOON).expect_code(0).stderr_text();
    assert!(said.contains("was started for good"), "{said}");
    // A later lease than the one that the first one held.
    wait_for_a_lease_to_end(&fixture, &pid);
    let now = status();
    assert!(now.contains(" on ") && !now.contains(" leased "), "{now}");
    assert!(!now.contains("0 of 5 patch sites enabled"), "{now}");
    let before = recorded(&fixture, &program);
    wait_until(SOON, "more records", || {
        (recorded(&fixture, &program) > before).then_some(())
    });
}

#[test]
fn each_tracer_sees_its_own_functions() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-five");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    let program = start(&fixture, &program);
    let pid = program.id();
    let of = [
        ("a", "graph", "-F leaf", vec!["leaf"]),
        ("b", "graph", "-F leaf -F middle", vec!["leaf", "middle"]),
        ("c", "function", "-F o* --args 1", vec!["other", "outer"]),
        (
            "d",
            "graph",
            "-F m* -F o* -N main",
            vec!["middle", "other", "outer"],
        ),
        (
            "e",
            "function",
            "-F ^[lo] --match regex",
            vec!["leaf", "other", "outer"],
        ),
    ];
    for (name, kind, names, _) in &of {
        let start = format!("trace start -p {pid} -T {name} --kind {kind} {names} --detach");
        let _ = ringmark(&fixture, &start, &[]).expect_code(0);
    }
    let expect = |of: &[(&str, &str, &str, Vec<&str>)]| {
        for (name, _, _, expected) in of {
            let words = format!("--tracer {name}");
            let found = wait_until(SOON, "calls of each", || {
                let found = calls_now(&fixture, &program, &words);
                (found.len() >= expected.len()).then_some(found)
            });
            assert!(
                found.keys().eq(expected),
                "{name}: {found:?}, expected {expected:?}"
            );
        }
    };
    expect(&of);
    for n in 0..of.len() - 1 {
        let remove = format!("trace remove -p {pid} -T {}", of[n].0);
        let _ = ringmark(&fixture, &remove, &[]).expect_code(0);
        let before = recorded(&fixture, &program);
        wait_until(SOON, "later calls", || {
            (recorded(&fixture, &program) > before).then_some(())
        });
        expect(&of[n + 1..]);
    }
    expect_an_end_of_numbers(&fixture, pid);
}

/// Numbers are not used again: the last of a hundred tracers that fit has the last one.
fn expect_an_end_of_numbers(fixture: &Fixture, pid: u32) {
    let mut registered = 0;
    let refused = wait_until(LIMIT, "the last number", || {
        let start = format!("trace start -p {pid} -T t{registered} --kind graph -F leaf --detach");
        let finished = ringmark(fixture, &start, &[]);
        registered += 1;
        (finished.code() != 0).then(|| finished.stderr_text())
    });
    assert!(registered > 16, "only {registered} tracers");
    assert!(refused.contains("no more fit"), "{refused}");
}

/// As `/proc` says it of all its threads.
fn is_stopped(program: &Running) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", program.id())).expect("its threads");
    let state = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('T'))
    };
    tasks.flatten().all(state)
}

#[test]
fn a_request_that_was_given_up_is_not_done_afterwards() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-given-up");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    let program = start(&fixture, &program);
    let session = Session::open(&fixture.ring_file(), Access::Control).expect("a session");
    let ask = |text: &str, limit| control::request(&session, text, limit);
    assert!(
        ask("trace status", SOON)
            .expect("an answer")
            .text
            .contains("open=0")
    );
    program.signal(Signal::STOP).expect("it runs");
    wait_until(SOON, "it is stopped", || is_stopped(&program).then_some(()));
    for _ in 0..2 {
        let refused = ask("trace start\nfilter=*", Duration::from_millis(200));
        let said = refused.expect_err("it is stopped").to_string();
        assert!(said.contains("nothing of it is done"), "{said}");
    }
    program.signal(Signal::CONT).expect("it is stopped");
    let said = ask("trace status", SOON).expect("an answer").text;
    assert!(said.contains("open=0"), "{said}");
    let _ = ask("trace start\nfilter=*", SOON).expect("an answer");
    let said = ask("trace status", SOON).expect("an answer").text;
    assert!(!said.contains("open=0"), "{said}");
    drop(program.kill().expect("it runs"));
}
