//! Promise: killed at any instruction, the program leaves every event whose commit was done, none
//! torn, none twice, and losses exact up to the calls under way.

use crate::step;

use ringmark_tests::is_long;
use step::{Plan, Report, run};

/// Runs a plan; in the long run with more events.
fn walk(plan: Plan) -> Report {
    let times = if is_long() { 4 } else { 1 };
    let count = plan.count * times;
    let plan = Plan { count, ..plan };
    match run(&plan) {
        Ok(report) => {
            println!("{plan:?}\n    {report:?}");
            assert!(report.states > 1000, "too few states to mean anything");
            report
        }
        Err(violation) => panic!("{plan:?}: state {}: {}", violation.state, violation.what),
    }
}

/// A handler at each instruction; daily at each seventh, or at each 21st where handlers turn pages themselves: their
/// instructions are stepped, too.
fn with_signals(plan: Plan) -> Plan {
    let daily = if plan.workload == "brim" { 21 } else { 7 };
    let (signals, signals_at) = if is_long() { (3, 1) } else { (1, daily) };
    Plan {
        signals,
        signals_at,
        ..plan
    }
}

/// Handlers that ran, at the least.
fn expect_handlers(report: &Report) {
    let least = if is_long() { 300 } else { 40 };
    assert!(report.handlers > least, "{report:?}");
}

#[test]
fn events_of_0_8_32_and_3000_bytes() {
    walk(Plan::new("fast", 3, "discard"));
    // Their pages are overwritten, too.
    assert!(walk(Plan::new("fast", 5, "overwrite")).turns > 3);
}

#[test]
fn pages_turn_when_they_are_full() {
    for mode in ["discard", "overwrite"] {
        assert!(walk(Plan::new("fours", 120, mode)).turns >= 2);
    }
    assert!(walk(Plan::new("brim", 12, "overwrite")).turns >= 12);
}

#[test]
fn a_full_ring_loses_the_newest_until_it_is_read() {
    let unread = walk(Plan::new("brim", 40, "discard"));
    assert_eq!((unread.turns, unread.lost), (3, 37));
    let plan = Plan::new("brim", 40, "discard");
    let read = walk(Plan {
        consume_every: 4000,
        ..plan
    });
    assert!(read.lost > 0 && read.taken > 3, "{read:?}");
}

#[test]
fn times_far_apart() {
    walk(Plan::new("late", 10, "discard"));
    let report = walk(with_signals(Plan::new("late", 1, "overwrite")));
    expect_handlers(&report);
}

#[test]
fn spans_and_reservations_given_up() {
    walk(Plan::new("spans", 20, "discard"));
}

#[test]
fn threads_start_and_end() {
    for mode in ["discard", "overwrite"] {
        walk(Plan::new("attach", 3, mode));
        assert!(walk(Plan::new("threads", 3, mode)).turns >= 4);
    }
}

#[test]
fn types_become_known() {
    walk(Plan::new("register", 1, "discard"));
}

#[test]
fn sessions_start_and_end() {
    walk(Plan::new("start", 2, "discard"));
    for mode in ["discard", "overwrite"] {
        walk(Plan::new("close", 8, mode));
    }
}

#[test]
fn a_handler_at_every_instruction_of_an_event() {
    let plan = with_signals(Plan::new("fours", 1, "overwrite"));
    let report = walk(plan.clone());
    expect_handlers(&report);
    assert_eq!(report.depth, 2, "{report:?}");
    if is_long() {
        walk(Plan {
            mode: "discard",
            ..plan.clone()
        });
        walk(Plan {
            workload: "spans",
            ..plan
        });
    }
}

#[test]
fn a_handler_at_every_instruction_of_a_page_switch() {
    walk(with_signals(Plan::new("brim", 2, "overwrite")));
}

#[test]
fn a_handler_at_every_instruction_and_handlers_in_handlers() {
    let plan = with_signals(Plan::new("brim", 1, "discard"));
    let report = walk(Plan {
        consume_every: 1000,
        inner_every: 997,
        ..plan
    });
    assert!(report.taken > 0 && report.depth == 3, "{report:?}");
}

#[test]
fn a_handler_at_every_instruction_of_attach() {
    let report = walk(with_signals(Plan::new("attach", 1, "discard")));
    // Whether the handlers fill the ring depends on which of them switches its pages.
    expect_handlers(&report);
    assert_eq!(report.depth, 2, "{report:?}");
    if is_long() {
        walk(with_signals(Plan::new("threads", 1, "discard")));
    }
}

#[test]
fn other_sizes_of_pages() {
    if is_long() {
        for (page, ring) in [("8K", "16K"), ("16K", "64K"), ("64K", "128K")] {
            for mode in ["discard", "overwrite"] {
                let plan = |workload, count| Plan {
                    page,
                    ring,
                    ..Plan::new(workload, count, mode)
                };
                walk(plan("fast", 8));
                walk(plan("fours", 400));
                walk(Plan {
                    consume_every: 2000,
                    ..plan("brim", 40)
                });
            }
        }
    }
}
