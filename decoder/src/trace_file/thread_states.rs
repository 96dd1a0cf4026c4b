//! What a thread did over time, as far as its switches say it.

use ringmark_format::switches::{NO_CPU, SLACK_NS};

use crate::trace_file::switched::{Packed, Stretch, Switched, Turn};
use crate::trace_file::wait_text::WaitText;

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadDoes {
    /// It runs on a processor.
    Runs,
    /// It could run, and another thread has got its processor.
    Ready,
    /// It waits; from woken to running, too.
    Waits,
}

/// A span of time in which a thread did one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadState<'d> {
    /// From when on, in ns since 1970.
    pub from_ns: u64,
    /// Up to when, in ns since 1970.
    pub to_ns: u64,
    /// What it did.
    pub does: ThreadDoes,
    /// The processor that it ran on, or had before; `None`: not known.
    pub cpu: Option<u16>,
    /// Whether the thread ended with it.
    pub is_last: bool,
    /// Whether its control group had used up its time on processors; a thread that is ready alone.
    pub is_throttled: bool,
    /// What it was seen waiting for; `None`: it did not wait, or that was not seen.
    pub waits_for: Option<WaitText<'d>>,
}

/// The same on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MonoState {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) does: ThreadDoes,
    pub(crate) cpu: Option<u16>,
    pub(crate) is_last: bool,
    pub(crate) is_throttled: bool,
}

impl Switched {
    /// Gives `each` what a thread did, by time, where that is known. `ran`: moments at which it ran, those of its records.
    pub(crate) fn states(&self, tid: u32, ran: &[u64], mut each: impl FnMut(MonoState)) {
        if self.is_empty() {
            return self.seen_states(tid, each);
        }
        self.each_stretch(tid, |stretch, turns, cpus| {
            of_stretch(stretch, (turns, cpus), ran, &mut each);
        });
    }
}

impl Switched {
    /// The same without switches: that it waited, where that was seen.
    fn seen_states(&self, tid: u32, mut each: impl FnMut(MonoState)) {
        for (from, to, _) in self.waits.touching(tid, 0, u64::MAX) {
            let waits = state(from, to, (ThreadDoes::Waits, NO_CPU));
            waits.into_iter().for_each(&mut each);
        }
    }

    /// What a thread was seen waiting for in a wait.
    pub(crate) fn text_of(&self, tid: u32, state: &MonoState) -> Option<WaitText<'_>> {
        let mut seen = self.waits.touching(tid, state.from, state.to);
        let is_wait = state.does == ThreadDoes::Waits;
        let (_, _, text) = seen.next().filter(|_| is_wait)?;
        Some(WaitText::of(text))
    }

    /// Gives `each` when a thread had no processor, by time, of what is between two moments in part.
    pub(crate) fn off(&self, tid: u32, from: u64, to: u64, mut each: impl FnMut(MonoState)) {
        // One that counts as at the moment may lie beyond it.
        let (first, end) = (from.saturating_sub(SLACK_NS), to.saturating_add(SLACK_NS));
        let (turns, cpus) = self.part(tid, first, end);
        let mut since: Option<Since> = None;
        for (one, cpu) in turns.iter().zip(cpus) {
            let next = (one.mono_ns(), one.turn(), *cpu);
            if next.1 == Turn::Seen {
                continue;
            }
            let state = since.and_then(|begun| between_switches(begun, next, *one));
            let off = state.filter(|state| state.does != ThreadDoes::Runs);
            off.into_iter().for_each(&mut each);
            since = Some(next);
        }
    }
}

/// A moment, what begins at it, and the processor.
type Since = (u64, Turn, u16);

fn of_stretch(
    stretch: Stretch,
    (turns, cpus): (&[Packed], &[u16]),
    ran: &[u64],
    each: &mut impl FnMut(MonoState),
) {
    let mut since: Option<Since> = None;
    for (one, cpu) in turns.iter().zip(cpus) {
        let next = (one.mono_ns(), one.turn(), *cpu);
        if let Some(begun) = since {
            // That it is there, and nothing else.
            if next.1 == Turn::Seen {
                continue;
            }
            let state = between_switches(begun, next, *one);
            state.into_iter().for_each(&mut *each);
        }
        since = Some(next);
    }
    if let Some(begun) = since {
        let has_run = |from: u64| ran.iter().any(|ran| (from..stretch.to).contains(ran));
        let does = match begun.1 {
            Turn::Runs => Some(ThreadDoes::Runs),
            Turn::Ready => Some(ThreadDoes::Ready),
            Turn::Waits => Some(ThreadDoes::Waits),
            // It has not switched, so it ran all the time if it ever did.
            Turn::Seen if has_run(begun.0) => Some(ThreadDoes::Runs),
            Turn::Seen | Turn::Ended | Turn::NotKnown => None,
        };
        let state = does.and_then(|does| state(begun.0, stretch.to, (does, begun.2)));
        state.into_iter().for_each(each);
    }
}

