//! Calls as text: nested in braces, with the events between them as comments.
//!
//! A call with nothing inside it has one line. A brace that closes far from its opening, or after lines
//! of other threads, names its function.
//!
//! Lines come in the order of time and are not kept: memory is bounded by the lines that wait, and
//! by the calls that are open.

use std::collections::{HashMap, VecDeque};

use crate::events::event::{Event, Lost, Output};
use crate::events::payload::FewBytes;
use crate::show::call_json::CallLimits;
use crate::show::text::event_text;
use crate::show::word_forms::WordForms;
use crate::sums::calls::{Call, Ended, Step};
use crate::trace_file::function_words::FunctionWords;
use crate::trace_file::functions::{Function, FunctionUse};
use crate::trace_file::session::Session;
use crate::trace_file::thread_states::ThreadDoes;
use crate::words::escape;
use crate::words::number::unsigned;

/// Number of lines between an opening brace and its closing one from which on that one has a name:
/// they do not fit a screen of 24 lines.
const FAR_LINES: u64 = 20;
/// Most lines that wait for a call that may get one line. When more would wait, it gets braces.
const HELD_MAX: usize = 1 << 16;

/// What a line says.
#[derive(Debug)]
enum What<'d> {
    /// A call begins: its function, and the record of its entry, if that has arguments.
    Begin(&'d Function, Option<(FunctionUse, FewBytes)>),
    /// A call without an end on record.
    Passed(&'d Function),
    /// A call ends: the number of the line at which it begins, if that is known, and whether to
    /// name it.
    End {
        call: Call<'d>,
        begin: Option<u64>,
        is_named: bool,
        result: Option<u64>,
    },
    /// A whole call, with nothing inside it, and its result.
    Whole(Call<'d>, Option<u64>),
    Event(Event<'d>),
    Lost(Lost<'d>),
    /// Its thread had no processor for so many ns.
    Off(ThreadDoes, u64),
}

/// Whether a line is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Yes,
    /// It is of a call that is too short.
    No,
    /// It is of an open call that may turn out to be too short.
    Unknown,
}

/// Whose a line is.
#[derive(Clone, Copy)]
struct Whose<'d> {
    session: &'d Session,
    tid: u32,
    thread: Option<u32>,
}

impl<'d> Whose<'d> {
    fn of(event: &Event<'d>) -> Self {
        Self {
            session: event.session,
            tid: event.tid(),
            thread: Some(event.thread()),
        }
    }

    fn of_loss(lost: &Lost<'d>) -> Self {
        Self {
            session: lost.session,
            tid: lost.page.map_or(0, |page| page.header.tid),
            thread: lost.thread(),
        }
    }
}

/// One line of a [`CallGraph`].
#[derive(Debug)]
pub struct GraphLine<'d> {
    /// The session that recorded what it shows.
    pub session: &'d Session,
    /// Thread id; 0 for a loss whose thread is not known.
    pub tid: u32,
    /// Calls around the line: its indentation.
    pub depth: u32,
    /// [`Event::thread`]; `None`: a loss whose thread is not known.
    thread: Option<u32>,
    shown: Shown,
    what: What<'d>,
}

/// A call that has begun and not ended.
#[derive(Debug)]
struct Open {
    /// Number of the line of its beginning, from 0; `None`: it is too deep to be shown.
    line: Option<u64>,
    entered_ns: u64,
    /// Whether something inside it is shown: then it has braces.
    has_inside: bool,
}

/// The calls of all threads in order of time, as lines.
///
/// A line is given out when it is clear how it looks. The first line of a call waits for what comes
/// next in its thread, or for the call's end; with [`CallLimits::min_ns`] until it is long enough. Lines
/// after it wait with it.
#[derive(Debug)]
pub struct CallGraph<'d> {
    limits: CallLimits,
    /// The lines that wait.
    held: VecDeque<GraphLine<'d>>,
    /// Number of the first of them.
    first: u64,
    /// Lines that were given out.
    given: u64,
    /// How many had been given out before the beginning of a call whose end was not, by the number
    /// of that line; and how often the line after another was of another thread.
    above: HashMap<u64, (u64, u64)>,
    /// The thread of the line that was given out last, and how often that was another one.
    last: (Option<u32>, u64),
    /// Calls that have begun and not ended, by [`Event::thread`].
    open: HashMap<u32, Vec<Open>>,
    /// When the latest record of each thread was written, in ns since its session's start.
    recorded_ns: HashMap<u32, u64>,
}

impl<'d> CallGraph<'d> {
    /// A graph of the calls that `limits` allow, with no line.
    #[must_use]
    pub fn new(limits: CallLimits) -> Self {
        Self {
            limits,
            held: VecDeque::new(),
            first: 0,
            given: 0,
            above: HashMap::new(),
            last: (None, 0),
            open: HashMap::new(),
            recorded_ns: HashMap::new(),
        }
    }

