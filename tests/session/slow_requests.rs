//! Promise: of 10,000 requests to an axum server, concurrent, some slow and some cancelled at random,
//! one command names exactly the slow ones, with their fields, and the way from each to its lines.
//! `fmt`, `EnvFilter` and Ringmark's layer work side by side.

use crate::slow;

use std::collections::HashMap;

use ringmark_tests::binary::{self, built};
use ringmark_tests::fixture::Fixture;
use slow::{Fates, expect_sums, lines_of, report, run_it};

#[test]
fn exactly_the_slow_requests_are_named() {
    let fates = Fates::at_random(10_000);
    let fixture = Fixture::new("slow-requests");
    let server = built("axum-server");
    let mut record = fixture.command(binary::path());
    record.args(["record", "-o"]).arg(fixture.path("a.rmk"));
    record.arg("--").arg(server).arg(&fates.text);
    record.env("RINGMARK", "ring=16M,session=512M");
    let done = run_it(&mut record).expect_code(0);
    let answered = (fates.len() - fates.of('c').len()).to_string();
    assert_eq!(done.stdout_text().lines().next(), Some(&answered[..]));
    // The other layer of the program wrote its own lines.
    let said = done.stderr_text();
    assert_eq!(said.matches("too slow").count(), fates.of('s').len());

    let named = report(
        &fixture,
        &["--where", "took>2s", "--name", "request"],
        &fates,
    );
    assert_eq!(numbers(&named), fates.of('s'), "seed {}", fates.seed);
    for span in &named {
        let number = span["args"]["number"].as_u64().expect("a number");
        assert_eq!(span["args"]["path"], format!("/orders/{number}"));
        assert_eq!(
            (&span["args"]["status"], &span["of"]),
            (&504.into(), &"span".into())
        );
        assert_eq!(
            (&span["whole"], span["polls"].as_u64() > Some(1)),
            (&true.into(), true)
        );
        // Its lines are there: its event, its inner span, and itself.
        let lines = lines_of(&fixture, span);
        for part in [" too slow ", ": query ", ": request "] {
            let own = lines.lines().filter(|line| line.contains(part));
            let own =
                own.filter(|line| part == ": query " || line.contains(&format!("number={number}")));
            assert!(own.count() > 0, "{part} of {number} in\n{lines}");
        }
        // Nothing of the others, which were served at the same time.
        let requests = lines.lines().filter(|line| line.contains(": request "));
        assert_eq!(requests.count(), 1, "{lines}");
    }
    // By a field; those that were cancelled have none.
    let named = report(&fixture, &["--where", "status>=500"], &fates);
    assert_eq!(numbers(&named), fates.of('s'));
    expect_the_others(&fixture, &fates);
    let sums = expect_sums(&fixture, &["request", "query", "resize"]);
    assert_eq!(sums["request"][0], fates.len() as u64);
    assert_eq!(sums["resize"][0], fates.of('b').len() as u64);
}

/// All other requests are there, each once; what they left to a thread for blocking work is in them.
fn expect_the_others(fixture: &Fixture, fates: &Fates) {
    let slow = fates.of('s');
    let words = ["--name", "request", "--where", "path=/orders/*"];
    let words = [&words[..], &["--where", "took<2s"]].concat();
    let others = report(fixture, &words, fates);
    let expected = (0..fates.len() as u64).filter(|number| !slow.contains(number));
    assert!(
        numbers(&others).into_iter().eq(expected),
        "seed {}",
        fates.seed
    );
    let by_id: HashMap<_, _> = others.iter().map(|span| (&span["span"], span)).collect();
    let resized = report(fixture, &["--name", "resize"], fates);
    assert_eq!(numbers(&resized), fates.of('b'), "seed {}", fates.seed);
    let mut moved = 0;
    for span in &resized {
        let request = by_id[&span["parent"]];
        assert_eq!(request["args"]["number"], span["args"]["number"]);
        moved += usize::from(request["tid"] != span["tid"]);
    }
    assert_eq!(moved, resized.len());
}

/// The numbers of these requests, in order.
fn numbers(spans: &[serde_json::Value]) -> Vec<u64> {
    let numbers = spans.iter().map(|span| span["args"]["number"].as_u64());
    let mut numbers: Vec<_> = numbers.map(|n| n.expect("a number")).collect();
    numbers.sort_unstable();
    numbers
}
