//! Function records put together to calls, thread by thread.

use std::collections::HashMap;

use ringmark_format::Uuid;

use crate::events::event::Event;
use crate::trace_file::functions::Function;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
    /// It returned.
    Returned,
    /// It was unwound: by an exception, a `longjmp`, the end of its thread.
    Unwound,
    /// Nothing says how: its exit was lost, or it was left without a record.
    Unseen,
}

/// A call that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Its function.
    pub function: &'a Function,
    /// Id of its function in the session.
    pub id: u32,
    /// When it was entered, ns since the session's start; `None`: before the first record at hand.
    pub entered_ns: Option<u64>,
    /// When it was left.
    pub left_ns: u64,
    /// Time in calls of traced functions inside it.
    pub children_ns: u64,
    /// Open calls around it.
    pub depth: u32,
    /// The same function is open further out.
    pub recursive: bool,
    /// How it ended.
    pub ended: Ended,
}

impl Call<'_> {
    /// How long it took, if its entry is known.
    #[must_use]
    pub fn duration_ns(&self) -> Option<u64> {
        Some(self.left_ns.saturating_sub(self.entered_ns?))
    }
}

/// What a function record means for the calls of its thread.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// A call began.
    Entered {
        /// Its function.
        function: &'a Function,
        /// Id of its function in the session.
        id: u32,
        /// Open calls around it.
        depth: u32,
        /// No record will say when it ends.
        loose: bool,
    },
    /// A call ended whose beginning came as [`Step::Entered`], or is not at hand.
    Left(Call<'a>),
    /// A call of which one record tells beginning and end.
    Whole(Call<'a>),
}

#[derive(Debug)]
struct Open<'a> {
    function: &'a Function,
    id: u32,
    entered_ns: u64,
    children_ns: u64,
}

/// The calls of one thread.
#[derive(Debug, Default)]
struct Thread<'a> {
    open: Vec<Open<'a>>,
    /// Start and duration of calls that one record described, until the call around them comes.
    whole: Vec<(u64, u64)>,
}

/// The open calls of every thread.
#[derive(Debug, Default)]
pub struct Calls<'a> {
    threads: HashMap<(Uuid, u64), Thread<'a>>,
    /// Only records that one of these tracers wanted count.
    tracers: Option<u64>,
}

impl<'a> Calls<'a> {
    /// No call is open. With `tracers`, a set of bits, only what one of them wanted counts.
    #[must_use]
    pub fn new(tracers: Option<u64>) -> Self {
        Self {
            threads: HashMap::new(),
            tracers,
        }
    }

    /// Takes the next event in order of time; `to` gets what it means. Events that are no function
    /// records mean nothing.
    pub fn take(&mut self, event: &Event<'a>, mut to: impl FnMut(Step<'a>)) {
        let Some(meaning) = event.ty.function else {
            return;
        };
        if self
            .tracers
            .is_some_and(|wanted| wanted & meaning.tracers == 0)
        {
            return;
        }
        let functions = event.session.schema.functions();
        let Some(function) = functions.function(meaning.function) else {
            return;
        };
        let key = (event.session.uuid, event.ring().0);
        let thread = self.threads.entry(key).or_default();
        let id = meaning.function;
        if meaning.timed {
            to(Step::Whole(thread.whole_call(event, function, id)));
        } else if meaning.exit {
            let ended = if meaning.loose {
                Ended::Unwound
            } else {
                Ended::Returned
            };
            leave(&mut thread.open, event.t_ns, function, id, ended, &mut to);
        } else {
            to(Step::Entered {
                function,
                id,
                depth: thread.open.len() as u32,
                loose: meaning.loose,
            });
            if !meaning.loose {
                thread.open.push(Open {
                    function,
                    id,
                    entered_ns: event.t_ns,
                    children_ns: 0,
                });
            }
        }
    }

    /// Open calls of the thread of `event`.
    #[must_use]
    pub fn depth(&self, event: &Event<'_>) -> usize {
        let key = (event.session.uuid, event.ring().0);
        self.threads.get(&key).map_or(0, |thread| thread.open.len())
    }

    /// Calls that are still open: (function with its id, entered at, ns since the session's start).
    pub fn open(&self) -> impl Iterator<Item = (u32, &'a Function, u64)> {
        let all = self.threads.values().flat_map(|thread| &thread.open);
        all.map(|open| (open.id, open.function, open.entered_ns))
    }
}

impl<'a> Thread<'a> {
    /// A call that one record describes. Calls inside it have been met before.
    fn whole_call(&mut self, event: &Event<'a>, function: &'a Function, id: u32) -> Call<'a> {
        let start = event.start_ns();
        let duration = event.t_ns.saturating_sub(start);
        let mut children_ns = 0_u64;
        while let Some((_, inner)) = self.whole.pop_if(|(began, _)| *began >= start) {
            children_ns = children_ns.saturating_add(inner);
        }
        self.whole.push((start, duration));
        if let Some(around) = self.open.last_mut() {
            around.children_ns = around
                .children_ns
                .saturating_add(duration - children_ns.min(duration));
        }
        Call {
            function,
            id,
            entered_ns: Some(start),
            left_ns: event.t_ns,
            children_ns,
            depth: self.open.len() as u32,
            recursive: self.open.iter().any(|o| o.id == id),
            ended: Ended::Returned,
        }
    }
}

/// Ends the innermost open call of this function, and those inside it.
fn leave<'a>(
    open: &mut Vec<Open<'a>>,
    now: u64,
    function: &'a Function,
    id: u32,
    ended: Ended,
    to: &mut impl FnMut(Step<'a>),
) {
    let Some(place) = open.iter().rposition(|o| o.id == id) else {
        to(Step::Left(Call {
            function,
            id,
            entered_ns: None,
            left_ns: now,
            children_ns: 0,
            depth: open.len() as u32,
            recursive: false,
            ended,
        }));
        return;
    };
    while open.len() > place {
        let how = if open.len() == place + 1 {
            ended
        } else {
            Ended::Unseen
        };
        if let Some(call) = pop(open, now, how) {
            to(Step::Left(call));
        }
    }
}

fn pop<'a>(open: &mut Vec<Open<'a>>, now: u64, ended: Ended) -> Option<Call<'a>> {
    let last = open.pop()?;
    let call = Call {
        function: last.function,
        id: last.id,
        entered_ns: Some(last.entered_ns),
        left_ns: now,
        children_ns: last.children_ns,
        depth: open.len() as u32,
        recursive: open.iter().any(|o| o.id == last.id),
        ended,
    };
    if let Some(around) = open.last_mut() {
        around.children_ns = around
            .children_ns
            .saturating_add(now.saturating_sub(last.entered_ns));
    }
    Some(call)
}
