//! Beginnings at their places among the records of a thread.
//!
//! Records are written in the order of their ends. Going back from the last one, a span begins
//! before the first record that is not earlier than its start, and of spans that began at one tick
//! the one that ended last is the outermost.

use ringmark_decoder::{EventType, Function};

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

/// A slice that has still to begin, going back in time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begin<'a> {
    pub(crate) thread: u32,
    pub(crate) tick: u64,
    pub(crate) at_ns: u64,
    /// Number of the record that ends it: larger, the later it ends.
    pub(crate) end: u64,
    pub(crate) what: Begins<'a>,
}

/// A step forward: a slice begins, or the item at this place is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step<'a> {
    Begin(Begin<'a>),
    Item(u32),
}

/// The beginning of what an item ends, if its record is the only one of it.
pub(crate) fn begin_of<'a>(item: &Item<'a>) -> Option<Begin<'a>> {
    let (start, what) = match &item.what {
        What::Span(event, start) => {
            let what = match event.function() {
                Some(function) => Begins::Timed(function),
                None => Begins::Span(event.ty),
            };
            (*start, what)
        }
        What::Leave(_, function, (_, Beginning::Before { tick, at_ns }), depth) => {
            ((*tick, *at_ns), Begins::Call(function, *depth))
        }
        _ => return None,
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
/// of slices that end later; `is_here` says whether a time is in this stretch.
pub(crate) fn order<'a>(
    items: &[Item<'a>],
    places: &[u32],
    begins: &[Begin<'a>],
    is_here: impl Fn(u64) -> bool,
    (pending, steps): (&mut Vec<Begin<'a>>, &mut Vec<Step<'a>>),
) {
    steps.clear();
    pending.clear();
    pending.extend_from_slice(begins);
    pending.sort_by_key(|begin| (begin.tick, u64::MAX - begin.end));
    for place in places.iter().rev() {
        let item = &items[*place as usize];
        let own = begin_of(item);
        let start = own.as_ref().map(|begin| begin.tick);
        while let Some(begin) = pending.pop_if(|begin| {
            let ended = begin.tick == item.tick && start.is_some_and(|start| start < begin.tick);
            begin.tick > item.tick || ended
        }) {
            steps.push(Step::Begin(begin));
        }
        steps.push(Step::Item(*place));
        if let Some(begin) = own.filter(|begin| is_here(begin.at_ns)) {
            let place = pending.partition_point(|other| other.tick <= begin.tick);
            pending.insert(place, begin);
        }
    }
    steps.extend(pending.drain(..).rev().map(Step::Begin));
    steps.reverse();
}
