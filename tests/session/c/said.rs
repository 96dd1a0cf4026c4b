//! What programs in C recorded, as `ringmark cat` says it.

use std::path::Path;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::{recording, ringmark, run};
use serde_json::Value;

use super::c::LIMIT;

/// What a ring file holds, one line for each: name, kind, level, arguments as JSON in the order of
/// their names. Losses are `lost CAUSE COUNT`.
pub(crate) fn lines(fixture: &Fixture, ring_file: &Path) -> Vec<String> {
    events(fixture, ring_file).iter().map(line).collect()
}

/// The same as `ringmark cat --raw --json` says it.
pub(crate) fn events(fixture: &Fixture, ring_file: &Path) -> Vec<Value> {
    let name = ring_file.file_stem().unwrap_or_default().to_string_lossy();
    let dump = fixture.path(&format!("{name}.rmk"));
    recording::record(ring_file, &dump);
    let mut cat = ringmark();
    cat.args(["cat", "--raw", "--json"]).arg(&dump);
    let done = run(&mut cat, LIMIT).expect("ringmark");
    assert!(done.code() <= 1, "{}", done.stderr_text());
    let parse = |line: &str| serde_json::from_str(line).expect("a line of JSON");
    done.stdout_text().lines().map(parse).collect()
}

fn line(event: &Value) -> String {
    let word = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
    if event["kind"] == "lost" {
        return format!("lost {} {}", word("cause"), event["count"]);
    }
    let [name, kind, level] = ["name", "kind", "level"].map(word);
    format!("{name} {kind} {level} {}", event["args"])
}
