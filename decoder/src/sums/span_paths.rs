//! The paths of spans over threads: what is in such a span waits, summed up, until that one ends.

use std::collections::{HashMap, HashSet};

use ringmark_format::schema::Shape;

use crate::events::event::Event;
use crate::events::span::Span;
use crate::sums::path_thread::{Named, around, endless};
use crate::sums::paths::{Choice, Inside, PathSums, Paths, merge};
use crate::trace_file::dump::Dump;
use crate::trace_file::schema::EventType;

/// A span, by its process and id.
pub(super) type Key = (usize, u64);
/// Most different paths that wait in one span before they are merged.
const MERGED_AT: usize = 1 << 10;

/// A span that was made and has not ended.
#[derive(Debug)]
struct Made<'d> {
    ty: &'d EventType,
    tick: u64,
    around: Option<Key>,
}

/// What waits in a span.
#[derive(Debug, Default)]
struct Waiting {
    all: Inside,
    /// The path that all of it begins with, if the span around it does not end here.
    root: Option<usize>,
    merge_at: usize,
}

/// Spans that wait for those around them.
#[derive(Debug, Default)]
pub(super) struct SpanPaths<'d> {
    waiting: HashMap<Key, Waiting>,
    made: HashMap<Key, Made<'d>>,
    /// Spans of several records that have ended: others may name them later.
    ended: HashSet<Key>,
}

impl Waiting {
    fn add(&mut self, more: Inside) {
        self.all.extend(more);
        if self.all.len() >= self.merge_at.max(MERGED_AT) {
            merge(&mut self.all);
            self.merge_at = 2 * self.all.len();
        }
    }
}

impl<'d> SpanPaths<'d> {
    /// Takes a record of a span that goes on.
    pub(super) fn part(&mut self, event: &Event<'d>) {
        let process = event.session.process;
        let Some(id) = event.span.filter(|_| event.shape() == Some(Shape::SpanNew)) else {
            return;
        };
        self.ended.remove(&(process, id));
        let made = Made {
            ty: event.ty,
            tick: event.tick,
            around: event.parent.map(|id| (process, id)),
        };
        self.made.insert((process, id), made);
    }

    /// Puts what a thread did in a span into it.
    pub(super) fn put_into(&mut self, own: Key, all: Inside) {
        if !all.is_empty() {
            self.waiting.entry(own).or_default().add(all);
        }
    }

    /// Takes what waits for a span.
    pub(super) fn take_from(&mut self, own: Key) -> Inside {
        let waiting = self.waiting.remove(&own);
        waiting.map(|waiting| waiting.all).unwrap_or_default()
    }

    /// Takes a span that has ended. One that is left out leaves what is in it where it was. `root`: the path
    /// that it begins with if nothing is around it.
    pub(super) fn ended(
        &mut self,
        span: &Span<'_>,
        named: Named,
        root: Option<usize>,
        found: &mut Paths,
    ) {
        let process = span.end.session.process;
        let key = |id: Option<u64>| id.map(|id| (process, id));
        let (own, parent) = (key(span.id), key(span.parent));
        if let Some(own) = own.filter(|own| self.made.remove(own).is_some()) {
            self.ended.insert(own);
        }
        let all = own.map(|own| self.take_from(own)).unwrap_or_default();
        let all = around(named, all, found);
        self.put(parent, all, root, found);
    }

    /// Puts something that has ended into the span that the program names as the one around it.
    pub(super) fn place(
        &mut self,
        parent: Key,
        inside: Inside,
        named: Named,
        root: Option<usize>,
        found: &mut Paths,
    ) {
        let all = around(named, inside, found);
        self.put(Some(parent), all, root, found);
    }

    fn put(&mut self, parent: Option<Key>, all: Inside, root: Option<usize>, found: &mut Paths) {
        match parent.filter(|parent| !self.ended.contains(parent)) {
            Some(parent) if !all.is_empty() => {
                let waiting = self.waiting.entry(parent).or_default();
                waiting.root = waiting.root.or(root);
                waiting.add(all);
            }
            Some(_) => {}
            None => found.settle(root, all),
        }
    }

    /// Completes what waits for spans that did not end here, and adds those that are open. `roots`: whether
    /// paths have roots, and those of the processes.
    pub(super) fn finish(
        mut self,
        dump: &Dump,
        passes: impl Fn(&EventType) -> bool,
        (has_roots, roots): (bool, &HashMap<usize, Option<usize>>),
        found: &mut Paths,
    ) {
        let mut made: Vec<_> = self.made.drain().collect();
        made.sort_by_key(|(own, made)| (made.tick, *own));
        // What is inside began later.
        for (own, made) in made.into_iter().rev() {
            let name = passes(made.ty).then(|| found.name(&made.ty.name, &made.ty.origin.target));
            let left_out = (None, PathSums::default(), Choice::default());
            let named = name.map_or(left_out, endless);
            let root = roots.get(&own.0).copied().flatten();
            let all = around(named, self.take_from(own), found);
            self.put(made.around, all, root, found);
        }
        for (own, waiting) in self.waiting.drain() {
            let root = waiting.root.or(roots.get(&own.0).copied().flatten());
            found.settle(root, waiting.all);
        }
        if !has_roots {
            add_open(dump, passes, found);
        }
    }
}

/// Adds the native spans that are open at the end.
fn add_open(dump: &Dump, passes: impl Fn(&EventType) -> bool, found: &mut Paths) {
    for thread in dump.open_spans() {
        let mut around = None;
        // The others have a record that made them.
        for span in thread.spans.iter().filter(|span| span.ty.kind() == "span") {
            if !passes(span.ty) {
                continue;
            }
            let name = found.name(&span.ty.name, &span.ty.origin.target);
            let path = found.path(around, name);
            found.add(path, &PathSums::endless());
            if path.is_none() {
                break;
            }
            around = path;
        }
    }
}
