//! The second way through a trace: gives a viewer everything, stretch by stretch.

use std::io;

use ringmark_decoder::{Ended, Event, Lost, Output, SmallKeys};

use crate::timeline::by_thread::ByThread;
use crate::timeline::calls::Beginning;
use crate::timeline::items::{Item, Items, What};
use crate::timeline::lanes::NestedLanes;
use crate::timeline::lives::Lives;
use crate::timeline::order::{Begin, Begins, Pending, Step, begin_of, order};
use crate::timeline::plan::{Counts, Plan};
use crate::timeline::states;
use crate::timeline::viewer::{DEEPEST, Place, Row, Slice, Viewer};

/// The lanes of one thread.
#[derive(Debug, Default)]
struct Lanes {
    spans: NestedLanes,
    timed_calls: NestedLanes,
}

/// What an export has written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes of the output.
    pub bytes: u64,
    /// What is in it.
    pub shown: Counts,
    /// What is not in it, as words for a person, and how many of each; none of them 0.
    pub left_out: Vec<(&'static str, u64)>,
    /// Spans and calls that are shown beside what they may lie in: the clock did not move between the
    /// beginnings of both and their end.
    pub unplaced: u64,
}

/// Gives everything of the plan to the viewer. `progress` is told how many of the plan's items were
/// shown, once per stretch.
pub(crate) fn play<'a>(
    plan: &Plan<'a>,
    viewer: &mut impl Viewer<'a>,
    mut progress: impl FnMut(u64, u64),
) -> io::Result<Written> {
    let mut items = Items::new(&plan.cut, plan.long.as_ref());
    let mut player = Player::new(plan, viewer);
    let (mut outputs, mut found, mut number) = (Vec::new(), Vec::new(), 0);
    for mut events in plan.dump.events_apart() {
        loop {
            outputs.clear();
            found.clear();
            let count = events.each(plan.stretches.items, |output| outputs.push(output));
            if count == 0 {
                break;
            }
            number += count;
            for (place, output) in (0..).zip(&outputs) {
                items.take(output, place, &mut found);
            }
            player.stretch(&found, &outputs)?;
            progress(number, plan.items);
        }
    }
    // What is open in threads without a record.
    player.stretch(&[], &[])?;
    drop((outputs, found));
    states::show(plan, player.viewer)?;
    let lives = Lives::show(plan, player.viewer)?;
    player.shown.slices += lives.shown;
    let deeper = plan.open.iter().map(|thread| thread.deeper).sum();
    let mut left_out = vec![
        (
            "spans of which only the end is in the trace",
            lives.no_start,
        ),
        ("open spans that are deeper than a stack holds", deeper),
        (
            "spans over threads that were open with too many others",
            lives.unknown,
        ),
    ];
    player.viewer.unplaced(player.unplaced);
    player.viewer.finish()?;
    left_out.extend(player.viewer.left_out());
    left_out.retain(|(_, count)| *count > 0);
    Ok(Written {
        bytes: player.viewer.bytes(),
        shown: player.shown,
        left_out,
        unplaced: player.unplaced,
    })
}

struct Player<'p, 'a, V> {
    plan: &'p Plan<'a>,
    viewer: &'p mut V,
    lanes: SmallKeys<u32, Lanes>,
    /// Those of the thread at hand.
    own: Lanes,
    by_thread: ByThread,
    pending: Vec<Pending>,
    steps: Vec<Step>,
    stretch: usize,
    shown: Counts,
    unplaced: u64,
}

