//! One row: a span or a call that has ended, or an event that is no part of one.

use ringmark_format::schema::Level;

use crate::events::event::{Event, Start};
use crate::events::span::Span;
use crate::sums::calls::{Call, Ended};
use crate::trace_file::field::Field;
use crate::trace_file::function_words::FunctionWords;
use crate::trace_file::functions::{Function, FunctionUse};
use crate::trace_file::thread_times::ThreadTimes;
use crate::trace_file::value::Value;

/// A row. It borrows the record that it is made of.
#[derive(Debug)]
pub struct Row<'r, 'd> {
    /// `span`, `call`, or the kind of the event as `cat --json` names it.
    pub kind: &'static str,
    /// The record of its end, which says where it is: session, thread, page.
    pub record: &'r Event<'d>,
    /// Its name; empty: no record here says.
    pub name: &'d [u8],
    /// Its target: the module path, or the file name of a function's module, or empty.
    pub target: &'d [u8],
    /// When it began, in ns since 1970; `None`: not known, or before the chosen time and in a record of
    /// its own.
    pub start_ns: Option<u64>,
    /// How long it took, in ns; `None`: it is no span or call, or began or ended unseen.
    pub dur_ns: Option<u64>,
    /// How much of that was spent in nothing inside it, in ns; `None`: not known, or not asked for.
    pub own_ns: Option<u64>,
    /// What its thread did while it lasted; `None`: that is not known.
    pub did: Option<ThreadTimes>,
    /// Whether it is a span or call whose beginning is a record that was not chosen, or is not here.
    pub is_truncated: bool,
    /// Number of open calls around a call; `None`: it is no call, or that is not known, as with `--min-time`.
    pub depth: Option<u32>,
    /// Events that its thread lost between the row before and this one, and those that the session
    /// lost without a thread.
    pub lost_before: u64,
    pub(super) args: Args<'r, 'd>,
}

