//! Events and losses as what a viewer shows of them: what passes the cut, calls put together.

use std::collections::{HashMap, HashSet};

use ringmark_decoder::{
    Ended, Event, Filter, Function, Lost, Output, Paired, Span, SpanPairs, Step,
};
use ringmark_format::Uuid;
use ringmark_format::schema::Shape;

use crate::timeline::calls::{Beginning, CallStacks};
use crate::timeline::lanes::SingleLanes;

/// What of a trace is exported.
#[derive(Debug, Clone, Default)]
pub struct Cut {
    /// Which events. A span or call has the time of its end.
    pub filter: Filter,
    /// Shortest span or call, in ns.
    pub min_ns: u64,
}

/// What is shown at one place of a thread.
#[derive(Debug)]
pub(crate) enum What<'a> {
    /// A span ends, or a call that one record describes. Its beginning: tick and time.
    Span(Event<'a>, (u64, u64)),
    Instant(Event<'a>),
    Counter(Event<'a>),
    /// A span over threads ends, in the lane with this number.
    Lasted(Box<Span<'a>>, u32),
    /// With the number of calls around it.
    Enter(Event<'a>, &'a Function, u32),
    Leave(Event<'a>, &'a Function, (Ended, Beginning), u32),
    Lost(Lost<'a>),
}

/// One thing to show.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    /// Number of the thread; [`NO_THREAD`]: none.
    pub(crate) thread: u32,
    /// Number among the events and losses of the dump.
    pub(crate) number: u64,
    pub(crate) tick: u64,
    /// Wall time in ns.
    pub(crate) at_ns: u64,
    pub(crate) what: What<'a>,
}

/// Stands for no thread: a loss of a whole session.
pub(crate) const NO_THREAD: u32 = u32::MAX;

/// Which call: thread, depth, time of its entry.
type CallKey = (u32, u32, u64);

/// Calls that are long enough, or have no end.
#[derive(Debug, Default)]
pub(crate) struct LongCalls(HashSet<CallKey>);

/// A span over threads that has not ended.
#[derive(Debug)]
pub(crate) struct Lasting<'a> {
    pub(crate) made: Event<'a>,
    pub(crate) lane: u32,
}

/// Makes items of the events and losses of a dump, in their order.
pub(crate) struct Items<'c, 'a> {
    cut: &'c Cut,
    /// No filter needs to be asked.
    is_all: bool,
    calls: CallStacks<'a>,
    /// `None`: spans over threads are not put together.
    pairs: Option<SpanPairs>,
    lasting: HashMap<(Uuid, u64), Lasting<'a>>,
    lanes: HashMap<(usize, &'a [u8]), SingleLanes>,
    /// The calls to show; `None`: all.
    long: Option<&'c LongCalls>,
    /// Which of the open calls of a thread are shown.
    shown: HashMap<u32, Vec<bool>>,
    number: u64,
    /// Memory for the steps of one event.
    steps: Vec<(Step<'a>, Beginning)>,
    /// Spans over threads whose beginning is not in the trace.
    pub(crate) no_start: u64,
}

impl<'c, 'a> Items<'c, 'a> {
    pub(crate) fn new(cut: &'c Cut, pairs: Option<SpanPairs>, long: Option<&'c LongCalls>) -> Self {
        Self {
            cut,
            is_all: cut.filter.is_empty(),
            calls: CallStacks::default(),
            pairs,
            lasting: HashMap::new(),
            lanes: HashMap::new(),
            long,
            shown: HashMap::new(),
            number: 0,
            steps: Vec::new(),
            no_start: 0,
        }
    }

    /// Takes the next event or loss, and appends what it shows.
    #[inline]
    pub(crate) fn take(&mut self, output: &Output<'a>, to: &mut Vec<Item<'a>>) {
        self.number += 1;
        match output {
            Output::Event(event) => self.event(event, to),
            Output::Lost(lost) => self.lost(lost, to),
        }
    }

    #[cold]
    fn lost(&mut self, lost: &Lost<'a>, to: &mut Vec<Item<'a>>) {
        if let Some(pairs) = &mut self.pairs {
            pairs.take(&Output::Lost(*lost));
        }
        let at_ns = lost.session.clock.wall_ns(lost.t_ns);
        self.calls.lose(lost, at_ns);
        if self.cut.filter.passes_lost(lost) {
            to.push(Item {
                thread: lost.thread().unwrap_or(NO_THREAD),
                number: self.number,
                tick: u64::MAX,
                at_ns,
                what: What::Lost(*lost),
            });
        }
    }

    #[inline]
    fn event(&mut self, event: &Event<'a>, to: &mut Vec<Item<'a>>) {
        let what = match event.ty.shape {
            _ if event.ty.function.is_some() => return self.call(event, to),
            Some(shape) if shape.is_part_of_span() => return self.part(event, to),
            _ if !self.passes(event) => return,
            Some(Shape::Span) => match self.span(event) {
                Some(what) => what,
                None => return,
            },
            Some(Shape::Counter) => What::Counter(*event),
            _ => What::Instant(*event),
        };
        to.push(self.item(event, what));
    }

    #[inline]
    fn passes(&self, event: &Event<'a>) -> bool {
        self.is_all || self.cut.filter.passes(event)
    }

    #[inline]
    fn item(&self, event: &Event<'a>, what: What<'a>) -> Item<'a> {
        Item {
            thread: event.thread(),
            number: self.number,
            tick: event.tick,
            at_ns: event.wall_ns(),
            what,
        }
    }

    /// A span that ends, if it is long enough.
    #[inline]
    fn span(&self, event: &Event<'a>) -> Option<What<'a>> {
        let start_ns = event.start_ns();
        if event.t_ns - start_ns < self.cut.min_ns {
            return None;
        }
        let start = event.session.clock.wall_ns(start_ns);
        Some(What::Span(*event, (event.start_tick(), start)))
    }

    fn call(&mut self, event: &Event<'a>, to: &mut Vec<Item<'a>>) {
        if !self.passes(event) {
            return;
        }
        let mut steps = std::mem::take(&mut self.steps);
        self.calls
            .take(event, |step, beginning| steps.push((step, beginning)));
        for (step, beginning) in steps.drain(..) {
            let what = match step {
                Step::Entered { loose: true, .. } => Some(What::Instant(*event)),
                Step::Entered {
                    function, depth, ..
                } => {
                    let key = (event.thread(), depth, event.t_ns);
                    let is_shown = self.long.is_none_or(|long| long.0.contains(&key));
                    self.show(event.thread(), depth, is_shown);
                    is_shown.then_some(What::Enter(*event, function, depth))
                }
                Step::Left(call) => {
                    let is_entered = beginning == Beginning::Entered;
                    let is_shown = !is_entered || self.is_shown(event.thread(), call.depth);
                    let how = (call.ended, beginning);
                    let what = What::Leave(*event, call.function, how, call.depth);
                    is_shown.then_some(what)
                }
                Step::Whole(_) => self.span(event),
            };
            if let Some(what) = what {
                to.push(self.item(event, what));
            }
        }
        self.steps = steps;
    }

    fn show(&mut self, thread: u32, depth: u32, is_shown: bool) {
        if self.long.is_some() {
            let shown = self.shown.entry(thread).or_default();
            shown.resize(depth as usize, true);
            shown.push(is_shown);
        }
    }

    fn is_shown(&self, thread: u32, depth: u32) -> bool {
        let shown = self.shown.get(&thread);
        shown
            .and_then(|s| s.get(depth as usize))
            .is_none_or(|is_shown| *is_shown)
    }

    /// A record of a span over threads.
    fn part(&mut self, event: &Event<'a>, to: &mut Vec<Item<'a>>) {
        let Some(pairs) = &mut self.pairs else {
            if event.ty.shape == Some(Shape::SpanNew) && self.cut.filter.passes(event) {
                to.push(self.item(event, What::Instant(*event)));
            }
            return;
        };
        let paired = pairs.take(&Output::Event(*event));
        let Some(id) = event.span else { return };
        let key = (event.session.uuid, id);
        match (event.ty.shape, paired) {
            (Some(Shape::SpanNew), _) => {
                let lane = self.lanes(event).take();
                self.lasting.insert(key, Lasting { made: *event, lane });
            }
            (_, Paired::Ended(span)) => {
                let Some(lasting) = self.lasting.remove(&key) else {
                    return;
                };
                self.lanes(&lasting.made).give_back(lasting.lane);
                let is_long = span.total_ns >= self.cut.min_ns;
                if is_long && self.cut.filter.passes_span(&span) {
                    to.push(self.item(event, What::Lasted(span, lasting.lane)));
                }
            }
            (Some(Shape::SpanClose), _) => self.no_start += 1,
            _ => {}
        }
    }

    /// The lanes for spans like that which this record made.
    fn lanes(&mut self, made: &Event<'a>) -> &mut SingleLanes {
        let key = (made.session.process, made.ty.name.as_slice());
        self.lanes.entry(key).or_default()
    }

    /// Spans over threads that have no end, in the order of their beginnings.
    pub(crate) fn lasting(self) -> Vec<Lasting<'a>> {
        let filter = &self.cut.filter;
        let all = self.lasting.into_values();
        let mut all: Vec<_> = all.filter(|open| filter.passes(&open.made)).collect();
        all.sort_by_key(|open| (open.made.wall_ns(), open.made.seq));
        all
    }
}

impl LongCalls {
    /// Takes an item of a dump of which all calls are shown: in the end the long ones are left.
    pub(crate) fn take(&mut self, event: &Event<'_>, step: &Step<'_>, min_ns: u64) {
        match step {
            Step::Entered { depth, .. } => {
                self.0.insert((event.thread(), *depth, event.t_ns));
            }
            Step::Left(call) if call.duration_ns().is_some_and(|ns| ns < min_ns) => {
                let entered = call.entered_ns.unwrap_or(0);
                self.0.remove(&(event.thread(), call.depth, entered));
            }
            _ => {}
        }
    }
}
