//! Walks a trace for the paths of its calls and spans.
//!
//! The path of a call is known when it begins. That of a finished span is known only when the spans
//! around it have ended, so what was in a span waits for it, summed up.

use std::collections::HashMap;

use ringmark_format::Uuid;

use crate::events::event::{Event, Output};
use crate::events::filter::Filter;
use crate::events::span::Span;
use crate::events::span_pairs::{Paired, SpanPairs};
use crate::sums::calls::{Call, Calls, Step, module_name};
use crate::sums::paths::{LONGEST, PathSums, Paths, merge};
use crate::sums::span_paths::SpanPaths;
use crate::trace_file::dump::Dump;
use crate::trace_file::functions::Function;
use crate::trace_file::session::Session;

/// Most calls of one record each that wait for the call around them, in each thread.
const WAITING_MAX: usize = 1 << 16;

impl Dump {
    /// The paths of calls and spans that pass. `tracers`: see [`Calls::new`]. A call has the time of
    /// its records, a span that of its end.
    #[must_use]
    pub fn paths(&self, filter: &Filter, tracers: Option<Vec<u64>>) -> Paths {
        let mut walk = Walk {
            filter,
            pairs: SpanPairs::new(self),
            calls: Calls::new(tracers),
            found: Paths::default(),
            spans: SpanPaths::default(),
            threads: HashMap::new(),
            functions: HashMap::new(),
        };
        self.events().for_each(|item| walk.take(&item));
        walk.finish(self)
    }
}

/// The open calls of a thread.
#[derive(Debug, Default)]
struct Thread {
    /// The path of each; `None`: it is too long.
    open: Vec<Option<usize>>,
    /// Calls that one record describes, until the call around them is known: when each began, its
    /// path from there, its sums.
    waiting: Vec<Waiting>,
}

/// When a call began, and what is known of it and what is in it: paths from there.
type Waiting = (u64, Vec<(Vec<usize>, PathSums)>);

/// What is known while the events are walked.
struct Walk<'d, 'f> {
    /// Threads and times of what counts.
    filter: &'f Filter,
    /// The spans of several records that are open.
    pairs: SpanPairs,
    calls: Calls<'d>,
    found: Paths,
    spans: SpanPaths<'d>,
    /// By [`Event::thread`].
    threads: HashMap<u32, Thread>,
    /// Places of names, by session and place of the function in it.
    functions: HashMap<(Uuid, u32), usize>,
}

impl<'d> Walk<'d, '_> {
    fn take(&mut self, item: &Output<'d>) {
        match self.pairs.take(item) {
            Paired::Part => {
                if let Output::Event(event) = item {
                    self.spans.part(event);
                }
                return;
            }
            Paired::Ended(span) => return self.span(&span),
            Paired::Alone => {}
        }
        let event = match item {
            Output::Event(event) => event,
            Output::Lost(lost) => return self.calls.lose(lost),
        };
        if self.filter.passes(event) {
            let mut calls = std::mem::take(&mut self.calls);
            let mut ended = None;
            calls.take(event, |step| match step {
                Step::Whole(call) if call.is_elsewhere() => ended = Some(call),
                step => self.step(event, &step),
            });
            if let Some(call) = ended {
                self.elsewhere(&calls, &call);
            }
            self.calls = calls;
        }
        if event.ty.function.is_none()
            && let Some(span) = self.pairs.whole(event)
        {
            self.span(&span);
        }
    }

    fn span(&mut self, span: &Span<'_>) {
        let passes = self.filter.passes_span(span);
        self.spans.ended(span, passes, &mut self.found);
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

    /// What an event means for the calls of its thread.
    fn step(&mut self, event: &Event<'d>, step: &Step<'d>) {
        let thread = event.thread();
        match step {
            Step::Entered {
                function,
                id,
                depth,
                loose,
            } => {
                let name = self.name(event.session, function, *id);
                let thread = self.threads.entry(thread).or_default();
                thread.settle(&mut self.found);
                thread.open.truncate(*depth as usize);
                let path = thread.inside(name, &mut self.found);
                match loose {
                    true => self.found.add(path, &PathSums::endless()),
                    false => thread.open.push(path),
                }
            }
            Step::Left(call) => {
                let name = self.name(call.session, call.function, call.id);
                let thread = self.threads.entry(thread).or_default();
                thread.settle(&mut self.found);
                let path = match call.entered_ns {
                    Some(_) => thread.open.get(call.depth as usize).copied().flatten(),
                    None => self.found.path(None, name),
                };
                self.found.add(path, &PathSums::of_call(call));
                if call.entered_ns.is_some() {
                    thread.open.truncate(call.depth as usize);
                }
            }
            Step::Whole(call) => {
                let name = self.name(call.session, call.function, call.id);
                let thread = self.threads.entry(thread).or_default();
                thread.whole(call, name, &mut self.found);
            }
        }
    }

    /// A call on another stack has ended. Its path begins with the outermost call there.
    fn elsewhere(&mut self, calls: &Calls<'d>, call: &Call<'d>) {
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
        names.insert(0, self.name(call.session, call.function, call.id));
        self.found
            .settle(None, vec![(names.into_iter().rev().collect(), sums)]);
    }

    fn finish(mut self, dump: &Dump) -> Paths {
        for thread in self.threads.values_mut() {
            thread.settle(&mut self.found);
            for path in &thread.open {
                self.found.add(*path, &PathSums::endless());
            }
        }
        let calls = std::mem::take(&mut self.calls);
        for call in calls.open_elsewhere() {
            let name = self.name(call.session, call.function, call.id);
            let path = self.found.path(None, name);
            self.found.add(path, &PathSums::endless());
        }
        let filter = self.filter;
        self.spans
            .finish(dump, |ty| filter.passes_cut(Some(ty)), &mut self.found);
        self.found
    }
}

impl Thread {
    /// The path of something in the innermost open call.
    fn inside(&self, name: usize, found: &mut Paths) -> Option<usize> {
        match self.open.last() {
            Some(around) => found.path(Some((*around)?), name),
            None => found.path(None, name),
        }
    }

    /// A call that one record describes; those in it came before.
    fn whole(&mut self, call: &Call<'_>, name: usize, found: &mut Paths) {
        let start = call.entered_ns.unwrap_or(0);
        let mut all = vec![(vec![name], PathSums::of_call(call))];
        while let Some((_, inside)) = self.waiting.pop_if(|(began, _)| *began >= start) {
            for (mut path, sums) in inside {
                path.insert(0, name);
                all.push((path, sums));
            }
        }
        merge(&mut all);
        self.waiting.push((start, all));
        if self.waiting.len() > WAITING_MAX {
            self.settle(found);
        }
    }

    /// Puts what waits into the innermost open call.
    fn settle(&mut self, found: &mut Paths) {
        for (_, all) in self.waiting.drain(..) {
            match self.open.last().copied() {
                None => found.settle(None, all),
                Some(Some(around)) => found.settle(Some(around), all),
                Some(None) => found.deeper += all.iter().map(|(_, sums)| sums.count).sum::<u64>(),
            }
        }
    }
}
