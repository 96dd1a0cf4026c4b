//! The switches of a process's threads, one by one, for who writes them down.
//!
//! The kernel keeps those of each processor in a buffer. A look takes what is there. A switch may have got its time
//! before a look and its place in the buffer after it; so what is whole is the time up to the look before.

use std::collections::BTreeSet;
use std::time::Duration;
use std::{io, mem, thread};

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag};
use ringmark_format::switches::{self, NO_CPU, Switches, turn};

use crate::descriptors::Descriptors;
use crate::error::ProfileError;
use crate::joined::Joined;
use crate::own_numbers::OwnNumbers;
use crate::schedule::mono_ns;
use crate::switches::{Switch, Turn};
use crate::target::Target;
use crate::throttle::Throttle;

/// A switch has its place in the buffer so long after its time at the latest.
const LATE: Duration = Duration::from_millis(1);
/// More bytes than a record of a switch, or of a thread's beginning or end, has.
const LARGEST_RECORD: usize = 128;
/// So many switches are worth a range.
const RANGE_ENOUGH: usize = 1 << 12;
/// What is older than this is worth a range, in ns.
const RANGE_NS: u64 = 1_000_000_000;

/// The switches of a span of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchRange {
    /// The time, and how many of its switches had no room.
    pub head: Switches,
    /// The others, by time.
    pub switches: Vec<switches::Switch>,
}

/// Watches the threads of a process, those that are there and those that they begin.
pub struct SwitchWatch {
    target: Target,
    events: Joined,
    numbers: OwnNumbers,
    throttle: Throttle,
    /// By how much `CLOCK_MONOTONIC` of the process, and our own, is ahead of the kernel's.
    ahead_ns: i64,
    ours_ahead_ns: i64,
    /// Threads that were there, as switches that say so.
    seen: Vec<Switch>,
    /// Switches so far of the time that is not taken.
    fresh: Vec<Switch>,
    /// What was taken ends here.
    taken_ns: u64,
    /// What is whole and had room ends here.
    whole_ns: u64,
    /// The latest look.
    looked_ns: u64,
    /// Switches without room of the time that is given out next, and whether some of the time after it may have had none.
    lost: u64,
    may_lose_next: bool,
    lost_in_all: u64,
    left_out: BTreeSet<u32>,
}

impl std::fmt::Debug for SwitchWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SwitchWatch").finish_non_exhaustive()
    }
}

impl SwitchWatch {
    /// Begins with all threads of a process. Each takes a descriptor for each processor: the limit of this process is
    /// best raised before.
    ///
    /// # Errors
    /// There is no such process, or this user may not, on this host.
    pub fn attach(pid: u32) -> io::Result<Self> {
        let open = |pid| Target::open(pid).map_err(|ProfileError::NoProcess { error, .. }| error);
        let (target, ours) = (open(pid)?, open(std::process::id())?);
        let wanted = (prepared, LARGEST_RECORD);
        let events = Joined::begin(|| target.threads(), Descriptors::now(), wanted)?;
        let ours_ahead_ns = ours.monotonic_ahead_ns();
        let now = kernel_ns(ours_ahead_ns);
        let left_out = &events.left_out;
        let seen = events.threads.iter().filter(|tid| !left_out.contains(tid));
        let mut numbers = OwnNumbers::of(&target);
        let seen = seen.filter_map(|tid| {
            Some(Switch {
                mono_ns: now,
                tid: numbers.own(&target, *tid, false)?,
                turn: Turn::Seen,
                cpu: NO_CPU,
            })
        });
        let seen: Vec<_> = seen.collect();
        let mut watch = Self {
            seen,
            left_out: left_out.clone(),
            ahead_ns: target.monotonic_ahead_ns(),
            ours_ahead_ns,
            numbers,
            target,
            events,
            throttle: Throttle::default(),
            fresh: Vec::new(),
            taken_ns: now,
            whole_ns: now,
            looked_ns: now,
            lost: 0,
            may_lose_next: false,
            lost_in_all: 0,
        };
        // What comes from before all threads were watched is a part.
        watch.look();
        watch.fresh.retain(|switch| switch.mono_ns >= now);
        Ok(watch)
    }

    /// Switches that had no room so far, as far as the kernel said.
    #[must_use]
    pub const fn without_room(&self) -> u64 {
        self.lost_in_all
    }

    /// Threads that are not watched, or were not when they began.
    #[must_use]
    pub fn threads_left_out(&self) -> u64 {
        self.left_out.len() as u64
    }

