//! When the threads of a process got a processor and left it, and what follows for the time between
//! two records of a thread.
//!
//! A thread runs while it writes a record. So what it did between two of them follows from its switches
//! between them alone, if all of these are here. Where they contradict each other, nothing is guessed.

use std::collections::HashMap;
use std::ops::Range;

use ringmark_format::switches::{NO_CPU, SLACK_NS, Switch, Switches, turn};

use crate::trace_file::samples::StackSamples;
use crate::trace_file::seen_waits::SeenWaits;
use crate::trace_file::thread_times::ThreadTimes;

/// A span of `CLOCK_MONOTONIC` in ns, of which all switches are here; `to` is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: u64,
    pub(super) to: u64,
}

/// What a thread does from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Runs,
    Ready,
    Waits,
    Ended,
    /// It is said that the thread is there, and nothing else.
    Seen,
    NotKnown,
}

/// A moment, in ns of `CLOCK_MONOTONIC` below 2^61, and a turn in the lowest three bits: a trace may have
/// millions of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packed(u64);

impl Packed {
    fn of(switch: &Switch) -> Self {
        let turn = match switch.turn {
            known @ turn::RUNS..=turn::UNTHROTTLED => u64::from(known),
            _ => 0,
        };
        Self(switch.mono_ns << 3 | turn)
    }

    pub(super) const fn mono_ns(self) -> u64 {
        self.0 >> 3
    }

    /// As it stands in a block; 0: it is not known.
    const fn number(self) -> u16 {
        (self.0 & 7) as u16
    }

    /// Whether the limit of its control group had kept the thread from running up to then.
    pub(super) const fn ends_throttling(self) -> bool {
        self.number() == turn::UNTHROTTLED
    }

    pub(super) const fn turn(self) -> Turn {
        match self.number() {
            turn::RUNS | turn::UNTHROTTLED => Turn::Runs,
            turn::READY => Turn::Ready,
            turn::WAITS => Turn::Waits,
            turn::ENDED => Turn::Ended,
            turn::SEEN => Turn::Seen,
            _ => Turn::NotKnown,
        }
    }
}

/// The switches of a thread by time, and the processor of each.
#[derive(Debug, Default)]
struct Turns {
    turns: Vec<Packed>,
    cpus: Vec<u16>,
}

impl Turns {
    /// Those of a span of time, and the processor of each.
    fn between(&self, from: u64, to: u64) -> (&[Packed], &[u16]) {
        let place = |ns: u64| self.turns.partition_point(|one| one.mono_ns() < ns);
        let range = place(from)..place(to);
        let turns = self.turns.get(range.clone()).unwrap_or_default();
        (turns, self.cpus.get(range).unwrap_or_default())
    }
}

/// The switches of a process.
#[derive(Debug, Default)]
pub(crate) struct Switched {
    /// By time; none of them touch.
    stretches: Vec<Stretch>,
    /// By thread and time.
    threads: HashMap<u32, Turns>,
    /// Times of which switches are not here, and how many.
    losses: Vec<(Stretch, u64)>,
    /// What threads were seen waiting for.
    pub(super) waits: SeenWaits,
    /// Where threads ran.
    pub(crate) samples: StackSamples,
}

impl Switched {
    /// None yet, of threads that were seen in these waits, and that ran there.
    pub(super) fn with(waits: SeenWaits, samples: StackSamples) -> Self {
        Self {
            waits,
            samples,
            ..Self::default()
        }
    }

    /// Whether there are none, and none are lost.
    pub(crate) fn is_empty(&self) -> bool {
        self.stretches.is_empty() && self.losses.is_empty()
    }

    /// Switches that are not here.
    pub(crate) fn lost(&self) -> u64 {
        let lost = self.losses.iter().map(|(_, lost)| *lost);
        lost.fold(0, u64::saturating_add)
    }

    /// Notes a time of which switches are not here.
    pub(super) fn lose(&mut self, stretch: Stretch, lost: u64) {
        self.losses.push((stretch, lost));
    }

    /// What threads were seen waiting for in a part of the time: thread, first and last look, text.
    pub(crate) fn waits_piece(&self, part: &Range<u64>) -> Vec<(u32, u64, u64, &[u8])> {
        self.waits.piece(part)
    }

