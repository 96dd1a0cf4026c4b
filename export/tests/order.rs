//! Slices begin and end where their records say, whatever the order of the records: over many
//! stretches, nested, overlapping, with calls of which only the ends were recorded.

use crate::common;
use crate::packets;
use crate::spans;

use std::collections::{BTreeMap, HashMap};

use common::*;
use packets::{Edge, edges};
use ringmark_export::{Cut, Format, Plan, write};
use spans::{Chance, Times, nested, trace};

/// Where the slices of an export begin and end, as Perfetto has it, and how many there are.
fn exported(trace: &[u8], cut: Cut) -> (Vec<Edge>, u64) {
    let dump = read(trace).unwrap();
    let plan = Plan::new(&dump, cut);
    let mut out = Vec::new();
    write(&plan, Format::Perfetto, &mut out, |_, _| {}).unwrap();
    (edges(&out), plan.counts().slices)
}

/// Slices of each thread as a viewer nests them: number, duration, depth.
fn slices(edges: &[Edge]) -> BTreeMap<u64, Vec<(u64, u64, usize)>> {
    let mut found: BTreeMap<u64, Vec<_>> = BTreeMap::new();
    let mut open: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut latest: HashMap<u64, u64> = HashMap::new();
    for edge in edges {
        let before = latest.insert(edge.track, edge.at_ns);
        assert!(before <= Some(edge.at_ns), "time goes back: {edge:?}");
        let stack = open.entry(edge.track).or_default();
        if edge.is_begin {
            stack.push(edge.at_ns);
            continue;
        }
        let start = stack.pop().expect("a beginning");
        let number = edge.number.unwrap_or(0);
        let slice = (number, edge.at_ns - start, stack.len());
        found.entry(edge.track).or_default().push(slice);
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
    let (edges, counted) = exported(&trace(&threads), Cut::default());
    assert_eq!(counted, count as u64);
    let found = slices(&edges);
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
    let (edges, _) = exported(&trace(&[spans]), Cut::default());
    let found: Vec<_> = slices(&edges).into_values().flatten().collect();
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
    let (edges, counted) = exported(&trace(&[spans]), cut);
    let found: Vec<_> = slices(&edges).into_values().flatten().collect();
    assert_eq!(found.len(), 10_000 * 11 / 50);
    assert_eq!(counted, found.len() as u64);
    assert!(found.iter().all(|slice| slice.1 >= 40));
}

/// The slices around each one as a viewer nests them, by their numbers.
fn shown_around(edges: &[Edge]) -> Vec<(u64, Vec<u64>)> {
    let mut open: HashMap<u64, Vec<usize>> = HashMap::new();
    let (mut begun, mut numbers) = (Vec::new(), HashMap::new());
    for edge in edges {
        let stack = open.entry(edge.track).or_default();
        if edge.is_begin {
            begun.push(stack.clone());
            stack.push(begun.len() - 1);
        } else {
            let ended = stack.pop().expect("a beginning");
            numbers.insert(ended, edge.number.unwrap_or(0));
        }
    }
    let around = begun.into_iter().enumerate().map(|(place, around)| {
        let around = around.iter().map(|outer| numbers[outer]);
        (numbers[&place], around.collect())
    });
    around.collect()
}

#[test]
fn slices_lie_in_no_slice_that_may_have_begun_after_them() {
    let mut chance = Chance(11);
    let mut truth = Vec::new();
    for from in 0..300 {
        nested(&mut chance, from * 100, from * 100 + 99, 2, &mut truth);
    }
    // A clock that moves seldom.
    let coarse: Vec<Times> = truth.iter().map(|(from, to)| (from / 9, to / 9)).collect();
    let dump_bytes = trace(&[coarse]);
    let (edges, _) = exported(&dump_bytes, Cut::default());
    let shown = shown_around(&edges);
    assert_eq!(shown.len(), truth.len());
    let mut placed = 0;
    for (number, around) in &shown {
        let (from, to) = truth[*number as usize];
        for outer in around {
            let (outer_from, outer_to) = truth[*outer as usize];
            assert!(outer_from <= from && to <= outer_to, "{number} in {outer}");
        }
        placed += around.len();
    }
    assert!(placed > 0, "some lie in others for certain");
    let dump = read(&dump_bytes).unwrap();
    let plan = Plan::new(&dump, Cut::default());
    let written = write(&plan, Format::Perfetto, &mut Vec::new(), |_, _| {}).unwrap();
    assert!(written.unplaced > 0, "of others that is not known");
}
