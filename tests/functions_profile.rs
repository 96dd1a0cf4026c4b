//! Promise: the calls of a dump as JSON are all there, and their times add up.

use std::process::Command;

use ringmark_tests::functions::{LIMIT, SITES, compile, ringmark, tool};
use ringmark_tests::stage::Stage;
use ringmark_tests::{require_tools, run};

/// Reads `graph --json` and prints what is in it: calls, depths, ends, and whether times add up.
const READ_CALLS: &str = r#"
import collections, json, sys
calls = [json.loads(line) for line in open(sys.argv[1])]
count = collections.Counter((c["name"], c["depth"], c["ended"]) for c in calls)
for key in sorted(count): print(*key, count[key])
assert all(c["v"] == 1 and c["kind"] == "call" and c["module"] for c in calls)
assert len({(c["session"], c["pid"], c["tid"]) for c in calls}) == 1
inner = collections.Counter()
for c in calls:
    if c["duration_ns"] is None: assert c["self_ns"] is None; continue
    inner[c["depth"]] += c["duration_ns"]
    below = inner.pop(c["depth"] + 1, 0)
    assert c["self_ns"] == c["duration_ns"] - below or "all" not in sys.argv
    assert c["self_ns"] <= c["duration_ns"]
assert all(a["start_ns"] + a["duration_ns"] <= b["start_ns"] + b["duration_ns"]
           for a, b in zip(calls, calls[1:]))
"#;

#[test]
fn calls_as_json_are_all_there_and_add_up() {
    if !require_tools(&["gcc", "python3"]) {
        return;
    }
    let stage = Stage::new("fn-graph-json");
    let program = compile(&stage, "nested.c", "nested", SITES);
    let dump = stage.path("run.rmk");
    let mut command = tool(&stage);
    let words = "run --tracer graph --all-functions -o";
    command.args(words.split(' ')).arg(&dump);
    command.arg("--").arg(&program).arg("1000");
    let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    let json = stage.path("calls.json");
    let read = |words: &str| {
        let text = ringmark(&stage, &format!("graph --json {words}"), &[&dump]);
        std::fs::write(&json, text.expect_code(0).stdout_text()).expect("a file");
        let share = if words.is_empty() { "all" } else { "some" };
        let mut python = Command::new("python3");
        python.args(["-c", READ_CALLS]).arg(&json).arg(share);
        let finished = run(&mut python, LIMIT).expect("python3");
        finished.expect_code(0).stdout_text()
    };
    let all = "leaf 3 returned 2000\nmain 0 returned 1\nmiddle 2 returned 1000\n\
               other 2 returned 1000\nouter 1 returned 1000\n";
    assert_eq!(read(""), all);
    let shallow = "main 0 returned 1\nouter 1 returned 1000\n";
    assert_eq!(read("--depth 2").as_str(), shallow);
}