/// Where the arguments of a row are.
#[derive(Debug)]
pub(super) enum Args<'r, 'd> {
    None,
    Event(&'r Event<'d>),
    Span(&'r Span<'d>),
    /// Entry and exit of a call.
    Words([Option<(FunctionUse, &'r [u8])>; 2]),
}

impl<'r, 'd> Row<'r, 'd> {
    /// That of an event, or of a native span, which one record describes.
    pub(super) fn of_event(event: &'r Event<'d>, start: Start) -> Self {
        let clock = &event.session.clock;
        Self {
            kind: event.ty.kind(),
            record: event,
            name: event.name(),
            target: event.target(),
            start_ns: wall(event, clock.wall_of(start.tick, start.t_ns)),
            dur_ns: start.dur_ns,
            did: start.dur_ns.and_then(|_| event.did()),
            own_ns: None,
            is_truncated: false,
            depth: None,
            lost_before: 0,
            args: Args::Event(event),
        }
    }

    /// That of a span over several records. `is_cut`: it began before the chosen time.
    pub(super) fn of_span(span: &'r Span<'d>, is_cut: bool) -> Self {
        Self {
            kind: "span",
            record: &span.end,
            name: span.name,
            target: span.target,
            start_ns: wall(&span.end, span.start_wall_ns()).filter(|_| !is_cut),
            dur_ns: span.took_ns().filter(|_| !is_cut),
            did: span.times.filter(|_| !is_cut),
            own_ns: span.self_ns.filter(|_| !is_cut && span.took_ns().is_some()),
            is_truncated: is_cut,
            depth: None,
            lost_before: 0,
            args: Args::Span(span),
        }
    }

    /// That of a span of which only the end is here.
    pub(super) fn of_end(end: &'r Event<'d>) -> Self {
        Self {
            kind: "span",
            record: end,
            name: end.span_type.map_or(&[], |ty| ty.name.as_slice()),
            target: end.span_type.map_or(&[], |ty| ty.origin.target.as_slice()),
            start_ns: None,
            dur_ns: None,
            did: None,
            own_ns: None,
            is_truncated: true,
            depth: None,
            lost_before: 0,
            args: Args::None,
        }
    }

    /// That of a call that was left at `end`, which may be the exit of a call around it.
    pub(super) fn of_call(call: &'r Call<'d>, end: &'r Event<'d>) -> Self {
        let is_lost = call.unsure && call.ended == Ended::Unseen;
        let clock = &end.session.clock;
        let started = call.entered_tick.zip(call.entered_ns);
        let start = started.map(|(tick, t_ns)| clock.wall_of(tick, t_ns));
        let entry = call.entry.as_ref();
        let exit = end.ty.function.filter(|_| call.ended != Ended::Unseen);
        Self {
            kind: "call",
            record: end,
            name: &call.function.name,
            target: call.target(),
            start_ns: start.and_then(|ns| wall(end, ns)),
            dur_ns: call.took_ns().filter(|_| !is_lost),
            did: call.thread_times(end).filter(|_| !is_lost),
            own_ns: call
                .self_ns()
                .filter(|_| !is_lost && call.took_ns().is_some()),
            is_truncated: started.is_none(),
            depth: call.known_depth(),
            lost_before: 0,
            args: Args::Words([
                entry.map(|(meaning, payload)| (**meaning, &payload[..])),
                exit.map(|meaning| (meaning, &end.payload[..])),
            ]),
        }
    }

    /// That of a span that was made, and whose end no record says.
    pub(crate) fn of_made(made: &'r Event<'d>) -> Self {
        Self {
            kind: "span",
            record: made,
            name: made.name(),
            target: made.target(),
            start_ns: wall(made, made.wall_ns()),
            dur_ns: None,
            did: None,
            own_ns: None,
            is_truncated: false,
            depth: None,
            lost_before: 0,
            args: Args::Event(made),
        }
    }

    /// That of a call that was entered, and whose end no record says.
    pub(crate) fn of_entry(entry: &'r Event<'d>, function: &'d Function, depth: u32) -> Self {
        let words = entry.ty.function.map(|m| (m, &entry.payload[..]));
        Self {
            kind: "call",
            record: entry,
            name: &function.name,
            target: entry.target(),
            start_ns: wall(entry, entry.wall_ns()),
            dur_ns: None,
            did: None,
            own_ns: None,
            is_truncated: false,
            depth: Some(depth),
            lost_before: 0,
            args: Args::Words([words, None]),
        }
    }

    /// Its level; `None`: it has none.
    #[must_use]
    pub fn level(&self) -> Option<Level> {
        match self.args {
            Args::Span(span) => span.ty.level,
            _ => self.record.level(),
        }
    }

    /// The id of the span that it is, or that an event lies in, and that of the span around it, as records say them: native
    /// spans and calls have none.
    #[must_use]
    pub fn span_ids(&self) -> (Option<u64>, Option<u64>) {
        match self.args {
            Args::Span(span) => (span.id, span.parent),
            _ => (self.record.span, self.record.parent),
        }
    }

    /// Number of its record in its page, from 0.
    #[must_use]
    pub fn index(&self) -> u64 {
        let first = self.record.page.header.first_event;
        self.record.seq.wrapping_sub(first)
    }

    /// Name of its thread, or else of its process; empty: not known.
    #[must_use]
    pub fn thread(&self) -> &'d [u8] {
        match self.record.comm() {
            [] => self.record.session.process_name(),
            name => name,
        }
    }

    /// Gives `to` each argument: its name, its field if it has a declaration, its value. Arguments and
    /// result of a call are `arg1` and so on and `result`; what nothing describes is `raw`.
    pub fn args(&self, mut to: impl FnMut(&[u8], Option<&Field>, Value<'_>)) {
        match &self.args {
            Args::None => {}
            Args::Event(event) if !event.ty.known => raw(&event.payload, to),
            Args::Event(event) => {
                for (field, value) in event.args() {
                    to(&field.name, Some(field), value);
                }
            }
            Args::Span(span) if !span.ty.known => raw(&span.payload(), to),
            Args::Span(span) => {
                for (field, value) in span.args() {
                    to(&field.name, Some(field), value);
                }
            }
            Args::Words(both) => {
                for (meaning, payload) in both.iter().flatten() {
                    words(&FunctionWords::read(*meaning, payload), &mut to);
                }
            }
        }
    }

    /// Bytes of the records with its arguments: more text than these is in none of them.
    pub(super) fn payload_bytes(&self) -> usize {
        match &self.args {
            Args::None => 0,
            Args::Event(event) => event.payload.len(),
            Args::Span(span) => span.payload_bytes(),
            Args::Words(both) => both
                .iter()
                .flatten()
                .map(|(_, payload)| payload.len())
                .sum(),
        }
    }
}

/// The time of a row, if its session's start is known.
fn wall(record: &Event<'_>, ns: u64) -> Option<u64> {
    record.session.has_times().then_some(ns)
}

fn raw(payload: &[u8], mut to: impl FnMut(&[u8], Option<&Field>, Value<'_>)) {
    if !payload.is_empty() {
        to(b"raw", None, Value::Bytes(payload));
    }
}

fn words(words: &FunctionWords<'_>, to: &mut impl FnMut(&[u8], Option<&Field>, Value<'_>)) {
    for (number, value) in words.arguments().enumerate() {
        to(
            format!("arg{}", number + 1).as_bytes(),
            None,
            Value::U64(value),
        );
    }
    if let Some(result) = words.result {
        to(b"result", None, Value::U64(result));
    }
}
