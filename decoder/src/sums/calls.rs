//! Pairs function records into calls, thread by thread.
//!
//! Each thread has a stack of open calls. An entry pushes a call; an exit ends the innermost call
//! of its function and, as unseen, the calls inside that one, whose exits were lost. A loss makes the
//! calls that are open unsure: they may have ended in it, so they are no recursion.
//!
//! The own time of a call is without the calls, spans and waits inside it: see [`Nesting`].
//!
//! Calls on other stacks than the thread's own do not end in that order: see [`super::elsewhere`].
//! Each comes as a whole when it has ended.

use ringmark_format::schema::Shape;

use crate::events::event::{Event, Lost};
use crate::events::nesting::{self, Nesting};
use crate::events::span_pairs::SpanPairs;
pub(super) use crate::sums::call::module_name;
pub use crate::sums::call::{Call, Ended, OpenCall};
use crate::sums::call::{ended, without_entry};
use crate::sums::certain_calls::Certain;
use crate::sums::elsewhere::Elsewhere;
use crate::trace_file::finished_spans::duration_ticks;
use crate::trace_file::function_words::FunctionWords;
use crate::trace_file::functions::{Function, FunctionUse};

/// What a function record means for the calls of its thread.
#[derive(Debug, Clone)]
pub enum Step<'a> {
    /// A call began.
    Entered {
        /// Its function.
        function: &'a Function,
        /// Id of its function in the session.
        id: u32,
        /// Number of open calls around it.
        depth: u32,
        /// Whether no record will say when it ends.
        loose: bool,
    },
    /// A call ended. Its beginning came as [`Step::Entered`], or lies before the first record.
    Left(Call<'a>),
    /// A call whose beginning and end come together: from one record, or because it was on a stack
    /// that is not the thread's own.
    Whole(Call<'a>),
}

/// The open calls of one thread, in all sessions of its process.
#[derive(Debug, Default)]
struct Thread<'a> {
    open: Vec<OpenCall<'a>>,
    /// How many calls are open for certain, by session and function.
    certain: Certain,
}

/// The open calls of every thread.
#[derive(Debug, Default)]
pub struct Calls<'a> {
    /// By [`Event::thread`]: the numbers of threads begin at 0 and have no gaps.
    threads: Vec<Thread<'a>>,
    /// Calls on other stacks.
    elsewhere: Elsewhere<'a>,
    /// Bits of tracers by session; only records that one of them wanted count. `None`: all records.
    tracers: Option<Vec<u64>>,
    /// What has ended in each thread; not used where another one is given.
    nesting: Nesting,
}

impl<'a> Calls<'a> {
    /// A state without open calls. With `tracers`, in which bit t stands for the tracer with
    /// number t, only records that one of these tracers wanted count. There is a number for each
    /// session of the dump, in its order.
    #[must_use]
    pub fn new(tracers: Option<Vec<u64>>) -> Self {
        Self {
            threads: Vec::new(),
            elsewhere: Elsewhere::default(),
            tracers,
            nesting: Nesting::default(),
        }
    }

