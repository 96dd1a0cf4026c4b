//! Pairs function records into calls, thread by thread.
//!
//! Each ring has a stack of open calls. An entry pushes a call; an exit ends the innermost call of
//! its function and, as unseen, the calls inside that one, whose exits were lost.

use std::collections::HashMap;

use ringmark_format::Uuid;

use crate::events::event::Event;
use crate::trace_file::functions::Function;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
    /// It returned.
    Returned,
    /// It was unwound by an exception, a `longjmp` or the end of its thread.
    Unwound,
    /// Not known: its exit was lost, or no record was written.
    Unseen,
}

/// A call that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The function that was called.
    pub function: &'a Function,
    /// Id of the function in the session.
    pub id: u32,
    /// Time of its entry, in ns since the session's start; `None`: before the first record.
    pub entered_ns: Option<u64>,
    /// Time at which it was left, in ns since the session's start.
    pub left_ns: u64,
    /// Time in calls of traced functions inside it, in ns.
    pub children_ns: u64,
    /// Number of open calls around it.
    pub depth: u32,
    /// Whether a call of the same function is open further out.
    pub recursive: bool,
    /// How it ended.
    pub ended: Ended,
}

impl Call<'_> {
    /// Its duration in ns; `None`: its entry is not known.
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
        /// Number of open calls around it.
        depth: u32,
        /// Whether no record will say when it ends.
        loose: bool,
    },
    /// A call ended. Its beginning came as [`Step::Entered`], or lies before the first record.
    Left(Call<'a>),
    /// A call whose beginning and end come from one record.
    Whole(Call<'a>),
}

/// A call that has begun and not ended.
#[derive(Debug, Clone, Copy)]
pub struct OpenCall<'a> {
    /// The function that was called.
    pub function: &'a Function,
    /// Id of the function in the session.
    pub id: u32,
    /// Time of its entry, in ns since the session's start.
    pub entered_ns: u64,
    /// Time in ended calls of traced functions inside it, in ns.
    pub children_ns: u64,
}

/// The calls of one ring, and so of one thread: the stack of open calls, and the whole calls that
/// still wait for the call around them.
#[derive(Debug, Default)]
struct Thread<'a> {
    open: Vec<OpenCall<'a>>,
    /// Start and duration of calls that one record described, until the call around them comes.
    whole: Vec<(u64, u64)>,
}

/// The open calls of every thread.
#[derive(Debug, Default)]
pub struct Calls<'a> {
    threads: HashMap<(Uuid, u64), Thread<'a>>,
    /// Bits of tracers; only records that one of them wanted count. `None`: all records.
    tracers: Option<u64>,
}

impl<'a> Calls<'a> {
    /// A state without open calls. With `tracers`, in which bit t stands for the tracer with
    /// number t, only records that one of these tracers wanted count.
    #[must_use]
    pub fn new(tracers: Option<u64>) -> Self {
        Self {
            threads: HashMap::new(),
            tracers,
        }
    }

    /// Takes the next event in the order of time, and gives `to` each step that it means for the
    /// calls of its thread. Events that are no function records mean none.
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
                thread.open.push(OpenCall {
                    function,
                    id,
                    entered_ns: event.t_ns,
                    children_ns: 0,
                });
            }
        }
    }

    /// Number of open calls in the ring of `event`.
    #[must_use]
    pub fn depth(&self, event: &Event<'_>) -> usize {
        let key = (event.session.uuid, event.ring().0);
        self.threads.get(&key).map_or(0, |thread| thread.open.len())
    }

    /// The calls that are still open, ring by ring, the innermost of each last.
    pub fn open(&self) -> impl Iterator<Item = &OpenCall<'a>> {
        self.threads.values().flat_map(|thread| &thread.open)
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

/// Ends the innermost open call of this function, and the calls inside it, whose ends were not
/// recorded. Without such a call the beginning lies before the first record.
fn leave<'a>(
    open: &mut Vec<OpenCall<'a>>,
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

/// Ends the innermost open call at `now` and adds its duration to the children of the call around
/// it.
fn pop<'a>(open: &mut Vec<OpenCall<'a>>, now: u64, ended: Ended) -> Option<Call<'a>> {
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
