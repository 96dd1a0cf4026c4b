//! What happened in one span: the records in it, in the spans inside, on every thread.
//!
//! A record belongs to a span that it names. One that names none belongs to what its thread was in: so do the calls
//! of functions, whose records stand in rings of their own. Two walks over the events find all that: the first when
//! the span was, the second which spans lie in it and when threads were in them.

use std::collections::{HashMap, HashSet};

use ringmark_format::schema::{NO_SPAN, Shape};

use crate::events::event::{Event, Lost, Output};
use crate::events::filter::Filter;
use crate::trace_file::dump::Dump;
use crate::trace_file::finished_spans::lies_in;

/// A span, by its process and id.
type Key = (usize, u64);
/// From when to when a span was, in ns since 1970.
type Life = (u64, u64);
/// First and last tick of a time in which a thread was in a span.
type Stay = (u64, u64);

/// The spans with one id, and all that lies in them.
#[derive(Debug, Default)]
pub struct SpanContents {
    /// When each of them was.
    lives: Vec<(usize, Life)>,
    /// They and the spans inside.
    ids: HashSet<Key>,
    /// When threads were in one of those, by [`Event::thread`], in the order of time; none lies in another.
    stays: HashMap<u32, Vec<Stay>>,
}

impl Dump {
    /// What the spans with this id hold that were in the time of a filter.
    #[must_use]
    pub fn span_contents(&self, id: u64, filter: &Filter) -> SpanContents {
        let mut lives = Lives::default();
        self.events().for_each(|item| {
            if let Output::Event(event) = &item
                && event.span == Some(id)
            {
                lives.take(event);
            }
        });
        let mut found = Found::new(id, lives.finish(filter));
        if !found.lives.is_empty() {
            self.events().for_each(|item| {
                if let Output::Event(event) = &item {
                    found.take(event);
                }
            });
        }
        found.finish()
    }
}

impl SpanContents {
    /// How many spans have the id.
    #[must_use]
    pub fn spans(&self) -> usize {
        self.lives.len()
    }

    /// Whether an item belongs to one of them. A loss does if it may have.
    #[must_use]
    pub fn holds(&self, item: &Output<'_>) -> bool {
        match item {
            Output::Event(event) => self.holds_event(event),
            Output::Lost(lost) => self.may_hold(lost),
        }
    }

    fn holds_event(&self, event: &Event<'_>) -> bool {
        let process = event.session.process;
        let of_process = |(of, life): &(usize, Life)| *of == process && life.0 <= event.wall_ns();
        if !self.lives.iter().any(of_process) {
            return false;
        }
        let is_in = |id: u64| self.ids.contains(&(process, id));
        let is_span = |shape: Shape| shape == Shape::Span || shape.is_part_of_span();
        if event.shape().is_some_and(is_span) {
            return event.span.is_some_and(is_in) || self.has_stayed(event);
        }
        match event.named_span() {
            Some(NO_SPAN) => false,
            Some(id) => is_in(id),
            None => event.span.is_some_and(is_in) || self.has_stayed(event),
        }
    }

    /// Whether the thread of an event was in one of the spans from its beginning to its end.
    fn has_stayed(&self, event: &Event<'_>) -> bool {
        let is_elsewhere = event.shape() == Some(Shape::Span) && event.named_parent().is_some();
        let is_part = event.shape().is_some_and(Shape::is_part_of_span);
        if is_elsewhere || is_part {
            return false;
        }
        let Some(stays) = self.stays.get(&event.thread()) else {
            return false;
        };
        let start = event.start_tick();
        let after = stays.partition_point(|stay| lies_in(stay.0, start));
        let stay = after.checked_sub(1).map(|place| stays[place]);
        stay.is_some_and(|stay| event.tick <= stay.1)
    }

    fn may_hold(&self, lost: &Lost<'_>) -> bool {
        let wall_ns = lost.session.clock.wall_ns(lost.t_ns);
        let may = |(process, life): &(usize, Life)| {
            *process == lost.session.process && life.0 <= wall_ns && wall_ns <= life.1
        };
        let is_of = |thread: u32| self.stays.contains_key(&thread);
        self.lives.iter().any(may) && lost.thread().is_none_or(is_of)
    }
}

/// When the spans with an id were.
#[derive(Default)]
struct Lives {
    /// Those that have begun: when, by process.
    open: HashMap<usize, (u64, u64)>,
    /// Process, ns since the session's start, and since 1970.
    ended: Vec<(usize, (u64, u64), Life)>,
}

