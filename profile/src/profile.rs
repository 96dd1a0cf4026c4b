//! The answer: times of threads, functions and waits.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::code::{Code, Function, FunctionId, Stack};
use crate::looker::{Looker, ThreadTimes, WaitPlace, Waited};
use crate::switches::ThreadSwitches;
use crate::wait::Wait;

/// Samples of one stack: in the program's own code, and in the kernel's that it had called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OfStack {
    pub(crate) own: u64,
    pub(crate) in_kernel: u64,
}

/// What samples say of the functions that run.
#[derive(Debug, Default)]
pub(crate) struct Sampled {
    pub(crate) stacks: HashMap<Stack, OfStack>,
    /// Samples in the kernel's code, those of `stacks` and those that no code of the program had called.
    pub(crate) in_kernel: u64,
    pub(crate) all: u64,
    /// Samples that the kernel had no room for.
    pub(crate) lost: u64,
    /// Threads that are not sampled.
    pub(crate) left_out: BTreeSet<u32>,
    /// The time that a sample stands for, in ns, and whether the kernel's code is sampled, too; `None`: there are none.
    pub(crate) each: Option<(u64, bool)>,
}

impl Sampled {
    /// The time that so many samples stand for, in ns.
    fn ns(&self, samples: u64) -> u64 {
        samples.saturating_mul(self.each.map_or(0, |(ns, _)| ns))
    }

    /// How long the kernel ran for the threads, in ns. Where its code is not sampled, that is what they ran without
    /// samples; a sample that was lost stands for its time all the same.
    fn kernel_ns(&self, threads: &[Thread]) -> Option<u64> {
        let (_, has_kernel) = self.each?;
        if has_kernel {
            return Some(self.ns(self.in_kernel));
        }
        let sampled = threads
            .iter()
            .filter(|thread| !self.left_out.contains(&thread.tid));
        let running_ns: u64 = sampled.map(|thread| thread.times.running_ns).sum();
        Some(running_ns.saturating_sub(self.ns(self.all.saturating_add(self.lost))))
    }
}

/// A thread, and where its time went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Where its time went.
    pub times: ThreadTimes,
    /// Its switches, exactly; `None`: they are not known, or it has not switched.
    pub switches: Option<ThreadSwitches>,
}

/// Times of a function, of all threads together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionTimes {
    /// The function.
    pub function: Arc<Function>,
    /// ns in which its own code ran, by samples; the kernel's code is not its own.
    pub running_self_ns: u64,
    /// ns in which it or what it had called ran, by samples; the kernel's code as far as that is sampled.
    pub running_ns: u64,
    /// ns in which a thread waited in it or in what it had called.
    pub waiting_ns: u64,
}

/// Where threads ran, by samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningStack {
    /// The functions, the innermost first.
    pub stack: Vec<Arc<Function>>,
    /// Whether the stack reaches to where the thread began.
    pub is_whole: bool,
    /// ns in which the innermost function's own code ran.
    pub own_ns: u64,
    /// ns in which the kernel's code ran that it had called.
    pub kernel_ns: u64,
}

/// What threads waited for at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitTimes {
    /// What for.
    pub wait: Wait,
    /// The functions that had called it, the innermost first.
    pub stack: Vec<Arc<Function>>,
    /// Whether the stack reaches to where the thread began.
    pub is_whole: bool,
    /// ns.
    pub ns: u64,
    /// Waits, as far as looks tell them apart.
    pub times: u64,
    /// The longest, in ns.
    pub longest_ns: u64,
}

/// What could not be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// Functions that run: samples are refused, and why.
    Running(String),
    /// What the kernel ran for the process, and at whose call.
    Kernel,
    /// That many threads are not sampled.
    ThreadsRunning(u64),
    /// That many threads are not looked at.
    Threads(u64),
    /// That many threads came and went too fast for samples.
    BriefThreads(u64),
    /// That many samples and switches had no room; switches are not told then.
    Samples(u64),
    /// What threads wait for: it may not be read.
    Waits,
    /// Stacks of threads that wait: memory may not be read.
    Stacks,
    /// Functions: the mappings may not be read.
    Code,
}

/// Where the time of a process went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// How long it was looked at, in ns.
    pub ns: u64,
    /// Its threads, those first that ran longest.
    pub threads: Vec<Thread>,
    /// Its functions, those first that took the most time.
    pub functions: Vec<FunctionTimes>,
    /// Where it ran, the longest first.
    pub stacks: Vec<RunningStack>,
    /// Its waits, the longest first.
    pub waits: Vec<WaitTimes>,
    /// ns of waiting whose wait was not seen: it was over before a look, or its thread was.
    pub unseen_ns: u64,
    /// ns in which the kernel ran for it, as far as samples say; `None`: they do not.
    pub kernel_ns: Option<u64>,
    /// Samples of what ran.
    pub samples: u64,
    /// Those whose stack was unwound to where the thread began.
    pub whole_samples: u64,
    /// What could not be had.
    pub missing: Vec<Missing>,
}

