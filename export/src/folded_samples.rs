//! Folded stacks of the functions that ran, by samples: for each stack the time that its samples stand for, in ns.
//!
//! `process;thread;outer;inner 120`, as in `folded`. The kernel's own code is below the function that had called it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

use crate::folded::push_frame;
use crate::timeline::plan::{Counts, Plan};
use crate::timeline::play::Written;
use crate::timeline::processes::processes;

/// Writes the stacks of the samples in a plan's time and threads.
///
/// # Errors
/// Those of writing.
pub(crate) fn write(plan: &Plan<'_>, out: &mut impl Write) -> io::Result<Written> {
    let (stacks, lost) = stacks(plan);
    let (mut bytes, mut shown) = (0, 0);
    for (stack, (ns, samples)) in &stacks {
        let line = [stack, format!(" {ns}\n").as_bytes()].concat();
        out.write_all(&line)?;
        bytes += line.len() as u64;
        shown += samples;
    }
    out.flush()?;
    let left_out = (lost > 0).then_some(("samples that had no room when they were taken", lost));
    Ok(Written {
        bytes,
        shown: Counts {
            instants: shown,
            ..Counts::default()
        },
        left_out: left_out.into_iter().collect(),
        unplaced: 0,
    })
}

/// By stack as a line has it the time in ns and the samples; and how many samples there are not.
fn stacks(plan: &Plan<'_>) -> (BTreeMap<Vec<u8>, (u64, u64)>, u64) {
    let names = plan.threads.values();
    let names = names.map(|thread| ((thread.session.process, thread.tid), thread.name));
    let names: HashMap<_, _> = names.collect();
    let processes = processes(plan.dump);
    let (mut stacks, mut met, mut lost) = (BTreeMap::new(), HashSet::new(), 0_u64);
    for session in &plan.dump.sessions {
        // The sessions of a process share its samples.
        if !met.insert(session.process) {
            continue;
        }
        lost = lost.saturating_add(session.samples_lost());
        let process = processes.get(&session.process);
        let process = process.map_or(&b""[..], |process| &process.name);
        for sample in plan.cut.filter.samples(session) {
            let unnamed = sample.tid.to_string();
            let name = names.get(&(session.process, sample.tid));
            let name = name.copied().filter(|name| !name.is_empty());
            let mut line = Vec::new();
            push_frame(process, &mut line);
            line.push(b';');
            push_frame(name.unwrap_or(unnamed.as_bytes()), &mut line);
            let functions: Vec<_> = sample.stack.functions().collect();
            for function in functions.iter().rev() {
                line.push(b';');
                push_frame(function, &mut line);
            }
            let (ns, samples) = stacks.entry(line).or_default();
            (*ns, *samples) = (*ns + sample.ns, *samples + 1);
        }
    }
    (stacks, lost)
}
