//! Promise: a call's record that a jump out of a signal handler leaves costs no other one, whatever the jump
//! interrupts; one that a switch of coroutines holds up is there in the end.

use std::collections::BTreeMap;

use crate::calls::{Program, Traced, own_counts};
use ringmark_ring::writer::RINGS_MAX;
use ringmark_tests::{is_long, require_tools};

/// Nothing is lost for want of room in a ring, and there is one for each record that is left.
const ROOM: &str = "mode=discard,keep=always,page=4K,ring=16M,session=512M";
/// Calls of the last function, when all is over.
const AFTER: u64 = 3000;

/// Runs the program, and what its functions counted themselves.
fn trace(arguments: &str) -> Option<(Traced, BTreeMap<String, u64>)> {
    if !require_tools(&["gcc"]) {
        return None;
    }
    let program = Program::new("gcc", "left_records.c", "-O2");
    let wishes = format!("tracer=graph;filter=*@{}", program.name());
    let traced = program.trace(ROOM, &wishes, arguments);
    println!("{arguments}: {:?}", traced.books);
    let own = own_counts(&traced.finished);
    Some((traced, own))
}

#[test]
fn a_jump_out_of_a_record_costs_that_record_alone() {
    let jumps = RINGS_MAX as u64 - 1;
    let Some((traced, own)) = trace(&format!("jumps {jumps}")) else {
        return;
    };
    assert!(traced.books.lost.is_empty(), "{:?}", traced.books);
    for (name, own) in &own {
        // The record comes before the function counts its call.
        let found = traced.books.functions[name].calls;
        assert!((*own..=own + jumps).contains(&found), "{name}: {found}");
    }
    assert_eq!(traced.books.functions["after"].calls, AFTER);
}

#[test]
fn a_thousand_jumps_are_counted() {
    let jumps = if is_long() { 20_000 } else { 1000 };
    let Some((traced, own)) = trace(&format!("jumps {jumps}")) else {
        return;
    };
    let books = &traced.books;
    let is_only = books.lost.keys().all(|cause| *cause == "nested");
    assert!(is_only, "{books:?}");
    let sum = books.sum();
    let lost: u64 = books.lost.values().sum();
    let all = sum.calls + sum.returned + sum.unwound + lost;
    let calls: u64 = own.values().sum();
    // A jump may come between a record and what the function counts, at both ends of a call.
    let expected = 2 * calls - sum.loose - jumps..=2 * (calls + jumps);
    assert!(expected.contains(&all), "{all}, {expected:?}: {books:?}");
}

#[test]
fn coroutines_that_a_timer_switches_lose_nothing_uncounted() {
    let times = 6000;
    let Some((traced, own)) = trace(&format!("coroutines {times}")) else {
        return;
    };
    traced.books.expect_all_but("nested", 0, &own, "coroutines");
    assert_eq!(traced.books.functions["after"].calls, AFTER);
}
