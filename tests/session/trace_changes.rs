//! Promise: `report A --diff B` compares spans of `tracing`, native spans and functions; its counts
//! are those of the programs.

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, SITES, compile, tool};
use ringmark_tests::json_schema::checked;
use ringmark_tests::{binary, require_tools, run};
use serde_json::Value;

const ORDERS: &str = ringmark_tests::program!("orders");

fn changes(fixture: &Fixture) -> Vec<Value> {
    let mut command = fixture.command(binary::path());
    command.args(["report", "--json", "--sort", "count"]);
    command.arg(fixture.path("a.rmk")).arg("--diff");
    command.arg(fixture.path("b.rmk"));
    let done = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    checked(&done.stdout_text())
}

fn counts(changes: &[Value], of: &str, name: &str) -> [Option<u64>; 2] {
    let found = changes.iter().find(|c| c["of"] == of && c["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no {name} in {changes:?}"));
    ["count_a", "count_b"].map(|key| found[key].as_u64())
}

#[test]
fn spans_of_tracing_and_native_ones() {
    let fixture = Fixture::new("changes-spans");
    for (file, orders) in [("a.rmk", "40"), ("b.rmk", "100")] {
        let mut record = fixture.command(binary::path());
        record.args(["record", "-o"]).arg(fixture.path(file));
        record.args(["--", ORDERS, "7", orders]);
        record.env("RINGMARK", "ring=16M,session=512M");
        let _ = run(&mut record, LIMIT).expect("it starts").expect_code(0);
    }
    let found = changes(&fixture);
    for name in ["order", "job"] {
        assert_eq!(
            counts(&found, "span", name),
            [Some(40), Some(100)],
            "{name}"
        );
    }
    let by: Vec<_> = found[2..].iter().map(|c| c["change"].as_i64()).collect();
    let by: Vec<_> = by.iter().map(|by| by.map(i64::abs)).collect();
    assert!(by.len() > 3 && by.is_sorted_by(|a, b| a >= b), "{by:?}");
}

#[test]
fn functions() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("changes-functions");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    for (file, rounds) in [("a.rmk", "1000"), ("b.rmk", "300")] {
        let mut command = tool(&fixture);
        command.args(["run", "--kind", "graph", "-o"]);
        command.arg(fixture.path(file)).arg("--");
        command.arg(&program).arg(rounds);
        let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    }
    let found = changes(&fixture);
    let of = |name| counts(&found, "function", name);
    assert_eq!(of("leaf"), [Some(2000), Some(600)]);
    assert_eq!(of("middle"), [Some(1000), Some(300)]);
    assert_eq!(of("main"), [Some(1), Some(1)]);
    assert_eq!(
        (&found[2]["name"], &found[2]["change_percent"]),
        (&"leaf".into(), &(-70.0).into())
    );
}
