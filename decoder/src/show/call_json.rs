//! Calls as JSON: one object per line, each where its call ends; calls that are still open come
//! last.

use std::collections::HashMap;

use crate::events::event::Event;
use crate::show::json::VERSION;
use crate::sums::calls::{Call, Ended, Step};
use crate::trace_file::functions::Function;
use crate::trace_file::session::Session;
use crate::words::escape;
use crate::words::number::{json_unsigned, unsigned};

/// Which calls are shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallLimits {
    /// Only calls with fewer calls around them; `None`: any depth.
    pub depth: Option<u32>,
    /// Only calls with at least this duration, in ns; `None`: any, also one that is not known.
    pub min_ns: Option<u64>,
}

impl CallLimits {
    /// Whether a call is shown: its depth, and its duration in ns where that is known.
    fn allow(self, depth: u32, took_ns: Option<u64>) -> bool {
        let is_deep = self.depth.is_some_and(|limit| depth >= limit);
        let is_short = |min| took_ns.is_none_or(|ns| ns < min);
        !is_deep && !self.min_ns.is_some_and(is_short)
    }
}

/// The beginning of a call.
#[derive(Debug, Clone, Copy)]
struct Begun<'d> {
    session: &'d Session,
    function: &'d Function,
    tid: u32,
    depth: u32,
    start_ns: Option<u64>,
}

/// The times of a call whose beginning and end are known, in ns.
#[derive(Debug, Clone, Copy)]
struct Took {
    duration_ns: u64,
    self_ns: u64,
}

/// Writes calls as JSON lines, in the order in which they end.
#[derive(Debug)]
pub struct CallJsonWriter<'d> {
    limits: CallLimits,
    /// Open calls of each thread, by [`Event::thread`], the innermost last.
    open: HashMap<u32, Vec<Begun<'d>>>,
}

impl<'d> CallJsonWriter<'d> {
    /// A writer that knows of no open call.
    #[must_use]
    pub fn new(limits: CallLimits) -> Self {
        Self {
            limits,
            open: HashMap::new(),
        }
    }

    /// Appends the line of the call that `step` ends, if it ends one. `event` is the record that
    /// the step comes from.
    pub fn write(&mut self, event: &Event<'d>, step: &Step<'d>, out: &mut Vec<u8>) {
        let key = event.thread();
        match *step {
            Step::Entered {
                function,
                depth,
                loose,
                ..
            } => {
                let begun = Begun {
                    session: event.session,
                    function,
                    tid: event.tid(),
                    depth,
                    start_ns: Some(event.t_ns),
                };
                if loose {
                    self.line(&begun, None, "unseen", out);
                } else {
                    self.open.entry(key).or_default().push(begun);
                }
            }
            Step::Left(call) => {
                if call.entered_ns.is_some() {
                    self.open.get_mut(&key).and_then(Vec::pop);
                }
                self.ended(event, &call, out);
            }
            Step::Whole(call) => self.ended(event, &call, out),
        }
    }

    fn ended(&self, event: &Event<'d>, call: &Call<'d>, out: &mut Vec<u8>) {
        let begun = Begun {
            session: call.session,
            function: call.function,
            tid: event.tid(),
            depth: call.depth,
            start_ns: call.entered_ns,
        };
        let took = call.duration_ns().map(|ns| Took {
            duration_ns: ns,
            self_ns: ns.saturating_sub(call.children_ns),
        });
        let how = match call.ended {
            Ended::Returned => "returned",
            Ended::Unwound => "unwound",
            Ended::Unseen => "unseen",
        };
        self.line(&begun, took, how, out);
    }

    /// Appends the calls that have not ended, in the order of their beginning.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let mut open: Vec<_> = self.open.drain().flat_map(|(_, calls)| calls).collect();
        open.sort_by_key(|begun| (begun.start_ns, begun.tid, begun.depth));
        for begun in &open {
            self.line(begun, None, "open", out);
        }
    }

    fn line(&self, begun: &Begun<'_>, took: Option<Took>, ended: &str, out: &mut Vec<u8>) {
        let duration_ns = took.map(|took| took.duration_ns);
        if self.limits.allow(begun.depth, duration_ns) {
            object(begun, took, ended, out);
            out.push(b'\n');
        }
    }
}

fn object(begun: &Begun<'_>, took: Option<Took>, ended: &str, out: &mut Vec<u8>) {
    let (session, function) = (begun.session, begun.function);
    let front = format!(
        "{{\"v\":{VERSION},\"kind\":\"call\",\"session\":\"{}\"",
        session.uuid
    );
    out.extend_from_slice(front.as_bytes());
    number("pid", session.pid().into(), out);
    number("tid", begun.tid.into(), out);
    key("name", out);
    escape::json(&function.name, out);
    key("module", out);
    match session.schema.functions().module(function.module) {
        Some(module) => escape::json(module.file_name(), out),
        None => out.extend_from_slice(b"null"),
    }
    number("depth", begun.depth.into(), out);
    time("start_ns", begun.start_ns, out);
    time("duration_ns", took.map(|took| took.duration_ns), out);
    time("self_ns", took.map(|took| took.self_ns), out);
    key("ended", out);
    escape::json(ended.as_bytes(), out);
    out.push(b'}');
}

fn key(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn number(name: &str, n: u64, out: &mut Vec<u8>) {
    key(name, out);
    unsigned(n, out);
}

fn time(name: &str, ns: Option<u64>, out: &mut Vec<u8>) {
    key(name, out);
    match ns {
        Some(ns) => json_unsigned(ns, out),
        None => out.extend_from_slice(b"null"),
    }
}
