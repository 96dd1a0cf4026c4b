//! Promise: a tracer with a budget gives up the functions that cost most, names them, and costs no
//! more afterwards; within its budget it gives up nothing.

use std::path::Path;

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{SITES, calls, compile, ringmark, tool};
use ringmark_tests::{Running, require_tools, wait_until};
use rustix::process::Signal;

/// The program, which runs until it is killed, with the library.
fn start(fixture: &Fixture) -> Running {
    let program = compile(fixture, "budget.c", "budget", SITES);
    ringmark_tests::functions::start(fixture, &program)
}

fn status(fixture: &Fixture, program: &Running) -> String {
    let status = format!("trace status -p {}", program.id());
    ringmark(fixture, &status, &[]).expect_code(0).stdout_text()
}

/// The cost that status says, in percent.
fn cost(status: &str) -> Option<f64> {
    let (_, cost) = status.split_once(", cost ")?;
    cost.split_once(" %")?.0.parse().ok()
}

#[test]
fn the_hottest_function_is_given_up_and_named() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-budget");
    let program = start(&fixture);
    let pid = program.id().to_string();
    let mut command = tool(&fixture);
    let words = ["trace", "start", "--all-functions", "--budget", "2%", "-p"];
    let holder = Running::start(command.args(words).arg(&pid)).expect("it starts");
    let said = wait_until(SOON, "a judgement", || {
        let said = status(&fixture, &program);
        said.contains("switched off").then_some(said)
    });
    assert!(said.contains("switched off for its cost: hot, "), "{said}");
    // What is left is judged again, several times.
    let mut costs = Vec::new();
    while costs.len() < 5 {
        std::thread::sleep(std::time::Duration::from_millis(150));
        costs.extend(cost(&status(&fixture, &program)));
    }
    println!("{said}costs left in %: {costs:?}");
    assert!(costs.iter().all(|percent| *percent <= 2.0), "{costs:?}");
    // The cold ones go on: of new calls there are some of them, and none of the hot one.
    let now = fixture.path("now.rmk");
    let snapshot = || {
        let words = format!("snapshot -p {pid} -o");
        let _ = ringmark(&fixture, &words, &[&now]).expect_code(0);
        calls(&fixture, "", &now)
    };
    let before = snapshot();
    let after = wait_until(SOON, "calls of cold functions", || {
        let after = snapshot();
        let grew = |name| after.get(name) > before.get(name);
        (grew("cold_two") && grew("cold_one")).then_some(after)
    });
    assert!(
        after.get("hot") <= before.get("hot"),
        "{before:?} {after:?}"
    );
    let said = status(&fixture, &program);
    assert_eq!(said.matches("switched off").count(), 1, "{said}");
    expect_one_switched_off(&fixture, &now);
    holder.signal(Signal::INT).expect("it lives");
    let told = holder.finish(SOON).expect_code(0).stderr_text();
    assert_eq!(
        told.matches("switched off for its cost: hot").count(),
        1,
        "{told}"
    );
    // A new start begins anew.
    let again = format!("trace start --all-functions --budget off --detach -p {pid}");
    let _ = ringmark(&fixture, &again, &[]).expect_code(0);
    let said = status(&fixture, &program);
    assert!(!said.contains("switched off"), "{said}");
    wait_until(SOON, "calls of the hot function", || {
        (snapshot().get("hot") > after.get("hot")).then_some(())
    });
}

/// A dump has one event of a function that was switched off, the hot one.
fn expect_one_switched_off(fixture: &Fixture, dump: &Path) {
    let cat = ringmark(fixture, "cat", &[dump]).expect_code(0);
    let text = cat.stdout_text();
    let events: Vec<_> = text
        .lines()
        .filter(|line| line.contains("function_switched_off"))
        .collect();
    assert!(events.len() == 1 && events[0].contains("hot"), "{events:?}");
}

#[test]
fn within_its_budget_nothing_is_given_up() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-budget-ok");
    let program = start(&fixture);
    let pid = program.id();
    let words = format!("trace start -F cold* --budget 2% --detach -p {pid}");
    let _ = ringmark(&fixture, &words, &[]).expect_code(0);
    let said = wait_until(SOON, "a judgement", || {
        let said = status(&fixture, &program);
        cost(&said).is_some().then_some(said)
    });
    for _ in 0..10 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let said = status(&fixture, &program);
        assert!(!said.contains("switched off"), "{said}");
    }
    println!("{said}");
}

#[test]
fn calls_that_are_only_counted_have_a_budget_too() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-budget-profile");
    let program = start(&fixture);
    let pid = program.id();
    let words =
        format!("trace start --tracer profile --all-functions --budget 2% --detach -p {pid}");
    let _ = ringmark(&fixture, &words, &[]).expect_code(0);
    let said = wait_until(SOON, "a judgement", || {
        let said = status(&fixture, &program);
        said.contains("switched off").then_some(said)
    });
    println!("{said}");
    assert!(said.contains("switched off for its cost: hot, "), "{said}");
    let left = wait_until(SOON, "another judgement", || {
        cost(&status(&fixture, &program))
    });
    assert!(left <= 2.0, "{left} %");
    let counted = || {
        let report = format!("report --tracer profile -p {pid}");
        let table = ringmark(&fixture, &report, &[])
            .expect_code(0)
            .stdout_text();
        let calls = |name: &str| {
            let line = table.lines().find(|line| line.contains(name))?;
            line.split_whitespace().next().map(str::to_owned)
        };
        (
            calls("hot").expect(&table),
            calls("cold_one").expect(&table),
        )
    };
    let before = counted();
    let after = wait_until(SOON, "calls of cold functions", || {
        let after = counted();
        (after.1 != before.1).then_some(after)
    });
    assert_eq!(before.0, after.0, "calls of the hot function");
}
