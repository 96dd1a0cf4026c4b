//! Events in trees: each span, and each call of a function, before what is in it.
//!
//! A span's record is written at its end, after those of what is in it. So what has ended in a thread waits for what
//! ends next there and began before it. What a thread did in a span over threads waits for the end of that, and so does
//! what names a span. Memory is that of what is in the outermost spans and calls that are open.

use std::collections::{HashMap, HashSet};

use ringmark_decoder::{Call, Calls, Event, Filter, Output, Span, Step, lies_in};
use ringmark_format::schema::{NO_SPAN, Shape};

use super::event_lines::{Looked, Printer, Writer};

/// A span, by its process and id.
type Key = (usize, u64);

/// Most that waits in a thread that may be in a native span. What ended first is then in none.
const WAITING_MAX: usize = 1 << 16;

/// What has a line.
enum What<'d> {
    Item(Output<'d>),
    Span(Box<Span<'d>>),
}

/// When something began: in ns since 1970, and the tick, which puts what is in one process in order.
#[derive(Clone, Copy)]
struct Began {
    wall_ns: u64,
    tick: u64,
}

/// Something, and what is in it.
struct Node<'d> {
    what: What<'d>,
    at: Began,
    /// It passes the filter: it has a line, and what is in it.
    is_chosen: bool,
    /// Its time, thread and level pass: it has a line below something that is chosen.
    may_follow: bool,
    inside: Vec<usize>,
}

/// A node that has ended in a thread: its ticks and its place.
struct Ended {
    from: u64,
    to: u64,
    place: usize,
}

/// What is open in a thread, and what has ended there and waits.
#[derive(Default)]
struct Thread<'d> {
    waiting: Vec<Ended>,
    /// The spans over threads that it is in, and since which tick; the innermost last.
    entered: Vec<(Key, u64)>,
    /// The entries of open calls, the innermost last.
    calls: Vec<Event<'d>>,
}

/// Puts events into trees.
pub(crate) struct Tree<'d, 'f> {
    filter: &'f Filter,
    /// The part of it that holds for what is in something that is chosen.
    following: Filter,
    /// Only what is in one span comes: an end whose beginning did not come is of what is around that.
    is_part: bool,
    /// Those that have no line yet.
    nodes: Vec<Option<Node<'d>>>,
    /// Free places in `nodes`.
    free: Vec<usize>,
    /// By number.
    threads: HashMap<u32, Thread<'d>>,
    calls: Calls<'d>,
    /// What waits for the end of a span by its id.
    waiting: HashMap<Key, Vec<usize>>,
    /// The records that made spans which have not ended.
    made: HashMap<Key, Event<'d>>,
    /// Spans that have ended and can be named by what comes later.
    ended: HashSet<Key>,
    /// The outermost ones, which are complete.
    ready: Vec<usize>,
}

impl<'d> Thread<'d> {
    /// Takes what has ended since a tick. What ended at that tick may have ended before: it is left in `apart`.
    fn take_since(&mut self, from: u64, apart: &mut Vec<usize>) -> Vec<usize> {
        let mut inside = Vec::new();
        while let Some(ended) = self.waiting.pop_if(|ended| ended.from >= from) {
            match lies_in(from, ended.to) {
                true => inside.push(ended.place),
                false => apart.push(ended.place),
            }
        }
        // What ended last came first.
        inside.reverse();
        inside
    }

    /// Whether no call and no span over threads is around what it does now.
    fn is_in_nothing(&self) -> bool {
        self.calls.is_empty() && self.entered.is_empty()
    }
}

impl<'d, 'f> Tree<'d, 'f> {
    /// An empty tree of what passes the filter. `is_part`: only what is in some span comes.
    pub(crate) fn new(filter: &'f Filter, is_part: bool) -> Self {
        Self {
            filter,
            following: filter.without_choice(),
            is_part,
            nodes: Vec::new(),
            free: Vec::new(),
            threads: HashMap::new(),
            calls: Calls::new(None),
            waiting: HashMap::new(),
            made: HashMap::new(),
            ended: HashSet::new(),
            ready: Vec::new(),
        }
    }