impl Profile {
    /// All times of its threads together.
    #[must_use]
    pub fn times(&self) -> ThreadTimes {
        let add = |sum: ThreadTimes, thread: &Thread| ThreadTimes {
            running_ns: sum.running_ns + thread.times.running_ns,
            ready_ns: sum.ready_ns + thread.times.ready_ns,
            waiting_ns: sum.waiting_ns + thread.times.waiting_ns,
        };
        self.threads.iter().fold(ThreadTimes::default(), add)
    }

    /// Sums up.
    pub(crate) fn of(
        ns: u64,
        looker: &mut Looker,
        sampled: &Sampled,
        switches: impl Fn(u32) -> Option<ThreadSwitches>,
        code: &Code,
        missing: Vec<Missing>,
    ) -> Self {
        let mut threads: Vec<_> = looker
            .threads()
            .into_iter()
            .map(|(tid, name, times)| Thread {
                switches: switches(tid),
                tid,
                name,
                times,
            })
            .collect();
        threads.sort_by_key(|thread| (std::cmp::Reverse(thread.times.running_ns), thread.tid));
        let whole = sampled.stacks.iter().filter(|(stack, _)| stack.is_whole);
        Self {
            ns,
            functions: functions(looker.places(), sampled, code),
            stacks: stacks(sampled, code),
            waits: waits(looker.places(), code),
            unseen_ns: looker.unseen_ns,
            kernel_ns: sampled.kernel_ns(&threads),
            samples: sampled.all,
            whole_samples: whole.map(|(_, of)| of.own + of.in_kernel).sum(),
            threads,
            missing,
        }
    }
}

/// The functions of a stack, the innermost first.
fn named(stack: &Stack, code: &Code) -> Vec<Arc<Function>> {
    let functions = stack.functions.iter();
    functions.map(|id| Arc::clone(code.function(*id))).collect()
}

/// Where threads ran, the longest first.
fn stacks(sampled: &Sampled, code: &Code) -> Vec<RunningStack> {
    let of = |(stack, samples): (&Stack, &OfStack)| RunningStack {
        stack: named(stack, code),
        is_whole: stack.is_whole,
        own_ns: sampled.ns(samples.own),
        kernel_ns: sampled.ns(samples.in_kernel),
    };
    let mut stacks: Vec<_> = sampled.stacks.iter().map(of).collect();
    stacks.sort_by_cached_key(|of| {
        let names: Vec<_> = of
            .stack
            .iter()
            .map(|function| function.name.clone())
            .collect();
        (std::cmp::Reverse(of.own_ns + of.kernel_ns), names)
    });
    stacks
}

/// Waits, the longest first.
fn waits(places: &[(WaitPlace, Waited)], code: &Code) -> Vec<WaitTimes> {
    let of = |(place, waited): &(WaitPlace, Waited)| WaitTimes {
        wait: place.wait.clone(),
        stack: named(&place.stack, code),
        is_whole: place.stack.is_whole,
        ns: waited.ns,
        times: waited.times,
        longest_ns: waited.longest_ns,
    };
    let mut waits: Vec<_> = places.iter().map(of).collect();
    waits.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.wait.cmp(&b.wait)));
    waits
}

/// Functions, those first that took the most time.
fn functions(places: &[(WaitPlace, Waited)], sampled: &Sampled, code: &Code) -> Vec<FunctionTimes> {
    /// ns of its own code, of all below it, and of waits.
    type Times = (u64, u64, u64);
    let mut times: BTreeMap<FunctionId, Times> = BTreeMap::new();
    for (stack, samples) in &sampled.stacks {
        if let Some(innermost) = stack.functions.first() {
            times.entry(*innermost).or_default().0 += sampled.ns(samples.own);
        }
        for function in once_each(&stack.functions) {
            let ns = sampled.ns(samples.own + samples.in_kernel);
            times.entry(function).or_default().1 += ns;
        }
    }
    for (place, waited) in places {
        for function in once_each(&place.stack.functions) {
            times.entry(function).or_default().2 += waited.ns;
        }
    }
    let mut functions: Vec<_> = times
        .into_iter()
        .map(
            |(id, (running_self_ns, running_ns, waiting_ns))| FunctionTimes {
                function: Arc::clone(code.function(id)),
                running_self_ns,
                running_ns,
                waiting_ns,
            },
        )
        .collect();
    functions.sort_by(|a, b| {
        let key = |of: &FunctionTimes| (of.running_self_ns, of.running_ns, of.waiting_ns);
        key(b)
            .cmp(&key(a))
            .then_with(|| a.function.name.cmp(&b.function.name))
    });
    functions
}

/// The functions of a stack, a recursive one once.
fn once_each(stack: &[FunctionId]) -> HashSet<FunctionId> {
    stack.iter().copied().collect()
}
