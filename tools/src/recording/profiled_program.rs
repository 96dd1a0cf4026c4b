//! A program that is started to be looked at from outside: nothing of it is prepared or traced.

use std::ffi::OsString;
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};

use ringmark_console::{Failure, given};

use super::passed_signals::{PassedSignals, RunningPid};
use super::traced_program::not_started;

/// A program that was started. Signals to this process are passed on to it.
pub(crate) struct ProfiledProgram {
    child: Child,
    running: RunningPid,
}

impl ProfiledProgram {
    /// Starts a program as it would be without this command.
    ///
    /// # Errors
    /// It is not there (exit code 127) or cannot be executed (126); those of taking signals.
    pub(crate) fn start(command: &[OsString]) -> anyhow::Result<Self> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(Failure::usage("no command after '--'").into());
        };
        let signals = PassedSignals::take()?;
        let started = given::command(program, arguments, &[], &[]).spawn();
        let child = started.map_err(|error| not_started(&program.to_string_lossy(), &error))?;
        let running = Arc::new(Mutex::new(Some(child.id())));
        // The program decides what they end, and this command ends with it.
        signals.pass_to(Arc::clone(&running))?;
        Ok(Self { child, running })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended; `None`: it runs.
    ///
    /// # Errors
    /// Those of `waitpid`.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        // Nobody may signal its number while it becomes free.
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let status = self.child.try_wait()?;
        if status.is_some() {
            *running = None;
        }
        Ok(status)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Those of `waitpid`.
    pub(crate) fn wait(mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            std::thread::sleep(ringmark_profile::LOOK_EVERY);
        }
    }
}
