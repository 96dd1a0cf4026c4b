//! Events in trees: each span before what is in it.
//!
//! A span's record is written at its end, after those of what is in it. So what has a span around
//! it waits until that one ends. Memory is that of what is in the outermost spans that are open.

use std::collections::{HashMap, HashSet};

use ringmark_decoder::{Event, Output, Span};
use ringmark_format::schema::Shape;

use super::event_lines::{Looked, Printer, Writer};

/// A span, by its process and id.
type Key = (usize, u64);

/// What has a line.
enum What<'d> {
    Item(Output<'d>),
    Span(Box<Span<'d>>),
}

/// Something, and what is in it.
struct Node<'d> {
    what: What<'d>,
    /// When it began, in ns since 1970.
    at_ns: u64,
    inside: Vec<usize>,
}

/// Puts events into trees.
#[derive(Default)]
pub(crate) struct Tree<'d> {
    /// Those that have no line yet.
    nodes: Vec<Option<Node<'d>>>,
    /// Free places in `nodes`.
    free: Vec<usize>,
    /// What waits for the end of the span around it.
    waiting: HashMap<Key, Vec<usize>>,
    /// The records that made spans which have not ended.
    made: HashMap<Key, Event<'d>>,
    /// Spans that have ended and can be named by what comes later.
    ended: HashSet<Key>,
    /// The outermost ones, which are complete.
    ready: Vec<usize>,
}

impl<'d> Tree<'d> {
    /// Takes the next item in the order of time, and what it is.
    pub(crate) fn take(&mut self, item: &Output<'d>, looked: Looked<'d>) {
        let process = match item {
            Output::Event(event) => event.session.process,
            Output::Lost(lost) => lost.session.process,
        };
        let key = |id: Option<u64>| id.map(|id| (process, id));
        match (looked, item) {
            (Looked::Part, Output::Event(event)) => self.part(event, key(event.span)),
            (Looked::Part, Output::Lost(_)) => {}
            (Looked::Span(span, passes), _) => {
                let (own, around) = (key(span.id), key(span.parent));
                if let Some(own) = own {
                    self.made.remove(&own);
                    self.ended.insert(own);
                }
                let at_ns = span.start_wall_ns();
                let what = passes.then_some(What::Span(span));
                self.place(what, at_ns, own, around);
            }
            (Looked::Item(passes), item) => {
                let (at_ns, own, around) = match item {
                    Output::Event(event) => {
                        let clock = &event.session.clock;
                        let is_span = event.shape() == Some(Shape::Span);
                        let ids = match is_span {
                            true => (key(event.span), key(event.parent)),
                            false => (None, key(event.span)),
                        };
                        (clock.wall_ns(event.start_ns()), ids.0, ids.1)
                    }
                    Output::Lost(lost) => (lost.session.clock.wall_ns(lost.t_ns), None, None),
                };
                self.place(
                    passes.then_some(What::Item(item.clone())),
                    at_ns,
                    own,
                    around,
                );
            }
        }
    }

    fn part(&mut self, event: &Event<'d>, own: Option<Key>) {
        if let Some(own) = own.filter(|_| event.shape() == Some(Shape::SpanNew)) {
            self.ended.remove(&own);
            self.made.insert(own, event.alone());
        }
    }

    /// Puts something into what is around it. Without a line it leaves what is in it there.
    fn place(&mut self, what: Option<What<'d>>, at_ns: u64, own: Option<Key>, around: Option<Key>) {
        let inside = own.and_then(|own| self.waiting.remove(&own));
        let inside = inside.unwrap_or_default();
        let placed = match what {
            Some(what) => vec![self.add(Node {
                what,
                at_ns,
                inside,
            })],
            None => inside,
        };
        match around.filter(|around| !self.ended.contains(around)) {
            Some(_) if placed.is_empty() => {}
            Some(around) => self.waiting.entry(around).or_default().extend(placed),
            None => self.ready.extend(placed),
        }
    }

    fn add(&mut self, node: Node<'d>) -> usize {
        match self.free.pop() {
            Some(place) => {
                self.nodes[place] = Some(node);
                place
            }
            None => {
                self.nodes.push(Some(node));
                self.nodes.len() - 1
            }
        }
    }

    /// Appends the lines of all that is complete.
    pub(crate) fn write(
        &mut self,
        printer: &mut Printer<'_>,
        writer: &mut Writer<'d>,
        out: &mut Vec<u8>,
    ) {
        let mut left: Vec<_> = self.ready.drain(..).rev().map(|place| (place, 0)).collect();
        while let Some((place, depth)) = left.pop() {
            let Some(mut node) = self.nodes[place].take() else {
                continue;
            };
            self.free.push(place);
            let began = |place: &usize| self.nodes[*place].as_ref().map_or(0, |node| node.at_ns);
            node.inside.sort_by_key(began);
            left.extend(node.inside.iter().rev().map(|place| (*place, depth + 1)));
            if printer.is_done() {
                continue;
            }
            printer.indent(writer, depth);
            match &node.what {
                What::Item(item) => printer.item(writer, item, out),
                What::Span(span) => printer.span(writer, span, out),
            }
        }
    }

    /// Completes what waits for spans that did not end here: those whose beginning is here have
    /// the line of that, if it `passes`.
    pub(crate) fn finish(&mut self, passes: impl Fn(&Event<'d>) -> bool) {
        let mut made: Vec<_> = self.made.drain().collect();
        // What is inside began later.
        made.sort_by_key(|(_, event)| (event.t_ns, event.tick, event.seq));
        for (own, event) in made.into_iter().rev() {
            let around = event.parent.map(|id| (event.session.process, id));
            let at_ns = event.wall_ns();
            let what = passes(&event).then_some(What::Item(Output::Event(event)));
            self.place(what, at_ns, Some(own), around);
        }
        let mut rest: Vec<usize> = self.waiting.drain().flat_map(|(_, nodes)| nodes).collect();
        rest.append(&mut self.ready);
        let began = |place: &usize| self.nodes[*place].as_ref().map_or(0, |node| node.at_ns);
        rest.sort_by_key(began);
        self.ready = rest;
    }
}
