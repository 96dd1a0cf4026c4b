//! Walks a trace for the paths of its calls and spans.
//!
//! What lies in something that has not ended waits for it, summed up: as paths from there. It is known to lie
//! in what ends next in its thread and began before it, a span or a call. What a thread did while it was in a
//! span over threads waits for that span. The path of a call is known when it begins where its process has no
//! spans; then nothing waits.

use std::collections::HashMap;

use ringmark_format::Uuid;
use ringmark_format::schema::Shape;

use crate::events::event::{Event, Output};
use crate::events::filter::Filter;
use crate::events::span::Span;
use crate::events::span_pairs::{Paired, SpanPairs};
use crate::sums::calls::{Call, Calls, Step, module_name};
use crate::sums::path_thread::{Thread, around};
use crate::sums::paths::{Choice, ChosenPaths, LONGEST, PathSums, Paths};
use crate::sums::span_paths::SpanPaths;
use crate::trace_file::dump::Dump;
use crate::trace_file::functions::Function;
use crate::trace_file::session::Session;

/// What a path begins with: the thread, or for spans over threads the process, of an event.
#[derive(Debug, Clone, Copy)]
pub enum PathRoot<'e, 'd> {
    /// The thread.
    Thread(&'e Event<'d>),
    /// The process.
    Process(&'e Event<'d>),
}

/// Gives the names that paths of a root begin with, the outermost first.
pub type PathRoots<'r, 'd> = &'r dyn Fn(PathRoot<'_, 'd>) -> Vec<Vec<u8>>;

impl Dump {
    /// The paths of calls and spans that pass. `tracers`: see [`Calls::new`]. A call has the time of
    /// its records, a span that of its end.
    #[must_use]
    pub fn paths(&self, filter: &Filter, tracers: Option<Vec<u64>>) -> Paths {
        self.walk_paths(Walk::new(self, filter, tracers))
    }

    /// The paths from calls and spans that pass `chosen`, beside those from all of their names. Of both only what has
    /// ended counts. `filter` and `tracers`: as in [`Self::paths`].
    #[must_use]
    pub fn chosen_paths(
        &self,
        chosen: &Filter,
        filter: &Filter,
        tracers: Option<Vec<u64>>,
    ) -> ChosenPaths {
        let mut walk = Walk::new(self, filter, tracers);
        walk.choose(chosen);
        self.walk_paths(walk).into_chosen()
    }

    /// The same, each path with its root before it. Spans and calls shorter than `min_ns` are left out, and
    /// their own time is that of what is around them.
    #[must_use]
    pub fn paths_from<'d>(
        &'d self,
        roots: PathRoots<'_, 'd>,
        filter: &Filter,
        min_ns: u64,
    ) -> Paths {
        let mut walk = Walk::new(self, filter, None);
        (walk.roots, walk.min_ns) = (Some(roots), min_ns);
        self.walk_paths(walk)
    }

    fn walk_paths<'d>(&'d self, mut walk: Walk<'d, '_>) -> Paths {
        self.events().for_each(|item| walk.take(&item));
        walk.finish(self)
    }
}

/// What is known while the events are walked.
struct Walk<'d, 'f> {
    /// Threads and times of what counts.
    filter: &'f Filter,
    min_ns: u64,
    /// What is chosen, and what may have the name of that.
    chosen: Option<(Filter, Filter)>,
    roots: Option<PathRoots<'f, 'd>>,
    /// The spans of several records that are open.
    pairs: SpanPairs,
    calls: Calls<'d>,
    found: Paths,
    spans: SpanPaths<'d>,
    /// By [`Event::thread`].
    threads: HashMap<u32, Thread>,
    /// The roots of processes, by their number.
    processes: HashMap<usize, Option<usize>>,
    /// Places of names, by session and place of the function in it.
    functions: HashMap<(Uuid, u32), usize>,
}

impl<'d, 'f> Walk<'d, 'f> {
    fn new(dump: &'d Dump, filter: &'f Filter, tracers: Option<Vec<u64>>) -> Self {
        Self {
            filter,
            min_ns: 0,
            chosen: None,
            roots: None,
            pairs: SpanPairs::of_part(dump, filter),
            calls: Calls::new(tracers),
            found: Paths::default(),
            spans: SpanPaths::default(),
            threads: HashMap::new(),
            processes: HashMap::new(),
            functions: HashMap::new(),
        }
    }

    fn choose(&mut self, chosen: &Filter) {
        self.chosen = Some((chosen.clone(), chosen.without_conditions()));
        self.found.gather_chosen();
    }

