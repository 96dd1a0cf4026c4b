//! Beginnings at their places among the records of a thread.
//!
//! Records are written in the order of their ends. Going back from the last one, a span begins
//! before the first record that is not earlier than its start, and of spans that began at one tick
//! the one that ended last is the outermost.

use crate::timeline::calls::Beginning;
use crate::timeline::items::{Item, What};
use crate::timeline::viewer::Slice;

/// What begins.
#[derive(Debug, Clone)]
pub(crate) enum Begins<'a> {
    /// A native span, or a call that one record describes.
    Span(Slice<'a>),
    /// A call that was open where the known part of its thread begins, with the
    /// number of calls around it.
    Call(Slice<'a>, u32),
    /// A span that is open at the end: place of its thread, and in that, in the dump's open spans.
    Open(usize, usize),
}

/// A slice that has still to begin, going back in time.
#[derive(Debug, Clone)]
pub(crate) struct Begin<'a> {
    pub(crate) thread: u32,
    pub(crate) tick: u64,
    pub(crate) at_ns: u64,
    /// Number of the record that ends it: larger, the later it ends.
    pub(crate) end: u64,
    pub(crate) what: Begins<'a>,
}

/// A step forward: a slice begins, or the item at this place is shown.
#[derive(Debug, Clone)]
pub(crate) enum Step<'a> {
    Begin(Begin<'a>),
    Item(usize),
}

/// The beginning of what an item ends, if its record is the only one of it.
pub(crate) fn begin_of<'a>(item: &Item<'a>) -> Option<Begin<'a>> {
    let (start, what) = match &item.what {
        What::Span(event, start) => {
            let slice = match event.function() {
                Some(function) => Slice::Call(function, None),
                None => Slice::Span(event.ty),
            };
            (*start, Begins::Span(slice))
        }
        What::Leave(_, function, (_, Beginning::Before { tick, at_ns }), depth) => {
            let slice = Slice::Call(function, None);
            ((*tick, *at_ns), Begins::Call(slice, *depth))
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
    places: &[usize],
    begins: &[Begin<'a>],
    is_here: impl Fn(u64) -> bool,
    steps: &mut Vec<Step<'a>>,
) {
    steps.clear();
    let mut pending: Vec<Begin<'a>> = begins.to_vec();
    pending.sort_by_key(|begin| (begin.tick, u64::MAX - begin.end));
    for place in places.iter().rev() {
        let item = &items[*place];
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
    steps.extend(pending.into_iter().rev().map(Step::Begin));
    steps.reverse();
}