impl<'p, 'a, V: Viewer<'a>> Player<'p, 'a, V> {
    fn new(plan: &'p Plan<'a>, viewer: &'p mut V) -> Self {
        Self {
            plan,
            viewer,
            lanes: SmallKeys::default(),
            own: Lanes::default(),
            by_thread: ByThread::default(),
            pending: Vec::new(),
            steps: Vec::new(),
            stretch: 0,
            shown: Counts::default(),
            unplaced: 0,
        }
    }

    /// Shows one stretch, thread by thread.
    fn stretch(&mut self, items: &[Item<'a>], outputs: &[Output<'a>]) -> io::Result<()> {
        let (plan, stretch) = (self.plan, self.stretch);
        self.stretch += 1;
        let mut begins = plan.stretches.begins(stretch).to_vec();
        begins.sort_by_key(|begin| begin.thread);
        let mut begins = begins.as_slice();
        let mut by_thread = std::mem::take(&mut self.by_thread);
        by_thread.fill(items, begins);
        let (mut pending, mut steps) = (
            std::mem::take(&mut self.pending),
            std::mem::take(&mut self.steps),
        );
        let from_ns = plan.stretches.starts_at(stretch);
        for thread in &by_thread.threads {
            let count = begins.partition_point(|begin| begin.thread <= *thread);
            let (early, later) = begins.split_at(count);
            begins = later;
            let is_here = |at_ns| at_ns >= from_ns;
            let is_unplaced = |item: &Item<'_>| match &outputs[item.place as usize] {
                Output::Event(event) => event.is_unplaced(),
                Output::Lost(_) => false,
            };
            let how = (is_here, is_unplaced);
            let own = by_thread.of(*thread);
            self.unplaced += order(items, own, early, how, (&mut pending, &mut steps));
            self.own = std::mem::take(self.lanes.entry(*thread).or_default());
            for step in &steps {
                let place = match step {
                    Step::BeginEarly(place) => {
                        self.begin(&early[*place as usize])?;
                        continue;
                    }
                    Step::Begin(place) | Step::Item(place) => *place,
                };
                let item = &items[place as usize];
                match (step, &outputs[item.place as usize]) {
                    (_, Output::Lost(lost)) => self.lost(item, lost)?,
                    (Step::Item(_), Output::Event(event)) => self.item(item, event)?,
                    (_, Output::Event(event)) => {
                        if let Some(begin) = begin_of(item, event) {
                            self.begin(&begin)?;
                        }
                    }
                }
            }
            self.lanes.insert(*thread, std::mem::take(&mut self.own));
        }
        (self.by_thread, self.pending, self.steps) = (by_thread, pending, steps);
        Ok(())
    }

    fn begin(&mut self, begin: &Begin<'a>) -> io::Result<()> {
        let lanes = &mut self.own;
        let row = match begin.what {
            Begins::Call(_, depth) => Row::Calls(depth / DEEPEST),
            Begins::Timed(_) => Row::TimedCalls(lanes.timed_calls.begin(begin.end)),
            Begins::Span(_) | Begins::Open(..) => Row::Spans(lanes.spans.begin(begin.end)),
        };
        let place = Place {
            thread: begin.thread,
            row,
        };
        self.shown.slices += 1;
        match begin.what {
            Begins::Span(ty) => self.viewer.begin(place, begin.at_ns, &Slice::Span(ty)),
            Begins::Call(function, _) | Begins::Timed(function) => {
                self.shown.calls += 1;
                let slice = Slice::Call(function, None);
                self.viewer.begin(place, begin.at_ns, &slice)
            }
            Begins::Open(thread, number) => {
                let span = &self.plan.open[thread as usize].spans[number as usize];
                self.viewer.open(place, begin.at_ns, span)
            }
        }
    }

    /// Counts what is shown by an item itself; other slices are counted where they begin.
    fn count(&mut self, what: &What<'a>) {
        match what {
            What::Enter(..) => {
                self.shown.slices += 1;
                self.shown.calls += 1;
            }
            What::Instant | What::Leave(_, (_, Beginning::Unknown), _) => {
                self.shown.instants += 1;
            }
            What::Counter => self.shown.counters += 1,
            What::Span(..) | What::Leave(..) | What::Lost | What::Part(_) => {}
        }
    }

    fn lost(&mut self, item: &Item<'a>, lost: &Lost<'a>) -> io::Result<()> {
        self.shown.losses += 1;
        self.viewer.lost(lost, item.at_ns)
    }

    fn item(&mut self, item: &Item<'a>, event: &Event<'a>) -> io::Result<()> {
        let thread = item.thread;
        let calls = |depth| Place {
            thread,
            row: Row::Calls(depth / DEEPEST),
        };
        self.count(&item.what);
        match &item.what {
            What::Span(_) => {
                let lanes = &mut self.own;
                let (row, how) = match event.ty.function {
                    Some(_) => {
                        let lane = lanes.timed_calls.end(item.number);
                        (lane.map(Row::TimedCalls), Some(Ended::Returned))
                    }
                    None => (lanes.spans.end(item.number).map(Row::Spans), None),
                };
                let Some(row) = row else { return Ok(()) };
                self.viewer
                    .end(Place { thread, row }, item.at_ns, event, how)
            }
            What::Instant => self.viewer.instant(event),
            What::Counter => self.viewer.counter(event),
            What::Part(_) => self.viewer.part(event),
            What::Enter(function, depth) => {
                let slice = Slice::Call(function, Some(event.clone()));
                self.viewer.begin(calls(*depth), item.at_ns, &slice)
            }
            What::Leave(_, (_, Beginning::Unknown), _) => self.viewer.end_only(event),
            What::Leave(_, (how, _), depth) => {
                self.viewer
                    .end(calls(*depth), item.at_ns, event, Some(*how))
            }
            What::Lost => Ok(()),
        }
    }
}
