//! `report A --diff B`: the spans of two recordings whose counts are known, and what is not there.

use crate::common;

use common::{Stage, expect, json_lines};
use ringmark_tests::json_schema::checked;
use serde_json::{Value, json};

/// Two recordings; each thread of the second one makes twice as many events.
fn two_recordings(label: &str) -> Stage {
    let stage = Stage::new(label);
    stage.record("a.rmk", &["2", "60", "0", "mix"]);
    stage.record("b.rmk", &["2", "120", "0", "mix"]);
    stage
}

fn diff(stage: &Stage, more: &[&str]) -> Vec<Value> {
    let words = [&["report", "a.rmk", "--diff", "b.rmk", "--json"], more].concat();
    checked(&stage.run(&words).expect_code(0).stdout_text())
}

#[test]
fn changes_are_those_of_two_reports() {
    let stage = two_recordings("changes");
    let found = diff(&stage, &[]);
    let sides: Vec<_> = found[..2].iter().map(|o| &o["side"]).collect();
    assert_eq!(sides, ["a", "b"]);
    assert!(found[..2].iter().all(|o| o["kind"] == "compared"));
    assert_eq!(found[1]["file"], "b.rmk");
    let change = &found[2];
    assert_eq!(found.len(), 3, "one name of spans: {found:?}");
    assert_eq!(
        (&change["count_a"], &change["count_b"]),
        (&20.into(), &40.into())
    );
    for (file, side) in [("a.rmk", "a"), ("b.rmk", "b")] {
        let rows = json_lines(&stage.run(&["report", file, "--json"]).expect_code(0));
        let row = rows.iter().find(|row| row["of"] == "span").unwrap();
        for key in [
            "count", "total_ns", "self_ns", "mean_ns", "p50_ns", "p99_ns", "max_ns",
        ] {
            assert_eq!(change[format!("{key}_{side}")], row[key], "{key} of {file}");
        }
    }
    // One span of each, whose numbers are not the same.
    let mean = |side| change[format!("mean_ns_{side}")].as_i64().unwrap();
    let by = mean("b") - mean("a");
    assert_eq!(change["change"], by);
    let percent = change["change_percent"].as_f64().unwrap();
    assert!((percent - by as f64 / mean("a") as f64 * 100.0).abs() < 1e-6);
    let by_count = &diff(&stage, &["--sort", "count"])[2];
    assert_eq!(
        (&by_count["change"], &by_count["change_percent"]),
        (&20.into(), &json!(100.0))
    );
    let by_max = &diff(&stage, &["--sort", "max"])[2];
    let max = |side: &str| by_max[format!("max_ns_{side}")].as_i64().unwrap();
    assert_eq!(by_max["change"], max("b") - max("a"));
    let by_name = &diff(&stage, &["--sort", "name"])[2];
    assert_eq!(
        by_name["change"], change["change"],
        "ordered, not another figure"
    );
}

#[test]
fn what_only_one_trace_has_is_new_or_gone() {
    let stage = two_recordings("changes-new");
    let program = common::traced_program();
    let plain = ["record", "-o", "none.rmk", "--", &program, "1", "5", "0"];
    let _ = stage.run(&plain).expect_code(0);
    let of = |a: &str, b: &str| {
        let found = stage
            .run(&["report", a, "--diff", b, "--json"])
            .expect_code(0);
        checked(&found.stdout_text())[2].clone()
    };
    let new = of("none.rmk", "a.rmk");
    assert_eq!((&new["new"], &new["gone"]), (&true.into(), &false.into()));
    assert_eq!(
        (&new["mean_ns_a"], &new["change"]),
        (&0.into(), &new["mean_ns_b"])
    );
    assert_eq!(new["change_percent"], Value::Null);
    let gone = of("a.rmk", "none.rmk");
    assert_eq!((&gone["new"], &gone["gone"]), (&false.into(), &true.into()));
    assert_eq!(gone["change_percent"], -100.0);
    let text = stage
        .run(&["report", "a.rmk", "--diff", "none.rmk"])
        .expect_code(0);
    assert!(
        text.stdout_text().contains("gone"),
        "{}",
        text.stdout_text()
    );
    let neither = stage.run(&["report", "none.rmk", "--diff", "none.rmk"]);
    let _ = expect(neither, 3, "neither trace has spans or calls of functions");
}

#[test]
fn what_a_side_does_not_have_comes_first() {
    let stage = two_recordings("changes-lost");
    let small = stage.start_with(
        "ring=16K,page=4K,mode=overwrite",
        &["1", "20000", "0", "mix", "hold=60000"],
        1,
    );
    let pid = small.id().to_string();
    ringmark_tests::wait_until(common::LIMIT, "what is overwritten", || {
        let _ = stage.run(&["snapshot", "-p", &pid, "-o", "small.rmk"]);
        let told = stage.run(&["verify", "small.rmk", "--json"]).stdout_text();
        let found: Value = serde_json::from_str(&told).ok()?;
        (found["overwritten"].as_u64()? > 1000).then_some(())
    });
    let done = stage.run(&["report", "a.rmk", "--diff", "small.rmk"]);
    let text = done.stdout_text();
    let lines: Vec<_> = text.lines().collect();
    let table = lines
        .iter()
        .position(|line| line.contains("COUNT"))
        .unwrap();
    let told = lines
        .iter()
        .position(|line| line.starts_with("B  is not whole: "))
        .unwrap();
    assert!(
        told < table && lines[told].contains(" overwritten"),
        "{text}"
    );
    assert!(!text.contains("A  is not whole"), "{text}");
    let words = ["report", "a.rmk", "--diff", "small.rmk", "--json"];
    let found = checked(&stage.run(&words).stdout_text());
    assert_eq!(found[0]["overwritten"], 0);
    assert!(
        found[1]["overwritten"].as_u64() > Some(1000),
        "{}",
        found[1]
    );
}
