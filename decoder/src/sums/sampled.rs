//! What a living session did since the last look at it, by its newest pages.
//!
//! Each ring's reservations are counted, and a sample of its pages is here. So what is met in the
//! pages stands for more: each thing counts as often as the ring has new events for each new event in
//! its pages. Where all new pages of a ring are here, each counts once.

use std::collections::HashMap;

use crate::events::event::{Event, Output};
use crate::events::span::Span;
use crate::events::span_pairs::{Paired, SpanPairs};
use crate::sums::calls::{Calls, Ended, Step, module_name};
use crate::sums::profiled::ProfiledFunction;
use crate::trace_file::dump::Dump;

/// What was counted at the last look at a session.
#[derive(Debug, Default)]
pub struct Samples {
    /// Reservations by slot; `None`: there was no look.
    before: Option<HashMap<u32, u64>>,
}

/// What a session did between two looks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampled {
    /// By name and target, in no order; one may have several.
    pub names: Vec<SampledName>,
    /// New events, exactly.
    pub events: u64,
    /// Those of them that are in the pages at hand.
    pub looked_at: u64,
}

/// What has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SampledKind {
    /// A span that ended.
    Span,
    /// A call that ended, or began and will have no record of its end.
    Function,
    /// An event without a duration.
    Event,
}

/// The spans, calls or events of one name. Figures are estimates unless all pages are here.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledName {
    /// What they are.
    pub kind: SampledKind,
    /// Their name.
    pub name: Vec<u8>,
    /// Target of the type, or file of the function's module; or empty.
    pub target: Vec<u8>,
    /// How many there were.
    pub count: f64,
    /// How many have a duration.
    pub timed: f64,
    /// Time in them, in ns.
    pub total_ns: f64,
    /// Part of `total_ns` of those whose own time is known.
    known_ns: f64,
    /// Time in those without what was inside them, in ns.
    own_ns: f64,
    /// The longest that was met, in ns.
    pub max_ns: u64,
}

impl SampledName {
    /// Time in them without what was inside them, in ns; `None`: not known of any.
    #[must_use]
    pub fn self_ns(&self) -> Option<f64> {
        (self.known_ns > 0.0).then(|| self.total_ns * (self.own_ns / self.known_ns))
    }

    /// How long one takes on average, in ns; `None`: they have no duration.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.timed > 0.0).then(|| self.total_ns / self.timed)
    }
}

/// What each new record of a slot stands for.
#[derive(Debug, Clone, Copy)]
struct Weight {
    /// Reservations at the last look: what is below is not new.
    before: u64,
    factor: f64,
}

impl Samples {
    /// Takes the next look: pages of one session, and the reservations of each of its slots. The first
    /// look says nothing.
    pub fn take(
        &mut self,
        dump: &Dump,
        totals: impl Iterator<Item = (u32, u64)>,
    ) -> Option<Sampled> {
        let totals: HashMap<u32, u64> = totals.collect();
        let before = self.before.replace(totals)?;
        let totals = self.before.as_ref()?;
        let mut walk = Walk::new(dump);
        let sums = &mut walk.sums;
        for (slot, total) in totals {
            let from = before.get(slot).copied().unwrap_or(0);
            let new = total.saturating_sub(from);
            let looked_at = looked_at(dump, *slot, from).min(new);
            sums.sampled.events = sums.sampled.events.saturating_add(new);
            sums.sampled.looked_at = sums.sampled.looked_at.saturating_add(looked_at);
            let factor = new as f64 / looked_at.max(1) as f64;
            let weight = Weight {
                before: from,
                factor,
            };
            sums.weights.insert(*slot, weight);
        }
        dump.events().for_each(|item| walk.take(&item));
        Some(walk.sums.sampled)
    }
}

/// New reservations that the pages of a slot have.
fn looked_at(dump: &Dump, slot: u32, from: u64) -> u64 {
    let slots = dump.sessions.iter().flat_map(|session| &session.slots);
    let pages = slots.filter(|found| found.index.0 == slot);
    let pages = pages.flat_map(|slot| &slot.pages).map(|page| {
        let first = page.header.first_event;
        let end = first.saturating_add(page.summary.reservations());
        end.saturating_sub(first.max(from))
    });
    pages.fold(0, u64::saturating_add)
}

/// What is known while the events are walked.
struct Walk<'d> {
    pairs: SpanPairs,
    calls: Calls<'d>,
    sums: Sums,
}

