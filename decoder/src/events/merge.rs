//! Merges slots and sessions by time.
//!
//! A heap holds the slots by the time of their next item; those that have not begun, by the earliest
//! time of any. The slot at the top runs until another one is earlier; only then the heap is touched.
//! The page at hand of each slot that has begun is in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::events::cursor::{Cursor, Moment, Placing, WithPlaces};
use crate::events::entered_spans::Spans;
use crate::events::event::{Lost, Output};
use crate::trace_file::dump::Dump;
use crate::trace_file::loss;
use crate::trace_file::session::{Session, Slot};

/// A place in the order: time, then tick, because rings of one clock may have several ticks in one
/// ns; then the slot's number, so that equal ticks stay in the order of sessions and slots.
type Key = (Moment, usize);

/// The items of a dump in the order of time; what has one time, in the order of reservation.
///
/// The sessions of one process share a clock, and their items are in the order of its ticks.
///
/// Pages whose records step back in time (a signal handler inside a reservation, a time that the
/// caller held) are sorted first. `for_each` and `fold` are faster than a `for` loop.
pub struct Events<'a> {
    cursors: Vec<Cursor<'a>>,
    heap: BinaryHeap<Reverse<Key>>,
    /// The slot that runs, and the key up to which it may.
    running: Option<(usize, Key)>,
    /// By number of the session, for [`Placing::All`] and [`Placing::Parts`].
    spans: Vec<Spans<'a>>,
    rest: std::vec::IntoIter<Lost<'a>>,
}

impl Dump {
    /// Every event and loss in order.
    #[must_use]
    pub fn events(&self) -> Events<'_> {
        self.merged(Placing::All)
    }

    /// As [`Self::events`], but faster: finished spans are not looked for around events, so `span` and
    /// `parent` are those that records of spans over threads name themselves.
    #[must_use]
    pub fn events_alone(&self) -> Events<'_> {
        self.merged(Placing::Parts)
    }

    /// As [`Self::events_alone`], but faster, and without memory for open spans: `parent` and
    /// `span_type` are not looked for.
    #[must_use]
    pub fn events_bare(&self) -> Events<'_> {
        self.merged(Placing::Named)
    }

    /// As [`Self::events_bare`], but faster: where no thread or span has records in several slots, a page is given
    /// from its first item to its last before another slot goes on. Items of a slot are in the order of time.
    pub(crate) fn events_by_pages(&self) -> Events<'_> {
        let mut events = self.events_bare();
        for cursor in &mut events.cursors {
            cursor.gives_whole_pages = self.is_apart(cursor.session);
        }
        events
    }

    /// The records of spans over threads, and the losses, as [`Self::events_bare`] has them.
    #[must_use]
    pub fn events_of_lives(&self) -> Events<'_> {
        self.merged(Placing::Lives)
    }

    fn merged(&self, placing: Placing) -> Events<'_> {
        let sessions: Vec<_> = self.sessions.iter().collect();
        let places = (placing == Placing::All).then(|| self.span_places());
        let mut events = Events::merged(&sessions, (placing, places));
        events.spans = sessions.iter().map(|_| Spans::default()).collect();
        events
    }
}

/// What belongs to no page, at the time of the session's last event.
fn losses_at_the_end(session: &Session) -> impl Iterator<Item = Lost<'_>> {
    let pages = session.slots.iter().flat_map(|slot| &slot.pages);
    let last = pages
        .filter_map(|page| page.summary.ticks)
        .map(|t| t.1)
        .max();
    let t_ns = last.map_or(0, |tick| session.clock.t_ns(tick));
    loss::of_session(session)
        .into_iter()
        .map(move |(ring, loss)| Lost {
            session,
            page: None,
            ring,
            t_ns,
            loss,
        })
}

