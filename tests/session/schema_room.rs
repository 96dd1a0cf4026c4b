//! Promise: a session without room for all its event types describes those that fit, and every tool
//! says so, with what to do.

use std::process::Stdio;

use ringmark_decoder::{Dump, Output};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::process::READS_INPUT;
use ringmark_tests::recording::{decode, record};
use ringmark_tests::{Finished, Running, ringmark, run};

const FORKS: &str = ringmark_tests::program!("traced_forks");
const MANY_TYPES: &str = ringmark_tests::program!("many_types");
const SMALL: &str = "mode=discard,ring=16K,page=4K,session=96K,warm=0,keep=always";
/// What every tool says.
const SAID: &str = "no room to describe all";

fn tool(fixture: &Fixture, arguments: &[&str]) -> Finished {
    let mut command = ringmark();
    command
        .env("RINGMARK_DIR", fixture.sessions())
        .args(arguments);
    run(&mut command, SOON).expect("the tool")
}

/// Events whose type is described.
fn known(dump: &Dump) -> usize {
    let events = dump.events().filter_map(|item| match item {
        Output::Event(event) => Some(event),
        Output::Lost(_) => None,
    });
    events.filter(|event| event.ty.known).count()
}

/// There is one bit for each type in the ring file, and not for more than 32,768.
#[test]
fn whether_a_type_is_on_is_unknown_where_the_session_has_no_bit_for_it() {
    const TYPES: usize = 33_000;
    let fixture = Fixture::new("many-types");
    let mut command = fixture.program(MANY_TYPES, "mode=discard,keep=always,session=64M");
    command.arg(TYPES.to_string()).stdin(Stdio::piped());
    let mut program = Running::start(&mut command).expect("a program");
    program.wait_until_in(&[READS_INPUT]);
    let pid = program.id().to_string();
    let listed = tool(&fixture, &["events", "-p", &pid, "--json"]).expect_code(0);
    let (mut on, mut unknown) = (0, 0);
    for line in listed.stdout_text().lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        match (&row["target"], &row["on"]) {
            (target, _) if target != "many" => {}
            (_, serde_json::Value::Null) => unknown += 1,
            (_, is_on) => {
                assert_eq!(is_on, true, "{row}");
                on += 1;
            }
        }
    }
    assert_eq!(on + unknown, TYPES);
    assert!((32_000..32_768).contains(&on), "{on}");
    drop(program.child().stdin.take());
    let done = program.finish(SOON).expect_code(0);
    assert_eq!(done.stdout_text(), format!("{TYPES}\n"));
}

#[test]
fn what_fits_is_described_and_the_rest_is_told() {
    let fixture = Fixture::new("schema");
    let mut command = fixture.program(FORKS, SMALL);
    command.arg("types").stdin(Stdio::piped());
    let mut program = Running::start(&mut command).expect("a program");
    program.wait_until_in(&[READS_INPUT]);
    let files = fixture.ring_files();
    for (number, file) in files.iter().enumerate() {
        let path = fixture.path(&format!("{number}.rmk"));
        record(file, &path);
        let dump = decode(std::slice::from_ref(&path));
        assert!(dump.sessions[0].schema_incomplete());
        assert!(known(&dump) > 20, "{} of {file:?} known", known(&dump));
        let path = path.to_string_lossy();
        for command in ["cat", "list", "report"] {
            let said = tool(&fixture, &[command, &path]).stderr_text();
            assert!(said.contains(SAID), "{command}: {said}");
        }
        let said = tool(&fixture, &["verify", &path]).stdout_text();
        assert!(said.contains("incomplete_schemas: 1: "), "{said}");
    }
    let listed = tool(&fixture, &["list"]).expect_code(0).stdout_text();
    assert_eq!(listed.matches(SAID).count(), 2, "{listed}");
    let (pid, dump) = (program.id().to_string(), fixture.path("s.rmk"));
    let dump = dump.to_string_lossy();
    let said = tool(&fixture, &["snapshot", "-p", &pid, "-o", &dump]).stderr_text();
    assert!(said.contains(SAID), "{said}");
    let said = tool(&fixture, &["cat", "-p", &pid]).stderr_text();
    assert!(said.contains(SAID), "{said}");
    let said = tool(&fixture, &["list", "-v", "-p", &pid, "--interval", "1ms"]).stdout_text();
    assert!(said.contains(SAID), "{said}");
    drop(program.child().stdin.take());
    let _ = program.finish(SOON).expect_code(0);
}
