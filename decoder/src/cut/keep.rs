//! Which records belong to a piece: those inside it, and those that begin or hold something there.
//!
//! A span that ends inside needs all records of its life, one that goes on needs its beginning. A
//! finished span has one record at its end, so one that ends later is needed by what lies in it. A
//! call that has not returned needs its entry.

use std::collections::{HashMap, HashSet};

use ringmark_format::schema::Shape;

use crate::blocks::page::Page;
use crate::events::event::{Event, Output};
use crate::events::filter::Filter;
use crate::events::filter_times::When;
use crate::trace_file::dump::Dump;
use crate::trace_file::functions::FunctionUse;
use crate::trace_file::spans::duration_ticks;

/// A record: its page, and its number there.
type Place = (*const Page, u64);
/// A ring of a session.
type Ring = (usize, u64);

/// A span whose records are found one by one.
#[derive(Default)]
struct Life {
    /// Records with its fields, from outside.
    made: Vec<Place>,
    /// Entries (true) and exits from outside, by ring.
    polls: Vec<(Ring, bool, Place)>,
    /// It is closed inside.
    ends_inside: bool,
    /// Id of the span around its beginning.
    parent: Option<u64>,
}

/// The records of a piece.
#[derive(Default)]
pub(super) struct Kept {
    records: HashMap<*const Page, Vec<u64>>,
    /// Events inside.
    pub(super) inside: u64,
    /// Events from outside.
    pub(super) around: u64,
}

/// A call that is open: whose it is, and its record.
type OpenCall = ((u64, u32), Place);

/// What is known while the events pass by in the order of time.
#[derive(Default)]
struct Passing {
    spans: HashMap<(usize, u64), Life>,
    calls: HashMap<Ring, Vec<OpenCall>>,
    /// Spans around beginnings.
    parents: HashSet<(usize, u64)>,
    /// Records of those that were finished outside.
    finished: HashMap<(usize, u64), Place>,
}

impl Kept {
    pub(super) fn of(dump: &Dump, filter: &Filter) -> Self {
        let (mut kept, mut passing) = (Self::default(), Passing::default());
        dump.events().for_each(|item| {
            if let Output::Event(event) = item {
                kept.take(&event, filter, &mut passing);
            }
        });
        passing
            .calls
            .into_values()
            .flatten()
            .for_each(|(_, place)| kept.keep(place));
        for ((session, _), life) in passing.spans {
            let around = life
                .parent
                .and_then(|id| passing.finished.remove(&(session, id)));
            around.into_iter().for_each(|place| kept.keep(place));
            kept.keep_life(life);
        }
        for records in kept.records.values_mut() {
            records.sort_unstable();
        }
        kept
    }

    /// The records of a page that are kept, by number.
    pub(super) fn of_page(&self, page: &Page) -> &[u64] {
        let found = self.records.get(&std::ptr::from_ref(page));
        found.map_or(&[], Vec::as_slice)
    }

    fn keep(&mut self, (page, index): Place) {
        self.around += 1;
        self.records.entry(page).or_default().push(index);
    }

    fn take(&mut self, event: &Event<'_>, filter: &Filter, passing: &mut Passing) {
        let when = filter.when(event.t_ns, event.wall_ns());
        let is_inside = when == When::Inside && filter.thread_passes(event.tid());
        let index = event.seq.wrapping_sub(event.page.header.first_event);
        let place = (std::ptr::from_ref(event.page), index);
        if is_inside {
            self.inside += 1;
            self.records.entry(place.0).or_default().push(index);
        }
        match (&event.ty.function, event.ty.shape) {
            (Some(function), _) if when == When::Before => passing.call(event, function, place),
            (Some(_), _) => {}
            (None, Some(Shape::Span)) if when == When::After && began_before_end(event, filter) => {
                self.keep(place);
            }
            (None, Some(Shape::Span)) if when == When::After => {}
            (None, Some(Shape::Span)) if !is_inside => passing.finish(event, place),
            (None, Some(shape)) if when != When::After => {
                passing.life(event, shape, place, when, is_inside);
            }
            _ => {}
        }
    }

    fn keep_life(&mut self, mut life: Life) {
        let made = std::mem::take(&mut life.made);
        made.into_iter().for_each(|place| self.keep(place));
        let polls = match life.ends_inside {
            true => life.polls,
            false => life.entered(),
        };
        polls.into_iter().for_each(|(.., place)| self.keep(place));
    }
}

impl Life {
    /// The entries without an exit.
    fn entered(self) -> Vec<(Ring, bool, Place)> {
        let mut entered: HashMap<Ring, Vec<_>> = HashMap::new();
        for poll in self.polls {
            let open = entered.entry(poll.0).or_default();
            match poll.1 {
                true => open.push(poll),
                false => drop(open.pop()),
            }
        }
        entered.into_values().flatten().collect()
    }
}

/// Whether a finished span from after the piece began before its end.
fn began_before_end(event: &Event<'_>, filter: &Filter) -> bool {
    let Some(ticks) = duration_ticks(event.ty, event.payload) else {
        return false;
    };
    let clock = &event.session.clock;
    let start = event.tick.saturating_sub(ticks);
    let t_ns = clock.t_ns(start);
    filter.when(t_ns, clock.wall_of(start, t_ns)) != When::After
}

fn ring(event: &Event<'_>) -> Ring {
    (event.session.number, event.page.ring.0)
}

impl Passing {
    fn life(&mut self, event: &Event<'_>, shape: Shape, place: Place, when: When, inside: bool) {
        let Some(id) = event.span else { return };
        let key = (event.session.number, id);
        match shape {
            Shape::SpanNew | Shape::SpanRecord | Shape::SpanFollows if !inside => {
                let life = self.spans.entry(key).or_default();
                life.made.push(place);
                if shape == Shape::SpanNew {
                    life.parent = event.parent;
                    self.parents.extend(event.parent.map(|id| (key.0, id)));
                }
            }
            Shape::SpanEnter | Shape::SpanExit if !inside => {
                let poll = (ring(event), shape == Shape::SpanEnter, place);
                self.spans.entry(key).or_default().polls.push(poll);
            }
            // What lies in it goes on if a thread is still in it.
            Shape::SpanClose if when == When::Before => {
                let polls = self.spans.remove(&key).map_or(Vec::new(), Life::entered);
                if !polls.is_empty() {
                    self.spans.entry(key).or_default().polls = polls;
                }
            }
            Shape::SpanClose if inside => {
                self.spans.entry(key).or_default().ends_inside = true;
            }
            // Closed by another thread.
            Shape::SpanClose => {
                if let Some(life) = self.spans.get_mut(&key) {
                    life.made.push(place);
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, event: &Event<'_>, place: Place) {
        let key = event.span.map(|id| (event.session.number, id));
        if let Some(key) = key.filter(|key| self.parents.contains(key)) {
            self.finished.insert(key, place);
        }
    }

    /// Entries stay until their exit, which ends what the same tracers saw inside them, too.
    fn call(&mut self, event: &Event<'_>, function: &FunctionUse, place: Place) {
        let call = (function.tracers, function.function);
        let calls = self.calls.entry(ring(event)).or_default();
        if !function.exit {
            if !function.timed && !function.loose {
                calls.push((call, place));
            }
            return;
        }
        if let Some(at) = calls.iter().rposition(|open| open.0 == call) {
            let inside = calls.split_off(at).into_iter();
            calls.extend(inside.filter(|open| open.0.0 != function.tracers));
        }
    }
}
