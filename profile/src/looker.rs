//! Waits by looking: the threads of a process, looked at again and again. Nothing of the process is stopped or changed.
//!
//! Between two looks a thread got a number of ns of a processor, and waited a number of ns for one
//! ([`Schedule`]); the rest of the time it waited for something else. A thread that got none since the last look
//! is still in the same wait, so its system call and its stack are read once, and the time is that wait's exactly. One
//! that ran and waits now has waited for short times, which are counted to the wait that it is in now: an estimate,
//! right over many looks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::time::{Duration, Instant};

use crate::arch::Registers;
use crate::code::{Code, Stack};
use crate::descriptors::Descriptors;
use crate::peers::Peers;
use crate::schedule::{Schedule, mono_ns};
use crate::system_call::SystemCall;
use crate::target::Target;
use crate::wait::Wait;

/// Bytes of a stack that are copied.
const STACK_BYTES: usize = 16 << 10;
/// Waits that are read in one look: what is read costs about 30 us.
const READS: usize = 48;
/// A thread that waits is looked at again after this part of the time that it has waited, at least every tenth look: so
/// the end of a wait is seen late by that part of it at most.
const PATIENCE: u32 = 20;
const SELDOM: u32 = 10;
/// A thread that began later and ran for less than this is hardly ever sampled, in ns.
const BRIEF_NS: u64 = 10_000_000;
/// A wait that goes on is given out in parts of about this length, in ns.
const GIVEN_NS: u64 = 1_000_000_000;
/// Looks after which threads are listed, though there are as many as before.
const LIST_EVERY: u32 = 20;

/// Where threads waited.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct WaitPlace {
    pub(crate) wait: Wait,
    pub(crate) stack: Stack,
}

impl WaitPlace {
    /// A wait of which only the kernel's side may be read.
    fn without_stack(wait: Wait) -> Self {
        let stack = Stack {
            functions: Box::default(),
            is_whole: false,
        };
        Self { wait, stack }
    }
}

/// How long, and how often it was met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Waited {
    pub(crate) ns: u64,
    /// Waits, as far as looks tell them apart.
    pub(crate) times: u64,
    /// The longest one that was seen whole or in part, in ns.
    pub(crate) longest_ns: u64,
}

/// What the time of a thread went to, while it was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// ns on a processor.
    pub running_ns: u64,
    /// ns in which it could run and had no processor.
    pub ready_ns: u64,
    /// ns in which it waited for something else.
    pub waiting_ns: u64,
}

/// A thread.
#[derive(Debug)]
struct Watched {
    schedstat: File,
    name: String,
    /// The first look, and what the scheduler had said then.
    first: (Instant, Schedule),
    /// What the scheduler said at the last look.
    before: Schedule,
    times: ThreadTimes,
    /// Waiting time that is in a wait or in `pending_ns`. The scheduler counts what a thread runs some ms late, so it may
    /// be more than what `times` says for a moment.
    counted_ns: u64,
    /// The wait that it was in at the last look.
    current: Option<Current>,
    /// Waiting time that is in no wait yet, in ns.
    pending_ns: u64,
    /// The look at which it was seen to have run.
    ran_at: u32,
    /// It was not there at the first look.
    begun_later: bool,
}

impl Watched {
    /// Counts what the time went to since the first look; returns the waiting time that is new, in ns.
    fn count(&mut self, schedule: Schedule) -> u64 {
        let (begun, at_first) = self.first;
        let got = schedule.since(at_first);
        let whole_ns = nanoseconds(begun.elapsed());
        self.times = ThreadTimes {
            running_ns: got.ran_ns,
            ready_ns: got.ready_ns,
            waiting_ns: whole_ns.saturating_sub(got.ran_ns + got.ready_ns),
        };
        let new_ns = self.times.waiting_ns.saturating_sub(self.counted_ns);
        self.counted_ns += new_ns;
        // What it ran, as is known only now, was no waiting.
        let too_much_ns = self.counted_ns - self.times.waiting_ns;
        let back_ns = too_much_ns.min(self.pending_ns);
        self.pending_ns -= back_ns;
        self.counted_ns -= back_ns;
        new_ns
    }
}