    /// Takes the next event in the order of time, and gives `to` each step that it means for the
    /// calls of its thread. Events that are no function records mean none; of them native spans, and waits,
    /// are no time of the calls around them.
    pub fn take(&mut self, event: &Event<'a>, to: impl FnMut(Step<'a>)) {
        let mut nesting = std::mem::take(&mut self.nesting);
        match event.took_ns() {
            Some(ns) if event.ty.function.is_none() => {
                let _ = nesting.end(event.thread(), lasted(event.start_tick(), event, ns));
            }
            _ => self.take_among(&mut nesting, event, to),
        }
        self.nesting = nesting;
    }

    /// As [`Self::take`], for those who have spans from `pairs`: then spans and calls lie in each other, and the own
    /// time of a call is not known while which records of its thread are missing, those of spans, too.
    pub fn take_with(
        &mut self,
        pairs: &mut SpanPairs,
        event: &Event<'a>,
        mut to: impl FnMut(Step<'a>),
    ) {
        let mut nesting = std::mem::take(&mut pairs.nesting);
        self.take_among(&mut nesting, event, |mut step| {
            if let Step::Left(call) | Step::Whole(call) = &mut step {
                let from = call.entered_tick.unwrap_or(event.tick);
                call.is_cut |= !pairs.has_all(event, from);
            }
            to(step);
        });
        pairs.nesting = nesting;
    }

    fn take_among(
        &mut self,
        nesting: &mut Nesting,
        event: &Event<'a>,
        mut to: impl FnMut(Step<'a>),
    ) {
        let Some(meaning) = &event.ty.function else {
            return;
        };
        let session = event.session;
        let bits = |all: &Vec<u64>| all.get(session.number).copied().unwrap_or(0);
        let wanted = self.tracers.as_ref().map_or(u64::MAX, bits);
        if self.tracers.is_some() && wanted & meaning.tracers == 0 {
            return;
        }
        let functions = session.schema.functions();
        let Some(function) = functions.of_use(meaning) else {
            return;
        };
        let id = meaning.function;
        if meaning.has_slot && !meaning.timed {
            return self.take_elsewhere(event, (meaning, function), nesting, &mut to);
        }
        let thread = self.thread(event);
        if meaning.timed {
            let call = thread.whole_call(event, function, meaning, nesting);
            to(Step::Whole(call));
        } else if meaning.exit {
            thread.leave(event, (function, id), ended(meaning), nesting, &mut to);
        } else {
            to(Step::Entered {
                function,
                id,
                depth: thread.open.len() as u32,
                loose: meaning.loose,
            });
            if !meaning.loose {
                let mut call = OpenCall::begun(event, function, meaning);
                call.recursive = thread.certain.add(session, function);
                thread.open.push(call);
            }
        }
    }

    /// Takes a record of a call on a stack that is not its thread's own.
    fn take_elsewhere(
        &mut self,
        event: &Event<'a>,
        (meaning, function): (&'a FunctionUse, &'a Function),
        nesting: &mut Nesting,
        to: &mut impl FnMut(Step<'a>),
    ) {
        let Some(slot) = FunctionWords::read(*meaning, &event.payload).slot else {
            return;
        };
        let depth = self.thread(event).open.len() as u32;
        if !meaning.exit {
            let call = OpenCall::begun(event, function, meaning);
            let process = event.session.process;
            let left = self.elsewhere.enter(process, slot, call, depth);
            return left.map(Step::Whole).into_iter().for_each(to);
        }
        let (id, how) = (meaning.function, ended(meaning));
        match self.elsewhere.leave(event, slot, id, how) {
            Some(call) => {
                self.thread(event).add_elsewhere(event, &call, nesting);
                to(Step::Whole(call));
            }
            None => to(Step::Left(without_entry(event, (function, id), how, depth))),
        }
    }

    fn thread(&mut self, event: &Event<'a>) -> &mut Thread<'a> {
        let number = event.thread() as usize;
        if number >= self.threads.len() {
            self.threads.resize_with(number + 1, Thread::default);
        }
        &mut self.threads[number]
    }

    /// Takes a loss: which calls of its thread have ended since is not known.
    pub fn lose(&mut self, lost: &Lost<'a>) {
        let thread = lost.page.map(|page| page.thread as usize);
        for (number, calls) in self.threads.iter_mut().enumerate() {
            if thread.is_some_and(|thread| thread != number) {
                continue;
            }
            // What was in them may be lost, whichever session it was of.
            calls.open.iter_mut().for_each(|call| call.is_cut = true);
            let open = calls.open.iter_mut().filter(|call| !call.unsure);
            for call in open.filter(|call| std::ptr::eq(call.session, lost.session)) {
                call.unsure = true;
                calls.certain.remove(call.session, call.function);
            }
        }
        self.elsewhere.lose(lost.session);
    }

    /// Number of open calls around `event` in its thread. A finished span is recorded at its end;
    /// what counts is where it began.
    #[must_use]
    pub fn depth(&self, event: &Event<'_>) -> usize {
        let Some(thread) = self.threads.get(event.thread() as usize) else {
            return 0;
        };
        match event.ty.shape {
            Some(Shape::Span) => {
                let ticks = duration_ticks(event.ty, &event.payload).unwrap_or(0);
                let start = event.tick.saturating_sub(ticks);
                thread.open.partition_point(|o| o.entered_tick <= start)
            }
            _ => thread.open.len(),
        }
    }

    /// The calls that are still open, thread by thread, the innermost of each last; then those on
    /// other stacks.
    pub fn open(&self) -> impl Iterator<Item = &OpenCall<'a>> {
        let own = self.threads.iter().flat_map(|thread| &thread.open);
        own.chain(self.open_elsewhere())
    }

    /// The open calls around one on another stack that has ended, the innermost first.
    pub(super) fn around_ended(&self, call: &Call<'a>) -> impl Iterator<Item = &OpenCall<'a>> {
        self.elsewhere.around_ended(call)
    }

    /// The calls on other stacks that are still open: no step has come for them.
    pub fn open_elsewhere(&self) -> impl Iterator<Item = &OpenCall<'a>> {
        self.elsewhere.open()
    }
}

/// What ends with this record.
fn lasted(from: u64, end: &Event<'_>, ns: u64) -> nesting::Ended {
    nesting::Ended {
        from,
        to: end.tick,
        part: ns,
    }
}

impl<'a> Thread<'a> {
    /// A call that one record describes. Calls inside it have been met before.
    fn whole_call(
        &mut self,
        event: &Event<'a>,
        function: &'a Function,
        meaning: &FunctionUse,
        nesting: &mut Nesting,
    ) -> Call<'a> {
        let (start, id) = (event.start_ns(), meaning.function);
        let ticks = FunctionWords::read(*meaning, &event.payload).duration_ticks;
        let start_tick = event.tick.saturating_sub(ticks.unwrap_or(0));
        let duration = event.t_ns.saturating_sub(start);
        let children_ns = nesting.end(event.thread(), lasted(start_tick, event, duration));
        Call {
            session: event.session,
            function,
            id,
            entered_ns: Some(start),
            entered_tick: Some(start_tick),
            left_ns: event.t_ns,
            children_ns,
            depth: self.open.len() as u32,
            recursive: self.certain.has(event.session, function),
            unsure: false,
            is_cut: start_tick < event.page.from,
            ended: ended(meaning),
            entry: None,
            around: None,
        }
    }

    /// A call on another stack that began and ended in the innermost open call lay in it. What the thread
    /// did meanwhile may have been on yet another stack.
    fn add_elsewhere(&self, event: &Event<'a>, call: &Call<'a>, nesting: &mut Nesting) {
        if let (Some(around), Some(entered)) = (self.open.last(), call.entered_tick)
            && entered >= around.entered_tick
        {
            let took = call.duration_ns().unwrap_or(0);
            nesting.add(event.thread(), lasted(entered, event, took));
        }
    }

    /// Ends the innermost open call of this function, and the calls inside it, whose ends were not
    /// recorded. Without such a call the beginning lies before the first record.
    fn leave(
        &mut self,
        event: &Event<'a>,
        (function, id): (&'a Function, u32),
        ended: Ended,
        nesting: &mut Nesting,
        to: &mut impl FnMut(Step<'a>),
    ) {
        let session = event.session;
        let Some(place) = self.open.iter().rposition(|o| o.is_of(session, id)) else {
            let depth = self.open.len() as u32;
            to(Step::Left(without_entry(
                event,
                (function, id),
                ended,
                depth,
            )));
            return;
        };
        while self.open.len() > place {
            let how = if self.open.len() == place + 1 {
                ended
            } else {
                Ended::Unseen
            };
            if let Some(call) = self.pop(event, how, nesting) {
                to(Step::Left(call));
            }
        }
    }

    /// Ends the innermost open call at the time of an event.
    fn pop(&mut self, event: &Event<'a>, ended: Ended, nesting: &mut Nesting) -> Option<Call<'a>> {
        let (last, now) = (self.open.pop()?, event.t_ns);
        let took = now.saturating_sub(last.entered_ns);
        let ended_now = lasted(last.entered_tick, event, took);
        let children_ns = nesting.end(event.thread(), ended_now);
        if !last.unsure {
            self.certain.remove(last.session, last.function);
        }
        Some(Call {
            session: last.session,
            function: last.function,
            id: last.id,
            entered_ns: Some(last.entered_ns),
            entered_tick: Some(last.entered_tick),
            left_ns: now,
            children_ns,
            depth: self.open.len() as u32,
            // A loss makes those around it unsure, too.
            recursive: last.recursive && !last.unsure,
            unsure: last.unsure,
            is_cut: last.is_cut,
            ended,
            entry: Some(last.entry),
            around: None,
        })
    }
}