impl<'a> Events<'a> {
    /// All of these sessions, in one order.
    pub(super) fn merged(sessions: &[&'a Session], placing: WithPlaces<'a>) -> Self {
        let slots = sessions.iter().flat_map(|session| {
            let slots = session.slots.iter();
            slots.map(move |slot| (*session, slot))
        });
        let mut events = Self::of_slots(slots, placing);
        let rest: Vec<_> = sessions.iter().flat_map(|s| losses_at_the_end(s)).collect();
        events.rest = rest.into_iter();
        events
    }

    /// These slots, without what belongs to no page.
    pub(super) fn of_slots(
        slots: impl Iterator<Item = (&'a Session, &'a Slot)> + Clone,
        placing: WithPlaces<'a>,
    ) -> Self {
        let mut clocks = slots.clone().map(|(session, _)| session.clock_of);
        let first = clocks.next();
        let by_wall = clocks.any(|clock| Some(clock) != first);
        let mut events = Events {
            cursors: Vec::new(),
            heap: BinaryHeap::new(),
            running: None,
            spans: Vec::new(),
            rest: Vec::new().into_iter(),
        };
        for (session, slot) in slots {
            events.add(Cursor::new(session, slot, by_wall, placing));
        }
        events
    }

    /// What belongs to no page of this session.
    pub(super) fn rest_of(session: &'a Session) -> Self {
        let mut events = Self::of_slots([].into_iter(), (Placing::Named, None));
        let rest: Vec<_> = losses_at_the_end(session).collect();
        events.rest = rest.into_iter();
        events
    }

    fn add(&mut self, cursor: Cursor<'a>) {
        let number = self.cursors.len();
        self.heap.push(Reverse((cursor.earliest(), number)));
        self.cursors.push(cursor);
    }

    /// Starts the slot whose head is the earliest. It stays at the heap's top while it runs, up to
    /// the key of the second earliest, which is given too.
    #[inline]
    fn switch(&mut self) -> Option<(usize, Key)> {
        let number = loop {
            let Reverse((_, number)) = *self.heap.peek()?;
            if self.cursors[number].has_begun() {
                break number;
            }
            let time = self.cursors[number].advance();
            self.stop(number, time);
        };
        let keys = self.heap.as_slice();
        // The second smallest of a heap is one of the top's two children.
        let child = |i| {
            keys.get(i)
                .map_or(((u64::MAX, u64::MAX), usize::MAX), |r: &Reverse<Key>| r.0)
        };
        Some((number, child(1).min(child(2))))
    }

    /// Gives `to` the next items, at most this many; returns how many there were. Faster than `next` for each
    /// of them.
    ///
    /// ```
    /// use ringmark_decoder::DumpBuilder;
    ///
    /// let dump = DumpBuilder::new().bare().finish();
    /// let (mut events, mut piece) = (dump.events_bare(), Vec::new());
    /// while events.each(1000, |item| piece.push(item)) > 0 {
    ///     // Look at the piece.
    ///     piece.clear();
    /// }
    /// ```
    pub fn each(&mut self, most: u64, mut to: impl FnMut(Output<'a>)) -> u64 {
        let mut given = 0;
        while given < most {
            let Some((number, limit)) = self.running.take().or_else(|| self.switch()) else {
                let Some(lost) = self.rest.next() else { break };
                to(Output::Lost(lost));
                given += 1;
                continue;
            };
            let cursor = &mut self.cursors[number];
            loop {
                if let Some(item) = cursor.take(&mut self.spans) {
                    to(item);
                    given += 1;
                }
                let page = cursor.page();
                match cursor.advance() {
                    Some(time) if (time, number) <= limit || cursor.goes_on_in(page) => {
                        if given == most {
                            self.running = Some((number, limit));
                            break;
                        }
                    }
                    time => {
                        self.stop(number, time);
                        break;
                    }
                }
            }
        }
        given
    }

    /// Puts the slot that ran where it belongs now: at the time of its next item, or out of the
    /// heap if it has none.
    #[inline]
    fn stop(&mut self, number: usize, time: Option<Moment>) {
        let Some(mut top) = self.heap.peek_mut() else {
            return;
        };
        match time {
            Some(time) => *top = Reverse((time, number)),
            None => {
                PeekMut::pop(top);
            }
        }
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Output<'a>;

    #[inline]
    fn next(&mut self) -> Option<Output<'a>> {
        if self.running.is_none() {
            self.running = self.switch();
        }
        let Some((number, limit)) = self.running else {
            return self.rest.next().map(Output::Lost);
        };
        let cursor = &mut self.cursors[number];
        let item = cursor.take(&mut self.spans);
        match cursor.advance() {
            Some(time) if (time, number) <= limit => {}
            time => {
                self.stop(number, time);
                self.running = None;
            }
        }
        item
    }

    /// What `for_each` and its like run on: without a stop at every item.
    fn fold<B, F: FnMut(B, Output<'a>) -> B>(mut self, init: B, mut f: F) -> B {
        let mut state = init;
        while let Some((number, limit)) = self.running.take().or_else(|| self.switch()) {
            let cursor = &mut self.cursors[number];
            let time = loop {
                if let Some(item) = cursor.take(&mut self.spans) {
                    state = f(state, item);
                }
                match cursor.advance() {
                    Some(time) if (time, number) <= limit => {}
                    time => break time,
                }
            };
            self.stop(number, time);
        }
        self.rest.map(Output::Lost).fold(state, f)
    }
}
