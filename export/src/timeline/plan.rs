//! The first way through a trace: what there is, and what begins far before its record.

use std::collections::BTreeMap;

use ringmark_decoder::{Calls, Dump, Event, OpenThread, Output, Session};
use ringmark_format::schema::Shape;

use crate::timeline::calls::Beginning;
use crate::timeline::items::{Alone, Cut, Item, Items, LongCalls, NO_THREAD, What};
use crate::timeline::newest::Newest;
use crate::timeline::order::{Begin, Begins, begin_of};
use crate::timeline::stretches::Stretches;

/// A thread of the dump.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Thread<'a> {
    pub(crate) session: &'a Session,
    pub(crate) tid: u32,
    /// Its name when it attached, or empty.
    pub(crate) name: &'a [u8],
    /// Times since the session's start at which it ran, in ns: of its first and of its last record.
    pub(crate) ran_ns: [u64; 2],
    /// Number of the group that its records are in.
    group: usize,
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
    pub(crate) stretches: Stretches<'a>,
    pub(crate) long: Option<LongCalls>,
    /// Whether there are records of spans over threads.
    pub(crate) has_lives: bool,
    /// The group at hand; thread and ring of the latest event.
    group: usize,
    met: Option<(u32, u64)>,
    /// Time of that event since its session's start, in ns.
    met_ns: u64,
    counts: Counts,
    newest: Newest,
    /// Events and losses of the dump.
    pub(crate) items: u64,
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
            stretches: Stretches::new(events(dump)),
            long: (cut.min_ns > 0).then(LongCalls::default),
            has_lives: false,
            group: 0,
            met: None,
            met_ns: 0,
            counts: Counts::default(),
            newest: Newest::new(events(dump)),
            items: 0,
            first_ns: u64::MAX,
            last_ns: 0,
        };
        let mut items = Items::new(&cut, None);
        let mut calls = Calls::new(None);
        let mut found = Vec::new();
        for events in dump.events_apart() {
            plan.group = plan.stretches.begin_group();
            events.for_each(|output| {
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
        }
        plan.cut = cut;
        plan.end_thread();
        plan.take_open();
        plan
    }

    /// How much there is, at most: which spans over threads pass the cut is only known at their ends.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// How much of the end of the trace, in ns, has about this many slices; `None`: all of it.
    #[must_use]
    pub fn last_with(&self, slices: u64) -> Option<u64> {
        if self.counts.slices <= slices {
            return None;
        }
        let from = self.newest.since(slices).unwrap_or(self.first_ns);
        let end = self.dump.end_ns().unwrap_or(self.last_ns);
        Some(end.max(self.last_ns).saturating_sub(from))
    }

    /// Wall time of the first beginning, in ns.
    pub(crate) const fn first_ns(&self) -> u64 {
        self.first_ns
    }

    /// Wall time of the last item, in ns.
    pub(crate) const fn last_ns(&self) -> u64 {
        self.last_ns
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
        self.stretches.meet(at_ns);
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
                self.count_slice(event);
                self.first_ns = self.first_ns.min(start.1);
                if self.stretches.is_latest(start.1) {
                    return;
                }
                self.stretches.take(Begin {
                    thread: event.thread(),
                    tick: start.0,
                    at_ns: start.1,
                    end: number,
                    what: Begins::Span(event.ty),
                });
            }
        }
    }

    #[inline]
    fn count_slice(&mut self, event: &Event<'a>) {
        self.counts.slices += 1;
        self.newest.take(event.wall_ns());
    }

    #[inline]
    fn meet_thread(&mut self, event: &Event<'a>) {
        if self.met == Some((event.thread(), event.ring().0)) {
            self.met_ns = event.t_ns;
            return;
        }
        self.end_thread();
        self.met = Some((event.thread(), event.ring().0));
        self.met_ns = event.t_ns;
        let group = self.group;
        let new = || Thread {
            session: event.session,
            tid: event.tid(),
            name: event.comm(),
            ran_ns: [event.t_ns; 2],
            group,
        };
        let thread = self.threads.entry(event.thread()).or_insert_with(new);
        if thread.name.is_empty() {
            thread.name = event.comm();
        }
    }

    /// Notes when the thread of the latest event ran last.
    fn end_thread(&mut self) {
        if let Some((number, _)) = self.met
            && let Some(thread) = self.threads.get_mut(&number)
        {
            thread.ran_ns[1] = self.met_ns.max(thread.ran_ns[1]);
        }
    }

    fn take(&mut self, item: &Item<'a>, output: &Output<'a>) {
        let Output::Event(event) = output else {
            self.counts.losses += 1;
            return;
        };
        match &item.what {
            What::Span(..) | What::Enter(..) | What::Leave(_, (_, Beginning::Before { .. }), _) => {
                self.count_slice(event);
                self.counts.calls += u64::from(event.ty.function.is_some());
            }
            What::Part(is_shown) => {
                self.has_lives = true;
                if *is_shown {
                    self.count_slice(event);
                }
            }
            What::Leave(_, (_, Beginning::Entered), _) | What::Lost => {}
            What::Instant | What::Leave(..) => self.counts.instants += 1,
            What::Counter => self.counts.counters += 1,
        }
        if let Some(begin) = begin_of(item, event) {
            self.first_ns = self.first_ns.min(begin.at_ns);
            self.stretches.take(begin);
        }
    }

    /// Notes the native spans that are open at the end. Those of threads without a record have a group of
    /// their own.
    fn take_open(&mut self) {
        let others = self.stretches.begin_group();
        self.stretches.begin(0);
        let open = std::mem::take(&mut self.open);
        for (place, of) in open.iter().enumerate() {
            let (thread, group) = self.thread_of(of, others);
            for (number, span) in of.spans.iter().enumerate() {
                if span.ty.shape != Some(Shape::Span) {
                    continue;
                }
                self.counts.slices += 1;
                let at_ns = of.session.clock.wall_ns(span.since_ns);
                self.first_ns = self.first_ns.min(at_ns);
                let begin = Begin {
                    thread,
                    tick: span.since,
                    at_ns,
                    end: u64::MAX - number as u64,
                    what: Begins::Open(place as u32, number as u32),
                };
                self.stretches.keep(group, begin);
            }
        }
        self.open = open;
    }

    /// The number of the thread that has these spans open, and its group: the latest one of its id, or a
    /// new one of the group `others`.
    fn thread_of(&mut self, open: &OpenThread<'a>, others: usize) -> (u32, usize) {
        let is_it = |thread: &Thread<'_>| {
            thread.tid == open.tid && thread.session.process == open.session.process
        };
        let mut known = self.threads.iter().rev();
        if let Some((number, thread)) = known.find(|(_, thread)| is_it(thread)) {
            return (*number, thread.group);
        }
        let last = self.threads.keys().next_back();
        let number = last.map_or(0, |last| last + 1).min(NO_THREAD - 1);
        let thread = Thread {
            session: open.session,
            tid: open.tid,
            name: open.comm,
            ran_ns: [0; 2],
            group: others,
        };
        self.threads.insert(number, thread);
        (number, others)
    }
}

/// Events in the pages of a dump.
fn events(dump: &Dump) -> u64 {
    let slots = dump.sessions.iter().flat_map(|session| &session.slots);
    let pages = slots.flat_map(|slot| &slot.pages);
    pages.map(|page| page.summary.events).sum()
}
