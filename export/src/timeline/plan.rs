//! The first way through a trace: what there is, and what begins far before its record.

use std::collections::BTreeMap;

use ringmark_decoder::{Calls, Dump, Event, OpenThread, Output, Session};
use ringmark_format::schema::Shape;

use crate::timeline::calls::Beginning;
use crate::timeline::items::{Alone, Cut, Item, Items, LongCalls, NO_THREAD, What};
use crate::timeline::order::{Begin, Begins, begin_of};

/// Least events and losses of a stretch.
const STRETCH: u64 = 2048;
/// Most stretches. What begins in one and ends in another is kept, so what is kept does not grow with
/// the trace.
const STRETCHES_MAX: u64 = 2048;

/// A thread of the dump.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Thread<'a> {
    pub(crate) session: &'a Session,
    pub(crate) tid: u32,
    /// Its name when it attached, or empty.
    pub(crate) name: &'a [u8],
}

/// How much there is to export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Spans and calls.
    pub slices: u64,
    /// Calls among them.
    pub calls: u64,
    /// Events that are no slices and no counters.
    pub instants: u64,
    /// Values of counters.
    pub counters: u64,
    /// Stretches in which events are not there.
    pub losses: u64,
}

impl Counts {
    /// Whether there is nothing but gaps.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.slices == 0 && self.instants == 0 && self.counters == 0
    }
}

/// A trace and what of it is exported.
#[derive(Debug)]
pub struct Plan<'a> {
    pub(crate) dump: &'a Dump,
    pub(crate) cut: Cut,
    pub(crate) open: Vec<OpenThread<'a>>,
    pub(crate) threads: BTreeMap<u32, Thread<'a>>,
    /// Events and losses of each stretch, but for the last one.
    pub(crate) stretch: u64,
    /// Wall time at which each stretch begins, in ns, and the slices before it.
    starts: Vec<(u64, u64)>,
    /// By stretch: what begins there and ends in a later one, or not at all.
    begins: Vec<Vec<Begin<'a>>>,
    pub(crate) long: Option<LongCalls>,
    /// Thread and ring of the latest event.
    met: Option<(u32, u64)>,
    counts: Counts,
    /// Events and losses of the dump.
    pub(crate) items: u64,
    /// How many of them are still of the latest stretch.
    left: u64,
    /// Wall times of the first beginning and the last item, in ns.
    first_ns: u64,
    last_ns: u64,
}

impl<'a> Plan<'a> {
    /// Goes through `dump` once.
    #[must_use]
    pub fn new(dump: &'a Dump, cut: Cut) -> Self {
        let mut plan = Self {
            dump,
            cut: Cut::default(),
            open: dump.open_spans(),
            threads: BTreeMap::new(),
            stretch: STRETCH.max(events(dump) / STRETCHES_MAX),
            starts: Vec::new(),
            begins: Vec::new(),
            long: (cut.min_ns > 0).then(LongCalls::default),
            met: None,
            counts: Counts::default(),
            items: 0,
            left: 0,
            first_ns: u64::MAX,
            last_ns: 0,
        };
        let mut items = Items::new(&cut, None, None);
        let mut calls = Calls::new(None);
        let mut found = Vec::new();
        dump.events_bare().for_each(|output| {
            plan.meet(&output);
            if let (Output::Event(event), Some((alone, number))) =
                (&output, items.take_alone(&output))
            {
                return plan.take_alone(event, alone, number);
            }
            if let (Output::Event(event), Some(long)) = (&output, &mut plan.long)
                && cut.filter.passes(event)
            {
                calls.take(event, |step| long.take(event, &step, cut.min_ns));
            }
            found.clear();
            items.take(&output, 0, &mut found);
            found.iter().for_each(|item| plan.take(item, &output));
        });
        plan.cut = cut;
        plan.take_open();
        plan
    }

    /// How much there is, at most: which spans over threads pass the cut is only known at their ends.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// How much of the end, in ns, has at most this many slices; `None`: all of it.
    #[must_use]
    pub fn last_with(&self, slices: u64) -> Option<u64> {
        let too_many = self.counts.slices.checked_sub(slices).filter(|n| *n > 0)?;
        let place = self.starts.partition_point(|start| start.1 < too_many);
        let from = self.starts.get(place).map_or(self.last_ns, |start| start.0);
        Some(self.last_ns.saturating_sub(from))
    }

    /// Wall time of the first beginning, in ns.
    pub(crate) const fn first_ns(&self) -> u64 {
        self.first_ns
    }

    /// The number of the stretch that a time lies in.
    pub(crate) fn stretch_of(&self, at_ns: u64) -> usize {
        let after = self.starts.partition_point(|start| start.0 <= at_ns);
        after.saturating_sub(1)
    }

    /// What begins in a stretch and ends in a later one.
    pub(crate) fn begins(&self, stretch: usize) -> &[Begin<'a>] {
        self.begins.get(stretch).map_or(&[], Vec::as_slice)
    }

    /// Wall time at which a stretch begins, in ns; the first one has all before it too.
    pub(crate) fn starts_at(&self, stretch: usize) -> u64 {
        match stretch {
            0 => 0,
            _ => self.starts.get(stretch).map_or(0, |start| start.0),
        }
    }

