//! Folded stacks: for each stack of spans and calls the time in its innermost one, in ns.
//!
//! `process;thread;outer;inner 120`. Threads of one name are taken together. A span over threads lies below
//! the span around it, or below its process; what threads did while they were in it lies below it. A span
//! or call whose own time is not known has none here: what lay inside it may be missing. Memory is that of
//! the stacks that are different.

use std::io::{self, Write};

use ringmark_decoder::{Event, PathRoot, PathSums, Paths, escape};

use crate::timeline::plan::{Counts, Plan};
use crate::timeline::play::Written;
use crate::timeline::processes::processes;

/// Writes the stacks of a plan.
///
/// # Errors
/// Those of writing.
pub(crate) fn write(
    plan: &Plan<'_>,
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
    for place in 0..paths.paths.len() {
        if paths.paths[place].sums.self_ns > 0 {
            line.clear();
            push_line(&paths, place, &mut line);
            out.write_all(&line)?;
            bytes += line.len() as u64;
        }
    }
    out.flush()?;
    Ok(written(plan, &paths, bytes))
}

/// The line of a stack.
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
        let from = out.len();
        escape::text(&paths.names[*name].name, out);
        // A semicolon ends a frame. An empty name would be no frame.
        let frame = &mut out[from..];
        let semicolons = frame.iter_mut().filter(|byte| **byte == b';');
        semicolons.for_each(|byte| *byte = b':');
        if out.len() == from {
            out.push(b'?');
        }
    }
    out.extend_from_slice(format!(" {}\n", paths.paths[place].sums.self_ns).as_bytes());
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