    /// Whether a thread was seen, running or waiting, between two moments.
    pub(crate) fn was_seen(&self, tid: u32, from: u64, to: u64) -> bool {
        self.waits.touching(tid, from, to).next().is_some() || self.samples.are_in(tid, &(from..to))
    }

    /// Whether it was looked at what threads wait for.
    pub(crate) fn has_waits(&self) -> bool {
        !self.waits.is_empty()
    }

    /// What is here of a part of the time: what blocks of it say, and their switches.
    pub(crate) fn piece(&self, part: Range<u64>) -> Vec<(Switches, Vec<Switch>)> {
        let whole = self.stretches.iter().map(|stretch| (stretch, 0));
        let losses = self.losses.iter().map(|(stretch, lost)| (stretch, *lost));
        let pieces = whole.chain(losses).filter_map(|(stretch, lost)| {
            let from = stretch.from.max(part.start);
            let to = stretch.to.min(part.end);
            let head = Switches {
                from_mono_ns: from,
                to_mono_ns: to,
                lost,
                switches: 0,
                reserved: 0,
            };
            let switches = || self.switches_of(stretch.from, from..to);
            let switches = (lost == 0).then(switches).unwrap_or_default();
            (from < to).then_some((head, switches))
        });
        pieces.collect()
    }

    /// The switches of a part of a stretch, by time. Threads that were seen before are seen from its beginning on.
    fn switches_of(&self, stretch_from: u64, part: Range<u64>) -> Vec<Switch> {
        let mut found = Vec::new();
        for (tid, all) in &self.threads {
            let switch = |mono_ns, turn, cpu| Switch {
                mono_ns,
                tid: *tid,
                turn,
                cpu,
            };
            let (before, _) = all.between(stretch_from, part.start);
            let seen = || switch(part.start, turn::SEEN, NO_CPU);
            found.extend((!before.is_empty()).then(seen));
            let (turns, cpus) = all.between(part.start, part.end);
            let both = turns.iter().zip(cpus);
            found.extend(both.map(|(one, cpu)| switch(one.mono_ns(), one.number(), *cpu)));
        }
        found.sort_by_key(|switch| (switch.mono_ns, switch.turn != turn::SEEN, switch.tid));
        found
    }

    /// Adds a stretch that is later than all so far, with its switches by time.
    pub(super) fn add(&mut self, stretch: Stretch, switches: &[Switch]) {
        match self.stretches.last_mut() {
            Some(last) if last.to == stretch.from => last.to = stretch.to,
            _ => self.stretches.push(stretch),
        }
        for switch in switches {
            let thread = self.threads.entry(switch.tid).or_default();
            thread.turns.push(Packed::of(switch));
            thread.cpus.push(switch.cpu);
        }
    }

    /// One more than the highest number of a processor in them.
    pub(crate) fn cpus(&self) -> u32 {
        let all = self.threads.values().flat_map(|turns| &turns.cpus);
        let known = all.filter(|cpu| **cpu != NO_CPU);
        known.max().map_or(0, |cpu| u32::from(*cpu) + 1)
    }

    /// The switches of a thread in a span of time, with their processors.
    pub(super) fn part(&self, tid: u32, from: u64, to: u64) -> (&[Packed], &[u16]) {
        let all = self.threads.get(&tid);
        all.map_or((&[], &[]), |all| all.between(from, to))
    }

    /// Gives `each` the switches of a thread, with their processors, of each stretch.
    pub(super) fn each_stretch(&self, tid: u32, mut each: impl FnMut(Stretch, &[Packed], &[u16])) {
        let Some(all) = self.threads.get(&tid) else {
            return;
        };
        for stretch in &self.stretches {
            let (turns, cpus) = all.between(stretch.from, stretch.to);
            each(*stretch, turns, cpus);
        }
    }

    /// What a thread did between two moments of `CLOCK_MONOTONIC` in ns at which it ran; `None`: it is not known.
    pub(crate) fn times(&self, tid: u32, from: u64, to: u64) -> Option<ThreadTimes> {
        let at = self.stretches.partition_point(|one| one.to < to);
        let stretch = self.stretches.get(at)?;
        if stretch.from > from || from > to {
            return None;
        }
        let (all, _) = self.threads.get(&tid)?.between(stretch.from, stretch.to);
        let is_seen = all.first()?.mono_ns() <= from.saturating_add(SLACK_NS);
        is_seen.then(|| Walk::between(all, from, to)).flatten()
    }
}