    /// Takes the next item in the order of time, and what it is.
    pub(crate) fn take(&mut self, item: &Output<'d>, looked: Looked<'d>) {
        match (looked, item) {
            (Looked::Part, Output::Event(event)) => self.part(event),
            (Looked::Span(span, _), Output::Event(event)) => self.closed(event, span),
            (_, Output::Event(event)) if event.ty.function.is_some() => self.function(event),
            (_, Output::Event(event)) => match event.shape() {
                Some(Shape::Span) => self.native(event),
                _ => self.alone(event),
            },
            (_, Output::Lost(lost)) => {
                self.calls.lose(lost);
                let at = Began {
                    wall_ns: lost.session.clock.wall_ns(lost.t_ns),
                    tick: 0,
                };
                let passes = self.filter.passes_item(item);
                let node = self.node(What::Item(item.clone()), at, (passes, passes), Vec::new());
                self.ready.extend(node);
            }
        }
    }

    /// A record of a span over threads that goes on.
    fn part(&mut self, event: &Event<'d>) {
        let Some(id) = event.span else { return };
        let own = (event.session.process, id);
        match event.shape() {
            Some(Shape::SpanNew) => {
                self.ended.remove(&own);
                self.made.insert(own, event.alone());
            }
            Some(Shape::SpanEnter) => self.thread(event).entered.push((own, event.tick)),
            Some(Shape::SpanExit) => {
                let thread = self.threads.entry(event.thread()).or_default();
                let place = thread.entered.iter().rposition(|entered| entered.0 == own);
                let Some(place) = place else { return };
                let (_, from) = thread.entered.remove(place);
                let inside = thread.take_since(from, &mut self.ready);
                self.put_into(own, inside);
            }
            _ => {}
        }
    }

    /// A span over threads has ended.
    fn closed(&mut self, event: &Event<'d>, span: Box<Span<'d>>) {
        let key = |id: Option<u64>| id.map(|id| (event.session.process, id));
        let (own, around) = (key(span.id), key(span.parent));
        let made = own.and_then(|own| self.made.remove(&own));
        self.ended.extend(own);
        let inside = own.and_then(|own| self.waiting.remove(&own));
        let is_of_one = span.tids() == [event.tid()];
        let from = made.as_ref().unwrap_or(event).tick;
        let nodes = self.span_node(span, from, inside.unwrap_or_default());
        // In a thread that was in what is around it all the time it may lie in a call, too.
        let thread = self.threads.entry(event.thread()).or_default();
        let within = thread.entered.last();
        let is_within = |from: u64| match (around, within) {
            (None, None) => !thread.calls.is_empty(),
            (Some(around), Some((of, since))) => *of == around && *since < from,
            _ => false,
        };
        match made.filter(|made| is_of_one && made.thread() == event.thread()) {
            Some(made) if is_within(made.tick) => self.wait(event, made.tick, nodes),
            _ => match around {
                Some(around) => self.put_into(around, nodes),
                None => self.ready.extend(nodes),
            },
        }
    }

    /// A native span has ended.
    fn native(&mut self, event: &Event<'d>) {
        let Some(span) = Span::of_event(&event.alone()) else {
            return self.alone(event);
        };
        let process = event.session.process;
        let from = event.start_tick();
        let thread = self.threads.entry(event.thread()).or_default();
        let mut inside = thread.take_since(from, &mut self.ready);
        let own = event
            .span
            .and_then(|id| self.waiting.remove(&(process, id)));
        inside.extend(own.unwrap_or_default());
        let at = Began {
            wall_ns: span.start_wall_ns(),
            tick: from,
        };
        let passes = (
            self.filter.passes_span(&span),
            self.following.passes_span(&span),
        );
        let nodes = self.node(What::Item(Output::Event(event.alone())), at, passes, inside);
        match event.named_parent() {
            Some(parent) if parent != NO_SPAN => self.put_into((process, parent), nodes),
            Some(_) => self.ready.extend(nodes),
            None if event.is_unplaced() => self.ready.extend(nodes),
            None => {
                self.wait(event, from, nodes);
                self.settle(event, event.parent.is_none());
            }
        }
    }

