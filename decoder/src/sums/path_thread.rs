//! What waits in one thread for what is around it, as paths from there.

use crate::sums::paths::{Choice, Inside, PathSums, Paths, merge};
use crate::trace_file::finished_spans::lies_in;

/// Most that waits in a thread. What ended first is then taken together.
const WAITING_MAX: usize = 1 << 12;

/// Something that has ended, with all in it.
#[derive(Debug)]
struct Ended {
    /// Tick of its beginning and of its end.
    from: u64,
    to: u64,
    all: Inside,
}

/// A call that is open.
#[derive(Debug)]
struct Open {
    name: usize,
    from: u64,
    /// Its path, in a thread in which nothing waits; `None`: it is too long.
    path: Option<usize>,
}

/// A thread: what is open, and what has ended and waits.
#[derive(Debug)]
pub(super) struct Thread {
    /// The path that all of it begins with.
    pub(super) root: Option<usize>,
    /// Whether spans may be around calls, so that paths are known only in the end.
    has_spans: bool,
    open: Vec<Open>,
    waiting: Vec<Ended>,
    /// Ids of the spans that it is in, and since which tick; the innermost last.
    entered: Vec<(u64, u64)>,
}

/// The name at the end of a path, unless that is left out, what is said of it, and whether it is chosen.
pub(super) type Named = (Option<usize>, PathSums, Choice);

/// The same of something that has begun, and has no end here.
pub(super) fn endless(name: usize) -> Named {
    (Some(name), PathSums::endless(), Choice::default())
}

impl Thread {
    pub(super) const fn new(root: Option<usize>, has_spans: bool) -> Self {
        Self {
            root,
            has_spans,
            open: Vec::new(),
            waiting: Vec::new(),
            entered: Vec::new(),
        }
    }

    /// Takes what has ended since a tick. Something that ended at that tick may have ended before it: it
    /// gets a path of its own.
    pub(super) fn take_since(&mut self, from: u64, found: &mut Paths) -> Inside {
        let mut all = Vec::new();
        while let Some(ended) = self.waiting.pop_if(|ended| ended.from >= from) {
            if lies_in(from, ended.to) {
                all.extend(ended.all);
                continue;
            }
            found.unplaced += ended.all.iter().map(|(_, sums)| sums.count).sum::<u64>();
            found.settle(self.root, ended.all);
        }
        all
    }

    /// Something ends that began at one tick and ends at another. `more` lies in it, too.
    pub(super) fn end(
        &mut self,
        (from, to): (u64, u64),
        more: Inside,
        named: Named,
        found: &mut Paths,
    ) {
        let mut all = self.take_since(from, found);
        all.extend(more);
        let all = around(named, all, found);
        if self.waiting.len() >= WAITING_MAX {
            self.join();
        }
        self.waiting.push(Ended { from, to, all });
    }

    /// Makes one of the half that ended first.
    #[cold]
    fn join(&mut self) {
        let rest = self.waiting.split_off(WAITING_MAX / 2);
        let (first, last) = (self.waiting.first(), self.waiting.last());
        let from = first.map_or(0, |ended| ended.from);
        let to = last.map_or(0, |ended| ended.to);
        let mut all: Inside = self.waiting.drain(..).flat_map(|ended| ended.all).collect();
        merge(&mut all);
        self.waiting.push(Ended { from, to, all });
        self.waiting.extend(rest);
    }

    /// A call is entered, with `depth` calls around it. `loose`: no record will say when it ends.
    pub(super) fn enter(
        &mut self,
        (name, from): (usize, u64),
        depth: usize,
        loose: bool,
        found: &mut Paths,
    ) {
        self.open.truncate(depth);
        if self.has_spans {
            match loose {
                true => self.end((from, from), Vec::new(), endless(name), found),
                false => self.open.push(Open {
                    name,
                    from,
                    path: None,
                }),
            }
            return;
        }
        self.settle(found);
        let path = match self.open.last() {
            Some(around) => around
                .path
                .and_then(|around| found.path(Some(around), name)),
            None => found.path(self.root, name),
        };
        match loose {
            true => found.add(path, &PathSums::endless()),
            false => self.open.push(Open { name, from, path }),
        }
    }

    /// A call ends that was entered.
    pub(super) fn leave(
        &mut self,
        ticks: (u64, u64),
        depth: usize,
        named: Named,
        found: &mut Paths,
    ) {
        if self.has_spans {
            self.open.truncate(depth);
            return self.end(ticks, Vec::new(), named, found);
        }
        self.settle(found);
        let path = match (self.open.get(depth), named.0) {
            (Some(open), Some(_)) => open.path,
            // It is left out: what is said of it is of what is around it.
            _ => match depth.checked_sub(1).and_then(|depth| self.open.get(depth)) {
                Some(around) => around.path,
                None => self.root,
            },
        };
        self.open.truncate(depth);
        found.add(path, &named.1);
    }

    /// Puts what waits into the innermost open call. In that thread nothing else may be around it.
    fn settle(&mut self, found: &mut Paths) {
        for ended in self.waiting.drain(..) {
            match self.open.last() {
                None => found.settle(self.root, ended.all),
                Some(Open {
                    path: Some(path), ..
                }) => found.settle(Some(*path), ended.all),
                Some(_) => {
                    found.deeper += ended.all.iter().map(|(_, sums)| sums.count).sum::<u64>()
                }
            }
        }
    }

    /// The thread enters a span over threads.
    pub(super) fn enter_span(&mut self, id: u64, from: u64) {
        if self.entered.len() < WAITING_MAX {
            self.entered.push((id, from));
        }
    }

    /// The thread leaves a span over threads: what it did in it.
    pub(super) fn exit_span(&mut self, id: u64, found: &mut Paths) -> Inside {
        let Some(at) = self.entered.iter().rposition(|entered| entered.0 == id) else {
            return Vec::new();
        };
        let (_, from) = self.entered.remove(at);
        self.take_since(from, found)
    }

    /// Completes what waits for calls that are open at the end.
    pub(super) fn finish(&mut self, found: &mut Paths) {
        if !self.has_spans {
            self.settle(found);
            for open in &self.open {
                found.add(open.path, &PathSums::endless());
            }
            return;
        }
        while let Some(open) = self.open.pop() {
            let ticks = (open.from, u64::MAX);
            self.end(ticks, Vec::new(), endless(open.name), found);
        }
        for ended in self.waiting.drain(..) {
            found.settle(self.root, ended.all);
        }
    }
}

/// What lies in something, with that around it.
pub(super) fn around((name, sums, choice): Named, mut all: Inside, found: &mut Paths) -> Inside {
    match name {
        Some(name) => {
            all.iter_mut().for_each(|(path, _)| path.insert(0, name));
            all.push((vec![name], sums));
        }
        None if sums != PathSums::default() => all.push((Vec::new(), sums)),
        None => {}
    }
    merge(&mut all);
    if name.is_some() {
        found.choose(choice, &all);
    }
    all
}