/// A walk over the switches between two moments at which their thread ran.
///
/// The times of the moments were ticks, and may be wrong by [`SLACK_NS`]. So a switch that is as near to one of them, and
/// on the wrong side of it, counts as if it was at that moment.
struct Walk {
    at: u64,
    now: Turn,
    times: ThreadTimes,
}

impl Walk {
    /// What the switches of a thread, all of them here, say; `None`: they contradict each other.
    fn between(all: &[Packed], from: u64, to: u64) -> Option<ThreadTimes> {
        let begin = all.partition_point(|one| one.mono_ns() <= from);
        let end = all.partition_point(|one| one.mono_ns() < to).max(begin);
        let (before, rest) = all.split_at(begin);
        let (inside, after) = rest.split_at(end - begin);
        let (now, passed) = at_begin(before.last(), inside.first(), from)?;
        let mut walk = Self {
            at: from,
            now,
            times: ThreadTimes::default(),
        };
        for switch in inside.get(passed..)? {
            walk.step(switch.mono_ns(), switch.turn(), switch.ends_throttling())?;
        }
        if walk.now != Turn::Runs {
            walk.end(after.first(), to)?;
        }
        walk.times.running_ns += to - walk.at;
        Some(walk.times)
    }

    /// Goes on to a switch.
    fn step(&mut self, at: u64, turn: Turn, ends_throttling: bool) -> Option<()> {
        let (ns, times) = (at - self.at, &mut self.times);
        match (self.now, turn) {
            (_, Turn::Seen) => return Some(()),
            (Turn::Runs, Turn::Ready | Turn::Waits) => times.running_ns += ns,
            (Turn::Ready, Turn::Runs) => {
                times.ready_ns += ns;
                times.throttled_ns += if ends_throttling { ns } else { 0 };
                times.preemptions += 1;
            }
            (Turn::Waits, Turn::Runs) => {
                times.waiting_ns += ns;
                times.waits += 1;
            }
            _ => return None,
        }
        (self.at, self.now) = (at, turn);
        Some(())
    }

    /// It runs at the end, though its last switch says otherwise. `next`: the first one after the end.
    fn end(&mut self, next: Option<&Packed>, to: u64) -> Option<()> {
        if to - self.at <= SLACK_NS {
            return Some(());
        }
        let next = next.filter(|next| next.turn() == Turn::Runs)?;
        match next.mono_ns() - to <= SLACK_NS {
            true => self.step(to, Turn::Runs, next.ends_throttling()),
            false => None,
        }
    }
}

