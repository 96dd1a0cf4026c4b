//! Calls of functions, with a beginning for those that had begun before their first record.
//!
//! The first record of a thread may be the exit of a call. Such a call was there from the first
//! record on, or from the latest loss, so it begins there, around everything since. Where another
//! call of that time has ended since, nothing is known, and only the end is shown.

use ringmark_decoder::{Calls, Event, Lost, SmallKeys, Step};

/// What is known of the calls of a thread.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// Where the known part begins: tick, time, and the calls that were open there.
    from: Option<(u64, u64)>,
    depth: u32,
    /// One of those has ended since.
    is_broken: bool,
    /// Calls that are open now.
    open: u32,
}

/// What is known of the beginning of a call that ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// It was entered.
    Entered,
    /// It was open at this tick and time, where the known part of its thread begins.
    Before { tick: u64, at_ns: u64 },
    /// Nothing.
    Unknown,
}

/// The calls of all threads.
#[derive(Debug, Default)]
pub(crate) struct CallStacks<'a> {
    calls: Calls<'a>,
    threads: SmallKeys<u32, Known>,
}

impl<'a> CallStacks<'a> {
    /// Takes the next function record, and gives `to` its steps; those that end a call come with
    /// what is known of its beginning.
    pub(crate) fn take(&mut self, event: &Event<'a>, mut to: impl FnMut(Step<'a>, Beginning)) {
        let known = self.threads.entry(event.thread()).or_default();
        let is_elsewhere = event.ty.function.is_some_and(|meaning| meaning.has_slot);
        let (tick, at_ns) = *known.from.get_or_insert((event.tick, event.wall_ns()));
        self.calls.take(event, |step| {
            let mut beginning = Beginning::Entered;
            match &step {
                Step::Entered { depth, loose, .. } => known.open = depth + u32::from(!loose),
                Step::Left(call) if call.entered_ns.is_some() => {
                    known.open = call.depth;
                    known.is_broken |= call.depth < known.depth;
                }
                Step::Left(call)
                    if !known.is_broken && !is_elsewhere && call.depth == known.depth =>
                {
                    beginning = Beginning::Before { tick, at_ns };
                }
                Step::Left(_) => beginning = Beginning::Unknown,
                Step::Whole(_) => {}
            }
            to(step, beginning);
        });
    }

    /// Records of a thread are missing before this one.
    pub(crate) fn lose(&mut self, lost: &Lost<'a>, at_ns: u64) {
        self.calls.lose(lost);
        let (Some(thread), Some(page)) = (lost.thread(), lost.page) else {
            return;
        };
        let is_traced = lost.session.schema.functions().tracers().next().is_some();
        if let Some(known) = self.threads.get_mut(&thread).filter(|_| is_traced) {
            known.from = Some((page.header.tick_base, at_ns));
            known.depth = known.open;
            known.is_broken = false;
        }
    }
}
