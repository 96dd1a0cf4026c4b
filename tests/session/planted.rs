//! The test of the single-step test: each planted bug of the writer is caught, and by the workload
//! that this table names. Run with `./test planted`: the bugs are there only under `--cfg planted`.
//!
//! | planted bug | workload that catches it | what the oracle sees |
//! | --- | --- | --- |
//! | commit before payload | `fast`: any event with payload | a torn event |
//! | page reused without BUSY | `brim`, overwrite: the first page of the second lap | a sealed page that ends nowhere, or too early |
//! | count and commit as two stores | `brim` with signals: a handler turns the page between the two | a page that starts with too small a count |
//! | bump and BUSY as two stores | `fours` with signals: a handler emits between the two | the handler's event lies behind a hole, or in the middle of another |
//! | page turned under an open reservation | `brim` with signals: a handler finds the page full | a sealed page with a record under way |
#![cfg(planted)]

use crate::step;

use step::{Plan, run};

fn plans() -> [Plan; 4] {
    let with_signals = |plan| Plan { signals: 1, ..plan };
    [
        Plan::new("fast", 1, "discard"),
        Plan::new("brim", 6, "overwrite"),
        with_signals(Plan::new("brim", 2, "overwrite")),
        with_signals(Plan::new("fours", 1, "overwrite")),
    ]
}

#[track_caller]
fn expect_caught(bug: &'static str, plan: usize, sights: &[&str]) {
    let plan = Plan {
        bug,
        ..plans()[plan].clone()
    };
    let violation = run(&plan).expect_err("it went unnoticed");
    println!(
        "{bug}: {} at state {}: {}",
        plan.workload, violation.state, violation.what
    );
    let is_seen = |sight: &&str| violation.what.contains(*sight);
    assert!(
        sights.iter().any(|sight| is_seen(sight)),
        "{sights:?} expected"
    );
}

#[test]
fn nothing_planted_nothing_found() {
    for plan in plans() {
        match run(&plan) {
            Ok(report) => println!("{}: {} states", plan.workload, report.states),
            Err(violation) => panic!("{plan:?}: {violation:?}"),
        }
    }
}

#[test]
fn commit_before_payload() {
    // The first event of a page is slow to come here: its tick is a record of its own.
    let sights = ["a torn event", "a time without its event"];
    expect_caught("commit-before-payload", 0, &sights);
}

#[test]
fn page_reused_without_busy() {
    expect_caught("page-reused-without-busy", 1, &["do not reach its end"]);
}

#[test]
fn count_and_commit_as_two_stores() {
    expect_caught("count-and-commit-apart", 2, &["ends at"]);
}

#[test]
fn bump_and_busy_as_two_stores() {
    expect_caught("bump-and-busy-apart", 3, &["calls returned", "torn"]);
}

#[test]
fn page_turned_under_an_open_reservation() {
    expect_caught("page-switched-under-reservation", 2, &["sealed"]);
}