/// A wait that a thread is in.
#[derive(Debug, Clone, Copy)]
struct Current {
    place: usize,
    ns: u64,
    /// The first and the last look at which it was in it, on `CLOCK_MONOTONIC` in ns; the first of those that were not
    /// given out.
    since_ns: u64,
    last_ns: u64,
}

/// A wait, or a part of one, from its first look to its last one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) tid: u32,
    /// Number of its place.
    pub(crate) place: usize,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

impl Current {
    const fn seen(self, tid: u32) -> Seen {
        Seen {
            tid,
            place: self.place,
            from_ns: self.since_ns,
            to_ns: self.last_ns,
        }
    }
}

/// The threads of a process, and what they waited for.
pub(crate) struct Looker {
    threads: BTreeMap<u32, Watched>,
    /// Threads that have ended: their number, name and times.
    ended: Vec<(u32, String, ThreadTimes)>,
    places: Vec<(WaitPlace, Waited)>,
    by_place: HashMap<WaitPlace, usize>,
    peers: Peers,
    /// Waiting time whose wait was not seen, in ns: it was over before a look, or its thread was.
    pub(crate) unseen_ns: u64,
    descriptors: Descriptors,
    /// Threads that cannot be looked at, as there are not enough descriptors: those that live, and how many in all.
    left_out: BTreeSet<u32>,
    pub(crate) threads_left_out: u64,
    /// Threads that began while they were looked at, and ran for less than `BRIEF_NS`.
    pub(crate) brief_threads: u64,
    /// A stack could not be read, though the memory of the process can: it has executed another program.
    pub(crate) has_new_program: bool,
    /// The system calls of threads may not be read.
    pub(crate) is_refused: bool,
    /// Waits that are over and were not given out; `None`: nobody asks for them.
    seen: Option<Vec<Seen>>,
    stack: Vec<u8>,
    /// The thread at which reading begins, the first whose wait had no room in the last look: each has its turn.
    first: u32,
    /// Looks so far.
    looks: u32,
}

impl Looker {
    pub(crate) fn new(descriptors: Descriptors) -> Self {
        Self {
            threads: BTreeMap::new(),
            ended: Vec::new(),
            places: Vec::new(),
            by_place: HashMap::new(),
            peers: Peers::default(),
            unseen_ns: 0,
            descriptors,
            left_out: BTreeSet::new(),
            threads_left_out: 0,
            brief_threads: 0,
            has_new_program: false,
            is_refused: false,
            seen: None,
            stack: vec![0; STACK_BYTES],
            first: 0,
            looks: 0,
        }
    }

    /// One that notes each wait.
    pub(crate) fn noting(descriptors: Descriptors) -> Self {
        Self {
            seen: Some(Vec::new()),
            ..Self::new(descriptors)
        }
    }

    /// The waits that are over, and of those that go on for long the part so far; `at_end`: of all that go on.
    pub(crate) fn take_seen(&mut self, at_end: bool) -> Vec<Seen> {
        let mut seen = self.seen.as_mut().map(std::mem::take).unwrap_or_default();
        for (tid, watched) in &mut self.threads {
            let Some(current) = &mut watched.current else {
                continue;
            };
            let so_far_ns = current.last_ns - current.since_ns;
            if so_far_ns >= GIVEN_NS || at_end {
                seen.push(current.seen(*tid));
                current.since_ns = current.last_ns;
            }
        }
        seen
    }

    /// Forgets all places. What threads wait for is read anew.
    pub(crate) fn forget_places(&mut self) {
        self.places.clear();
        self.by_place.clear();
        for watched in self.threads.values_mut() {
            watched.current = None;
        }
        self.seen.iter_mut().for_each(Vec::clear);
    }

    /// Looks at all threads once; returns whether there are any, also such as cannot be looked at.
    pub(crate) fn look(&mut self, target: &Target, code: &mut Code) -> bool {
        if self.find_threads(target).is_err() {
            self.end_all();
            return false;
        }
        self.looks = self.looks.wrapping_add(1);
        let mut left = READS;
        let (later, earlier): (Vec<u32>, Vec<u32>) =
            self.threads.keys().partition(|tid| **tid >= self.first);
        let mut next = None;
        for tid in later.into_iter().chain(earlier) {
            if left == 0 {
                next = next.or(Some(tid));
            }
            self.look_at(tid, target, code, &mut left);
        }
        self.first = next.unwrap_or(self.first);
        !self.threads.is_empty() || !self.left_out.is_empty()
    }