/// What a thread does at a moment at which it runs, and how many of the switches after it count as before it. `before`,
/// `next`: the switches around the moment.
fn at_begin(before: Option<&Packed>, next: Option<&Packed>, from: u64) -> Option<(Turn, usize)> {
    let is_near = |one: &Packed| one.mono_ns().abs_diff(from) <= SLACK_NS;
    let runs_at_once = next.is_some_and(|next| next.turn() == Turn::Runs && is_near(next));
    match before.map(|before| (before, before.turn())) {
        None | Some((_, Turn::Seen)) => Some((Turn::Runs, runs_at_once.into())),
        Some((_, Turn::Runs)) => Some((Turn::Runs, 0)),
        Some(_) if runs_at_once => Some((Turn::Runs, 1)),
        Some((before, off @ (Turn::Ready | Turn::Waits))) if is_near(before) => Some((off, 0)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const US: u64 = 1_000;

    /// Switches of thread 7 in one stretch, from 0 to 100 ms.
    fn switched(switches: &[(u64, u16)]) -> Switched {
        let switch = |(mono_ns, turn): &(u64, u16)| Switch {
            mono_ns: *mono_ns,
            tid: 7,
            turn: *turn,
            cpu: 1,
        };
        let mut all = Switched::default();
        let switches: Vec<_> = switches.iter().map(switch).collect();
        let to = 100 * MS;
        all.add(Stretch { from: 0, to }, &switches);
        all
    }

    /// Running, ready and waiting in ns.
    fn parts(switches: &[(u64, u16)], from: u64, to: u64) -> Option<[u64; 3]> {
        let times = switched(switches).times(7, from, to)?;
        assert_eq!(times.all_ns(), to - from, "it makes up the whole");
        Some([times.running_ns, times.ready_ns, times.waiting_ns])
    }

    #[test]
    fn the_times_between_two_records_are_split() {
        let switches = [
            (0, turn::SEEN),
            (20 * MS, turn::WAITS),
            (40 * MS, turn::RUNS),
            (50 * MS, turn::READY),
            (54 * MS, turn::RUNS),
        ];
        let between = |from, to| parts(&switches, from * MS, to * MS);
        assert_eq!(between(10, 60), Some([26 * MS, 4 * MS, 20 * MS]));
        assert_eq!(between(1, 5), Some([4 * MS, 0, 0]), "no switch: it ran");
        assert_eq!(between(41, 49), Some([8 * MS, 0, 0]));
        assert_eq!(between(5, 5), Some([0; 3]));
        let times = switched(&switches).times(7, 10 * MS, 60 * MS).unwrap();
        assert_eq!((times.waits, times.preemptions), (1, 1));
    }

    #[test]
    fn what_is_not_here_is_not_known() {
        let switches = [(10 * MS, turn::RUNS), (20 * MS, turn::WAITS)];
        let all = switched(&switches);
        assert_eq!(all.times(8, 11 * MS, 12 * MS), None, "another thread");
        assert_eq!(all.times(7, 5 * MS, 6 * MS), None, "before it was seen");
        assert_eq!(all.times(7, 11 * MS, 101 * MS), None, "beyond the switches");
        assert_eq!(
            all.times(7, 30 * MS, 40 * MS),
            None,
            "it waits, and writes?"
        );
        assert_eq!(all.times(7, 15 * MS, 14 * MS), None);
        assert!(all.times(7, 11 * MS, 12 * MS).is_some());
        let twice = [(10 * MS, turn::RUNS), (12 * MS, turn::RUNS)];
        assert_eq!(parts(&twice, 11 * MS, 13 * MS), None, "one is missing");
        let ended = [(1, turn::SEEN), (10 * MS, turn::ENDED)];
        assert_eq!(parts(&ended, 11 * MS, 13 * MS), None);
        let later = [(1, turn::SEEN), (10 * MS, 7)];
        assert_eq!(parts(&later, 5 * MS, 13 * MS), None, "of a later version");
        assert_eq!(parts(&later, 5 * MS, 9 * MS), Some([4 * MS, 0, 0]));
    }

    #[test]
    fn a_gap_ends_what_is_known_of_a_thread() {
        let mut all = switched(&[(0, turn::SEEN)]);
        let seen = |mono_ns| Switch {
            mono_ns,
            tid: 7,
            turn: turn::SEEN,
            cpu: NO_CPU,
        };
        let stretch = |from, to| Stretch {
            from: from * MS,
            to: to * MS,
        };
        all.add(stretch(100, 110), &[]);
        all.add(stretch(111, 200), &[]);
        all.add(stretch(201, 300), &[seen(250 * MS)]);
        let is_known = |from, to| all.times(7, from * MS, to * MS).is_some();
        assert!(is_known(50, 109), "stretches that touch are one");
        assert!(!is_known(109, 112), "over the gap");
        assert!(!is_known(112, 113), "behind it");
        assert!(
            !is_known(240, 260) && is_known(251, 260),
            "until it is seen again"
        );
    }

    #[test]
    fn a_switch_beside_a_record_counts_as_at_it() {
        let sleep = [
            (0, turn::SEEN),
            (10 * MS, turn::WAITS),
            (30 * MS, turn::RUNS),
        ];
        let off = |from, to| parts(&sleep, from, to).map(|[_, _, waiting]| waiting);
        // The record was written just before it waited, or just after.
        assert_eq!(off(10 * MS + 5 * US, 31 * MS), Some(20 * MS - 5 * US));
        assert_eq!(off(9 * MS, 30 * MS - 5 * US), Some(20 * MS - 5 * US));
        assert_eq!(off(30 * MS - 5 * US, 31 * MS), Some(0));
        assert_eq!(off(9 * MS, 10 * MS + 5 * US), Some(0));
        // Farther away it is a contradiction.
        assert_eq!(off(11 * MS, 31 * MS), None);
        assert_eq!(off(9 * MS, 29 * MS), None);
        let new = [(30 * MS, turn::RUNS)];
        assert_eq!(
            parts(&new, 30 * MS - 5 * US, 31 * MS),
            Some([MS + 5 * US, 0, 0])
        );
    }
}