    #[inline]
    fn meet(&mut self, output: &Output<'a>) {
        let at_ns = match output {
            Output::Event(event) => {
                self.meet_thread(event);
                event.wall_ns()
            }
            Output::Lost(lost) => lost.session.clock.wall_ns(lost.t_ns),
        };
        self.first_ns = self.first_ns.min(at_ns);
        self.last_ns = self.last_ns.max(at_ns);
        if self.left == 0 {
            self.left = self.stretch;
            let at_ns = self.starts.last().map_or(at_ns, |last| last.0.max(at_ns));
            self.starts.push((at_ns, self.counts.slices));
            self.begins.push(Vec::new());
        }
        self.left -= 1;
        self.items += 1;
    }

    /// Counts an event that nothing is put together for.
    #[inline]
    fn take_alone(&mut self, event: &Event<'a>, alone: Alone, number: u64) {
        match alone {
            Alone::Hidden => {}
            Alone::Counter => self.counts.counters += 1,
            Alone::Instant => self.counts.instants += 1,
            Alone::Span(start) => {
                self.counts.slices += 1;
                let is_here = self.starts.last().is_some_and(|last| last.0 <= start.1);
                if is_here {
                    self.first_ns = self.first_ns.min(start.1);
                    return;
                }
                self.take_begin(Begin {
                    thread: event.thread(),
                    tick: start.0,
                    at_ns: start.1,
                    end: number,
                    what: Begins::Span(event.ty),
                });
            }
        }
    }

    /// Keeps a beginning that lies in an earlier stretch.
    fn take_begin(&mut self, begin: Begin<'a>) {
        self.first_ns = self.first_ns.min(begin.at_ns);
        let stretch = self.stretch_of(begin.at_ns);
        if stretch + 1 != self.starts.len() {
            self.begins[stretch].push(begin);
        }
    }

    #[inline]
    fn meet_thread(&mut self, event: &Event<'a>) {
        if self.met == Some((event.thread(), event.ring().0)) {
            return;
        }
        self.met = Some((event.thread(), event.ring().0));
        let new = || Thread {
            session: event.session,
            tid: event.tid(),
            name: event.comm(),
        };
        let thread = self.threads.entry(event.thread()).or_insert_with(new);
        if thread.name.is_empty() {
            thread.name = event.comm();
        }
    }

    fn take(&mut self, item: &Item<'a>, output: &Output<'a>) {
        let Output::Event(event) = output else {
            self.counts.losses += 1;
            return;
        };
        match &item.what {
            What::Span(..) | What::Enter(..) | What::Lasted(..) => {
                let is_call = event.ty.function.is_some();
                self.counts.slices += 1;
                self.counts.calls += u64::from(is_call);
            }
            What::Instant if event.ty.shape == Some(Shape::SpanNew) => {
                self.counts.slices += 1;
            }
            What::Leave(_, (_, Beginning::Entered), _) | What::Lost => {}
            What::Leave(_, (_, Beginning::Before { .. }), _) => {
                self.counts.slices += 1;
                self.counts.calls += 1;
            }
            What::Instant | What::Leave(..) => self.counts.instants += 1,
            What::Counter => self.counts.counters += 1,
        }
        if let Some(begin) = begin_of(item, event) {
            self.take_begin(begin);
        }
    }

    /// Notes the native spans that are open at the end.
    fn take_open(&mut self) {
        let open = std::mem::take(&mut self.open);
        for (place, of) in open.iter().enumerate() {
            let thread = self.thread_of(of);
            for (number, span) in of.spans.iter().enumerate() {
                if span.ty.shape != Some(Shape::Span) || self.starts.is_empty() {
                    continue;
                }
                self.counts.slices += 1;
                let at_ns = of.session.clock.wall_ns(span.since_ns);
                self.first_ns = self.first_ns.min(at_ns);
                let stretch = self.stretch_of(at_ns);
                self.begins[stretch].push(Begin {
                    thread,
                    tick: span.since,
                    at_ns,
                    end: u64::MAX - number as u64,
                    what: Begins::Open(place as u32, number as u32),
                });
            }
        }
        self.open = open;
    }

    /// The number of the thread that has these spans open: the latest one of its id, or a new one.
    fn thread_of(&mut self, open: &OpenThread<'a>) -> u32 {
        let is_it = |thread: &Thread<'_>| {
            thread.tid == open.tid && thread.session.process == open.session.process
        };
        let mut known = self.threads.iter().rev();
        if let Some((number, _)) = known.find(|(_, thread)| is_it(thread)) {
            return *number;
        }
        let last = self.threads.keys().next_back();
        let number = last.map_or(0, |last| last + 1).min(NO_THREAD - 1);
        let thread = Thread {
            session: open.session,
            tid: open.tid,
            name: open.comm,
        };
        self.threads.insert(number, thread);
        number
    }
}

/// Events in the pages of a dump.
fn events(dump: &Dump) -> u64 {
    let slots = dump.sessions.iter().flat_map(|session| &session.slots);
    let pages = slots.flat_map(|slot| &slot.pages);
    pages.map(|page| page.summary.events).sum()
}
