//! One thread after the other, until one comes to where it can load the library.

use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use crate::calls;
use crate::entered::Entered;
use crate::error::LoadError;
use crate::injection::Injection;
use crate::loaded::{Loaded, Way};
use crate::plan::{Plan, Surroundings};
use crate::ptrace::{self, NotStopped, Registers, Stopped};
use crate::source::Source;
use crate::survey::{NOT_LOADED, Survey};
use crate::target;
use crate::trampoline;

/// How long a thread is waited for that shall return from a library, in the first round.
const FIRST_WAIT: Duration = Duration::from_millis(20);

/// How long a program is given to load its C library.
const LOADING: Duration = Duration::from_secs(1);

enum Tried {
    Loaded(Loaded),
    NotNow,
}

impl Injection<'_> {
    /// Sees whether there is anything against it, and tries nothing.
    pub(crate) fn examine(mut self) -> Result<(), LoadError> {
        self.ask_filters()?;
        let source = Rc::clone(&self.source);
        let call = self.options.call;
        Survey::of(self.pid, &self.memory, self.path, &source, call).map(drop)
    }

    /// Tries until the time is over.
    pub(crate) fn run(mut self) -> Result<Loaded, LoadError> {
        self.ask_filters()?;
        let mut patience = FIRST_WAIT;
        let source = Rc::clone(&self.source);
        loop {
            let survey = self.survey(&source)?;
            for tid in self.candidates() {
                if Instant::now() >= self.end {
                    break;
                }
                if let Tried::Loaded(loaded) = self.attempt(&survey, tid, patience)? {
                    return Ok(loaded);
                }
            }
            if Instant::now() >= self.end {
                return Err(self.no_safe_place());
            }
            if target::threads(self.pid).is_empty() {
                return Err(LoadError::NoProcess { pid: self.pid });
            }
            patience = (patience * 2).min(Duration::from_millis(500));
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The modules, of a program that begins just now once its C library is there.
    fn survey<'s>(&self, source: &'s Source) -> Result<Survey<'s>, LoadError>
    where
        Self: 's,
    {
        let begun = Instant::now();
        loop {
            match Survey::of(self.pid, &self.memory, self.path, source, self.options.call) {
                Err(LoadError::Unsuitable {
                    reason: NOT_LOADED, ..
                }) if begun.elapsed() < LOADING => thread::sleep(Duration::from_millis(5)),
                found => return found,
            }
        }
    }

    pub(crate) fn no_safe_place(&self) -> LoadError {
        const SHOWN: usize = 8;
        let about = self.reasons.iter().take(SHOWN);
        let about: Vec<_> = about
            .map(|(tid, why)| format!("thread {tid} {why}"))
            .collect();
        let mut threads = about.join("; ");
        if self.reasons.len() > SHOWN {
            threads += &format!("; and {} more", self.reasons.len() - SHOWN);
        }
        LoadError::NoSafePlace {
            pid: self.pid,
            limit: self.options.limit,
            threads,
        }
    }

    /// Threads, those that run first: they come to a safe place soonest, and no call of theirs is
    /// interrupted. Last those in calls that a stop ends.
    fn candidates(&mut self) -> Vec<i32> {
        self.let_go_late();
        let mut found = Vec::new();
        for tid in target::threads(self.pid) {
            let Some(status) = target::status(self.pid, tid) else {
                self.reasons.remove(&tid);
                continue;
            };
            let reason = match status.state {
                _ if self.late.contains(&tid) => "does not come back from the kernel",
                'D' => "waits in the kernel for a disk, or for a child of vfork",
                'T' => "is stopped by a signal",
                't' => "is stopped by a debugger",
                'Z' | 'X' => continue,
                state => {
                    let is_fragile = target::call(self.pid, tid).is_some_and(calls::is_fragile);
                    found.push((state != 'R', is_fragile, tid));
                    continue;
                }
            };
            self.reasons.insert(tid, reason.into());
        }
        found.sort_unstable();
        found.into_iter().map(|(_, _, tid)| tid).collect()
    }

    fn attempt(
        &mut self,
        survey: &Survey<'_>,
        tid: i32,
        patience: Duration,
    ) -> Result<Tried, LoadError> {
        let Some(stopped) = self.stop(tid)? else {
            return Ok(Tried::NotNow);
        };
        let Ok(registers) = stopped.registers() else {
            return Ok(Tried::NotNow);
        };
        // It may have put on another filter since all were asked.
        if let Err(error) = self.ask_filters_of(&stopped, tid) {
            self.let_go(stopped, &registers);
            return Err(error);
        }
        let plan = self.plan(survey, &stopped, &registers, tid);
        let entered = match plan {
            Plan::No(reason) => {
                self.reasons.insert(tid, reason);
                self.let_go(stopped, &registers);
                return Ok(Tried::NotNow);
            }
            Plan::Now => self.enter(survey, stopped, &registers, tid)?,
            Plan::AtReturn { slot, resume } => {
                let entered = self.divert(survey, &stopped, tid, slot, resume)?;
                self.let_go(stopped, &registers);
                if !self.await_begin(&entered, patience) && self.undo(&entered, slot, resume)? {
                    self.reasons
                        .insert(tid, "does not return to the program's code".into());
                    return Ok(Tried::NotNow);
                }
                entered
            }
        };
        self.finish(&entered).map(Tried::Loaded)
    }

    pub(crate) fn stop(&mut self, tid: i32) -> Result<Option<Stopped>, LoadError> {
        let reason = match ptrace::stop(tid) {
            Ok(stopped) => return Ok(Some(stopped)),
            Err(NotStopped::Gone) => return Ok(None),
            Err(NotStopped::Stuck) => {
                self.late.insert(tid);
                "does not come back from the kernel"
            }
            Err(NotStopped::Halted) => "is stopped by a signal",
            Err(NotStopped::Refused(error)) => {
                let tracer = target::status(self.pid, tid).map_or(0, |status| status.tracer);
                return Err(match error.raw_os_error() {
                    _ if tracer != 0 => LoadError::TracedAlready {
                        pid: self.pid,
                        tracer,
                    },
                    Some(libc::EPERM) => target::not_permitted(self.pid),
                    _ => self.failed("ptrace")(error),
                });
            }
        };
        self.reasons.insert(tid, reason.into());
        Ok(None)
    }

    fn plan(
        &self,
        survey: &Survey<'_>,
        stopped: &Stopped,
        registers: &Registers,
        tid: i32,
    ) -> Plan {
        let Some(status) = target::status(self.pid, tid) else {
            return Plan::No("has ended".into());
        };
        if status.has_signal {
            return Plan::No("has a signal to handle first".into());
        }
        if let Some(at) = stopped.sequences()
            && self.memory.word(at + 8).is_ok_and(|sequence| sequence != 0)
        {
            return Plan::No("is in a restartable sequence".into());
        }
        let surroundings = Surroundings {
            memory: &self.memory,
            modules: &survey.modules,
            brings_allocator: survey.brings_allocator,
            has_shadow_stack: status.has_shadow_stack,
        };
        match surroundings.plan(registers) {
            Plan::No(reason) => Plan::No(reason),
            _ if !survey.is_current(self.pid) => Plan::No("has other modules by now".into()),
            plan => plan,
        }
    }

    /// Puts the code where nothing is, to end at `resume`. No thread runs it yet.
    fn put(&self, survey: &Survey<'_>, resume: u64) -> Result<(), LoadError> {
        let code = trampoline::code(&survey.work, survey.place, resume);
        let written = self.memory.write(survey.place, &code);
        written.map_err(self.failed("writing the loading code"))
    }

    /// Sends the thread into the code.
    fn enter(
        &mut self,
        survey: &Survey<'_>,
        stopped: Stopped,
        registers: &Registers,
        tid: i32,
    ) -> Result<Entered, LoadError> {
        let mut changed = *registers;
        let mut resume = registers.rip;
        if let Some((rip, number)) = calls::again(registers) {
            (resume, changed.rax) = (rip, number);
        }
        self.put(survey, resume)?;
        let (at, length) = (survey.place, survey.length);
        (changed.rip, changed.orig_rax) = (at + trampoline::ENTRY, u64::MAX);
        let since = Instant::now();
        stopped
            .set_registers(&changed)
            .map_err(self.failed("ptrace"))?;
        self.went_on(stopped);
        let mailbox = trampoline::mailbox(registers.rsp);
        let way = if resume == registers.rip {
            Way::Running
        } else {
            Way::Waiting
        };
        Ok(Entered {
            tid,
            at,
            length,
            mailbox,
            nonce: survey.work.nonce,
            since,
            way,
        })
    }

    /// Makes a library's function return into the code instead of into the program.
    fn divert(
        &self,
        survey: &Survey<'_>,
        _stopped: &Stopped,
        tid: i32,
        slot: u64,
        resume: u64,
    ) -> Result<Entered, LoadError> {
        self.put(survey, resume)?;
        let (at, length) = (survey.place, survey.length);
        let entry = at + trampoline::ENTRY;
        self.memory
            .write(slot, &entry.to_le_bytes())
            .map_err(self.failed("writing a return address"))?;
        Ok(Entered {
            tid,
            at,
            length,
            mailbox: trampoline::mailbox(slot + 8),
            nonce: survey.work.nonce,
            since: Instant::now(),
            way: Way::Returned,
        })
    }
}