    /// Adds the lines of an item: a loss, an event with `depth` open calls of its thread, or the
    /// `steps` that a function record means. `to` gets the lines that are ready.
    pub fn take(
        &mut self,
        item: &Output<'d>,
        steps: &[Step<'d>],
        depth: u32,
        mut to: impl FnMut(&GraphLine<'d>),
    ) {
        if let Output::Event(event) = item {
            self.off_since_its_last(event);
        }
        match item {
            Output::Lost(lost) => self.show(Whose::of_loss(lost), 0, What::Lost(*lost)),
            Output::Event(event) if event.ty.function.is_none() => {
                self.show(Whose::of(event), depth, What::Event(event.alone()));
            }
            Output::Event(event) => steps.iter().for_each(|step| self.step(event, step)),
        }
        let now = match item {
            Output::Event(event) => Some((event.session, event.t_ns)),
            Output::Lost(_) => None,
        };
        while self.is_ready(now) {
            self.give(&mut to);
        }
    }

    /// Adds when the thread of an event had no processor since its latest record, where that is known.
    fn off_since_its_last(&mut self, event: &Event<'d>) {
        if !event.session.has_switches() {
            return;
        }
        let before = self.recorded_ns.insert(event.thread(), event.t_ns);
        let Some(from_ns) = before else { return };
        let open = self.open.get(&event.thread());
        let depth = open.map_or(0, |calls| calls.len() as u32);
        // It is of calls.
        if depth == 0 {
            return;
        }
        let mut found = Vec::new();
        event.off_since(from_ns, |does, ns| found.push((does, ns)));
        for (does, ns) in found {
            if self.limits.min_ns.is_none_or(|min| ns >= min) {
                self.show(Whose::of(event), depth, What::Off(does, ns));
            }
        }
    }

    /// Gives `to` the lines that still wait: calls that have not ended have no closing brace.
    pub fn finish(mut self, mut to: impl FnMut(&GraphLine<'d>)) {
        while !self.held.is_empty() {
            self.give(&mut to);
        }
    }

    /// Adds a line that is shown unless it is too deep.
    fn show(&mut self, whose: Whose<'d>, depth: u32, what: What<'d>) {
        if self.is_deep(depth) {
            return;
        }
        whose
            .thread
            .iter()
            .for_each(|thread| self.shown_in(*thread));
        self.push(whose, depth, what, Shown::Yes);
    }

    fn is_deep(&self, depth: u32) -> bool {
        self.limits.depth.is_some_and(|limit| depth >= limit)
    }

    fn push(&mut self, whose: Whose<'d>, depth: u32, what: What<'d>, shown: Shown) -> u64 {
        self.held.push_back(GraphLine {
            session: whose.session,
            tid: whose.tid,
            depth,
            thread: whose.thread,
            shown,
            what,
        });
        self.first + self.held.len() as u64 - 1
    }

    /// The open calls of a thread that gets a line have something inside.
    fn shown_in(&mut self, thread: u32) {
        let open = self.open.entry(thread).or_default();
        // Around a call with something inside, all have.
        let around = open.iter_mut().rev().take_while(|call| !call.has_inside);
        around.for_each(|call| call.has_inside = true);
    }

    fn step(&mut self, event: &Event<'d>, step: &Step<'d>) {
        let whose = Whose::of(event);
        match step {
            Step::Entered {
                function,
                depth,
                loose: true,
                ..
            } => {
                if self.limits.min_ns.is_none() {
                    self.show(whose, *depth, What::Passed(function));
                }
            }
            Step::Entered {
                function, depth, ..
            } => self.begin(event, *depth, function),
            Step::Left(call) => self.end(event, call),
            Step::Whole(call) => {
                if !self.is_short(call) {
                    let what = What::Whole(call.clone(), result_of(call, event));
                    self.show(whose, call.depth, what);
                }
            }
        }
    }

    fn is_short(&self, call: &Call<'_>) -> bool {
        let ns = call.duration_ns();
        self.limits
            .min_ns
            .is_some_and(|min| ns.is_some_and(|ns| ns < min))
    }

    fn begin(&mut self, event: &Event<'d>, depth: u32, function: &'d Function) {
        let thread = event.thread();
        let shown = match self.limits.min_ns {
            None => Shown::Yes,
            Some(_) => Shown::Unknown,
        };
        let line = (!self.is_deep(depth)).then(|| {
            if shown == Shown::Yes {
                self.shown_in(thread);
            }
            let what = What::Begin(function, with_arguments(event));
            self.push(Whose::of(event), depth, what, shown)
        });
        self.open.entry(thread).or_default().push(Open {
            line,
            entered_ns: event.t_ns,
            has_inside: false,
        });
    }

    fn end(&mut self, event: &Event<'d>, call: &Call<'d>) {
        let thread = event.thread();
        let begun = call.entered_ns.and(self.open.get_mut(&thread));
        let begun = begun.and_then(Vec::pop);
        let is_hidden = self.is_deep(call.depth) || self.is_short(call);
        let line = begun.as_ref().and_then(|begun| begun.line);
        let place = line.and_then(|line| line.checked_sub(self.first));
        let held = place.and_then(|place| self.held.get_mut(place as usize));
        let has_inside = begun.is_none_or(|begun| begun.has_inside);
        let mut is_whole = false;
        let result = result_of(call, event);
        if let Some(begin) = held {
            begin.shown = if is_hidden { Shown::No } else { Shown::Yes };
            is_whole = !is_hidden && !has_inside;
            if is_whole {
                begin.what = What::Whole(call.clone(), result);
            }
        }
        if is_hidden {
            // Most short calls are the last line: it need not wait.
            while self.held.back().is_some_and(|line| line.shown == Shown::No) {
                self.held.pop_back();
            }
            return;
        }
        self.shown_in(thread);
        if !is_whole {
            let what = What::End {
                call: call.clone(),
                begin: line,
                is_named: line.is_none(),
                result,
            };
            self.push(Whose::of(event), call.depth, what, Shown::Yes);
        }
    }

    /// Whether it is clear how the first line looks, at this time of a session.
    fn is_ready(&mut self, now: Option<(&Session, u64)>) -> bool {
        let Some(line) = self.held.front_mut() else {
            return false;
        };
        if !matches!(line.what, What::Begin(..)) || line.shown == Shown::No {
            return true;
        }
        let min_ns = self.limits.min_ns.unwrap_or(0);
        let is_long = |call: &Open| {
            let known = now.filter(|(session, _)| std::ptr::eq(*session, line.session));
            known.is_some_and(|(_, now_ns)| now_ns.saturating_sub(call.entered_ns) >= min_ns)
        };
        let open = line.thread.and_then(|thread| self.open.get_mut(&thread));
        let open = open.map_or(&mut [][..], Vec::as_mut_slice);
        let first = self.first;
        let place = open.partition_point(|call| call.line.is_some_and(|line| line < first));
        let (call, inside) = match &mut open[place..] {
            [call, rest @ ..] if call.line == Some(first) => (call, rest.first()),
            _ => return line.shown == Shown::Yes, // It has ended.
        };
        if line.shown == Shown::Unknown {
            if !is_long(call) {
                return false;
            }
            line.shown = Shown::Yes;
        }
        let is_inside_long = inside.is_some_and(|inside| inside.line.is_some() && is_long(inside));
        call.has_inside |= is_inside_long || self.held.len() > HELD_MAX;
        call.has_inside
    }

    /// Gives `to` the first line, unless it is hidden.
    fn give(&mut self, to: &mut impl FnMut(&GraphLine<'d>)) {
        let number = self.first;
        let Some(mut line) = self.held.pop_front() else {
            return;
        };
        self.first += 1;
        if line.shown == Shown::No {
            return;
        }
        if self.last.0 != line.thread {
            self.last = (line.thread, self.last.1 + 1);
        }
        let turns = self.last.1;
        match &mut line.what {
            What::Begin(..) => drop(self.above.insert(number, (self.given, turns))),
            What::End {
                begin: Some(begin),
                is_named,
                ..
            } => {
                let (above, then) = self.above.remove(begin).unwrap_or((self.given, turns));
                // A line of another thread between them hides which brace it closes.
                *is_named = self.given - above > FAR_LINES || then != turns;
            }
            _ => {}
        }
        self.given += 1;
        to(&line);
    }
}

impl GraphLine<'_> {
    /// Duration of the call that the line ends, or of a wait, in ns; `None`: it is of neither, or the beginning is
    /// not known.
    #[must_use]
    pub fn duration_ns(&self) -> Option<u64> {
        match &self.what {
            What::End { call, .. } | What::Whole(call, _) => call.duration_ns(),
            What::Off(_, ns) => Some(*ns),
            _ => None,
        }
    }

    /// Whether the line reports lost events.
    #[must_use]
    pub const fn is_loss(&self) -> bool {
        matches!(self.what, What::Lost(_))
    }

    /// Appends what the line says, without indentation and line feed. Arguments and results, if they were recorded,
    /// are in hexadecimal.
    pub fn text(&self, out: &mut Vec<u8>) {
        self.text_in(&WordForms::default(), &|_, _| None, out);
    }

    /// The same, with arguments and results in these forms, and behind the name of a function its place in the source,
    /// where `place_of` knows it.
    pub fn text_in<'p>(
        &self,
        forms: &WordForms,
        place_of: &dyn Fn(&Session, &Function) -> Option<&'p str>,
        out: &mut Vec<u8>,
    ) {
        let place = |function: &Function, out: &mut Vec<u8>| {
            if let Some(place) = place_of(self.session, function) {
                out.extend_from_slice(b" [");
                escape::text(place.as_bytes(), out);
                out.push(b']');
            }
        };
        match &self.what {
            What::Begin(function, entry) => {
                let entry = entry.as_ref();
                let entry = entry.map(|(meaning, payload)| (meaning, &payload[..]));
                called_with(&function.name, entry, forms, out);
                place(function, out);
                out.extend_from_slice(b" {");
            }
            What::Passed(function) => {
                called(&function.name, out);
                place(function, out);
                out.push(b';');
            }
            What::End {
                call,
                is_named,
                result,
                ..
            } => {
                out.push(b'}');
                returned(call, *result, forms, out);
                remark(call, *is_named, out);
            }
            What::Whole(call, result) => {
                let entry = call.entry.as_ref();
                let entry = entry.map(|(meaning, payload)| (*meaning, &payload[..]));
                called_with(&call.function.name, entry, forms, out);
                place(call.function, out);
                returned(call, *result, forms, out);
                out.push(b';');
                remark(call, false, out);
            }
            What::Event(event) => comment(event, out),
            What::Off(ThreadDoes::Waits, _) => out.extend_from_slice(b"/* waits */"),
            What::Off(..) => {
                out.extend_from_slice(b"/* ready to run: another thread has its processor */");
            }
            What::Lost(lost) => {
                out.extend_from_slice(b"/* LOST ");
                unsigned(lost.loss.count, out);
                let cause = lost.loss.why.cause();
                out.extend_from_slice(format!(" events: {cause} */").as_bytes());
            }
        }
    }
}

/// `name()`, or the name alone if it holds its parameters.
fn called(name: &[u8], out: &mut Vec<u8>) {
    escape::text(name, out);
    if !name.ends_with(b")") {
        out.extend_from_slice(b"()");
    }
}

/// The same with the arguments that the record of the entry has.
fn called_with(
    name: &[u8],
    entry: Option<(&FunctionUse, &[u8])>,
    forms: &WordForms,
    out: &mut Vec<u8>,
) {
    let mut arguments = Vec::new();
    if let Some((meaning, payload)) = entry {
        let words = FunctionWords::read(*meaning, payload);
        forms.arguments(name, &words, &mut arguments);
    }
    if arguments.is_empty() {
        return called(name, out);
    }
    escape::text(name, out);
    if name.ends_with(b")") {
        out.push(b' ');
    }
    out.extend_from_slice(&arguments);
}

/// Appends ` = 5`, if the result was recorded.
fn returned(call: &Call<'_>, result: Option<u64>, forms: &WordForms, out: &mut Vec<u8>) {
    if let Some(word) = result {
        out.extend_from_slice(b" = ");
        forms.result(&call.function.name, word, out);
    }
}

/// The record of an entry, if it has arguments.
fn with_arguments(event: &Event<'_>) -> Option<(FunctionUse, FewBytes)> {
    let meaning = event.ty.function?;
    let words = FunctionWords::read(meaning, &event.payload);
    let has_arguments = words.arguments().next().is_some();
    has_arguments.then(|| (meaning, FewBytes::of(&event.payload)))
}

/// The result of a call that ended with this event, if that was recorded.
fn result_of(call: &Call<'_>, event: &Event<'_>) -> Option<u64> {
    let meaning = event.ty.function?;
    let is_its_exit = meaning.exit && call.ended == Ended::Returned;
    is_its_exit.then(|| FunctionWords::read(meaning, &event.payload).result)?
}

/// Appends the function's name, if it is wanted, and how the call ended, if it did not return.
fn remark(call: &Call<'_>, is_named: bool, out: &mut Vec<u8>) {
    let how = match call.ended {
        Ended::Returned => "",
        Ended::Unwound => "unwound",
        Ended::Unseen => "its exit was not recorded",
    };
    if !is_named && how.is_empty() {
        return;
    }
    out.extend_from_slice(b" /*");
    if is_named {
        out.push(b' ');
        called(&call.function.name, out);
    }
    if !how.is_empty() {
        out.push(b' ');
        out.extend_from_slice(how.as_bytes());
    }
    out.extend_from_slice(b" */");
}

/// `/* name key=value … */`.
fn comment(event: &Event<'_>, out: &mut Vec<u8>) {
    let mut line = Vec::new();
    event_text(event, &mut line);
    out.extend_from_slice(b"/* ");
    for byte in line.trim_ascii() {
        if *byte == b'/' && out.ends_with(b"*") {
            out.push(b' ');
        }
        out.push(*byte);
    }
    out.extend_from_slice(b" */");
}