    /// Whether a span is chosen.
    fn choice(&self, span: &Span<'_>) -> Choice {
        let Some((chosen, like)) = &self.chosen else {
            return Choice::default();
        };
        Choice {
            is_chosen: chosen.passes_span(span),
            is_like: like.passes_span(span),
        }
    }

    fn take(&mut self, item: &Output<'d>) {
        match (self.pairs.take(item), item) {
            (Paired::Part, Output::Event(event)) => return self.part(event),
            (Paired::Part, Output::Lost(_)) => return,
            (Paired::Ended(span), Output::Event(event)) => return self.lasted(event, &span),
            _ => {}
        }
        let event = match item {
            Output::Event(event) => event,
            Output::Lost(lost) => return self.calls.lose(lost),
        };
        if event.ty.function.is_some() && self.filter.passes(event) {
            self.call(event);
        }
        if event.ty.function.is_none()
            && let Some(span) = self.pairs.whole(event)
        {
            self.span(event, &span);
        }
    }

    /// The thread of an event.
    fn thread(&mut self, event: &Event<'d>) -> &mut Thread {
        let (roots, found) = (self.roots, &mut self.found);
        // What is chosen is known when it has ended.
        let is_known_late = self.chosen.is_some() || event.session.has_spans;
        self.threads.entry(event.thread()).or_insert_with(|| {
            let names = roots.map(|roots| roots(PathRoot::Thread(event)));
            let root = names.and_then(|names| found.root(&names));
            Thread::new(root, is_known_late)
        })
    }

    /// A record of a span that goes on.
    fn part(&mut self, event: &Event<'d>) {
        self.spans.part(event);
        let Some(id) = event.span else { return };
        match event.shape() {
            Some(Shape::SpanEnter) => self.thread(event).enter_span(id, event.tick),
            Some(Shape::SpanExit) => {
                let thread = self.threads.get_mut(&event.thread());
                let all = thread.map(|thread| thread.exit_span(id, &mut self.found));
                let key = (event.session.process, id);
                self.spans.put_into(key, all.unwrap_or_default());
            }
            _ => {}
        }
    }

    /// What is said of something at the end of its path; `None`: it is left out, with its own time for what
    /// is around it.
    fn sums(&self, passes: bool, sums: PathSums, took_ns: Option<u64>) -> (bool, PathSums) {
        match passes && took_ns.is_none_or(|ns| ns >= self.min_ns) {
            true => (true, sums),
            false if passes => (false, sums.own_alone()),
            false => (false, PathSums::default()),
        }
    }

    /// A span over threads has ended.
    fn lasted(&mut self, event: &Event<'d>, span: &Span<'_>) {
        let (process, roots, found) = (event.session.process, self.roots, &mut self.found);
        let root = *self.processes.entry(process).or_insert_with(|| {
            let names = roots.map(|roots| roots(PathRoot::Process(event)));
            names.and_then(|names| found.root(&names))
        });
        let passes = self.filter.passes_span(span);
        let sums = PathSums::timed(span.took_ns(), span.self_ns);
        let (is_shown, sums) = self.sums(passes, sums, span.took_ns());
        let name = is_shown.then(|| self.found.name(span.name, span.target));
        let named = (name, sums, self.choice(span));
        self.spans.ended(span, named, root, &mut self.found);
    }

    /// A native span has ended.
    fn span(&mut self, event: &Event<'d>, span: &Span<'_>) {
        let passes = self.filter.passes_span(span);
        // Stacks are of the chosen time alone: what lay in it before is not known to them.
        let is_all = self.roots.is_none() || self.filter.has_start(event);
        let own_ns = span.self_ns.filter(|_| is_all);
        let sums = PathSums::timed(span.took_ns(), own_ns).with(span.times);
        let (is_shown, sums) = self.sums(passes, sums, span.took_ns());
        let name = is_shown.then(|| self.found.name(span.name, span.target));
        let named = (name, sums, self.choice(span));
        let process = event.session.process;
        // Spans over threads that were made in it.
        let own = span.id.map(|id| (process, id));
        let more = own.map(|own| self.spans.take_from(own)).unwrap_or_default();
        let (from, to) = (event.start_tick(), event.tick);
        let _ = self.thread(event);
        let Some(thread) = self.threads.get_mut(&event.thread()) else {
            return;
        };
        match event.named_parent() {
            // The program says what is around it, whatever its thread did.
            Some(parent) => {
                let mut all = thread.take_since(from, &mut self.found);
                all.extend(more);
                let root = thread.root;
                self.spans
                    .place((process, parent), all, named, root, &mut self.found);
            }
            // What lies in it is known; what it lies in is not.
            None if event.is_unplaced() => {
                let mut all = thread.take_since(from, &mut self.found);
                all.extend(more);
                self.found.unplaced += 1;
                let all = around(named, all, &mut self.found);
                self.found.settle(thread.root, all);
            }
            None => thread.end((from, to), more, named, &mut self.found),
        }
    }

