//! Slices begin and end where their records say, whatever the order of the records: over many
//! stretches, nested, overlapping, with calls of which only the ends were recorded.

#[path = "../../decoder/tests/common/mod.rs"]
mod common;
mod spans;

use std::collections::{BTreeMap, HashMap};

use common::*;
use ringmark_export::{Cut, Format, Plan, write};
use serde_json::Value;
use spans::{Chance, Times, nested, trace};

/// The events of an export as Chrome has it.
fn events(trace: &[u8], cut: Cut) -> (Vec<Value>, u64) {
    let dump = read(trace).unwrap();
    let plan = Plan::new(&dump, cut);
    let mut out = Vec::new();
    write(&plan, Format::Chrome, &mut out, |_, _| {}).unwrap();
    let json: Value = serde_json::from_slice(&out).unwrap();
    let events = json["traceEvents"].as_array().unwrap().clone();
    (events, plan.counts().slices)
}

/// Time in ns.
fn at(event: &Value) -> u64 {
    (event["ts"].as_f64().unwrap() * 1000.0).round() as u64
}

/// Slices of each thread as a viewer nests them: number, duration, depth.
fn slices(events: &[Value]) -> BTreeMap<u64, Vec<(u64, u64, usize)>> {
    let mut found: BTreeMap<u64, Vec<_>> = BTreeMap::new();
    let mut open: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut latest: HashMap<u64, u64> = HashMap::new();
    for event in events {
        let phase = event["ph"].as_str().unwrap();
        if phase != "B" && phase != "E" {
            continue;
        }
        let tid = event["tid"].as_u64().unwrap();
        let before = latest.insert(tid, at(event));
        assert!(before <= Some(at(event)), "time goes back: {event}");
        let stack = open.entry(tid).or_default();
        if phase == "B" {
            stack.push(at(event));
            continue;
        }
        let start = stack.pop().expect("a beginning");
        let number = event["args"]["n"].as_u64().unwrap_or(0);
        let slice = (number, at(event) - start, stack.len());
        found.entry(tid).or_default().push(slice);
    }
    assert!(open.values().all(Vec::is_empty));
    found
}

#[test]
fn nested_spans_nest_over_many_stretches() {
    let mut chance = Chance(7);
    let threads: Vec<Vec<Times>> = (0..3)
        .map(|_| {
            let mut spans = Vec::new();
            // Long ones around many.
            nested(&mut chance, 0, 20_000, 0, &mut spans);
            for from in 0..1500 {
                let from = 20_000 + from * 100;
                nested(&mut chance, from, from + 99, 4, &mut spans);
            }
            spans.push((0, 400_000));
            spans
        })
        .collect();
    let count: usize = threads.iter().map(Vec::len).sum();
    assert!(count > 3 * 8192, "{count} spans are too few");
    let (events, counted) = events(&trace(&threads), Cut::default());
    assert_eq!(counted, count as u64);
    let found = slices(&events);
    assert_eq!(found.len(), threads.len());
    for (found, spans) in found.values().zip(&threads) {
        assert_eq!(found.len(), spans.len());
        // By the definition: a span lies in those that began before it and ended after it.
        for (number, took, depth) in found.iter().step_by(499) {
            let (start, end) = spans[*number as usize];
            assert_eq!(*took, end - start, "{number}");
            let later = &spans[*number as usize + 1..];
            let around = later
                .iter()
                .filter(|other| other.0 <= start && other.1 >= end);
            assert_eq!(*depth, around.count(), "{number}");
        }
    }
}

#[test]
fn spans_that_overlap_keep_their_durations() {
    // Each ends while the one after it is open; some begin at one time.
    let spans: Vec<Times> = (0..20_000).map(|n| (n / 2 * 2 * 10, n * 10 + 35)).collect();
    let truth: u64 = spans.iter().map(|(start, end)| end - start).sum();
    let (events, _) = events(&trace(&[spans]), Cut::default());
    let found: Vec<_> = slices(&events).into_values().flatten().collect();
    assert_eq!(found.len(), 20_000);
    assert_eq!(found.iter().map(|slice| slice.1).sum::<u64>(), truth);
}

#[test]
fn short_spans_are_left_out() {
    let spans: Vec<Times> = (0..10_000)
        .map(|n| (n * 100, n * 100 + n % 50 + 1))
        .collect();
    let cut = Cut {
        min_ns: 40,
        ..Cut::default()
    };
    let (events, counted) = events(&trace(&[spans]), cut);
    let found: Vec<_> = slices(&events).into_values().flatten().collect();
    assert_eq!(found.len(), 10_000 * 11 / 50);
    assert_eq!(counted, found.len() as u64);
    assert!(found.iter().all(|slice| slice.1 >= 40));
}