impl Lives {
    fn take(&mut self, event: &Event<'_>) {
        let process = event.session.process;
        let now = (event.t_ns, event.wall_ns());
        match event.shape() {
            Some(Shape::Span) => {
                let start_ns = event.start_ns();
                let start = (start_ns, event.session.clock.wall_ns(start_ns));
                self.end(process, start, now);
            }
            Some(Shape::SpanNew) => {
                if let Some(start) = self.open.insert(process, now) {
                    // Its end is lost.
                    self.end(process, start, now);
                }
            }
            Some(Shape::SpanClose) => {
                if let Some(start) = self.open.remove(&process) {
                    self.end(process, start, now);
                }
            }
            Some(shape) if shape.is_part_of_span() => drop(self.open.entry(process).or_insert(now)),
            _ => {}
        }
    }

    fn end(&mut self, process: usize, start: (u64, u64), end: (u64, u64)) {
        self.ended
            .push((process, (start.0, end.0), (start.1, end.1)));
    }

    /// Those that were in the time of a filter.
    fn finish(mut self, filter: &Filter) -> Vec<(usize, Life)> {
        let open: Vec<_> = self.open.drain().collect();
        for (process, start) in open {
            self.end(process, start, (u64::MAX, u64::MAX));
        }
        let ended = self.ended.into_iter();
        let mut lives: Vec<_> = ended
            .filter(|(_, t_ns, wall_ns)| filter.times_may_pass(*t_ns, *wall_ns))
            .map(|(process, _, life)| (process, life))
            .collect();
        lives.sort_unstable();
        lives
    }
}

/// What may lie in the spans.
struct Found {
    id: u64,
    lives: Vec<(usize, Life)>,
    /// Spans, each with the one around it.
    around: Vec<(Key, Key)>,
    /// When threads were in spans: thread, span, ticks.
    stays: Vec<(u32, Key, Stay)>,
    /// Since which ticks threads are in spans over threads.
    entered: HashMap<(u32, Key), u64>,
}

impl Found {
    fn new(id: u64, lives: Vec<(usize, Life)>) -> Self {
        Self {
            id,
            lives,
            around: Vec::new(),
            stays: Vec::new(),
            entered: HashMap::new(),
        }
    }

    fn take(&mut self, event: &Event<'_>) {
        let (process, wall_ns) = (event.session.process, event.wall_ns());
        let of_process = |(of, life): &&(usize, Life)| *of == process && life.0 <= wall_ns;
        let Some(is_during) = self
            .lives
            .iter()
            .filter(of_process)
            .map(|(_, life)| wall_ns <= life.1)
            .max()
        else {
            return;
        };
        let key = |id: Option<u64>| id.map(|id| (process, id));
        let Some(own) = key(event.span) else { return };
        let place = (event.thread(), own);
        match event.shape() {
            // A part of a span over threads is while that one is. Another span may outlast what it names.
            Some(Shape::Span) if is_during || event.named_parent().is_some() => {
                let ticks = (event.start_tick(), event.tick);
                self.stays.push((place.0, own, ticks));
                self.around
                    .extend(key(event.parent).map(|around| (own, around)));
            }
            Some(Shape::SpanNew) if is_during => {
                self.around
                    .extend(key(event.parent).map(|around| (own, around)));
            }
            Some(Shape::SpanEnter) => drop(self.entered.insert(place, event.tick)),
            Some(Shape::SpanExit) => {
                if let Some(from) = self.entered.remove(&place) {
                    self.stays.push((place.0, own, (from, event.tick)));
                }
            }
            _ => {}
        }
    }

    fn finish(mut self) -> SpanContents {
        let open = self.entered.drain();
        self.stays
            .extend(open.map(|((thread, own), from)| (thread, own, (from, u64::MAX))));
        let mut inside: HashMap<Key, Vec<Key>> = HashMap::new();
        for (own, around) in self.around {
            inside.entry(around).or_default().push(own);
        }
        let spans = self.lives.iter().map(|(process, _)| (*process, self.id));
        let mut left: Vec<Key> = spans.collect();
        let mut ids = HashSet::new();
        while let Some(own) = left.pop() {
            if ids.insert(own) {
                left.extend(inside.remove(&own).unwrap_or_default());
            }
        }
        let mut stays: HashMap<u32, Vec<Stay>> = HashMap::new();
        for (thread, _, ticks) in self.stays.iter().filter(|stay| ids.contains(&stay.1)) {
            stays.entry(*thread).or_default().push(*ticks);
        }
        stays.values_mut().for_each(join);
        SpanContents {
            lives: self.lives,
            ids,
            stays,
        }
    }
}

/// Puts stays in order, and makes one of those that overlap.
fn join(stays: &mut Vec<Stay>) {
    stays.sort_unstable();
    stays.dedup_by(|next, kept| {
        let overlaps = next.0 <= kept.1;
        if overlaps {
            kept.1 = kept.1.max(next.1);
        }
        overlaps
    });
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn stays_that_overlap_become_one() {
        let mut stays = vec![(30, 40), (1, 10), (2, 3), (5, 12), (12, 14)];
        join(&mut stays);
        assert_eq!(stays, [(1, 14), (30, 40)]);
    }
}
