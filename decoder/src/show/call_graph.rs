//! Calls as text: nested in braces, with the events between them as comments.
//!
//! A call with nothing inside it has one line. A brace that closes far from its opening names its
//! function.

use std::collections::HashMap;

use crate::events::event::{Event, Lost, Output};
use crate::show::call_json::CallLimits;
use crate::show::text::event_text;
use crate::sums::calls::{Call, Ended, Step};
use crate::trace_file::session::Session;
use crate::words::escape;
use crate::words::number::unsigned;

/// Number of lines between an opening brace and its closing one from which on that one has a name:
/// they do not fit a screen of 24 lines.
const FAR_LINES: usize = 20;

/// What a line says.
#[derive(Debug)]
enum What<'d> {
    /// A call begins: its function, and the line at which it ends, once that is known.
    Begin(&'d [u8], Option<usize>),
    /// A call without an end on record.
    Passed(&'d [u8]),
    /// A call ends: the line at which it begins, if that is known, and whether to name it.
    End {
        call: Call<'d>,
        begin: Option<usize>,
        is_named: bool,
    },
    /// A whole call, with nothing inside it.
    Whole(Call<'d>),
    Event(Event<'d>),
    Lost(Lost<'d>),
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
    hidden: bool,
    what: What<'d>,
}

/// The calls of all threads in order of time.
#[derive(Debug, Default)]
pub struct CallGraph<'d> {
    lines: Vec<GraphLine<'d>>,
    /// Lines of calls that have begun and not ended, by [`Event::thread`].
    open: HashMap<u32, Vec<usize>>,
}

impl<'d> CallGraph<'d> {
    /// Adds the lines of an item: a loss, an event with `depth` open calls of its thread, or the
    /// `steps` that a function record means.
    pub fn take(&mut self, item: &Output<'d>, steps: &[Step<'d>], depth: u32) {
        match item {
            Output::Lost(lost) => {
                self.push(Whose::of_loss(lost), 0, What::Lost(*lost));
            }
            Output::Event(event) if event.ty.function.is_none() => {
                self.push(Whose::of(event), depth, What::Event(*event));
            }
            Output::Event(event) => steps.iter().for_each(|step| self.step(event, step)),
        }
    }

    fn push(&mut self, whose: Whose<'d>, depth: u32, what: What<'d>) -> usize {
        self.lines.push(GraphLine {
            session: whose.session,
            tid: whose.tid,
            depth,
            thread: whose.thread,
            hidden: false,
            what,
        });
        self.lines.len() - 1
    }

    fn step(&mut self, event: &Event<'d>, step: &Step<'d>) {
        let key = event.thread();
        let whose = Whose::of(event);
        match *step {
            Step::Entered {
                function,
                depth,
                loose: true,
                ..
            } => drop(self.push(whose, depth, What::Passed(&function.name))),
            Step::Entered {
                function, depth, ..
            } => {
                let line = self.push(whose, depth, What::Begin(&function.name, None));
                self.open.entry(key).or_default().push(line);
            }
            Step::Left(call) => {
                let begun = call.entered_ns.and(self.open.get_mut(&key));
                let begin = begun.and_then(Vec::pop);
                let what = What::End {
                    call,
                    begin,
                    is_named: begin.is_none(),
                };
                let end = self.push(whose, call.depth, what);
                if let Some(What::Begin(_, ends)) = begin.map(|line| &mut self.lines[line].what) {
                    *ends = Some(end);
                }
            }
            Step::Whole(call) => drop(self.push(whose, call.depth, What::Whole(call))),
        }
    }

    /// Hides the calls that are too deep, and those that are known to be too short.
    pub fn hide(&mut self, limits: CallLimits) {
        let CallLimits { depth, min_ns } = limits;
        let short = |call: &Call<'_>| {
            let ns = call.duration_ns();
            min_ns.is_some_and(|min| ns.is_some_and(|ns| ns < min))
        };
        for at in 0..self.lines.len() {
            let line = &self.lines[at];
            let mut hidden = depth.is_some_and(|depth| line.depth >= depth);
            match line.what {
                What::Begin(_, Some(end)) => {
                    hidden |=
                        matches!(&self.lines[end].what, What::End { call, .. } if short(call));
                }
                What::End { ref call, .. } | What::Whole(ref call) => hidden |= short(call),
                What::Passed(_) => hidden |= min_ns.is_some(),
                _ => {}
            }
            self.lines[at].hidden = hidden;
        }
    }

    /// Gives each call with nothing shown inside it one line, where it begins, and each brace that
    /// closes far from its opening a name.
    pub fn fold(&mut self) {
        let mut last_of_thread = HashMap::new();
        // For each line, how many are shown above it.
        let mut above = Vec::with_capacity(self.lines.len());
        let mut shown = 0;
        for at in 0..self.lines.len() {
            above.push(shown);
            let line = &mut self.lines[at];
            if line.hidden {
                continue;
            }
            let before = last_of_thread.insert(line.thread, at);
            if let What::End {
                call,
                begin: Some(begin),
                is_named,
            } = &mut line.what
            {
                let (call, begin) = (*call, *begin);
                *is_named = shown - above[begin] > FAR_LINES;
                if before == Some(begin) {
                    line.hidden = true;
                    self.lines[begin].what = What::Whole(call);
                    continue;
                }
            }
            shown += 1;
        }
    }

    /// The lines that are not hidden, in order of time.
    pub fn lines(&self) -> impl Iterator<Item = &GraphLine<'d>> {
        self.lines.iter().filter(|line| !line.hidden)
    }

    /// Whether the lines, hidden ones included, are of more than one thread.
    #[must_use]
    pub fn has_several_threads(&self) -> bool {
        let first = self.lines.first().map(|line| line.tid);
        self.lines.iter().any(|line| Some(line.tid) != first)
    }
}

impl GraphLine<'_> {
    /// Duration of the call that the line ends, in ns; `None`: it ends none, or the beginning is
    /// not known.
    #[must_use]
    pub fn duration_ns(&self) -> Option<u64> {
        match &self.what {
            What::End { call, .. } | What::Whole(call) => call.duration_ns(),
            _ => None,
        }
    }

    /// Whether the line reports lost events.
    #[must_use]
    pub const fn is_loss(&self) -> bool {
        matches!(self.what, What::Lost(_))
    }

    /// Appends what the line says, without indentation and line feed.
    pub fn text(&self, out: &mut Vec<u8>) {
        match &self.what {
            What::Begin(name, _) => {
                called(name, out);
                out.extend_from_slice(b" {");
            }
            What::Passed(name) => {
                called(name, out);
                out.push(b';');
            }
            What::End { call, is_named, .. } => end(call, *is_named, out),
            What::Whole(call) => {
                called(&call.function.name, out);
                out.push(b';');
                remark(call, false, out);
            }
            What::Event(event) => comment(event, out),
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

fn end(call: &Call<'_>, is_named: bool, out: &mut Vec<u8>) {
    out.push(b'}');
    remark(call, is_named, out);
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
