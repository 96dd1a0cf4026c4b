//! How deep calls lie in each other, where some had begun before their thread is known.
//!
//! Calls of which only the end is here lie around all that came since the thread is known: from its
//! first record, or from its latest loss. They are told from others by the calls that were open then: as
//! long as none of these has ended.

use std::collections::HashMap;

use ringmark_decoder::{Call, Output, Step};

use super::{Sums, add};

/// A call between two records of its thread, which are numbered.
struct Inside<'a> {
    from: u64,
    to: u64,
    call: Call<'a>,
}

/// What is known of a thread.
#[derive(Default)]
struct Stack<'a> {
    /// Numbers of the records that entered the calls that are open.
    open: Vec<u64>,
    /// The record from which on it is known, and how many calls were open then, as far as they still are.
    since: u64,
    still_open: usize,
    all_still_open: bool,
    whole: Vec<Inside<'a>>,
    /// Calls of which the beginning is not here: from, to.
    around: Vec<(u64, u64)>,
}

/// The calls of all threads.
#[derive(Default)]
pub(super) struct Stacks<'a> {
    threads: HashMap<u32, Stack<'a>>,
    number: u64,
}

impl<'a> Stacks<'a> {
    /// Takes the next event or loss, before the steps of its calls.
    pub(super) fn take(&mut self, output: &Output<'a>) {
        self.number += 1;
        let number = self.number;
        let lost = match output {
            Output::Lost(lost) => lost.page.and(lost.thread()),
            Output::Event(_) => None,
        };
        if let Some(stack) = lost.and_then(|thread| self.threads.get_mut(&thread)) {
            (stack.since, stack.still_open) = (number, stack.open.len());
            stack.all_still_open = true;
        }
    }

    /// Takes a step of the latest event.
    pub(super) fn step(&mut self, thread: u32, step: &Step<'a>) {
        let number = self.number;
        let stack = self.threads.entry(thread).or_insert_with(|| Stack {
            since: number,
            all_still_open: true,
            ..Stack::default()
        });
        match step {
            Step::Entered {
                depth,
                loose: false,
                ..
            } => {
                stack.open.truncate(*depth as usize);
                stack.open.push(number);
            }
            Step::Left(call) if call.entered_ns.is_some() => {
                let depth = call.depth as usize;
                stack.all_still_open &= depth >= stack.still_open;
                stack.whole.push(Inside {
                    from: stack.open[depth],
                    to: number,
                    call: call.clone(),
                });
                stack.open.truncate(depth);
            }
            Step::Left(call) if stack.all_still_open && call.depth as usize == stack.still_open => {
                stack.around.push((stack.since, number));
            }
            _ => {}
        }
    }

    /// Adds the depths of the calls that took some time, and at least this much.
    pub(super) fn add_depths(&self, min_ns: u64, depths: &mut Sums) {
        for stack in self.threads.values() {
            for Inside { from, to, call } in &stack.whole {
                let took = call.duration_ns().unwrap_or(0);
                if took == 0 || took < min_ns {
                    continue;
                }
                let is_around = |around: &&(u64, u64)| around.0 <= *from && around.1 >= *to;
                let around = stack.around.iter().filter(is_around).count() as u64;
                add(depths, &call.function.name, u64::from(call.depth) + around);
            }
        }
    }
}
