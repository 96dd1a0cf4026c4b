//! The answer: times of threads, functions and waits.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::code::{Code, Function, FunctionId, Stack};
use crate::looker::{ThreadTimes, WaitPlace, Waited};
use crate::wait::Wait;

/// What samples say of the functions that run.
#[derive(Debug, Default)]
pub(crate) struct Sampled {
    /// Samples of each stack.
    pub(crate) stacks: HashMap<Stack, u64>,
    /// Samples in the kernel's code, which are in `stacks`, too, where the program had called it.
    pub(crate) in_kernel: u64,
    pub(crate) all: u64,
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
}

/// Times of a function, of all threads together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionTimes {
    /// The function.
    pub function: Function,
    /// ns in which its own code ran, by samples.
    pub running_self_ns: u64,
    /// ns in which it or what it had called ran, by samples.
    pub running_ns: u64,
    /// ns in which a thread waited in it or in what it had called.
    pub waiting_ns: u64,
}

/// What threads waited for at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitTimes {
    /// What for.
    pub wait: Wait,
    /// The functions that had called it, the innermost first.
    pub stack: Vec<Function>,
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
    Threads(u64),
    /// That many samples had no room.
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
    /// Its waits, the longest first.
    pub waits: Vec<WaitTimes>,
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

    /// Sums up. `sample`: the time that a sample stands for, and whether the kernel's code was sampled, too.
    pub(crate) fn of(
        ns: u64,
        threads: Vec<(u32, String, ThreadTimes)>,
        places: &[(WaitPlace, Waited)],
        sampled: &Sampled,
        sample: Option<(u64, bool)>,
        code: &Code,
        missing: Vec<Missing>,
    ) -> Self {
        let mut threads: Vec<_> = threads
            .into_iter()
            .map(|(tid, name, times)| Thread { tid, name, times })
            .collect();
        threads.sort_by_key(|thread| (std::cmp::Reverse(thread.times.running_ns), thread.tid));
        let mut profile = Self {
            ns,
            threads,
            functions: Vec::new(),
            waits: waits(places, code),
            kernel_ns: None,
            samples: sampled.all,
            whole_samples: sampled
                .stacks
                .iter()
                .filter_map(|(stack, times)| stack.is_whole.then_some(times))
                .sum(),
            missing,
        };
        let sample_ns = sample.map_or(0, |(ns, _)| ns);
        profile.functions = functions(places, sampled, sample_ns, code);
        let sampled_ns = |samples: u64| samples.saturating_mul(sample_ns);
        profile.kernel_ns = sample.map(|(_, has_kernel)| match has_kernel {
            true => sampled_ns(sampled.in_kernel),
            false => {
                let running_ns = profile.times().running_ns;
                running_ns.saturating_sub(sampled_ns(sampled.all))
            }
        });
        profile
    }
}

/// Waits, the longest first.
fn waits(places: &[(WaitPlace, Waited)], code: &Code) -> Vec<WaitTimes> {
    let of = |(place, waited): &(WaitPlace, Waited)| WaitTimes {
        wait: place.wait.clone(),
        stack: place
            .stack
            .functions
            .iter()
            .map(|id| code.function(*id).clone())
            .collect(),
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
fn functions(
    places: &[(WaitPlace, Waited)],
    sampled: &Sampled,
    sample_ns: u64,
    code: &Code,
) -> Vec<FunctionTimes> {
    /// ns of its own code, of all below it, and of waits.
    type Times = (u64, u64, u64);
    let mut times: BTreeMap<FunctionId, Times> = BTreeMap::new();
    for (stack, samples) in &sampled.stacks {
        let ns = samples.saturating_mul(sample_ns);
        if let Some(innermost) = stack.functions.first() {
            times.entry(*innermost).or_default().0 += ns;
        }
        for function in once_each(&stack.functions) {
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
                function: code.function(id).clone(),
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
