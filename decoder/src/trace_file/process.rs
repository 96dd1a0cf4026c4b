//! The sessions of one process, put together: one clock, one zero, threads over all of them.
//!
//! A process may hold several copies of the library, each with a session of its own. Their ticks
//! are of one clock, so they are compared as they are. Turned into nanoseconds by a map of each
//! session's own, one tick would come out as two times that lie up to milliseconds apart.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use ringmark_format::clock::Sample;
use ringmark_format::schema::Shape;
use ringmark_format::session::{Clock, ProcessId};

use crate::trace_file::clock_parts::{ClockParts, Collectors};
use crate::trace_file::schema::EventType;
use crate::trace_file::session::Session;
use crate::trace_file::switch_blocks::SwitchBlocks;
use crate::trace_file::{threads, window};

/// Numbers the processes, gives the sessions of each one clock, and finds what needs the clock:
/// the recorded window and the threads. `clocks`: one for each session.
pub(crate) fn join(sessions: &mut [Session], clocks: Vec<ClockParts>) {
    number(sessions);
    set_clocks(sessions, clocks);
    share_switches(sessions);
    for session in &mut *sessions {
        window::apply(&mut session.slots, &session.schema, &session.clock);
    }
    threads::number(sessions);
    let with_spans = sessions.iter().filter(|session| has_spans(session));
    let processes: HashSet<_> = with_spans.map(|session| session.process).collect();
    for session in &mut *sessions {
        session.has_spans = processes.contains(&session.process);
    }
}

/// Gives the sessions of each process all switches of its threads, whichever session they came with.
fn share_switches(sessions: &mut [Session]) {
    let mut by_process: BTreeMap<usize, SwitchBlocks> = BTreeMap::new();
    for session in &mut *sessions {
        let blocks = std::mem::take(&mut session.switch_blocks);
        by_process.entry(session.process).or_default().join(blocks);
    }
    let finish = |(process, blocks): (usize, SwitchBlocks)| (process, Arc::new(blocks.finish()));
    let by_process: BTreeMap<_, _> = by_process.into_iter().map(finish).collect();
    for session in sessions {
        if let Some(switched) = by_process.get(&session.process) {
            session.switched = Arc::clone(switched);
        }
    }
}

/// Whether records of the session make, end or name spans. Types that no record has don't count: every
/// program that may make spans describes some.
fn has_spans(session: &Session) -> bool {
    let is_of_spans = |ty: &EventType| {
        let is_span = ty.shape.is_some_and(|shape| shape != Shape::Instant);
        is_span || ty.span_id.is_some() || ty.parent_id.is_some()
    };
    let mut types = session.schema.types().iter();
    types.any(|ty| ty.occurs && is_of_spans(ty))
}

/// Gives each session the number of its process: sessions whose headers name one process share it.
fn number(sessions: &mut [Session]) {
    let mut known: BTreeMap<ProcessId, (usize, u32)> = BTreeMap::new();
    let mut next = 0;
    for session in sessions {
        let id = session.header.and_then(|header| header.process());
        let (process, member) = match id {
            Some(id) => *known
                .entry(id)
                .and_modify(|(_, member)| *member += 1)
                .or_insert((next, 0)),
            None => (next, 0),
        };
        next = next.max(process + 1);
        session.process = process;
        let pages = session.slots.iter_mut().flat_map(|slot| &mut slot.pages);
        pages.for_each(|page| page.member = member);
    }
}

/// Fits the clocks. Sessions of one process and one kind of clock get one map, made of the samples
/// of all, with the zero of the first to start.
fn set_clocks(sessions: &mut [Session], clocks: Vec<ClockParts>) {
    let mut groups: BTreeMap<(usize, u32), Vec<usize>> = BTreeMap::new();
    for session in &*sessions {
        let clock = session.header.map_or(0, |header| header.clock);
        groups
            .entry((session.process, clock))
            .or_default()
            .push(session.number);
    }
    let by = Collectors::of(&clocks);
    let mut clocks: Vec<_> = clocks.into_iter().map(Some).collect();
    for ((_, clock), members) in groups {
        let is_shared = Clock::from_u32(clock).is_some_and(|clock| clock != Clock::None);
        let whole: Vec<_> = match is_shared {
            true => vec![members],
            false => members.into_iter().map(|one| vec![one]).collect(),
        };
        for members in whole {
            set_clock(sessions, &members, &mut clocks, by);
        }
    }
}

/// Gives the sessions of these numbers one clock, made of the parts of all of them.
fn set_clock(
    sessions: &mut [Session],
    members: &[usize],
    clocks: &mut [Option<ClockParts>],
    by: Collectors,
) {
    let headers = members.iter().filter_map(|at| sessions[*at].header);
    let first = headers.clone().min_by_key(|header| header.mono_zero_ns);
    let mut all = ClockParts::default();
    if members.len() > 1 {
        all.take_samples(headers.map(|header| Sample {
            tick: header.tick_zero,
            mono_ns: header.mono_zero_ns,
        }));
    }
    for at in members {
        all.join(clocks[*at].take().unwrap_or_default());
    }
    let clock = all.into_clock(first.as_ref(), by);
    for at in members {
        sessions[*at].clock = clock.clone();
        sessions[*at].clock_of = members[0];
    }
}
