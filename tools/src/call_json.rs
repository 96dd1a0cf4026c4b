//! Calls as JSON: one object per line, each where its call ends, those still open behind all.

use std::collections::HashMap;
use std::io::{self, Write};

use ringmark_decoder::{Call, Ended, Event, Function, JSON_VERSION, Session, Step};
use ringmark_format::Uuid;
use serde_json::{Value, json};

/// Which calls are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Only with fewer calls around them.
    pub(crate) depth: Option<u32>,
    /// Only if they took so long.
    pub(crate) min_ns: Option<u64>,
}

impl Limits {
    fn want(self, depth: u32, took_ns: Option<u64>) -> bool {
        let is_deep = self.depth.is_some_and(|limit| depth >= limit);
        let is_short = |min| took_ns.is_none_or(|ns| ns < min);
        !is_deep && !self.min_ns.is_some_and(is_short)
    }
}

/// The beginning of a call.
#[derive(Clone, Copy)]
struct Begun<'d> {
    session: &'d Session,
    function: &'d Function,
    tid: u32,
    depth: u32,
    at_ns: Option<u64>,
}

/// Writes calls as they end.
pub(crate) struct CallLines<'d> {
    limits: Limits,
    open: HashMap<(Uuid, u64), Vec<Begun<'d>>>,
}

impl<'d> CallLines<'d> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            open: HashMap::new(),
        }
    }

    /// Takes what an event means for the calls of its thread.
    pub(crate) fn take(
        &mut self,
        event: &Event<'d>,
        step: &Step<'d>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let key = (event.session.uuid, event.ring().0);
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
                    at_ns: Some(event.t_ns),
                };
                if loose {
                    return self.write(&begun, None, "unseen", out);
                }
                self.open.entry(key).or_default().push(begun);
                Ok(())
            }
            Step::Left(call) => {
                if call.entered_ns.is_some() {
                    self.open.get_mut(&key).and_then(Vec::pop);
                }
                self.ended(event, &call, out)
            }
            Step::Whole(call) => self.ended(event, &call, out),
        }
    }

    fn ended(&self, event: &Event<'d>, call: &Call<'d>, out: &mut impl Write) -> io::Result<()> {
        let begun = Begun {
            session: event.session,
            function: call.function,
            tid: event.tid(),
            depth: call.depth,
            at_ns: call.entered_ns,
        };
        let took = call.duration_ns();
        let times = took.map(|ns| (ns, ns.saturating_sub(call.children_ns)));
        let how = match call.ended {
            Ended::Returned => "returned",
            Ended::Unwound => "unwound",
            Ended::Unseen => "unseen",
        };
        self.write(&begun, times, how, out)
    }

    /// Writes the calls that have not ended, in the order of their beginning.
    pub(crate) fn finish(&mut self, out: &mut impl Write) -> io::Result<()> {
        let mut open: Vec<_> = self.open.drain().flat_map(|(_, calls)| calls).collect();
        open.sort_by_key(|begun| (begun.at_ns, begun.tid, begun.depth));
        let mut open = open.iter();
        open.try_for_each(|begun| self.write(begun, None, "open", out))
    }

    fn write(
        &self,
        begun: &Begun<'_>,
        times: Option<(u64, u64)>,
        ended: &str,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let took = times.map(|(took, _)| took);
        if !self.limits.want(begun.depth, took) {
            return Ok(());
        }
        writeln!(out, "{}", object(begun, times, ended))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn object(begun: &Begun<'_>, times: Option<(u64, u64)>, ended: &str) -> Value {
    let module = begun.session.schema.functions();
    let module = module.module(begun.function.module);
    json!({
        "v": JSON_VERSION,
        "kind": "call",
        "session": begun.session.uuid.to_string(),
        "pid": begun.session.pid(),
        "tid": begun.tid,
        "name": text(&begun.function.name),
        "module": module.map(|module| text(module.file_name())),
        "depth": begun.depth,
        "start_ns": begun.at_ns,
        "duration_ns": times.map(|(took, _)| took),
        "self_ns": times.map(|(_, own)| own),
        "ended": ended,
    })
}
