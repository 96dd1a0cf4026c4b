//! Promise: a function of the program's own is called at each entry of those that were chosen, once
//! each, and the program sees nothing of it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{LIMIT, SITES, compile, library, ringmark};
use ringmark_tests::{Running, is_long, require_tools, wait_until};

/// The program with callbacks, linked with the shared object.
fn build_callbacks(fixture: &Fixture) -> PathBuf {
    let library = library().display();
    let flags = format!("{SITES} -Wall -Wextra -Werror -pthread -Wl,--no-as-needed {library}");
    compile(fixture, "callbacks.c", "callbacks", &flags)
}

#[test]
fn a_function_in_c_is_called_at_each_entry() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-callback");
    let program = build_callbacks(&fixture);
    let (threads, rounds) = (4, if is_long() { 100_000 } else { 1000 });
    // Without a session.
    let mut command = Command::new(program);
    command.args([threads.to_string(), rounds.to_string()]);
    let finished = ringmark_tests::run(&mut command, LIMIT).expect("it starts");
    let text = finished.expect_code(0).stdout_text();
    let n: u64 = threads * rounds;
    // Entries of work, of leaf, of leaf from work, of others; entries seen by the second one.
    let expected = [
        ("off", [0, 0, 0, 0, 0]),
        ("on", [n, n, n, 0, 0]),
        ("notrace", [0, n, n, 0, 0]),
        ("both", [0, n, n, 0, n + 1]),
        ("away", [0, 0, 0, 0, n + 1]),
        ("stopped", [0, 0, 0, 0, n + 1]),
        ("replaced", [n, 0, 0, 1, 0]),
        ("all off", [0, 0, 0, 0, 0]),
    ];
    let mut lines = text.lines();
    let mut results = BTreeSet::new();
    for (what, counts) in expected {
        let line = lines.next().expect("a line");
        let (front, result) = line.rsplit_once(' ').expect("a result");
        let counts: Vec<_> = counts.iter().map(u64::to_string).collect();
        assert_eq!(front, format!("{what} {}", counts.join(" ")));
        results.insert(result);
    }
    assert_eq!(results.len(), 1, "the program computes the same: {text}");
    // Two traced functions in each call of the callback.
    let not_called = format!("not_called={}", 8 * n);
    assert!(lines.any(|line| line == not_called), "{text}: {not_called}");
}

#[test]
fn callbacks_are_switched_from_outside() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-callback-on");
    let mut command = fixture.command(build_callbacks(&fixture));
    command
        .env("RINGMARK", "mode=overwrite,ring=1M")
        .args(["2", "-1"]);
    let program = Running::start(&mut command).expect("it starts");
    let _ = fixture.ring_file();
    let pid = program.id();
    let ask = |words: &str| {
        let asked = ringmark(&fixture, &format!("trace {words} -p {pid}"), &[]);
        asked.expect_code(0).stdout_text()
    };
    wait_until(SOON, "the program's tracer", || {
        ask("status").contains("mine ").then_some(())
    });
    let said = ask("start -T mine -F work -F helper --detach");
    assert!(
        said.starts_with("2 functions matched, 2 patch sites changed, 2 enabled"),
        "{said}"
    );
    let not_called = || {
        let status = ask("status");
        let line = status
            .lines()
            .find(|line| line.ends_with(" inside a callback called none"));
        let number = line.and_then(|line| line.split(' ').next()?.replace(',', "").parse().ok());
        number.unwrap_or(0_u64)
    };
    wait_until(SOON, "callbacks", || (not_called() > 10).then_some(()));
    // It pauses as others do.
    let asked = format!("trace trigger -T mine nothing:entry=start -p {pid}");
    let _ = ringmark(&fixture, &asked, &[]).expect_code(4);
    assert!(ask("status").contains(" on, paused "));
    let _ = ask("trigger -T mine --none");
    assert!(ask("stop -T mine").contains(" 0 enabled;"));
    let before = wait_until(SOON, "the end of those on their way", || {
        let before = not_called();
        program.wait_for_sleeps(50);
        (not_called() == before).then_some(before)
    });
    let _ = ask("start -T mine --detach");
    wait_until(SOON, "callbacks again", || {
        (not_called() > before).then_some(())
    });
}
