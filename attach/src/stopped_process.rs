//! A process all of whose threads are stopped, and go on when this is dropped as if nothing had been.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::calls;
use crate::error::LoadError;
use crate::ptrace::{self, NotStopped, Registers, Stopped};
use crate::target;

/// Threads that were asked to stop and have not yet. They are let go as soon as they stop.
#[derive(Debug, Default)]
pub(crate) struct LateThreads(BTreeSet<i32>);

impl LateThreads {
    /// Lets go of those that have stopped since, for a while. Whether any is left.
    pub(crate) fn let_go(&mut self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        loop {
            self.0.retain(|tid| !calls::let_go_late(*tid));
            if self.0.is_empty() || Instant::now() >= end {
                return !self.0.is_empty();
            }
            thread::sleep(GLANCE);
        }
    }
}

const GLANCE: Duration = Duration::from_micros(50);
/// How long the process may stand still until its last thread stops, which needs time of a processor for that.
const STOP_LIMIT: Duration = Duration::from_millis(300);

/// The process. Nothing runs in its memory.
#[derive(Debug)]
pub(crate) struct StoppedProcess {
    pid: i32,
    threads: BTreeMap<i32, (Stopped, Registers)>,
    since: Instant,
}

/// Why it does not stop now.
#[derive(Debug)]
pub(crate) enum Unstoppable {
    /// This thread does not stop, for this reason; another time it may.
    NotNow(i32, &'static str),
    /// It never will.
    Error(LoadError),
}

impl StoppedProcess {
    /// Stops one thread after the other until there is no other one. None may be late from a stop before.
    pub(crate) fn stop(pid: i32, late: &mut LateThreads) -> Result<Self, Unstoppable> {
        let mut process = Self {
            pid,
            threads: BTreeMap::new(),
            since: Instant::now(),
        };
        while process.stop_new(late)? {}
        match sharer(pid) {
            Ok(None) => Ok(process),
            Ok(Some(other)) => Err(Unstoppable::NotNow(other, "shares its memory")),
            Err(error) => Err(Unstoppable::Error(LoadError::Failed {
                pid,
                what: "asking which processes share its memory (kcmp)",
                error,
            })),
        }
    }

    /// Stops those that were not seen before; whether there were any.
    fn stop_new(&mut self, late: &mut LateThreads) -> Result<bool, Unstoppable> {
        let mut new = target::threads(self.pid);
        new.retain(|tid| !self.threads.contains_key(tid));
        // All are asked before one is waited for.
        let asked = new.iter().map(|tid| (*tid, ptrace::ask_to_stop(*tid)));
        let asked: Vec<_> = asked.collect();
        let mut obstacle = None;
        for (tid, asked) in asked {
            let wait = |asked: ptrace::AskedToStop| match obstacle {
                None => asked.wait(STOP_LIMIT),
                Some(_) => Err(NotStopped::Stuck),
            };
            let why = match asked.and_then(wait) {
                Ok(stopped) => match stopped.registers() {
                    Ok(registers) => {
                        self.threads.insert(tid, (stopped, registers));
                        continue;
                    }
                    Err(_) => continue, // It has been killed.
                },
                Err(NotStopped::Gone) => continue,
                Err(NotStopped::Stuck) => {
                    late.0.insert(tid);
                    "does not come back from the kernel, or gets no time of a processor"
                }
                Err(NotStopped::Halted) => "is stopped by a signal",
                Err(NotStopped::Refused(error)) => {
                    return Err(Unstoppable::Error(self.refused(tid, error)));
                }
            };
            obstacle = obstacle.or(Some(Unstoppable::NotNow(tid, why)));
        }
        obstacle.map_or(Ok(!new.is_empty()), Err)
    }

    fn refused(&self, tid: i32, error: io::Error) -> LoadError {
        let pid = self.pid;
        let tracer = target::status(pid, tid).map_or(0, |status| status.tracer);
        match error.raw_os_error() {
            _ if tracer != 0 => LoadError::TracedAlready { pid, tracer },
            Some(libc::EPERM) => target::not_permitted(pid),
            _ => LoadError::Failed {
                pid,
                what: "ptrace",
                error,
            },
        }
    }

    /// The registers of each thread.
    pub(crate) fn registers(&self) -> impl Iterator<Item = (i32, &Registers)> {
        let threads = self.threads.iter();
        threads.map(|(tid, (_, registers))| (*tid, registers))
    }

    /// Since when the first thread may stand still.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }
}

impl Drop for StoppedProcess {
    fn drop(&mut self) {
        for (tid, (stopped, registers)) in std::mem::take(&mut self.threads) {
            // A handler that runs first ends the call, as it would have without a stop.
            let has_signal = target::status(self.pid, tid).is_none_or(|status| status.has_signal);
            if !has_signal {
                calls::begin_again(&stopped, &registers);
            }
            let _ = stopped.let_go(); // It has been killed if this fails.
        }
    }
}

/// Another process that has the same memory.
fn sharer(pid: i32) -> io::Result<Option<i32>> {
    // A filter of system calls may forbid the question: then it is no answer that others may not be asked about.
    has_memory_of(pid, pid)?;
    let processes = fs::read_dir("/proc")?;
    let numbers = processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for other in numbers.filter(|other| *other != pid) {
        match has_memory_of(pid, other) {
            Ok(false) => {}
            Ok(true) => return Ok(Some(other)),
            // It has ended, or belongs to somebody else.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::EPERM)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn has_memory_of(one: i32, other: i32) -> io::Result<bool> {
    const KCMP_VM: i32 = 1;
    // SAFETY: it takes numbers.
    match unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        order => Ok(order == 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_its_own_memory_alone() {
        let own = std::process::id().cast_signed();
        assert!(has_memory_of(own, own).expect("kcmp"));
        let parent = std::os::unix::process::parent_id().cast_signed();
        assert!(!has_memory_of(own, parent).is_ok_and(|is_same| is_same));
        assert_eq!(sharer(own).expect("kcmp"), None);
    }
}
