//! What the threads of a process wait for, wait by wait, for who writes it down.
//!
//! It is seen by looking ([`Looker`]): no event of the kernel is needed, and nothing of the process is stopped or
//! changed. A wait that begins and ends between two looks is not seen.

use std::io;
use std::time::{Duration, Instant};

use crate::code::Code;
use crate::descriptors::Descriptors;
use crate::error::ProfileError;
use crate::lines;
use crate::looker::{Looker, WaitPlace};
use crate::own_numbers::OwnNumbers;
use crate::target::Target;

/// Looks take at most one part in so many of the time of a processor.
const LOOK_PART: u32 = 100;
/// Least and most time between two looks.
const LOOKS: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(100)];
/// Places that are kept. A program may wait for ever new ones.
const PLACES: usize = 1 << 14;

/// A wait that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenWait {
    /// First look at which the thread was in it, on the process's `CLOCK_MONOTONIC`, in ns.
    pub from_mono_ns: u64,
    /// Last look at which it was.
    pub to_mono_ns: u64,
    /// The thread, as its process numbers it.
    pub tid: u32,
    /// Lines: what it waited for, then the functions that waited, the innermost first.
    pub text: String,
}

/// Looks at the threads of a process now and then.
pub struct WaitWatch {
    target: Target,
    code: Code,
    looker: Looker,
    numbers: OwnNumbers,
    /// By how much `CLOCK_MONOTONIC` of the process is ahead of ours.
    ahead_ns: i64,
    due: Instant,
}

impl std::fmt::Debug for WaitWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitWatch").finish_non_exhaustive()
    }
}

impl WaitWatch {
    /// Begins with a process. Each thread takes a descriptor: the limit of this process is best raised before.
    ///
    /// # Errors
    /// There is no such process.
    pub fn attach(pid: u32) -> io::Result<Self> {
        let open = |pid| Target::open(pid).map_err(|ProfileError::NoProcess { error, .. }| error);
        let (target, ours) = (open(pid)?, open(std::process::id())?);
        Ok(Self {
            code: Code::of(&target),
            looker: Looker::noting(Descriptors::now()),
            numbers: OwnNumbers::of(&target),
            ahead_ns: target
                .monotonic_ahead_ns()
                .saturating_sub(ours.monotonic_ahead_ns()),
            target,
            due: Instant::now(),
        })
    }

    /// Looks if it is time to, and gives out the waits that are over, and of long ones the part so far. To be called some
    /// 100 times a second.
    pub fn take(&mut self) -> Vec<SeenWait> {
        let begun = Instant::now();
        if begun < self.due {
            return Vec::new();
        }
        self.look();
        let given = self.give(false);
        let [least, most] = LOOKS;
        let pause = begun.elapsed().saturating_mul(LOOK_PART);
        self.due = Instant::now() + pause.clamp(least, most);
        given
    }

    /// Gives out all that is left.
    pub fn take_rest(&mut self) -> Vec<SeenWait> {
        self.give(true)
    }

    /// Whether what threads wait for may not be read.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.looker.is_refused
    }

    /// Threads that are not looked at.
    #[must_use]
    pub const fn threads_left_out(&self) -> u64 {
        self.looker.threads_left_out
    }

    fn look(&mut self) {
        if self.looker.places().len() > PLACES {
            self.looker.forget_places();
        }
        self.looker.look(&self.target, &mut self.code);
        if std::mem::take(&mut self.looker.has_new_program) && self.target.has_memory() {
            self.target.open_memory();
            self.code.begin_again(&self.target);
        }
    }

    fn give(&mut self, at_end: bool) -> Vec<SeenWait> {
        let mut given = Vec::new();
        for seen in self.looker.take_seen(at_end) {
            let Some(tid) = self.numbers.own(&self.target, seen.tid, false) else {
                continue;
            };
            let Some((place, _)) = self.looker.places().get(seen.place) else {
                continue;
            };
            given.push(SeenWait {
                from_mono_ns: seen.from_ns.saturating_add_signed(self.ahead_ns),
                to_mono_ns: seen.to_ns.saturating_add_signed(self.ahead_ns),
                tid,
                text: text(place, &self.code),
            });
        }
        given
    }
}

/// The lines of a place.
fn text(place: &WaitPlace, code: &Code) -> String {
    let what = lines::line(&place.wait.words());
    let functions = lines::functions(&place.stack, code);
    let lines: Vec<_> = std::iter::once(what).chain(functions).collect();
    lines.join("\n")
}
