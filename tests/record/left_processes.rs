//! Promise: `record -- CMD` records the processes that a program leaves until they end, and names
//! those that it does not wait for.

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::tool;
use ringmark_tests::recording::decode;
use ringmark_tests::{Finished, run};

const EMIT: &str = ringmark_tests::program!("emit");
const WAYS_TO_END: &str = ringmark_tests::program!("ways_to_end");
/// Events of a process that was left.
const EVENTS: usize = 500;

/// `ringmark record` of what a shell does with a script.
fn record(fixture: &Fixture, script: &str) -> Finished {
    let mut command = tool(fixture);
    command.args(["record", "-o"]).arg(fixture.path("left.rmk"));
    command.args(["--", "sh", "-c", script]);
    run(&mut command, SOON).expect("ringmark")
}

/// It becomes a traced program when the shell has ended, at moments around those at which a recorder
/// looks. (For 20 ms after the shell's end only, 5 of 8 such recordings were empty.)
#[test]
fn a_process_that_becomes_a_traced_program_late_is_recorded() {
    let fixture = Fixture::new("left-late");
    for pause in ["0", "0.001", "0.01", "0.02", "0.03", "0.05", "0.1", "0.3"] {
        let script = format!("(sleep {pause}; exec {EMIT} 1 {EVENTS}) & exit 0");
        let recorded = record(&fixture, &script).expect_code(0);
        let events = decode(&[fixture.path("left.rmk")]).events().count();
        assert!(events >= EVENTS, "{pause}: {}", recorded.stderr_text());
    }
}

#[test]
fn a_process_without_a_session_is_named_and_not_waited_for() {
    let fixture = Fixture::new("left-without");
    let script = format!("{EMIT} 1 {EVENTS}; sleep 3600 >&- 2>&- & exit 3");
    let recorded = record(&fixture, &script).expect_code(3);
    let told = recorded.stderr_text();
    let pid = told
        .split("sleep[")
        .nth(1)
        .and_then(|rest| rest.split(']').next());
    let pid = pid.unwrap_or_else(|| panic!("no name in {told}"));
    // Who is there to be killed was not waited for.
    let end = run(std::process::Command::new("kill").arg(pid), SOON);
    assert!(end.expect("kill").expect_code(0).stderr_text().is_empty());
    assert!(
        told.contains("without a session, and what comes there is NOT recorded"),
        "{told}"
    );
}

/// The recorder is the one that waits for it, so it knows the signal.
#[test]
fn the_end_of_a_process_that_was_left_is_known() {
    let fixture = Fixture::new("left-end");
    let recorded = record(&fixture, &format!("{WAYS_TO_END} kill & exit 0")).expect_code(0);
    let told = recorded.stderr_text();
    assert!(told.contains("ended by SIGKILL"), "{told}");
}

/// A child from before is none that the program left: it is not named, and not waited for.
#[test]
fn a_child_from_before_is_left_alone() {
    let fixture = Fixture::new("left-before");
    let like = tool(&fixture);
    let mut command = std::process::Command::new("sh");
    command.envs(
        like.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let dump = fixture.path("left.rmk");
    let script = format!(
        "sleep 3600 >&- 2>&- & echo $! >&2; exec {} record -o {} -- {EMIT} 1 {EVENTS}",
        like.get_program().display(),
        dump.display()
    );
    let recorded = run(command.args(["-c", &script]), SOON)
        .expect("sh")
        .expect_code(0);
    let told = recorded.stderr_text();
    let sleep = told.lines().next().unwrap_or_default();
    let _ = run(std::process::Command::new("kill").arg(sleep), SOON);
    assert!(!told.contains("goes on"), "{told}");
    assert!(told.contains("0 lost"), "{told}");
}
