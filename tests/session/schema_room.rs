//! Promise: a session without room for all its event types describes those that fit, and every tool
//! says so, with what to do.

use std::process::Stdio;

use ringmark_decoder::{Dump, Output};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::process::READS_INPUT;
use ringmark_tests::recording::{decode, record};
use ringmark_tests::{Finished, Running, ringmark, run};

const FORKS: &str = ringmark_tests::program!("traced_forks");
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
