//! Events and losses as what a viewer shows of them: what passes the cut, calls put together.

use std::collections::{HashMap, HashSet};

use ringmark_decoder::{Call, Ended, Event, Filter, Function, Lost, NearStart, Output, Step};
use ringmark_format::schema::Shape;

use crate::timeline::calls::{Beginning, CallStacks};

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
    Span((u64, u64)),
    Instant,
    Counter,
    /// A record of a span over threads; whether it makes one that is shown.
    Part(bool),
    /// With the number of calls around it.
    Enter(&'a Function, u32),
    Leave(&'a Function, (Ended, Beginning), u32),
    Lost,
}

/// One thing to show.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    /// Place of its event or loss in the stretch.
    pub(crate) place: u32,
    /// Number of the thread; [`NO_THREAD`]: none.
    pub(crate) thread: u32,
    /// Number among the events and losses of the dump.
    pub(crate) number: u64,
    pub(crate) tick: u64,
    /// Wall time in ns.
    pub(crate) at_ns: u64,
    pub(crate) what: What<'a>,
}

/// What an event is that nothing needs to be put together for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Alone {
    /// It is not shown.
    Hidden,
    /// A native span. Its beginning: tick and wall time.
    Span((u64, u64)),
    Counter,
    Instant,
}

impl Alone {
    /// What of it is shown.
    #[inline]
    const fn what<'a>(self) -> Option<What<'a>> {
        match self {
            Self::Hidden => None,
            Self::Span(start) => Some(What::Span(start)),
            Self::Counter => Some(What::Counter),
            Self::Instant => Some(What::Instant),
        }
    }
}

/// Stands for no thread: a loss of a whole session.
pub(crate) const NO_THREAD: u32 = u32::MAX;

/// Which call: thread, depth, time of its entry.
type CallKey = (u32, u32, u64);

/// Calls that are long enough, or have no end.
#[derive(Debug, Default)]
pub(crate) struct LongCalls(HashSet<CallKey>);

/// Which calls are shown.
#[derive(Debug)]
struct ChosenCalls<'c> {
    /// The calls to show; `None`: all.
    long: Option<&'c LongCalls>,
    /// Which of the open calls of a thread are shown.
    shown: HashMap<u32, Vec<bool>>,
}

/// Makes items of the events and losses of a dump, in their order.
pub(crate) struct Items<'c, 'a> {
    cut: &'c Cut,
    /// No filter needs to be asked.
    is_all: bool,
    calls: CallStacks<'a>,
    chosen: ChosenCalls<'c>,
    starts: NearStart,
    number: u64,
}

impl<'c, 'a> Items<'c, 'a> {
    pub(crate) fn new(cut: &'c Cut, long: Option<&'c LongCalls>) -> Self {
        Self {
            cut,
            is_all: cut.filter.is_empty(),
            calls: CallStacks::default(),
            chosen: ChosenCalls {
                long,
                shown: HashMap::new(),
            },
            starts: NearStart::default(),
            number: 0,
        }
    }

    /// Takes the next event or loss, which has this place in the stretch, and appends what it shows.
    #[inline]
    pub(crate) fn take(&mut self, output: &Output<'a>, place: u32, to: &mut Vec<Item<'a>>) {
        if let Some((alone, number)) = self.take_alone(output) {
            if let Output::Event(event) = output {
                to.extend(
                    alone
                        .what()
                        .map(|what| Item::of((event, place), number, what)),
                );
            }
            return;
        }
        self.number += 1;
        match output {
            Output::Lost(lost) => self.lost(lost, place, to),
            Output::Event(event) if event.ty.function.is_some() => self.call((event, place), to),
            Output::Event(event) => {
                let is_made = event.ty.shape == Some(Shape::SpanNew);
                let what = What::Part(is_made && self.passes(event));
                to.push(Item::of((event, place), self.number, what));
            }
        }
    }

    #[cold]
    fn lost(&mut self, lost: &Lost<'a>, place: u32, to: &mut Vec<Item<'a>>) {
        let at_ns = lost.session.clock.wall_ns(lost.t_ns);
        self.calls.lose(lost, at_ns);
        if self.cut.filter.passes_lost(lost) {
            to.push(Item {
                place,
                thread: lost.thread().unwrap_or(NO_THREAD),
                number: self.number,
                tick: u64::MAX,
                at_ns,
                what: What::Lost,
            });
        }
    }