    /// An event that is no span.
    fn alone(&mut self, event: &Event<'d>) {
        let item = Output::Event(event.alone());
        let passes = (self.filter.passes(event), self.following.passes(event));
        let nodes = self.node(What::Item(item), began(event), passes, Vec::new());
        match event.named_span() {
            Some(NO_SPAN) => self.ready.extend(nodes),
            Some(span) => self.put_into((event.session.process, span), nodes),
            None if event.is_unplaced() => self.ready.extend(nodes),
            None => {
                self.wait(event, event.start_tick(), nodes);
                self.settle(event, event.span.is_none());
            }
        }
    }

    /// A record of a call.
    fn function(&mut self, event: &Event<'d>) {
        let mut steps = Vec::new();
        self.calls.take(event, |step| steps.push(step));
        for step in steps {
            match step {
                Step::Entered { loose: true, .. } => self.item(event),
                Step::Entered { depth, .. } => {
                    let calls = &mut self.thread(event).calls;
                    calls.truncate(depth as usize);
                    calls.push(event.alone());
                }
                Step::Left(call) => {
                    let calls = &mut self.thread(event).calls;
                    calls.truncate(call.depth as usize);
                    self.call(event, &call);
                }
                Step::Whole(call) => self.call(event, &call),
            }
        }
        self.settle(event, !event.session.has_finished_spans());
    }

    /// A call has ended.
    fn call(&mut self, event: &Event<'d>, call: &Call<'d>) {
        match (call.as_span(&event.alone()), call.entered_tick) {
            (Some(span), Some(from)) => {
                let thread = self.threads.entry(event.thread()).or_default();
                let inside = thread.take_since(from, &mut self.ready);
                let nodes = self.span_node(Box::new(span), from, inside);
                self.wait(event, from, nodes);
            }
            _ if self.is_part => {}
            _ => self.item(event),
        }
    }

    /// A record of a function that stands for itself.
    fn item(&mut self, event: &Event<'d>) {
        let item = Output::Event(event.alone());
        let passes = (self.filter.passes(event), self.following.passes(event));
        let nodes = self.node(What::Item(item), began(event), passes, Vec::new());
        self.wait(event, event.tick, nodes);
    }

    /// Adds the node of a span that began at a tick.
    fn span_node(&mut self, span: Box<Span<'d>>, tick: u64, inside: Vec<usize>) -> Vec<usize> {
        let at = Began {
            wall_ns: span.start_wall_ns(),
            tick,
        };
        let passes = (
            self.filter.passes_span(&span),
            self.following.passes_span(&span),
        );
        self.node(What::Span(span), at, passes, inside)
    }

    /// Adds a node. Without a line it leaves what is in it where it was.
    fn node(
        &mut self,
        what: What<'d>,
        at: Began,
        (is_chosen, may_follow): (bool, bool),
        inside: Vec<usize>,
    ) -> Vec<usize> {
        if !is_chosen && !may_follow {
            return inside;
        }
        let node = Some(Node {
            what,
            at,
            is_chosen,
            may_follow,
            inside,
        });
        match self.free.pop() {
            Some(place) => {
                self.nodes[place] = node;
                vec![place]
            }
            None => {
                self.nodes.push(node);
                vec![self.nodes.len() - 1]
            }
        }
    }

