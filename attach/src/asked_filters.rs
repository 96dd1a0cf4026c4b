//! The seccomp filters of the target's threads: read, and asked before anything is done.

use std::collections::HashSet;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::LoadError;
use crate::injection::Injection;
use crate::ptrace::Stopped;
use crate::target;

/// `Seccomp:` in a thread's status.
const STRICT: u32 = 1;

/// Why the filters could not be read.
fn unreadable(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => "only root (CAP_SYS_ADMIN) that has no filter itself \
            can read whether its filter allows what loading needs; run this as root outside of \
            the container, or start the program with 'ringmark run'"
            .into(),
        _ => format!("its filter cannot be read ({error}); start the program with 'ringmark run'"),
    }
}

impl Injection<'_> {
    /// Asks the filters of all threads: the tracer records on each of them.
    pub(crate) fn ask_filters(&mut self) -> Result<(), LoadError> {
        let mut asked = HashSet::new();
        loop {
            let mut is_complete = true;
            for tid in target::threads(self.pid) {
                if asked.contains(&tid) || !self.is_filtered(tid) {
                    continue;
                }
                if self.late.contains(&tid) {
                    is_complete = false;
                    continue;
                }
                let Some(stopped) = self.stop(tid)? else {
                    is_complete = false;
                    continue;
                };
                let answer = self.ask_filters_of(&stopped, tid);
                self.let_go_as_it_was(stopped);
                answer?;
                asked.insert(tid);
            }
            if is_complete {
                return Ok(());
            }
            if Instant::now() >= self.end {
                return Err(self.no_safe_place());
            }
            thread::sleep(Duration::from_millis(1));
            self.let_go_late();
        }
    }

    fn is_filtered(&self, tid: i32) -> bool {
        target::status(self.pid, tid).is_some_and(|status| status.seccomp != 0)
    }

    /// Asks the filters of a stopped thread.
    pub(crate) fn ask_filters_of(&mut self, stopped: &Stopped, tid: i32) -> Result<(), LoadError> {
        let mode = target::status(self.pid, tid).map_or(0, |status| status.seccomp);
        let obstacle = match mode {
            0 => None,
            STRICT => Some(
                "strict mode kills for nearly every call; start the program with 'ringmark run'"
                    .into(),
            ),
            _ => match stopped.filters() {
                Ok(filters) => self.sandbox.obstacle(filters),
                Err(error) => Some(unreadable(&error)),
            },
        };
        let pid = self.pid;
        match obstacle {
            None => Ok(()),
            Some(reason) => Err(LoadError::Seccomp { pid, tid, reason }),
        }
    }
}
