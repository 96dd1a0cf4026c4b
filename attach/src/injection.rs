//! The process that a library is loaded into, as far as the tool has come with it.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::calls;
use crate::error::LoadError;
use crate::memory::Memory;
use crate::options::Options;
use crate::ptrace::{Registers, Stopped};
use crate::target;

/// The process, and what is to be done in it.
pub(crate) struct Injection<'a> {
    pub(crate) pid: i32,
    pub(crate) path: &'a Path,
    pub(crate) options: &'a Options<'a>,
    pub(crate) end: Instant,
    pub(crate) memory: Memory,
    /// Threads that did not stop in time.
    pub(crate) late: HashSet<i32>,
    /// What kept each thread, the last time.
    pub(crate) reasons: BTreeMap<i32, String>,
    pub(crate) longest_stop: Duration,
}

impl<'a> Injection<'a> {
    pub(crate) fn new(
        pid: i32,
        path: &'a Path,
        options: &'a Options<'a>,
    ) -> Result<Self, LoadError> {
        target::check(pid, path)?;
        let memory = Memory::open(pid).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => target::not_permitted(pid),
            _ => LoadError::NoProcess { pid },
        })?;
        Ok(Self {
            pid,
            path,
            options,
            end: Instant::now() + options.limit,
            memory,
            late: HashSet::new(),
            reasons: BTreeMap::new(),
            longest_stop: Duration::ZERO,
        })
    }

    pub(crate) fn failed(&self, what: &'static str) -> impl Fn(io::Error) -> LoadError + use<> {
        let pid = self.pid;
        move |error| LoadError::Failed { pid, what, error }
    }

    /// Lets a thread go on as if it had not been stopped: some calls would return EINTR now.
    pub(crate) fn let_go(&mut self, stopped: Stopped, registers: &Registers) {
        if !calls::is_again_by_itself(registers)
            && let Some((rip, number)) = calls::again(registers)
        {
            let mut again = *registers;
            (again.rip, again.rax, again.orig_rax) = (rip, number, u64::MAX);
            // It has been killed if this fails.
            let _ = stopped.set_registers(&again);
        }
        self.went_on(stopped);
    }

    pub(crate) fn went_on(&mut self, stopped: Stopped) {
        if let Ok(duration) = stopped.let_go() {
            self.longest_stop = self.longest_stop.max(duration);
        }
    }
}