/// What a thread did between two switches of which none is between them; `None`: it is not known.
fn between((from, begun, cpu): Since, (to, next, next_cpu): Since) -> Option<MonoState> {
    let did = match (begun, next) {
        (Turn::Runs, Turn::Ready | Turn::Waits | Turn::Ended) => (ThreadDoes::Runs, cpu),
        // Whoever leaves a processor had one.
        (Turn::Seen, Turn::Ready | Turn::Waits | Turn::Ended) => (ThreadDoes::Runs, next_cpu),
        (Turn::Ready, Turn::Runs) => (ThreadDoes::Ready, cpu),
        (Turn::Waits, Turn::Runs) => (ThreadDoes::Waits, cpu),
        _ => return None,
    };
    let is_last = next == Turn::Ended;
    state(from, to, did).map(|state| MonoState { is_last, ..state })
}

/// The same of two switches, of which the second one says whether its thread had been throttled.
fn between_switches(begun: Since, next: Since, one: Packed) -> Option<MonoState> {
    let state = between(begun, next)?;
    Some(MonoState {
        is_throttled: one.ends_throttling() && state.does == ThreadDoes::Ready,
        ..state
    })
}

fn state(from: u64, to: u64, (does, cpu): (ThreadDoes, u16)) -> Option<MonoState> {
    let cpu = (cpu != NO_CPU).then_some(cpu);
    (from < to).then_some(MonoState {
        from,
        to,
        does,
        cpu,
        is_last: false,
        is_throttled: false,
    })
}

#[cfg(test)]
mod tests {
    use ringmark_format::switches::{Switch, turn};

    use super::*;

    /// From, to, and the switches between.
    type Given<'s> = (u64, u64, &'s [(u64, u16)]);

    fn known(stretches: &[Given<'_>], ran: &[u64]) -> Vec<(u64, u64, char)> {
        let mut all = Switched::default();
        for (from, to, switches) in stretches {
            let switch = |(mono_ns, turn): &(u64, u16)| Switch {
                mono_ns: *mono_ns,
                tid: 7,
                turn: *turn,
                cpu: 1,
            };
            let switches: Vec<_> = switches.iter().map(switch).collect();
            let (from, to) = (*from, *to);
            all.add(Stretch { from, to }, &switches);
        }
        let mut found = Vec::new();
        all.states(7, ran, |one| {
            let letter = match one.does {
                ThreadDoes::Runs => 'r',
                ThreadDoes::Ready => 'y',
                ThreadDoes::Waits => 'w',
            };
            found.push((one.from, one.to, letter));
        });
        found
    }

    #[test]
    fn states_follow_from_switches() {
        let switches = [
            (10, turn::SEEN),
            (20, turn::WAITS),
            (25, turn::SEEN),
            (40, turn::RUNS),
            (50, turn::READY),
            (54, turn::RUNS),
        ];
        let expected = [
            (10, 20, 'r'),
            (20, 40, 'w'),
            (40, 50, 'r'),
            (50, 54, 'y'),
            (54, 100, 'r'),
        ];
        assert_eq!(known(&[(0, 100, &switches)], &[]), expected);
    }

    #[test]
    fn what_is_not_here_is_not_known() {
        let seen = [(10, turn::SEEN)];
        assert_eq!(known(&[(0, 100, &seen)], &[]), [], "it ran or it did not");
        assert_eq!(known(&[(0, 100, &seen)], &[100]), []);
        assert_eq!(known(&[(0, 100, &seen)], &[50]), [(10, 100, 'r')]);
        let woken = [(10, turn::SEEN), (20, turn::RUNS), (30, turn::ENDED)];
        assert_eq!(
            known(&[(0, 100, &woken)], &[15]),
            [(20, 30, 'r')],
            "it was ready, or waited"
        );
        let twice = [(10, turn::RUNS), (20, turn::RUNS), (30, turn::WAITS)];
        assert_eq!(
            known(&[(0, 40, &twice)], &[]),
            [(20, 30, 'r'), (30, 40, 'w')]
        );
        let later = [(10, turn::RUNS), (20, 7), (30, turn::RUNS)];
        assert_eq!(known(&[(0, 40, &later)], &[]), [(30, 40, 'r')]);
        let gap: [Given<'_>; 2] = [
            (0, 40, &[(10, turn::RUNS), (20, turn::WAITS)]),
            (50, 90, &[(60, turn::WAITS), (70, turn::RUNS)]),
        ];
        let expected = [(10, 20, 'r'), (20, 40, 'w'), (60, 70, 'w'), (70, 90, 'r')];
        assert_eq!(known(&gap, &[]), expected);
    }
}
