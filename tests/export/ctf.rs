//! Promise: babeltrace2 finds in an export what our decoder finds: events by name, their arguments and
//! times, threads, and what was lost between which times.

mod pictured;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use pictured::pages_removed;
use ringmark_decoder::{Dump, Output};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::decode;
use ringmark_tests::{is_long, require_tools, ringmark, run};

/// What babeltrace2 says of a folder: its lines, and its warnings about what was discarded.
fn babeltrace(folder: &Path) -> (Vec<String>, Vec<String>) {
    let mut command = Command::new("babeltrace2");
    command.arg(folder);
    let done = run(&mut command, SOON).expect("babeltrace2").expect_code(0);
    let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let warnings = lines(done.stderr_text());
    let unexpected = warnings
        .iter()
        .find(|line| !line.is_empty() && !line.contains("discarded"));
    assert_eq!(unexpected, None, "{warnings:?}");
    (lines(done.stdout_text()), warnings)
}

/// Events by name, and those that are not here, as our decoder has them.
fn truth(dump: &Dump) -> (BTreeMap<String, u64>, u64) {
    let mut events = BTreeMap::new();
    for output in dump.events() {
        if let Output::Event(event) = output {
            let name = String::from_utf8_lossy(&event.ty.name).into_owned();
            *events.entry(name).or_default() += 1;
        }
    }
    let found = dump.verify();
    (events, found.lost + found.overwritten + found.missing)
}

fn compare(dump: &Path, folder: &Path) {
    let _ = std::fs::remove_dir_all(folder);
    let mut command = ringmark();
    command
        .args(["export", "--format", "ctf"])
        .arg(dump)
        .arg("-o")
        .arg(folder);
    let done = run(&mut command, SOON).expect("the tool");
    assert!(done.code() <= 1, "{}", done.stderr_text());
    let (events, not_here) = truth(&decode(&[dump.to_owned()]));
    let (lines, warnings) = babeltrace(folder);
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for line in &lines {
        // [12:35:26.742455208] (+0.000000010) host:orders:(812) job.part: { … }, { … }
        let (front, _) = line.split_once(": {").expect("a line");
        let name = front.rsplit_once(") ").expect("a name").1;
        *found.entry(name.to_owned()).or_default() += 1;
    }
    assert_eq!(found, events);
    let discarded = warnings.iter().filter_map(|line| {
        let (_, rest) = line.split_once("discarded ")?;
        rest.split_once(' ')?.0.parse::<u64>().ok()
    });
    assert_eq!(discarded.sum::<u64>(), not_here, "{warnings:?}");
}

#[test]
fn events_and_losses_are_those_of_our_decoder() {
    if !require_tools(&["babeltrace2"]) {
        return;
    }
    let fixture = Fixture::new("export-ctf");
    let whole = fixture.path("whole.rmk");
    let mut command = ringmark();
    command.env("RINGMARK_DIR", fixture.sessions());
    command.arg("record").arg("-o").arg(&whole).arg("--");
    command.arg(env!("CARGO_BIN_EXE_orders")).args(["5", "300"]);
    let _ = run(&mut command, SOON).expect("the tool").expect_code(0);
    compare(&whole, &fixture.path("whole"));
    let bytes = std::fs::read(&whole).expect("a trace file");
    let seeds = if is_long() { 20 } else { 3 };
    for seed in (1..=seeds).map(Some).chain([None]) {
        let path = fixture.path("cut.rmk");
        std::fs::write(&path, pages_removed(&bytes, seed)).expect("a trace file");
        compare(&path, &fixture.path("cut"));
    }
}