    /// Begins with threads that are new. Listing all is dear: it is done where there are more or fewer than before, and
    /// now and then, since one may have ended while another one began.
    ///
    /// # Errors
    /// The process has ended.
    fn find_threads(&mut self, target: &Target) -> std::io::Result<()> {
        let is_due = self.looks.is_multiple_of(LIST_EVERY);
        let known = self.threads.len() + self.left_out.len();
        if !is_due && target.count_threads()? == known as u64 {
            return Ok(());
        }
        let tids = target.threads()?;
        self.left_out.retain(|tid| tids.contains(tid));
        for tid in tids {
            if !self.threads.contains_key(&tid) {
                self.begin(target, tid);
            }
        }
        Ok(())
    }

    /// Begins with a thread.
    fn begin(&mut self, target: &Target, tid: u32) {
        let schedstat = match target.file(&format!("task/{tid}/schedstat")) {
            Ok(schedstat) if self.descriptors.has_room_beside(&schedstat, 0) => schedstat,
            // It has ended by now.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Ok(_) | Err(_) => {
                self.threads_left_out += u64::from(self.left_out.insert(tid));
                return;
            }
        };
        self.left_out.remove(&tid);
        let Ok(schedule) = Schedule::read(&schedstat) else {
            return;
        };
        let watched = Watched {
            schedstat,
            name: target.name_of(Some(tid)).unwrap_or_default(),
            first: (Instant::now(), schedule),
            before: schedule,
            times: ThreadTimes::default(),
            counted_ns: 0,
            current: None,
            pending_ns: 0,
            ran_at: self.looks,
            begun_later: self.looks > 0,
        };
        self.threads.insert(tid, watched);
    }

    /// Looks at one thread. `left`: waits that may still be read in this look.
    fn look_at(&mut self, tid: u32, target: &Target, code: &mut Code, left: &mut usize) {
        let looks = self.looks;
        let Some(watched) = self.threads.get_mut(&tid) else {
            return;
        };
        let every = (looks.wrapping_sub(watched.ran_at) / PATIENCE).clamp(1, SELDOM);
        if !looks.wrapping_add(tid).is_multiple_of(every) {
            return;
        }
        let Ok(schedule) = Schedule::read(&watched.schedstat) else {
            self.end(tid);
            return;
        };
        let waited_ns = watched.count(schedule);
        let has_run = std::mem::replace(&mut watched.before, schedule) != schedule;
        if has_run {
            watched.ran_at = looks;
            let over = watched.current.take().map(|current| current.seen(tid));
            if let Some(seen) = &mut self.seen {
                seen.extend(over);
            }
        }
        if let Some(current) = &mut watched.current {
            current.ns += waited_ns;
            current.last_ns = mono_ns();
            let (place, ns) = (current.place, current.ns);
            let waited = &mut self.places[place].1;
            waited.ns += waited_ns;
            waited.longest_ns = waited.longest_ns.max(ns);
            return;
        }
        watched.pending_ns += waited_ns;
        if *left == 0 || watched.pending_ns == 0 {
            return;
        }
        *left -= 1;
        self.name_again(tid, target);
        self.read_wait(tid, target, code, schedule);
    }

    /// Reads what a thread waits for, and counts its waiting time so far to that.
    fn read_wait(&mut self, tid: u32, target: &Target, code: &mut Code, schedule: Schedule) {
        let line = match target.text(&format!("task/{tid}/syscall")) {
            Ok(line) => line,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                self.is_refused = true;
                let wait = Wait::from_outside(tid, target);
                if let Some(wait) = wait.filter(|_| self.has_not_run_since(tid, schedule)) {
                    self.count_wait(tid, WaitPlace::without_stack(wait));
                }
                return;
            }
            // It has ended.
            Err(_) => return,
        };
        // It runs: what it waited for before is not known, and the next wait of the same kind stands for it.
        let Some(call) = SystemCall::parse(&line) else {
            return;
        };
        let came = target.read_memory(call.stack_pointer, &mut self.stack);
        if came == 0 && target.can_read_memory() {
            self.has_new_program = true;
            return;
        }
        let wait = Wait::of(&call, target, &mut self.peers);
        // Else call, object and stack need not belong together.
        if !self.has_not_run_since(tid, schedule) {
            return;
        }
        let registers = Registers {
            instruction: call.instruction,
            stack_pointer: call.stack_pointer,
            frame_pointer: None,
            link: None,
        };
        let was_due = code.is_due();
        let stack = code.unwind(target, registers, &self.stack[..came]);
        // It is in a file that was mapped since. Once that is learned, the wait is read again.
        if !was_due && !code.is_code(call.instruction) {
            return;
        }
        self.count_wait(tid, WaitPlace { wait, stack });
    }

    fn has_not_run_since(&self, tid: u32, schedule: Schedule) -> bool {
        let now = self
            .threads
            .get(&tid)
            .map(|watched| Schedule::read(&watched.schedstat));
        matches!(now, Some(Ok(now)) if now == schedule)
    }

    /// Counts the waiting time of a thread so far to the wait that it is in.
    fn count_wait(&mut self, tid: u32, place: WaitPlace) {
        let Some(watched) = self.threads.get_mut(&tid) else {
            return;
        };
        let next = self.places.len();
        let number = *self.by_place.entry(place.clone()).or_insert(next);
        if number == next {
            self.places.push((place, Waited::default()));
        }
        let ns = std::mem::take(&mut watched.pending_ns);
        let now = mono_ns();
        watched.current = Some(Current {
            place: number,
            ns,
            since_ns: now,
            last_ns: now,
        });
        let waited = &mut self.places[number].1;
        waited.ns += ns;
        waited.times += 1;
        waited.longest_ns = waited.longest_ns.max(ns);
    }

    /// Counts the waiting time of a thread that is in no wait as time whose wait was not seen.
    fn give_up_pending(&mut self, tid: u32) {
        if let Some(watched) = self.threads.get_mut(&tid) {
            self.unseen_ns += std::mem::take(&mut watched.pending_ns);
        }
    }

    fn end(&mut self, tid: u32) {
        self.give_up_pending(tid);
        if let Some(watched) = self.threads.remove(&tid) {
            if let Some(seen) = &mut self.seen {
                seen.extend(watched.current.map(|current| current.seen(tid)));
            }
            let is_brief = watched.begun_later && watched.times.running_ns < BRIEF_NS;
            self.brief_threads += u64::from(is_brief);
            self.ended.push((tid, watched.name, watched.times));
        }
    }

    fn end_all(&mut self) {
        for tid in self.threads.keys().copied().collect::<Vec<_>>() {
            self.end(tid);
        }
    }

    /// Reads the name of a thread again: most name themselves after they have begun.
    fn name_again(&mut self, tid: u32, target: &Target) {
        if let Some(watched) = self.threads.get_mut(&tid)
            && let Some(name) = target.name_of(Some(tid))
        {
            watched.name = name;
        }
    }

    /// Looks at all threads, also at those that are looked at more seldom.
    pub(crate) fn look_at_all(&mut self, target: &Target, code: &mut Code) {
        for tid in self.threads.keys().copied().collect::<Vec<_>>() {
            self.name_again(tid, target);
        }
        let looks = self.looks.wrapping_add(1);
        let threads = self.threads.values_mut();
        threads.for_each(|watched| watched.ran_at = looks);
        self.look(target, code);
    }

    /// All threads, living ones first: number, name and times.
    pub(crate) fn threads(&mut self) -> Vec<(u32, String, ThreadTimes)> {
        for tid in self.threads.keys().copied().collect::<Vec<_>>() {
            self.give_up_pending(tid);
        }
        let living = self
            .threads
            .iter()
            .map(|(tid, watched)| (*tid, watched.name.clone(), watched.times));
        living.chain(self.ended.iter().cloned()).collect()
    }

    /// Where threads waited, and how long.
    pub(crate) fn places(&self) -> &[(WaitPlace, Waited)] {
        &self.places
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
