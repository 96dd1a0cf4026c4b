//! Functions that ran, summed up by samples: in all the time that passes, or in the spans and calls that were picked.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use ringmark_format::samples::KERNEL;

use crate::events::filter::Filter;
use crate::events::stay::Stay;
use crate::trace_file::dump::Dump;
use crate::trace_file::samples::RanIn;
use crate::trace_file::session::Session;

/// Functions that ran, by samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RanFunctions {
    /// The functions, those first whose own code ran longest.
    pub functions: Vec<RanFunction>,
    /// Samples that they were met in.
    pub samples: u64,
    /// Samples that had no room when they were taken, of all processes.
    pub lost: u64,
    /// Whether the kernel's own code was sampled in each process that was.
    pub has_kernel: bool,
}

/// A function that ran, by samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RanFunction {
    /// Its name; `[kernel]`: the kernel's own code.
    pub name: Vec<u8>,
    /// Samples that it was met in, itself or below what it had called.
    pub samples: u64,
    /// The time that these stand for, in ns.
    pub running_ns: u64,
    /// The time of those that met its own code, in ns.
    pub self_ns: u64,
}

/// Times in which it counts what ran.
#[derive(Debug, Default)]
pub(super) struct PickedTimes<'d> {
    /// By process and thread.
    threads: HashMap<(usize, u32), PickedThread<'d>>,
}

/// Those of a thread.
#[derive(Debug)]
struct PickedThread<'d> {
    /// A session of its process.
    session: &'d Session,
    /// On `CLOCK_MONOTONIC`, in ns.
    times: Vec<Range<u64>>,
}

impl<'d> PickedTimes<'d> {
    /// Adds a time in which a thread was in something that was picked.
    pub(super) fn add(&mut self, session: &'d Session, stay: &Stay) {
        if !session.has_samples() || !stay.is_seen(session) {
            return;
        }
        let thread = self.threads.entry((session.process, stay.tid));
        let times = Vec::new();
        let thread = thread.or_insert(PickedThread { session, times });
        let (from, to) = (session.on_mono(stay.from_ns), session.on_mono(stay.to_ns));
        thread.times.push(from..to);
    }

    /// What ran in them.
    pub(super) fn ran(mut self, dump: &Dump) -> Option<RanFunctions> {
        let mut sums = Sums::default();
        for ((_, tid), PickedThread { session, times }) in &mut self.threads {
            // What lies in two of them counts once.
            times.sort_by_key(|time| time.start);
            let mut end = 0;
            for time in times {
                let part = time.start.max(end)..time.end;
                end = end.max(time.end);
                let ran = session.switched.samples.ran_in(*tid, &part);
                ran.iter().for_each(|ran| sums.add(ran));
            }
        }
        sums.finish(dump)
    }
}

impl RanFunctions {
    /// What ran in the time and the threads of a filter; `None`: no samples were taken.
    pub(super) fn all(dump: &Dump, records: &Filter) -> Option<Self> {
        let mut sums = Sums::default();
        for session in processes(dump) {
            for sample in records.samples(session) {
                sums.add(&RanIn {
                    stack: sample.stack,
                    samples: 1,
                    ns: sample.ns,
                });
            }
        }
        sums.finish(dump)
    }
}

/// A session of each process that was sampled.
fn processes(dump: &Dump) -> impl Iterator<Item = &Session> {
    let mut met = BTreeSet::new();
    let sampled = dump.sessions.iter().filter(|one| one.has_samples());
    sampled.filter(move |session| met.insert(session.process))
}

/// The functions so far.
#[derive(Default)]
struct Sums<'d> {
    functions: BTreeMap<&'d [u8], RanFunction>,
    samples: u64,
}

impl<'d> Sums<'d> {
    fn add(&mut self, ran: &RanIn<'d>) {
        self.samples += ran.samples;
        // A recursive one counts once.
        let mut met = BTreeSet::new();
        for (place, name) in ran.stack.functions().enumerate() {
            let new = || RanFunction {
                name: name.to_vec(),
                samples: 0,
                running_ns: 0,
                self_ns: 0,
            };
            let function = self.functions.entry(name).or_insert_with(new);
            if place == 0 {
                function.self_ns = function.self_ns.saturating_add(ran.ns);
            }
            if met.insert(name) {
                function.samples += ran.samples;
                function.running_ns = function.running_ns.saturating_add(ran.ns);
            }
        }
    }

    fn finish(self, dump: &Dump) -> Option<RanFunctions> {
        let mut found = RanFunctions {
            functions: self.functions.into_values().collect(),
            samples: self.samples,
            lost: 0,
            has_kernel: true,
        };
        let mut are_there = false;
        for session in processes(dump) {
            are_there = true;
            found.lost = found.lost.saturating_add(session.samples_lost());
            found.has_kernel &= session.has_kernel_samples();
        }
        found.functions.sort_by(|a, b| {
            let key = |of: &RanFunction| (Reverse(of.self_ns), Reverse(of.running_ns));
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        are_there.then_some(found)
    }
}

impl RanFunction {
    /// Whether it is the kernel's own code.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        self.name == KERNEL.as_bytes()
    }
}
