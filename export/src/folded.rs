//! Folded stacks: for each stack of spans and calls the time in its innermost one, in ns.
//!
//! `process;thread;outer;inner 120`. Threads of one name are taken together. A span over threads lies below
//! the span around it, or below its process; what threads did while they were in it lies below it. A span
//! or call whose own time is not known has none here: what lay inside it may be missing. Where switches were recorded, the
//! time may be that in which the thread did one thing. Memory is that of the stacks that are different.

use std::io::{self, Write};

use ringmark_decoder::{Event, PathRoot, PathSums, Paths, ThreadDoes, escape};

use crate::timeline::plan::{Counts, Plan};
use crate::timeline::play::Written;
use crate::timeline::processes::processes;

/// Writes the stacks of a plan. `does`: the time is that in which threads did this.
///
/// # Errors
/// Those of writing.
pub(crate) fn write(
    (plan, does): (&Plan<'_>, Option<ThreadDoes>),
    out: &mut impl Write,
    progress: impl FnOnce(u64, u64),
) -> io::Result<Written> {
    let processes = processes(plan.dump);
    let process = |event: &Event<'_>| {
        let process = processes.get(&event.session.process);
        process.map_or_else(Vec::new, |process| process.name.clone())
    };
    let thread = |event: &Event<'_>| {
        let thread = plan.threads.get(&event.thread());
        thread.map_or_else(Vec::new, |thread| thread.name.to_vec())
    };
    let roots = |root: PathRoot<'_, '_>| match root {
        PathRoot::Thread(event) => vec![process(event), thread(event)],
        PathRoot::Process(event) => vec![process(event)],
    };
    let (filter, min_ns) = (&plan.cut.filter, plan.cut.min_ns);
    let paths = plan.dump.paths_from(&roots, filter, min_ns);
    progress(plan.items, plan.items);
    let (mut bytes, mut line) = (0, Vec::new());
    for (place, ns) in times(&paths, does).into_iter().enumerate() {
        if ns > 0 {
            line.clear();
            push_line(&paths, place, &mut line);
            line.extend_from_slice(format!(" {ns}\n").as_bytes());
            out.write_all(&line)?;
            bytes += line.len() as u64;
        }
    }
    out.flush()?;
    Ok(written(plan, &paths, bytes))
}

/// The time at the end of each path, in ns.
fn times(paths: &Paths, does: Option<ThreadDoes>) -> Vec<u64> {
    let own = |does: ThreadDoes| {
        let times = paths.own_times().into_iter();
        times.map(move |did| match does {
            ThreadDoes::Runs => did.running_ns,
            ThreadDoes::Ready => did.ready_ns,
            ThreadDoes::Waits => did.waiting_ns,
        })
    };
    match does {
        Some(does) => own(does).collect(),
        None => paths.paths.iter().map(|path| path.sums.self_ns).collect(),
    }
}

/// The frames of a stack.
fn push_line(paths: &Paths, place: usize, out: &mut Vec<u8>) {
    let mut stack = Vec::new();
    let mut next = Some(place);
    while let Some(at) = next {
        stack.push(paths.paths[at].name);
        next = paths.paths[at].around;
    }
    for (depth, name) in stack.iter().rev().enumerate() {
        if depth > 0 {
            out.push(b';');
        }
        push_frame(&paths.names[*name].name, out);
    }
}

/// A frame of a stack.
pub(crate) fn push_frame(name: &[u8], out: &mut Vec<u8>) {
    let from = out.len();
    escape::text(name, out);
    // A semicolon ends a frame. An empty name would be no frame.
    let frame = &mut out[from..];
    let semicolons = frame.iter_mut().filter(|byte| **byte == b';');
    semicolons.for_each(|byte| *byte = b':');
    if out.len() == from {
        out.push(b'?');
    }
}

fn written(plan: &Plan<'_>, paths: &Paths, bytes: u64) -> Written {
    let mut sums = PathSums::default();
    paths.paths.iter().for_each(|path| sums.add(&path.sums));
    let (counts, found) = (plan.counts(), plan.dump.verify());
    let mut left_out = vec![
        ("events that have no duration", counts.instants),
        ("values of counters", counts.counters),
        (
            "lost, overwritten or missing events",
            (found.lost.saturating_add(found.overwritten)).saturating_add(found.missing),
        ),
        ("calls without a known beginning", sums.no_start),
        ("spans and calls without an end", sums.no_end),
        ("own times that are not known", sums.unknown_self),
        (
            "spans and calls with more than 255 frames around them",
            paths.deeper,
        ),
    ];
    left_out.retain(|(_, count)| *count > 0);
    Written {
        bytes,
        shown: Counts {
            slices: sums.count,
            ..Counts::default()
        },
        left_out,
        unplaced: paths.unplaced,
    }
}
