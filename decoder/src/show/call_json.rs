//! Calls as JSON: one object per line, each where its call ends; calls that are still open come
//! last. `format-spec/JSON.md` describes the objects.

use std::collections::HashMap;

use crate::blocks::page::Page;
use crate::events::event::Event;
use crate::show::call_line::{Begun, Took};
use crate::show::json::{did, thread};
use crate::show::json_keys::{head, key, no_times, number, text, times, wall_ns};
use crate::sums::calls::{Call, Ended, OpenCall, Step};
use crate::trace_file::thread_times::ThreadTimes;
use crate::words::escape;
use crate::words::timestamp::Stamper;

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
        match step {
            Step::Entered {
                function,
                depth,
                loose,
                ..
            } => {
                let begun = Begun {
                    session: event.session,
                    function,
                    page: event.page,
                    depth: *depth,
                    start_ns: Some(event.t_ns),
                };
                if *loose {
                    self.line((&begun, Some(*depth)), None, "unseen", out);
                } else {
                    self.open.entry(key).or_default().push(begun);
                }
            }
            Step::Left(call) => {
                let did = call.thread_times(event);
                let open = self.open.get_mut(&key);
                let entry = open.filter(|_| call.entered_ns.is_some());
                let entry = entry.and_then(Vec::pop);
                let page = entry.map_or(event.page, |begun| begun.page);
                self.ended(page, (call, did), out);
            }
            Step::Whole(call) => self.ended(event.page, (call, call.thread_times(event)), out),
        }
    }

    /// Appends the line of a call that has ended, with what its thread did in it; `page` has the first record of it.
    fn ended(
        &self,
        page: &'d Page,
        (call, did): (&Call<'d>, Option<ThreadTimes>),
        out: &mut Vec<u8>,
    ) {
        let begun = Begun {
            session: call.session,
            function: call.function,
            page,
            depth: call.depth,
            start_ns: call.entered_ns,
        };
        let took = call.duration_ns().map(|ns| Took {
            duration_ns: ns,
            self_ns: call.self_ns(),
            did,
        });
        let how = match call.ended {
            Ended::Returned => "returned",
            Ended::Unwound => "unwound",
            Ended::Unseen => "unseen",
        };
        self.line((&begun, call.known_depth()), took, how, out);
    }

    /// Takes a call on another stack that has not ended.
    pub fn take_open(&mut self, call: &OpenCall<'d>) {
        let begun = Begun {
            session: call.session,
            function: call.function,
            page: call.page,
            depth: 0,
            start_ns: Some(call.entered_ns),
        };
        self.open.entry(u32::MAX).or_default().push(begun);
    }

    /// Appends the calls that have not ended, in the order of their beginning.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let mut open: Vec<_> = self.open.drain().flat_map(|(_, calls)| calls).collect();
        open.sort_by_key(|begun| (begun.start_ns, begun.tid(), begun.depth));
        for begun in &open {
            self.line((begun, Some(begun.depth)), None, "open", out);
        }
    }

    /// Appends a line, if the limits let it pass.
    fn line(
        &self,
        (begun, depth): (&Begun<'_>, Option<u32>),
        took: Option<Took>,
        ended: &str,
        out: &mut Vec<u8>,
    ) {
        let duration_ns = took.map(|took| took.duration_ns);
        if self.limits.allow(begun.depth, duration_ns) {
            object((begun, depth), took, ended, out);
            out.push(b'\n');
        }
    }
}

fn object(
    (begun, depth): (&Begun<'_>, Option<u32>),
    took: Option<Took>,
    ended: &str,
    out: &mut Vec<u8>,
) {
    let (session, function) = (begun.session, begun.function);
    head(session, out);
    thread(Some(begun.page.ring.0), session, Some(begun.page), out);
    match begun.start_ns {
        Some(t_ns) => {
            let wall = wall_ns(session, session.clock.wall_ns(t_ns));
            times(&mut Stamper::default(), wall, t_ns, out);
        }
        None => no_times(out),
    }
    key("dur_ns", out);
    number(took.map(|took| took.duration_ns), out);
    key("kind", out);
    escape::json(b"call", out);
    key("name", out);
    text(&function.name, out);
    key("target", out);
    let module = session.schema.functions().module(function.module);
    text(module.map_or(&[], |module| module.file_name()), out);
    key("depth", out);
    number(depth.map(u64::from), out);
    key("self_ns", out);
    number(took.and_then(|took| took.self_ns), out);
    did(session, took.and_then(|took| took.did), out);
    key("ended", out);
    escape::json(ended.as_bytes(), out);
    out.push(b'}');
}
