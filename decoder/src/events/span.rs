//! A span that has ended, as one thing, however many records it has.
//!
//! A native span is one record at its end. A span of `tracing`, or one of a future, has records of
//! its own for being made, entered, left and closed; [`crate::SpanPairs`] puts them together. A call
//! of a function is such a thing, too: `Call::as_span`.

use crate::events::event::Event;
use crate::events::payload::{FewBytes, Payload};
use crate::events::stay::Stay;
use crate::trace_file::field::Field;
use crate::trace_file::function_words::FunctionWords;
use crate::trace_file::functions::FunctionUse;
use crate::trace_file::samples::RanIn;
use crate::trace_file::schema::EventType;
use crate::trace_file::thread_times::ThreadTimes;
use crate::trace_file::value::Value;
use crate::trace_file::waited_for::WaitedFor;

/// A span with its beginning and its end. All times are in ns.
#[derive(Debug, Clone)]
pub struct Span<'a> {
    /// The record of its end, which says when and on which thread it ended.
    pub end: Event<'a>,
    /// The type that made it, which has its level. A call has that of its end.
    pub ty: &'a EventType,
    /// Its name: that of the type, or of the function.
    pub name: &'a [u8],
    /// Its target: that of the type, or the file name of the function's module.
    pub target: &'a [u8],
    /// Its id; `None`: a native span without one.
    pub id: Option<u64>,
    /// The id of the span around it; `None`: there is none, or it is not known.
    pub parent: Option<u64>,
    /// When it began, since the session's start.
    pub start_ns: u64,
    /// From its beginning to its end.
    pub total_ns: u64,
    /// When threads were in it; `None`: a native span, which its thread does not leave.
    pub entered: Option<Entered>,
    /// Time in it without the spans that its thread was in inside it; `None`: not known, because
    /// records were lost while it lasted. Only [`crate::SpanPairs::whole`] and spans of several
    /// records have it.
    pub self_ns: Option<u64>,
    /// What its thread did from its beginning to its end, or, of a span that is entered, its threads while they
    /// were in it; `None`: it is not known, as where no switches were recorded.
    pub times: Option<ThreadTimes>,
    /// Whether a span of its type was around it, which had not ended, if it can be entered.
    pub(crate) is_inner: bool,
    /// Ids of the threads that were in it, if it can be entered: each once, none if they are more
    /// than 16.
    pub(crate) tids: Vec<u32>,
    /// When threads were in it and were seen, running or waiting, if it can be entered.
    pub(crate) seen: Vec<Stay>,
    /// Entry and exit of a call: what the record means, and its payload.
    pub(crate) words: [Option<(&'a FunctionUse, FewBytes)>; 2],
    /// The record that made it, then those with fields that were recorded later, the latest last.
    pub(crate) parts: Vec<(&'a EventType, Payload)>,
}

/// How much of its time a span was entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entered {
    /// Sum of the intervals in which a thread was in it. Threads count on their own, so it may be
    /// more than the total.
    pub busy_ns: u64,
    /// Time in which no thread was in it.
    pub idle_ns: u64,
    /// How often it was entered; the polls of a future.
    pub polls: u64,
    /// Whether no record of the session is lost from its beginning to its end. If any is, a thread
    /// may have entered or left it unseen, and the other numbers are those of the records here.
    pub is_whole: bool,
}

impl<'a> Span<'a> {
    /// The native span that this record ends; `None`: the event is something else.
    #[must_use]
    pub fn of_event(event: &Event<'a>) -> Option<Self> {
        if event.ty.function.is_some() {
            return None;
        }
        let total_ns = event.took_ns()?;
        Some(Self {
            end: event.clone(),
            ty: event.ty,
            name: &event.ty.name,
            target: &event.ty.origin.target,
            id: event.span,
            parent: event.parent,
            start_ns: event.start_ns(),
            total_ns,
            entered: None,
            self_ns: None,
            times: event.thread_times(total_ns),
            is_inner: false,
            tids: Vec::new(),
            seen: Vec::new(),
            words: [const { None }; 2],
            parts: vec![(event.ty, event.payload.clone())],
        })
    }

    /// From its beginning to its end, in ns; `None`: its session has no times.
    #[must_use]
    pub fn took_ns(&self) -> Option<u64> {
        self.end.session.has_times().then_some(self.total_ns)
    }

    /// When it began, in ns since 1970; UTC.
    #[must_use]
    pub fn start_wall_ns(&self) -> u64 {
        self.end.session.clock.wall_ns(self.start_ns)
    }

    /// Its fields with their values: those that it was made with, then those recorded later. A
    /// field that was recorded again has its last value. Fields that carry structure are left out.
    #[must_use]
    pub fn args(&self) -> Vec<(&'a Field, Value<'_>)> {
        let mut args: Vec<(&'a Field, Value<'_>)> = Vec::new();
        for (ty, payload) in &self.parts {
            let shown = ty.fields.iter().enumerate().filter(|(i, _)| ty.shows(*i));
            for (_, field) in shown {
                let value = field.value(payload);
                match args.iter_mut().find(|(known, _)| known.name == field.name) {
                    // A site whose fields come in many kinds fills absent ones with empty texts.
                    Some(_) if value == Value::Str(b"") => {}
                    Some(place) => *place = (field, value),
                    None => args.push((field, value)),
                }
            }
        }
        args
    }

    /// Whether it is a call of a function.
    #[must_use]
    pub const fn is_call(&self) -> bool {
        self.end.ty.function.is_some()
    }

    /// Ids of the threads that were in it or ended it, each once; none if they are too many.
    #[must_use]
    pub fn tids(&self) -> Vec<u32> {
        let end = self.end.tid();
        match &self.entered {
            Some(entered) if self.tids.is_empty() && entered.polls > 0 => Vec::new(),
            _ if self.tids.contains(&end) => self.tids.clone(),
            _ => [&self.tids[..], &[end]].concat(),
        }
    }

    /// What its threads waited for while they were in it, as far as that was seen; the longest first.
    #[must_use]
    pub fn waited_for(&self) -> Vec<WaitedFor<'a>> {
        let session = self.end.session;
        let waited = |stay: Stay| session.waited_for(stay.tid, stay.from_ns, stay.to_ns);
        WaitedFor::sums(self.stays().flat_map(waited))
    }

    /// What its threads ran while they were in it, by samples; the longest first.
    #[must_use]
    pub fn ran_in(&self) -> Vec<RanIn<'a>> {
        let session = self.end.session;
        let ran = |stay: Stay| session.ran_in(stay.tid, stay.from_ns, stay.to_ns);
        RanIn::sums(self.stays().flat_map(ran))
    }

    /// The times in which a thread was in it, and may have been seen.
    pub(crate) fn stays(&self) -> impl Iterator<Item = Stay> {
        let whole = || Stay::before(&self.end, self.total_ns);
        let whole = (self.entered.is_none() && !self.may_move()).then(whole);
        whole.into_iter().chain(self.seen.iter().copied())
    }

    /// Whether it is a call on a stack of its own, which any thread may have begun.
    fn may_move(&self) -> bool {
        self.end.ty.function.is_some_and(|meaning| meaning.has_slot)
    }

    /// The argument or the result of a call that output calls so.
    pub(crate) fn call_word(&self, name: &str) -> Option<u64> {
        let mut words = self.words.iter().flatten();
        words.find_map(|(meaning, payload)| FunctionWords::read(**meaning, payload).named(name))
    }

    /// Bytes of all its records, which bound what a line shows of them.
    pub(crate) fn payload_bytes(&self) -> usize {
        self.parts.iter().map(|(_, payload)| payload.len()).sum()
    }

    /// The payloads of all its records, one after the other.
    pub(crate) fn payload(&self) -> Vec<u8> {
        let parts = self.parts.iter().map(|(_, payload)| &payload[..]);
        parts.collect::<Vec<_>>().concat()
    }
}