    /// What an event is that is no function record; `None`: a record of a span over threads.
    #[inline]
    fn alone(&mut self, event: &Event<'a>) -> Option<Alone> {
        Some(match event.ty.shape {
            Some(shape) if shape.is_part_of_span() => return None,
            _ if !self.passes(event) => Alone::Hidden,
            Some(Shape::Span) => match start(event, self.cut.min_ns, &mut self.starts) {
                Some(start) => Alone::Span(start),
                None => Alone::Hidden,
            },
            Some(Shape::Counter) => Alone::Counter,
            _ => Alone::Instant,
        })
    }

    /// As [`Self::take`], for an event that stands alone: nothing is appended, and what it is is
    /// returned with its number. `None`: the event, or a loss, needs [`Self::take`].
    #[inline]
    pub(crate) fn take_alone(&mut self, output: &Output<'a>) -> Option<(Alone, u64)> {
        match output {
            Output::Event(event) if event.ty.function.is_none() => {
                let alone = self.alone(event)?;
                self.number += 1;
                Some((alone, self.number))
            }
            _ => None,
        }
    }

    #[inline]
    fn passes(&self, event: &Event<'a>) -> bool {
        self.is_all || self.cut.filter.passes(event)
    }

    fn call(&mut self, (event, place): (&Event<'a>, u32), to: &mut Vec<Item<'a>>) {
        if !self.passes(event) {
            return;
        }
        let (number, min_ns) = (self.number, self.cut.min_ns);
        let (chosen, starts) = (&mut self.chosen, &mut self.starts);
        self.calls.take(event, |step, beginning| {
            let what = match step {
                Step::Entered { loose: true, .. } => Some(What::Instant),
                Step::Entered {
                    function, depth, ..
                } => chosen
                    .enter(event, depth)
                    .then_some(What::Enter(function, depth)),
                Step::Left(call) => {
                    let is_entered = beginning == Beginning::Entered;
                    let is_shown = !is_entered || chosen.is_shown(event.thread(), call.depth);
                    let how = (call.ended, beginning);
                    is_shown.then_some(What::Leave(call.function, how, call.depth))
                }
                Step::Whole(call) if call.is_elsewhere() => elsewhere(event, &call, min_ns),
                Step::Whole(_) => start(event, min_ns, starts).map(What::Span),
            };
            to.extend(what.map(|what| Item::of((event, place), number, what)));
        });
    }
}

impl<'a> Item<'a> {
    #[inline]
    fn of((event, place): (&Event<'a>, u32), number: u64, what: What<'a>) -> Self {
        Self {
            place,
            thread: event.thread(),
            number,
            tick: event.tick,
            at_ns: event.wall_ns(),
            what,
        }
    }
}

/// Tick and wall time at which a span began that ends with this event, if it took at least `min_ns`.
#[inline]
fn start(event: &Event<'_>, min_ns: u64, near: &mut NearStart) -> Option<(u64, u64)> {
    let start = event.start(near);
    let is_long = event.t_ns - start.t_ns >= min_ns;
    is_long.then(|| (start.tick, event.session.clock.wall_ns(start.t_ns)))
}

/// A call on another stack that ends, if it took at least `min_ns`.
fn elsewhere<'a>(event: &Event<'a>, call: &Call<'a>, min_ns: u64) -> Option<What<'a>> {
    let (start_ns, tick) = (call.entered_ns?, call.entered_tick?);
    if call.left_ns.saturating_sub(start_ns) < min_ns || call.ended == Ended::Unseen {
        return None;
    }
    let start = event.session.clock.wall_ns(start_ns);
    Some(What::Span((tick, start)))
}

impl ChosenCalls<'_> {
    /// Whether the call that this event enters is shown.
    #[inline]
    fn enter(&mut self, event: &Event<'_>, depth: u32) -> bool {
        let Some(long) = self.long else { return true };
        let thread = event.thread();
        let is_shown = long.0.contains(&(thread, depth, event.t_ns));
        let shown = self.shown.entry(thread).or_default();
        shown.resize(depth as usize, true);
        shown.push(is_shown);
        is_shown
    }

    #[inline]
    fn is_shown(&self, thread: u32, depth: u32) -> bool {
        let shown = self.long.and_then(|_| self.shown.get(&thread));
        shown
            .and_then(|s| s.get(depth as usize))
            .is_none_or(|is_shown| *is_shown)
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