/// The sums so far.
#[derive(Default)]
struct Sums {
    /// By slot.
    weights: HashMap<u32, Weight>,
    sampled: Sampled,
    /// Places in `sampled` by where the name and the target lie in the schema: cheaper than by what
    /// they are. One name may have several rows.
    places: HashMap<(SampledKind, usize, usize), usize>,
}

/// A thing that happened once in the pages.
struct Met<'d> {
    kind: SampledKind,
    target: &'d [u8],
    name: &'d [u8],
    total_ns: Option<u64>,
    self_ns: Option<u64>,
}

impl<'d> Walk<'d> {
    fn new(dump: &Dump) -> Self {
        Self {
            pairs: SpanPairs::new(dump),
            calls: Calls::new(None),
            sums: Sums::default(),
        }
    }

    fn take(&mut self, item: &Output<'d>) {
        match self.pairs.take(item) {
            Paired::Part => return,
            Paired::Ended(span) => return self.sums.span(&span),
            Paired::Alone => {}
        }
        let event = match item {
            Output::Event(event) => event,
            Output::Lost(lost) => return self.calls.lose(lost),
        };
        let sums = &mut self.sums;
        self.calls
            .take_with(&mut self.pairs, event, |step| sums.step(event, &step));
        if event.ty.function.is_some() {
            return;
        }
        match self.pairs.whole(event) {
            Some(span) => self.sums.span(&span),
            None if ProfiledFunction::is_event(&event.ty.name, &event.ty.origin.target) => {}
            None => self.sums.add(
                event,
                &Met {
                    kind: SampledKind::Event,
                    target: &event.ty.origin.target,
                    name: &event.ty.name,
                    total_ns: None,
                    self_ns: None,
                },
            ),
        }
    }
}

impl Sums {
    fn span(&mut self, span: &Span<'_>) {
        let met = Met {
            kind: SampledKind::Span,
            target: span.target,
            name: span.name,
            total_ns: Some(span.total_ns),
            self_ns: span.self_ns,
        };
        self.add(&span.end, &met);
    }

    /// What an event means for the calls of its thread.
    fn step(&mut self, event: &Event<'_>, step: &Step<'_>) {
        let met = match step {
            // Its end was lost, and what ended it here came later.
            Step::Left(call) if call.unsure && call.ended == Ended::Unseen => return,
            Step::Left(call) | Step::Whole(call) => Met {
                kind: SampledKind::Function,
                target: call.target(),
                name: &call.function.name,
                total_ns: call.duration_ns(),
                self_ns: call.self_ns(),
            },
            Step::Entered {
                function,
                loose: true,
                ..
            } => Met {
                kind: SampledKind::Function,
                target: module_name(event.session, function),
                name: &function.name,
                total_ns: None,
                self_ns: None,
            },
            Step::Entered { .. } => return,
        };
        self.add(event, &met);
    }

    /// Adds what is new at this event.
    fn add(&mut self, event: &Event<'_>, met: &Met<'_>) {
        let weight = self.weights.get(&event.slot().0);
        let Some(weight) = weight.filter(|weight| event.seq >= weight.before) else {
            return;
        };
        let names = &mut self.sampled.names;
        let at = |text: &[u8]| text.as_ptr() as usize;
        let key = (met.kind, at(met.target), at(met.name));
        let place = *self.places.entry(key).or_insert_with(|| {
            names.push(SampledName::new(met.kind, met.name, met.target));
            names.len() - 1
        });
        names[place].add(weight.factor, met.total_ns, met.self_ns);
    }
}

impl SampledName {
    /// A name of which nothing was met.
    #[must_use]
    pub fn new(kind: SampledKind, name: &[u8], target: &[u8]) -> Self {
        Self {
            kind,
            name: name.to_vec(),
            target: target.to_vec(),
            count: 0.0,
            timed: 0.0,
            total_ns: 0.0,
            known_ns: 0.0,
            own_ns: 0.0,
            max_ns: 0,
        }
    }

    /// Adds one that was met and stands for `factor` of them. `total_ns`: its duration, if it has one;
    /// `self_ns`: the part of it that was its own, if that is known.
    pub fn add(&mut self, factor: f64, total_ns: Option<u64>, self_ns: Option<u64>) {
        self.count += factor;
        let Some(total_ns) = total_ns else { return };
        self.timed += factor;
        self.total_ns += factor * total_ns as f64;
        self.max_ns = self.max_ns.max(total_ns);
        if let Some(self_ns) = self_ns {
            self.known_ns += factor * total_ns as f64;
            self.own_ns += factor * self_ns as f64;
        }
    }
}
