//! The process that a library is loaded into, as far as the tool has come with it.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::calls;
use crate::error::LoadError;
use crate::memory::Memory;
use crate::options::Options;
use crate::ptrace::{Registers, Stopped};
use crate::sandbox::Sandbox;
use crate::source::Source;
use crate::target;

/// The process, and what is to be done in it.
pub(crate) struct Injection<'a> {
    pub(crate) pid: i32,
    pub(crate) path: &'a Path,
    pub(crate) source: Rc<Source>,
    pub(crate) options: &'a Options<'a>,
    pub(crate) end: Instant,
    pub(crate) memory: Memory,
    /// Threads that did not stop in time.
    pub(crate) late: HashSet<i32>,
    /// What kept each thread, the last time.
    pub(crate) reasons: BTreeMap<i32, String>,
    pub(crate) longest_stop: Duration,
    pub(crate) sandbox: Sandbox,
}

impl<'a> Injection<'a> {
    pub(crate) fn new(
        pid: i32,
        path: &'a Path,
        options: &'a Options<'a>,
    ) -> Result<Self, LoadError> {
        target::check(pid)?;
        let source = Source::of(pid, path)?;
        let is_copy = matches!(source, Source::Copy { .. });
        let memory = Memory::open(pid).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => target::not_permitted(pid),
            _ => LoadError::NoProcess { pid },
        })?;
        Ok(Self {
            pid,
            path,
            source: Rc::new(source),
            options,
            end: Instant::now() + options.limit,
            memory,
            late: HashSet::new(),
            reasons: BTreeMap::new(),
            longest_stop: Duration::ZERO,
            sandbox: Sandbox::new(is_copy || options.needs_memfd),
        })
    }

    pub(crate) fn failed(&self, what: &'static str) -> impl Fn(io::Error) -> LoadError + use<> {
        let pid = self.pid;
        move |error| LoadError::Failed { pid, what, error }
    }

    /// Lets a thread go on as if it had not been stopped: some calls would return EINTR now.
    pub(crate) fn let_go(&mut self, stopped: Stopped, registers: &Registers) {
        calls::begin_again(&stopped, registers);
        self.went_on(stopped);
    }

    /// Lets go of threads that stopped too late.
    pub(crate) fn let_go_late(&mut self) {
        self.late.retain(|tid| !calls::let_go_late(*tid));
    }

    /// As [`Self::let_go`], of a thread whose registers were not read yet.
    pub(crate) fn let_go_as_it_was(&mut self, stopped: Stopped) {
        match stopped.registers() {
            Ok(registers) => self.let_go(stopped, &registers),
            Err(_) => self.went_on(stopped),
        }
    }

    pub(crate) fn went_on(&mut self, stopped: Stopped) {
        if let Ok(duration) = stopped.let_go() {
            self.longest_stop = self.longest_stop.max(duration);
        }
    }
}
