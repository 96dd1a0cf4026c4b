//! Which calls a filter chooses, and what lies in them.
//!
//! How long a call took, or what it returned, is known at its end, and what lies in it comes before. So one walk finds
//! the calls, and the next asks here whether something lies in one. Memory is that of the outermost ones, or of all if
//! only they themselves are wanted.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::events::event::{Event, Output};
use crate::events::filter::Filter;
use crate::sums::calls::{Call, Calls, Step};
use crate::trace_file::dump::Dump;

/// The calls that a filter chooses.
#[derive(Debug)]
pub struct ChosenCalls {
    filter: Filter,
    /// First and last tick of the outermost, by thread.
    outer: HashMap<u32, Vec<(u64, u64)>>,
    /// Thread and first tick of each; `None`: what lies in them counts, too.
    alone: Option<HashSet<(u32, u64)>>,
}

impl ChosenCalls {
    /// The calls that pass `filter`, among the records that pass `records`; `is_alone`: without what lies in them.
    #[must_use]
    pub fn new(
        dump: &Dump,
        (filter, records): (Filter, &Filter),
        tracers: Option<Vec<u64>>,
        is_alone: bool,
    ) -> Self {
        let mut found = Self {
            filter,
            outer: HashMap::new(),
            alone: is_alone.then(HashSet::new),
        };
        let mut calls = Calls::new(tracers);
        calls.walk(dump, records, |item, steps, _| {
            let Output::Event(event) = item else { return };
            for step in steps {
                if let Step::Left(call) | Step::Whole(call) = step
                    && found.passes(call, event)
                {
                    found.add(event.thread(), (call.entered_tick.unwrap_or(0), event.tick));
                }
            }
        });
        for call in calls.open() {
            if found.passes_cut(call.target(), &call.function.name) {
                found.add(call.page.thread, (call.entered_tick, u64::MAX));
            }
        }
        found
    }

    fn add(&mut self, thread: u32, (from, to): (u64, u64)) {
        if let Some(alone) = &mut self.alone {
            alone.insert((thread, from));
        }
        // Calls end from the inside out.
        let outer = self.outer.entry(thread).or_default();
        while outer.pop_if(|inner| inner.0 >= from).is_some() {}
        outer.push((from, to));
    }

    /// Whether a call is chosen that ended with this event.
    fn passes(&self, call: &Call<'_>, event: &Event<'_>) -> bool {
        match call.as_span(event) {
            Some(span) => self.filter.passes_span(&span),
            None => self.passes_cut(call.target(), &call.function.name),
        }
    }

    /// Whether a call of this function is chosen of which not all is known.
    #[must_use]
    pub fn passes_cut(&self, target: &[u8], name: &[u8]) -> bool {
        self.filter.passes_cut_call(target, name)
    }

    /// The steps of an item that are of chosen calls, or of what lies in them; `None`: the item is not of them. A
    /// loss always is.
    #[must_use]
    pub fn of<'s, 'd>(
        &self,
        item: &Output<'d>,
        steps: &'s [Step<'d>],
    ) -> Option<Cow<'s, [Step<'d>]>> {
        let Output::Event(event) = item else {
            return Some(Cow::Borrowed(steps));
        };
        if event.ty.function.is_none() {
            let lies_inside = self.alone.is_none() && self.holds(event.thread(), event.tick);
            return lies_inside.then_some(Cow::Borrowed(steps));
        }
        let began = |tick: u64| match &self.alone {
            Some(alone) => alone.contains(&(event.thread(), tick)),
            None => self.holds(event.thread(), tick),
        };
        let is_chosen = |step: &&Step<'_>| match step {
            Step::Entered {
                function,
                loose: true,
                ..
            } => self.passes_cut(event.target(), &function.name) || began(event.tick),
            Step::Entered { .. } => began(event.tick),
            Step::Left(call) | Step::Whole(call) => {
                self.passes(call, event) || call.entered_tick.is_some_and(began)
            }
        };
        let steps: Vec<_> = steps.iter().filter(is_chosen).cloned().collect();
        (!steps.is_empty()).then_some(Cow::Owned(steps))
    }

    /// Whether a thread was in a chosen call at a tick.
    fn holds(&self, thread: u32, tick: u64) -> bool {
        let Some(outer) = self.outer.get(&thread) else {
            return false;
        };
        let after = outer.partition_point(|call| call.0 <= tick);
        after
            .checked_sub(1)
            .is_some_and(|place| tick <= outer[place].1)
    }
}