    fn thread(&mut self, event: &Event<'d>) -> &mut Thread<'d> {
        self.threads.entry(event.thread()).or_default()
    }

    /// What began at a tick and has ended with this record waits in its thread.
    fn wait(&mut self, event: &Event<'d>, from: u64, nodes: Vec<usize>) {
        let to = event.tick;
        let ended = nodes.into_iter().map(|place| Ended { from, to, place });
        self.thread(event).waiting.extend(ended);
    }

    /// Puts something into a span by its id.
    fn put_into(&mut self, span: Key, nodes: Vec<usize>) {
        match self.ended.contains(&span) {
            true => self.ready.extend(nodes),
            false if nodes.is_empty() => {}
            false => self.waiting.entry(span).or_default().extend(nodes),
        }
    }

    /// What waits in a thread is complete if nothing is around it: no call, and no span as far as is known.
    fn settle(&mut self, event: &Event<'d>, is_in_no_span: bool) {
        let thread = self.threads.entry(event.thread()).or_default();
        if is_in_no_span && thread.is_in_nothing() {
            let ended = thread.waiting.drain(..);
            self.ready.extend(ended.map(|ended| ended.place));
        } else if thread.waiting.len() > WAITING_MAX && thread.is_in_nothing() {
            let ended = thread.waiting.drain(..WAITING_MAX / 2);
            self.ready.extend(ended.map(|ended| ended.place));
        }
    }

    /// Appends the lines of all that is complete.
    pub(crate) fn write(
        &mut self,
        printer: &mut Printer<'_>,
        writer: &mut Writer<'d>,
        out: &mut Vec<u8>,
    ) {
        let ready = self.ready.drain(..).rev();
        let mut left: Vec<_> = ready.map(|place| (place, 0, false)).collect();
        while let Some((place, depth, is_below)) = left.pop() {
            let Some(mut node) = self.nodes[place].take() else {
                continue;
            };
            self.free.push(place);
            let has_line = node.is_chosen || (is_below && node.may_follow);
            let below = (depth + usize::from(has_line), is_below || node.is_chosen);
            let began = |place: &usize| self.nodes[*place].as_ref().map_or(0, |node| node.at.tick);
            node.inside.sort_by_key(began);
            let inside = node.inside.iter().rev();
            left.extend(inside.map(|place| (*place, below.0, below.1)));
            if printer.is_done() || !has_line {
                continue;
            }
            printer.indent(writer, depth);
            match &node.what {
                What::Item(item) => printer.item(writer, item, out),
                What::Span(span) => printer.span(writer, span, out),
            }
        }
    }

    /// Completes what waits for spans and calls that did not end here: they have the line of their beginning.
    pub(crate) fn finish(&mut self) {
        let numbers: Vec<_> = self.threads.keys().copied().collect();
        numbers
            .into_iter()
            .for_each(|thread| self.leave_all(thread));
        let mut made: Vec<_> = self.made.drain().collect();
        // What is inside began later.
        made.sort_by_key(|(_, event)| (event.t_ns, event.tick, event.seq));
        for (own, event) in made.into_iter().rev() {
            let around = event.parent.map(|id| (event.session.process, id));
            let inside = self.waiting.remove(&own).unwrap_or_default();
            let passes = (
                self.filter.passes_open(event.ty),
                self.following.passes_open(event.ty),
            );
            let at = began(&event);
            let nodes = self.node(What::Item(Output::Event(event)), at, passes, inside);
            match around {
                Some(around) => self.put_into(around, nodes),
                None => self.ready.extend(nodes),
            }
        }
        self.ready
            .extend(self.waiting.drain().flat_map(|(_, nodes)| nodes));
        let began = |place: &usize| {
            self.nodes[*place]
                .as_ref()
                .map_or(0, |node| node.at.wall_ns)
        };
        self.ready.sort_by_key(began);
    }

    /// Ends all that is open in a thread, the innermost first.
    fn leave_all(&mut self, number: u32) {
        while let Some(thread) = self.threads.get_mut(&number) {
            let call = thread.calls.last().map(|entry| entry.tick);
            let span = thread.entered.last().map(|entered| entered.1);
            if call.is_some() && call >= span {
                let Some(entry) = thread.calls.pop() else {
                    return;
                };
                let inside = thread.take_since(entry.tick, &mut self.ready);
                let passes = (self.filter.passes(&entry), self.following.passes(&entry));
                let (from, at) = (entry.tick, began(&entry));
                let nodes = self.node(What::Item(Output::Event(entry)), at, passes, inside);
                let to = u64::MAX;
                let ended = nodes.into_iter().map(|place| Ended { from, to, place });
                if let Some(thread) = self.threads.get_mut(&number) {
                    thread.waiting.extend(ended);
                }
            } else if let Some((own, from)) = thread.entered.pop() {
                let inside = thread.take_since(from, &mut self.ready);
                self.put_into(own, inside);
            } else {
                let ended = thread.waiting.drain(..);
                self.ready.extend(ended.map(|ended| ended.place));
                return;
            }
        }
    }
}

/// When an event began.
fn began(event: &Event<'_>) -> Began {
    Began {
        wall_ns: event.session.clock.wall_ns(event.start_ns()),
        tick: event.start_tick(),
    }
}
