//! Folded stacks have the time in which each span was the innermost one, of those spans of which all that
//! lay inside is known.

use crate::common;
use crate::spans;

use std::collections::BTreeMap;

use common::*;
use ringmark_decoder::{Dump, Filter};
use ringmark_export::{Cut, Format, Plan, write};
use spans::{Chance, OF_PAGE, Times, nested, trace, trace_without};

/// Time by the number of spans in each other.
type OwnTimes = BTreeMap<usize, u64>;

fn spans_of_a_thread() -> Vec<Times> {
    let (mut chance, mut spans) = (Chance(11), Vec::new());
    for from in 0..30 {
        nested(&mut chance, from * 500, from * 500 + 499, 2, &mut spans);
    }
    spans.push((0, 20_000));
    spans
}

/// Own times by the definition: each nanosecond is of the innermost of the spans that are `shown`, where
/// all of that one `is_known`.
fn expected(shown: &[Times], is_known: impl Fn(Times) -> bool) -> OwnTimes {
    let last = shown.iter().map(|span| span.1).max().unwrap_or(0);
    let mut innermost: Vec<Option<(usize, Times)>> = vec![None; last as usize];
    // The outer ones end later.
    for span in shown.iter().rev() {
        for owner in &mut innermost[span.0 as usize..span.1 as usize] {
            *owner = Some((owner.map_or(0, |(depth, _)| depth) + 1, *span));
        }
    }
    let mut own = OwnTimes::new();
    for (depth, _) in innermost.into_iter().flatten().filter(|of| is_known(of.1)) {
        *own.entry(depth).or_default() += 1;
    }
    own
}

/// What an export says, and how many own times it leaves out.
fn folded(dump: &Dump, filter: Filter) -> (OwnTimes, u64) {
    let plan = Plan::new(dump, Cut { filter, min_ns: 0 });
    let mut out = Vec::new();
    let written = write(&plan, Format::Folded(None), &mut out, |_, _| {}).unwrap();
    let mut own = OwnTimes::new();
    for line in String::from_utf8(out).unwrap().lines() {
        let (stack, ns) = line.rsplit_once(' ').unwrap();
        let depth = stack.split(';').filter(|frame| *frame == "span").count();
        *own.entry(depth).or_default() += ns.parse::<u64>().unwrap();
    }
    let left_out = written.left_out.iter();
    let unknown = left_out.filter(|(what, _)| what.starts_with("own times"));
    (own, unknown.map(|(_, count)| count).sum())
}

fn from(ns: u64) -> Filter {
    let mut filter = Filter::new();
    filter.from(&format!("{ns}ns")).unwrap();
    filter
}

#[test]
fn a_stack_has_the_time_in_which_its_span_was_innermost() {
    let spans = spans_of_a_thread();
    let dump = read(&trace(std::slice::from_ref(&spans))).unwrap();
    assert_eq!(
        folded(&dump, Filter::new()),
        (expected(&spans, |_| true), 0)
    );
}

/// Both the piece of a trace and the whole of it from a time on.
#[test]
fn what_began_before_a_piece_has_no_own_time() {
    let spans = spans_of_a_thread();
    let dump = read(&trace(std::slice::from_ref(&spans))).unwrap();
    for at in [1, 4_000, 7_077, 14_800] {
        let shown: Vec<_> = spans.iter().copied().filter(|span| span.1 >= at).collect();
        let unknown = shown.iter().filter(|span| span.0 < at).count() as u64;
        assert!(unknown > 0);
        let expected = (expected(&shown, |span| span.0 >= at), unknown);
        assert_eq!(folded(&dump, from(at)), expected, "the whole from {at} on");
        let mut piece = Vec::new();
        let written: Result<(), ()> = dump.cut(&from(at)).write(|blocks| {
            piece.extend_from_slice(blocks);
            Ok(())
        });
        written.unwrap();
        let piece = read(&piece).unwrap();
        assert_eq!(
            folded(&piece, Filter::new()),
            expected,
            "a piece from {at} on"
        );
    }
}

#[test]
fn what_lasts_through_a_loss_has_no_own_time() {
    let spans = spans_of_a_thread();
    let (lost, after) = (OF_PAGE..2 * OF_PAGE, 2 * OF_PAGE);
    assert!(spans.len() > after);
    let dump = read(&trace_without(std::slice::from_ref(&spans), Some(1))).unwrap();
    let gap = (spans[lost.start - 1].1, spans[after].1);
    let mut shown = spans.clone();
    shown.drain(lost);
    let is_known = |span: Times| span.0 >= gap.1 || span.1 <= gap.0;
    let unknown = shown.iter().filter(|span| !is_known(**span)).count() as u64;
    assert!(unknown > 1);
    let expected = (expected(&shown, is_known), unknown);
    assert_eq!(folded(&dump, Filter::new()), expected);
}
