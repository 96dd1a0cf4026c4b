//! Beginnings at their places among the records of a thread.
//!
//! Records are written in the order of their ends. Going back from the last one, a span begins
//! before the first record that lies in it for certain, and of spans that began at one tick the one
//! that ended last is the outermost. A record at the tick of a beginning may lie in the span or before
//! it: it is shown before it, and a slice among these is counted as one whose place is not known.

use ringmark_decoder::{Event, EventType, Function, lies_in};

use crate::timeline::calls::Beginning;
use crate::timeline::items::{Item, What};

/// What begins.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Begins<'a> {
    /// A native span.
    Span(&'a EventType),
    /// A call that one record describes.
    Timed(&'a Function),
    /// A call that was open where the known part of its thread begins, with the
    /// number of calls around it.
    Call(&'a Function, u32),
    /// A span that is open at the end: place of its thread, and in that, in the dump's open spans.
    Open(u32, u32),
}

/// The beginning of a slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begin<'a> {
    pub(crate) thread: u32,
    pub(crate) tick: u64,
    pub(crate) at_ns: u64,
    /// Number of the record that ends it: larger, the later it ends.
    pub(crate) end: u64,
    pub(crate) what: Begins<'a>,
}

/// A step forward. Items and beginnings are named by their places, so that steps are small.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// What this item ends begins.
    Begin(u32),
    /// A slice begins that ends in a later stretch.
    BeginEarly(u32),
    /// The item is shown.
    Item(u32),
}

/// A step to a beginning that has still to be made, going back in time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending {
    tick: u64,
    end: u64,
    step: Step,
}

/// Tick and time of the beginning of what an item ends, if its record is the only one of it.
#[inline]
const fn start_of(item: &Item<'_>) -> Option<(u64, u64)> {
    match &item.what {
        What::Span(start) => Some(*start),
        // It was open before the first record that is known.
        What::Leave(_, (_, Beginning::Before { tick, at_ns }), _) => {
            Some((tick.saturating_sub(1), *at_ns))
        }
        _ => None,
    }
}

/// The beginning of what an item ends, with the event that ends it.
#[inline]
pub(crate) fn begin_of<'a>(item: &Item<'a>, event: &Event<'a>) -> Option<Begin<'a>> {
    let start = start_of(item)?;
    let what = match &item.what {
        What::Leave(function, _, depth) => Begins::Call(function, *depth),
        _ => match event.function() {
            Some(function) => Begins::Timed(function),
            None => Begins::Span(event.ty),
        },
    };
    Some(Begin {
        thread: item.thread,
        tick: start.0,
        at_ns: start.1,
        end: item.number,
        what,
    })
}

/// Puts the items of one thread, at `places` of `items`, and beginnings in order. `begins` are those
/// of slices that end later; `is_here` says whether a time is in this stretch, `is_unplaced` whether the trace says
/// that it is not known what an item lies in. Returns of how many slices it is not known what is around them.
pub(crate) fn order(
    items: &[Item<'_>],
    places: &[u32],
    begins: &[Begin<'_>],
    (is_here, is_unplaced): (impl Fn(u64) -> bool, impl Fn(&Item<'_>) -> bool),
    (pending, steps): (&mut Vec<Pending>, &mut Vec<Step>),
) -> u64 {
    let mut unplaced = 0;
    steps.clear();
    pending.clear();
    pending.extend((0..).zip(begins).map(|(place, begin)| Pending {
        tick: begin.tick,
        end: begin.end,
        step: Step::BeginEarly(place),
    }));
    pending.sort_by_key(|begin| (begin.tick, u64::MAX - begin.end));
    for place in places.iter().rev() {
        let item = &items[*place as usize];
        let own = start_of(item);
        let start = own.map(|start| start.0);
        let mut is_beside = own.is_some() && is_unplaced(item);
        while let Some(begin) = pending.pop_if(|begin| !lies_in(begin.tick, item.tick)) {
            is_beside |= start == Some(begin.tick);
            steps.push(begin.step);
        }
        unplaced += u64::from(is_beside);
        steps.push(Step::Item(*place));
        if let Some((tick, _)) = own.filter(|start| is_here(start.1)) {
            let new = Pending {
                tick,
                end: item.number,
                step: Step::Begin(*place),
            };
            let after = pending
                .iter()
                .rev()
                .take_while(|other| other.tick > new.tick);
            pending.insert(pending.len() - after.count(), new);
        }
    }
    steps.extend(pending.drain(..).rev().map(|begin| begin.step));
    steps.reverse();
    unplaced
}