    fn name(&mut self, session: &Session, function: &Function, id: u32) -> usize {
        let key = (session.uuid, id);
        if let Some(name) = self.functions.get(&key) {
            return *name;
        }
        let name = self
            .found
            .name(&function.name, module_name(session, function));
        self.functions.insert(key, name);
        name
    }

    fn call(&mut self, event: &Event<'d>) {
        let mut calls = std::mem::take(&mut self.calls);
        let mut steps = Vec::new();
        calls.take_with(&mut self.pairs, event, |step| steps.push(step));
        for step in steps {
            match step {
                Step::Whole(call) if call.is_elsewhere() => self.elsewhere(event, &calls, &call),
                step => self.step(event, &step),
            }
        }
        self.calls = calls;
    }

    /// What an event means for the calls of its thread.
    fn step(&mut self, event: &Event<'d>, step: &Step<'d>) {
        let (session, function, id) = match step {
            Step::Entered { function, id, .. } => (event.session, *function, *id),
            Step::Left(call) | Step::Whole(call) => (call.session, call.function, call.id),
        };
        let name = self.name(session, function, id);
        let sums = match step {
            Step::Entered { .. } => (true, PathSums::endless()),
            Step::Left(call) | Step::Whole(call) => {
                let sums = PathSums::of_call(call).with(call.thread_times(event));
                self.sums(true, sums, call.took_ns())
            }
        };
        let choice = match step {
            Step::Left(call) | Step::Whole(call) if self.chosen.is_some() => {
                let span = call.as_span(event);
                span.map(|span| self.choice(&span)).unwrap_or_default()
            }
            _ => Choice::default(),
        };
        let _ = self.thread(event);
        let Some(thread) = self.threads.get_mut(&event.thread()) else {
            return;
        };
        let found = &mut self.found;
        let shown = (sums.0.then_some(name), sums.1, choice);
        match step {
            Step::Entered { depth, loose, .. } => {
                thread.enter((name, event.tick), *depth as usize, *loose, found);
            }
            Step::Left(call) => match call.entered_tick {
                Some(from) => {
                    let ticks = (from, event.tick);
                    thread.leave(ticks, call.depth as usize, shown, found);
                }
                None => {
                    let path = found.path(thread.root, name);
                    found.add(path, &shown.1);
                }
            },
            Step::Whole(call) => {
                let from = call.entered_tick.unwrap_or(event.tick);
                thread.end((from, event.tick), Vec::new(), shown, found);
            }
        }
    }

    /// A call on another stack has ended. Its path begins with the outermost call there.
    fn elsewhere(&mut self, event: &Event<'d>, calls: &Calls<'d>, call: &Call<'d>) {
        let around = calls.around_ended(call);
        let mut names: Vec<_> = around
            .take(LONGEST)
            .map(|call| self.name(call.session, call.function, call.id))
            .collect();
        let sums = PathSums::of_call(call);
        if names.len() == LONGEST {
            self.found.deeper += 1;
            return;
        }
        let own = self.name(call.session, call.function, call.id);
        let choice = call.as_span(event).map(|span| self.choice(&span));
        self.found
            .choose(choice.unwrap_or_default(), &vec![(vec![own], sums)]);
        names.insert(0, own);
        let root = self.thread(event).root;
        self.found
            .settle(root, vec![(names.into_iter().rev().collect(), sums)]);
    }

    fn finish(mut self, dump: &Dump) -> Paths {
        for thread in self.threads.values_mut() {
            thread.finish(&mut self.found);
        }
        let calls = std::mem::take(&mut self.calls);
        for call in calls.open_elsewhere() {
            let name = self.name(call.session, call.function, call.id);
            let path = self.found.path(None, name);
            self.found.add(path, &PathSums::endless());
        }
        let filter = self.filter;
        let roots = (self.roots.is_some(), &self.processes);
        self.spans.finish(
            dump,
            |ty| filter.passes_cut(Some(ty)),
            roots,
            &mut self.found,
        );
        self.found
    }
}
