#![allow(dead_code, reason = "every test uses its own part")]
//! What our decoder finds in a trace, as sums by name that a viewer's can be compared with.

pub(crate) mod programs;
mod stacks;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ringmark_decoder::{Block, BlockReader, Calls, Dump, Item, Output, Paired, SpanPairs, Step};
use ringmark_format::block::{BlockHeader, kind};
use ringmark_tests::random::Random;
use serde_json::Value;
use stacks::Stacks;

/// By name: how many, and a sum.
pub(crate) type Sums = BTreeMap<String, (u64, u64)>;

/// What there is in a trace.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    /// Spans and calls with a beginning and an end: sum of durations, ns.
    pub(crate) durations: Sums,
    /// Native spans and calls that took some time: sum of the numbers of those around them in their
    /// thread.
    pub(crate) depths: Sums,
    /// Events that are not here.
    pub(crate) not_here: u64,
    /// Names of threads.
    pub(crate) threads: BTreeSet<String>,
}

fn add(sums: &mut Sums, name: &[u8], number: u64) {
    let name = String::from_utf8_lossy(name).into_owned();
    let (count, sum) = sums.entry(name).or_default();
    *count += 1;
    *sum += number;
}

/// A span that has ended: from, to, ns, name.
type Ended<'a> = (u64, u64, u64, &'a [u8]);

impl Truth {
    pub(crate) fn of(dump: &Dump) -> Self {
        Self::at_least(dump, 0)
    }

    fn at_least(dump: &Dump, min_ns: u64) -> Self {
        let mut truth = Self::default();
        let (mut pairs, mut calls) = (SpanPairs::new(dump), Calls::new(None));
        let mut spans: HashMap<u32, Vec<Ended<'_>>> = HashMap::new();
        let mut stacks = Stacks::default();
        for output in dump.events() {
            stacks.take(&output);
            if let Paired::Ended(span) = pairs.take(&output) {
                add(&mut truth.durations, &span.ty.name, span.total_ns);
            }
            let Output::Event(event) = output else {
                continue;
            };
            truth
                .threads
                .insert(String::from_utf8_lossy(event.comm()).into_owned());
            if let Some(ns) = event.duration_ns().filter(|ns| *ns >= min_ns) {
                add(&mut truth.durations, event.name(), ns);
                let own = spans.entry(event.thread()).or_default();
                own.push((event.start_tick(), event.tick, ns, event.name()));
            }
            calls.take(&event, |step| {
                stacks.step(event.thread(), &step);
                let Step::Left(call) = step else { return };
                let ns = call.duration_ns().filter(|ns| *ns >= min_ns);
                if let Some(ns) = ns {
                    add(&mut truth.durations, &call.function.name, ns);
                }
            });
        }
        for spans in spans.values_mut() {
            truth.add_depths(spans);
        }
        stacks.add_depths(min_ns, &mut truth.depths);
        let found = dump.verify();
        truth.not_here = found.lost + found.overwritten + found.missing;
        truth
    }

    /// Spans of one thread: their starts, ends, durations and names, in the order of their ends.
    fn add_depths(&mut self, spans: &mut [(u64, u64, u64, &[u8])]) {
        // The outer one of two that begin together ends later.
        let mut order: Vec<usize> = (0..spans.len()).collect();
        order.sort_by_key(|place| (spans[*place].0, usize::MAX - place));
        let mut open: Vec<usize> = Vec::new();
        for place in order {
            let (start, _, ns, name) = spans[place];
            open.retain(|around| spans[*around].1 > start || *around > place);
            if ns > 0 {
                add(&mut self.depths, name, open.len() as u64);
            }
            open.push(place);
        }
    }
}

/// The durations of what took at least this long.
pub(crate) fn shown_by_name(dump: &Dump, min_ns: u64) -> Sums {
    Truth::at_least(dump, min_ns).durations
}

/// Rows of name, number and sum.
pub(crate) fn sums(rows: &[Vec<Value>]) -> Sums {
    let number = |value: &Value| value.as_str().expect("digits").parse().expect("a number");
    rows.iter()
        .map(|row| {
            let name = row[0].as_str().unwrap_or_default().to_owned();
            (name, (number(&row[1]), number(&row[2])))
        })
        .collect()
}

/// A trace file without some of its pages: each tenth by chance, or the first of each ring.
pub(crate) fn pages_removed(whole: &[u8], seed: Option<u64>) -> Vec<u8> {
    let mut random = seed.map(Random::from_seed);
    let mut rings = BTreeSet::new();
    without(whole, |header| {
        let is_first = header.kind == kind::PAGE && rings.insert(header.ring_id);
        match &mut random {
            Some(random) => header.kind == kind::PAGE && random.below(10) == 0,
            None => is_first,
        }
    })
}

/// A trace file without the names of its events.
pub(crate) fn names_removed(whole: &[u8]) -> Vec<u8> {
    without(whole, |header| header.kind == kind::SCHEMA)
}

/// The blocks that are not to go.
fn without(whole: &[u8], mut is_gone: impl FnMut(&BlockHeader) -> bool) -> Vec<u8> {
    let mut reader = BlockReader::new("whole", whole);
    let mut keep = Vec::new();
    while let Some(item) = reader.next_item() {
        let Item::Block(Block { header, offset, .. }) = item else {
            panic!("a sound trace file");
        };
        keep.push((offset as usize, !is_gone(&header)));
    }
    keep.push((whole.len(), false));
    let mut cut = Vec::new();
    for pair in keep.windows(2) {
        if pair[0].1 {
            cut.extend_from_slice(&whole[pair[0].0..pair[1].0]);
        }
    }
    cut
}
