//! Promise: among 10,000 tokio tasks, native spans and functions one command names exactly the slow ones,
//! with their fields.

use crate::slow;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{SITES, compile, library};
use ringmark_tests::json_schema::checked;
use ringmark_tests::{binary, require_tools};
use serde_json::Value;
use slow::{Fates, expect_sums, lines_of, report, run_it, tool};

const ORDERS: &str = ringmark_tests::program!("orders");

/// Tasks that change threads, are dropped while they wait, and work on threads for blocking work;
/// then native spans.
#[test]
fn slow_orders_and_jobs() {
    let fates = Fates::at_random(10_000);
    let fixture = Fixture::new("slow-orders");
    let mut record = fixture.command(binary::path());
    record.args(["record", "-o"]).arg(fixture.path("a.rmk"));
    record.args([
        "--",
        ORDERS,
        &fates.seed.to_string(),
        &fates.len().to_string(),
    ]);
    record.env("RINGMARK", "ring=16M,session=512M");
    let done = run_it(&mut record).expect_code(0);
    let own: Value = serde_json::from_str(done.stdout_text().trim()).expect("JSON");
    for (name, key) in [("order", "slow_orders"), ("job", "slow_jobs")] {
        let named = report(&fixture, &["--name", name, "--where", "took>2s"], &fates);
        let mut numbers: Vec<_> = named
            .iter()
            .map(|span| span["args"]["number"].clone())
            .collect();
        numbers.sort_by_key(Value::as_u64);
        assert_eq!(
            Value::from(numbers),
            own[key],
            "{name}, seed {}",
            fates.seed
        );
        for span in named {
            let number = format!(" number={}", span["args"]["number"]);
            let lines = lines_of(&fixture, &span);
            let own = lines
                .lines()
                .filter(|line| line.contains(&format!(": {name} ")));
            assert!(
                own.clone().any(|line| line.contains(&number)),
                "{span}\n{lines}"
            );
        }
    }
    let sums = expect_sums(
        &fixture,
        &["order", "db_query", "resize", "job", "job.part"],
    );
    assert_eq!((sums["order"][0], sums["job"][0]), (10_000, 10_000));
    // A follower puts them together as well.
    let follow = ["cat", "--follow", "--json", "--name", "order", "-n", "500"];
    let followed = checked(&tool(&fixture, &follow).expect_code(0).stdout_text());
    let is_span = |line: &Value| line["kind"] == "span" && line["polls"].as_u64() > Some(0);
    assert!(followed.len() == 500 && followed.iter().all(is_span));
    // All orders were served but those that were cancelled.
    let served = report(
        &fixture,
        &["--name", "order", "--where", "status>0"],
        &fates,
    );
    assert_eq!(
        served.len() as u64,
        10_000 - own["cancelled"].as_u64().expect("a number")
    );
}

#[test]
fn slow_calls() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fates = Fates::at_random(2_000);
    let fixture = Fixture::new("slow-calls");
    let program = compile(&fixture, "slow_calls.c", "slow_calls", SITES);
    let mut record = fixture.command(binary::path());
    record.env("RINGMARK_LIB", library());
    record.args([
        "record", "--kind", "graph", "-A", "2", "--filter", "serve", "--filter", "look_up", "-o",
    ]);
    record
        .arg(fixture.path("a.rmk"))
        .arg("--")
        .arg(program)
        .arg(&fates.text);
    let _ = run_it(&mut record).expect_code(0);
    let named = report(&fixture, &["--name", "serve", "--where", "took>2s"], &fates);
    let mut numbers: Vec<_> = named
        .iter()
        .map(|call| call["args"]["arg1"].as_u64())
        .collect();
    numbers.sort_unstable();
    let slow: Vec<_> = fates.of('s').into_iter().map(Some).collect();
    assert_eq!(numbers, slow, "seed {}", fates.seed);
    for call in &named {
        assert_eq!(
            (&call["of"], &call["name"]),
            (&"function".into(), &"serve".into())
        );
        let lines = lines_of(&fixture, call);
        // Whole: from its beginning to its end, with the call inside.
        let number = call["args"]["arg1"].as_u64().expect("a number");
        let words = format!("({number:#x}, {:#x})", u32::from('s'));
        let [serve, look_up] = [format!("| serve{words} {{\n"), format!("look_up{words};\n")];
        assert!(
            lines.contains(&serve) && lines.contains(&look_up),
            "{call}\n{lines}"
        );
    }
    // By an argument: the letter.
    let wanted = format!("arg2={}", u32::from('s'));
    let named = report(&fixture, &["--name", "serve", "--where", &wanted], &fates);
    assert_eq!(named.len(), slow.len());
    let sums = expect_sums(&fixture, &["serve", "look_up"]);
    assert_eq!(sums["serve"][0], fates.len() as u64);
}