    /// Looks once: takes what the kernel's buffers hold.
    fn look(&mut self) {
        let now = kernel_ns(self.ours_ahead_ns);
        let known = self.fresh.len();
        let (fresh, left_out) = (&mut self.fresh, &mut self.left_out);
        let (numbers, target) = (&mut self.numbers, &self.target);
        let mut add = |switch: Switch| {
            // It is followed all the same.
            left_out.remove(&switch.tid);
            // Asked for at once: a thread that has ended tells its number no more.
            let own = numbers.own(target, switch.tid, switch.turn == Turn::Ended);
            fresh.extend(own.map(|tid| Switch { tid, ..switch }));
        };
        let mut lost = 0_u64;
        let was_full = self
            .events
            .take(|cpu, record| match Switch::of(cpu, record) {
                Some(switch) => add(switch),
                None => match record.parse_record() {
                    Ok(Record::Lost(found)) => lost = lost.saturating_add(found.lost),
                    Ok(Record::Exit(found)) => add(Switch {
                        mono_ns: found.time,
                        tid: found.tid,
                        turn: Turn::Ended,
                        cpu,
                    }),
                    _ => {}
                },
            });
        self.throttle.mark(&self.target, &mut self.fresh[known..]);
        // The kernel says how many had no room beside the next one that has. That may be after this look, or never.
        self.lost = self.lost.saturating_add(lost);
        self.may_lose_next |= lost > 0 || was_full;
        self.looked_ns = now;
    }

    /// Looks, and gives out what is whole if it is worth it. To be called some 100 times a second: the kernel's buffers
    /// hold a bounded number.
    pub fn take(&mut self) -> Vec<SwitchRange> {
        self.take_whole(false)
    }

    /// Gives out all up to now.
    pub fn take_rest(&mut self) -> Vec<SwitchRange> {
        let mut given = self.take_whole(false);
        thread::sleep(LATE);
        given.extend(self.take_whole(true));
        given
    }

    fn take_whole(&mut self, at_end: bool) -> Vec<SwitchRange> {
        let (before_ns, whole_ns) = (self.whole_ns, self.looked_ns);
        let may_lose = mem::take(&mut self.may_lose_next);
        self.look();
        self.whole_ns = whole_ns;
        let lost = mem::take(&mut self.lost).max(may_lose.into());
        let mut given = Vec::new();
        if lost > 0 {
            self.give(before_ns, 0, &mut given);
            self.give(whole_ns, lost, &mut given);
        } else if at_end || self.is_due() {
            self.give(whole_ns, 0, &mut given);
        }
        given
    }

    fn is_due(&self) -> bool {
        self.fresh.len() >= RANGE_ENOUGH || self.whole_ns - self.taken_ns >= RANGE_NS
    }

    /// Gives out the switches up to a moment; none where some of them are lost, as nothing follows from a part of them.
    fn give(&mut self, to_ns: u64, lost: u64, given: &mut Vec<SwitchRange>) {
        self.fresh.extend(mem::take(&mut self.seen));
        self.fresh.sort_unstable();
        let late = self.fresh.partition_point(|s| s.mono_ns < self.taken_ns);
        let end = self.fresh.partition_point(|s| s.mono_ns < to_ns).max(late);
        let all: Vec<_> = self.fresh.drain(..end).collect();
        // A range that was given out before lacks those that came late.
        let lost = lost.saturating_add(late as u64);
        if lost > 0 {
            return given.push(self.range(&[], to_ns, lost));
        }
        given.push(self.range(&all, to_ns, 0));
    }

    fn range(&mut self, given: &[Switch], to_ns: u64, lost: u64) -> SwitchRange {
        self.lost_in_all = self.lost_in_all.saturating_add(lost);
        let there = |ns: u64| ns.saturating_add_signed(self.ahead_ns);
        let head = Switches {
            from_mono_ns: there(self.taken_ns),
            to_mono_ns: there(to_ns),
            lost,
            switches: 0,
            reserved: 0,
        };
        self.taken_ns = to_ns;
        let switches = given.iter().map(|switch| switches::Switch {
            mono_ns: there(switch.mono_ns),
            tid: switch.tid,
            cpu: switch.cpu,
            turn: match switch.turn {
                Turn::Seen => turn::SEEN,
                Turn::Runs => turn::RUNS,
                Turn::Unthrottled => turn::UNTHROTTLED,
                Turn::Ready => turn::READY,
                Turn::Waits => turn::WAITS,
                Turn::Ended => turn::ENDED,
            },
        });
        SwitchRange {
            head,
            switches: switches.collect(),
        }
    }
}

/// `CLOCK_MONOTONIC` as the kernel has it for its events.
fn kernel_ns(ours_ahead_ns: i64) -> u64 {
    mono_ns().saturating_add_signed(ours_ahead_ns.saturating_neg())
}

/// What is noted of a thread.
fn prepared() -> Builder<'static> {
    let mut builder = Builder::new(Software::DUMMY);
    builder
        .exclude_kernel(true)
        .exclude_hv(true)
        .context_switch(true)
        .task(true)
        .sample_id_all(true)
        .clockid(Clock::MONOTONIC)
        .sample(SampleFlag::TID | SampleFlag::TIME);
    builder
}
