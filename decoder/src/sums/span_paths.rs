//! The paths of spans: what is in a span waits, summed up, until that one ends.

use std::collections::{HashMap, HashSet};

use ringmark_format::schema::Shape;

use crate::events::event::Event;
use crate::events::span::Span;
use crate::sums::paths::{PathSums, Paths, merge};
use crate::trace_file::dump::Dump;
use crate::trace_file::schema::EventType;

/// A span, by its process and id.
type Key = (usize, u64);
/// Most different paths that wait in one span before they are merged.
const MERGED_AT: usize = 1 << 10;

/// A span that was made and has not ended.
#[derive(Debug)]
struct Made<'d> {
    ty: &'d EventType,
    tick: u64,
    around: Option<Key>,
}

/// Paths from somewhere, and what took place at their ends.
#[derive(Debug, Default)]
struct Inside {
    all: Vec<(Vec<usize>, PathSums)>,
    merge_at: usize,
}

/// Spans that wait for those around them.
#[derive(Debug, Default)]
pub(super) struct SpanPaths<'d> {
    waiting: HashMap<Key, Inside>,
    made: HashMap<Key, Made<'d>>,
    /// Spans of several records that have ended: others may name them later.
    ended: HashSet<Key>,
}

impl Inside {
    fn add(&mut self, more: Vec<(Vec<usize>, PathSums)>) {
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

    /// Takes a span that has ended. One that does not pass leaves what is in it where it was.
    pub(super) fn ended(&mut self, span: &Span<'_>, passes: bool, found: &mut Paths) {
        let process = span.end.session.process;
        let key = |id: Option<u64>| id.map(|id| (process, id));
        let (own, around) = (key(span.id), key(span.parent));
        if let Some(own) = own.filter(|own| self.made.remove(own).is_some()) {
            self.ended.insert(own);
        }
        found.unplaced += u64::from(passes && span.end.is_unplaced());
        let sums = PathSums::timed(span.took_ns(), span.self_ns);
        let name = passes.then(|| (found.name(span.name, span.target), sums));
        self.place(own, around, name, found);
    }

    fn place(
        &mut self,
        own: Option<Key>,
        around: Option<Key>,
        name: Option<(usize, PathSums)>,
        found: &mut Paths,
    ) {
        let inside = own.and_then(|own| self.waiting.remove(&own));
        let mut all = inside.unwrap_or_default().all;
        if let Some((name, sums)) = name {
            all.iter_mut().for_each(|(path, _)| path.insert(0, name));
            all.push((vec![name], sums));
        }
        merge(&mut all);
        match around.filter(|around| !self.ended.contains(around)) {
            Some(around) if !all.is_empty() => self.waiting.entry(around).or_default().add(all),
            Some(_) => {}
            None => found.settle(None, all),
        }
    }

    /// Completes what waits for spans that did not end here, and adds those that are open.
    pub(super) fn finish(
        mut self,
        dump: &Dump,
        passes: impl Fn(&EventType) -> bool,
        found: &mut Paths,
    ) {
        let mut made: Vec<_> = self.made.drain().collect();
        made.sort_by_key(|(own, made)| (made.tick, *own));
        // What is inside began later.
        for (own, made) in made.into_iter().rev() {
            let name = passes(made.ty).then(|| {
                (
                    found.name(&made.ty.name, &made.ty.origin.target),
                    PathSums::endless(),
                )
            });
            self.place(Some(own), made.around, name, found);
        }
        for (_, inside) in self.waiting.drain() {
            found.settle(None, inside.all);
        }
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
}
