//! Switches: the moments at which threads got a processor and left it, as the kernel notes them beside its samples.
//!
//! They say exactly how often a thread waited and for how long at most, and how often another thread was preferred to it.

use std::collections::HashMap;

use perf_event::Record;

/// `PERF_RECORD_SWITCH`, and what the kernel says of it.
const SWITCH: u32 = 14;
const OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;

/// What a thread does from a switch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Turn {
    /// No switch: it is there.
    Seen,
    Runs,
    /// It runs again: the limit of its control group had kept it from running.
    Unthrottled,
    /// It could run: another thread was preferred.
    Ready,
    Waits,
    Ended,
}

/// A moment at which a thread got a processor or left it. In the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Switch {
    pub(crate) mono_ns: u64,
    pub(crate) tid: u32,
    pub(crate) turn: Turn,
    /// Number of its processor, as a switch in a trace file has it.
    pub(crate) cpu: u16,
}

impl Switch {
    /// Reads a record of a processor; `None`: it is of something else.
    pub(crate) fn of(cpu: u16, record: &Record<'_>) -> Option<Self> {
        if record.ty() != SWITCH {
            return None;
        }
        let turn = match record.misc() {
            misc if misc & OUT == 0 => Turn::Runs,
            misc if misc & PREEMPTED != 0 => Turn::Ready,
            _ => Turn::Waits,
        };
        let (tid, mono_ns) = Self::parse(&record.data().concat())?;
        Some(Self {
            mono_ns,
            tid,
            turn,
            cpu,
        })
    }

    /// Thread and time: they stand behind the head and the process.
    fn parse(bytes: &[u8]) -> Option<(u32, u64)> {
        let tid = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?);
        let mono_ns = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
        Some((tid, mono_ns))
    }
}

/// What switches say of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadSwitches {
    /// How often it began to wait.
    pub waits: u64,
    /// Its longest wait, in ns; one that goes on counts up to now.
    pub longest_wait_ns: u64,
    /// How often it was preempted: another thread got its processor.
    pub preemptions: u64,
}

/// Switches of all threads so far.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    threads: HashMap<u32, (ThreadSwitches, Option<(u64, Turn)>)>,
    /// Not yet in order: those of another processor may come between.
    fresh: Vec<Switch>,
}

impl Switches {
    /// Takes a record of the kernel, if it is of a switch.
    pub(crate) fn take(&mut self, cpu: u16, record: &Record<'_>) {
        self.fresh.extend(Switch::of(cpu, record));
    }

    /// All that were before that time of `CLOCK_MONOTONIC` in ns have been taken.
    pub(crate) fn are_whole_until(&mut self, mono_ns: u64) {
        self.fresh.sort_unstable();
        let whole = self
            .fresh
            .partition_point(|switch| switch.mono_ns < mono_ns);
        for switch in self.fresh.drain(..whole) {
            let (counts, since) = self.threads.entry(switch.tid).or_default();
            if let Some((begun, Turn::Waits)) = *since {
                let ns = switch.mono_ns.saturating_sub(begun);
                counts.longest_wait_ns = counts.longest_wait_ns.max(ns);
            }
            match switch.turn {
                Turn::Seen | Turn::Runs | Turn::Unthrottled | Turn::Ended => {}
                Turn::Ready => counts.preemptions += 1,
                Turn::Waits => counts.waits += 1,
            }
            *since = Some((switch.mono_ns, switch.turn));
        }
    }

    /// What they say of a thread, up to that time; `None`: it has not switched.
    pub(crate) fn of(&self, tid: u32, mono_ns: u64) -> Option<ThreadSwitches> {
        let (counts, since) = self.threads.get(&tid)?;
        let mut counts = *counts;
        if let Some((begun, Turn::Waits)) = *since {
            counts.longest_wait_ns = counts.longest_wait_ns.max(mono_ns.saturating_sub(begun));
        }
        Some(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::{Switch, Switches, ThreadSwitches, Turn};

    fn at(mono_ns: u64, tid: u32, turn: Turn) -> Switch {
        Switch {
            mono_ns,
            tid,
            turn,
            cpu: 0,
        }
    }

    #[test]
    fn records_of_two_processors_are_put_in_order() {
        // The second processor's records were taken first, and the first one's go on after the look.
        let mut switches = Switches {
            fresh: vec![
                at(50, 7, Turn::Runs),
                at(10, 7, Turn::Waits),
                at(60, 7, Turn::Ready),
                at(120, 7, Turn::Waits),
            ],
            ..Switches::default()
        };
        switches.are_whole_until(100);
        let mut expected = ThreadSwitches {
            waits: 1,
            longest_wait_ns: 40,
            preemptions: 1,
        };
        assert_eq!(switches.of(7, 100), Some(expected));
        switches.are_whole_until(200);
        expected.waits = 2;
        assert_eq!(switches.of(7, 130), Some(expected));
        // It goes on.
        expected.longest_wait_ns = 80;
        assert_eq!(switches.of(7, 200), Some(expected));
        assert_eq!(switches.of(8, 200), None);
    }

    #[test]
    fn a_record_has_thread_and_time() {
        let bytes = [
            &[1_u32, 7].map(u32::to_le_bytes).concat()[..],
            &99_u64.to_le_bytes(),
        ]
        .concat();
        assert_eq!(Switch::parse(&bytes), Some((7, 99)));
        assert_eq!(Switch::parse(&bytes[..15]), None);
    }
}
