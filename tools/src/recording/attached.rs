//! Recordings of a running process with its functions: the function tracer is loaded where it is
//! missing, switched on, and off again when the recording ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use ringmark_format::tracer_text::{RequestLine, TracerLine, Verb};
use ringmark_reader::record::{RecordOptions, Recorder};
use ringmark_reader::{Dump, Selection};

use super::outcome::Outcome;
use super::sessions::Display;
use super::watches::{ThreadOptions, Watches};
use crate::tracing::lease;
use crate::tracing::moved_sites::MovedSites;
use crate::tracing::one_tracer::OneTracer;
use crate::tracing::preload::Wanted;
use crate::tracing::rings::Rings;
use crate::tracing::tracer_session::TracerSession;
use ringmark_console::signals::Signals;
use ringmark_console::{Failure, note};

/// A function tracer of a process, ready to be switched on.
#[derive(Debug)]
pub(crate) struct Attached<'a> {
    session: TracerSession,
    of: OneTracer,
    wanted: &'a Wanted<'a>,
    /// Functions without patch sites of their compiler.
    moved: Mutex<MovedSites>,
}

impl<'a> Attached<'a> {
    /// Loads the function tracer into a process that has none. No function is traced yet.
    ///
    /// # Errors
    /// It cannot be loaded, no function is meant, or another command has switched the tracer on.
    pub(crate) fn load(pid: u32, wanted: &'a Wanted<'a>, rings: Rings) -> anyhow::Result<Self> {
        let mut moved = MovedSites::of(pid, &wanted.name_lines());
        let found = moved.look();
        let attached = Self {
            session: TracerSession::find_or_load(pid, rings, found.any())?,
            of: OneTracer {
                pid,
                tracer: Some(wanted.kind.to_owned()),
            },
            wanted,
            moved: Mutex::new(moved),
        };
        found.tell(pid);
        found.hand_over(&attached.session)?;
        attached.check()?;
        Ok(attached)
    }

    /// Before anything is written: a start that is refused costs no trace file.
    fn check(&self) -> anyhow::Result<()> {
        let status = self.session.ask(Verb::Status, &[])?;
        let tracer = status.tracers().find(|line| self.of.is(line));
        let is_on = |line: &TracerLine<'_>| line.state != "off";
        if tracer.as_ref().is_some_and(is_on) {
            let (pid, kind) = (self.of.pid, self.wanted.kind);
            return Err(Failure::no_target(format!(
                "pid {pid}: the function tracer {kind} is on already; 'ringmark record -p {pid}' \
                 records it, 'ringmark trace stop -p {pid} --tracer {kind}' stops it"
            ))
            .into());
        }
        if tracer.is_some() {
            // Refused where nothing matches.
            let names = self.wanted.name_lines();
            self.session
                .ask(Verb::Filter, &self.of.lines_with(&names))?;
        }
        Ok(())
    }

    /// Switches the tracer on, records all sessions of the process for `time`, or until the process
    /// ends or Ctrl-C, and switches it off before the last pages are taken.
    ///
    /// # Errors
    /// The sessions cannot be recorded, or the process does not answer.
    pub(crate) fn record(
        self,
        file: Dump,
        options: RecordOptions,
        time: Option<Duration>,
        threads: ThreadOptions,
    ) -> anyhow::Result<Outcome> {
        let signals = Signals::watch().context("watching signals")?;
        // Calls that an earlier recording has are none of this one's.
        let options = RecordOptions {
            from_now: true,
            ..options
        };
        let mut recorder = Recorder::new(Selection::Pid(self.of.pid), file, options)?;
        let watches = threads.watches_of(&mut recorder);
        let mut display = Display::new(true);
        let (is_off, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        let (ended, traced) = thread::scope(|scope| {
            let tracing = scope.spawn(|| {
                let traced = self.trace(&signals, &is_over, time);
                is_off.store(true, Ordering::Relaxed);
                traced
            });
            let ended = recorder.run_with(&is_off, |recorder| display.show(recorder));
            // The process has ended, or the trace file can take no more.
            is_over.store(true, Ordering::Relaxed);
            (ended, tracing.join())
        });
        display.clear();
        watches.iter().for_each(Watches::tell);
        let mut outcome = Outcome::of(&mut recorder, ended)?;
        outcome.tell_skipped();
        match traced {
            Ok(Ok(())) => {}
            // What was recorded is there.
            Ok(Err(error)) => outcome.fail(&error),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(outcome)
    }

    fn trace(
        &self,
        signals: &Signals,
        is_over: &AtomicBool,
        time: Option<Duration>,
    ) -> anyhow::Result<()> {
        // A trace file has the calls of its recording.
        let own = vec![lease::line(), RequestLine::Anew];
        let lines = [self.wanted.lines_with_budget(), own].concat();
        let answer = match self.session.ask(Verb::Start, &lines) {
            Err(_) if self.session.has_ended() => {
                note(&format!("pid {} has ended", self.of.pid));
                return Ok(());
            }
            answer => answer?,
        };
        note(&answer.summary());
        answer.tell_refusals();
        let begun = Instant::now();
        let mut moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        lease::hold(&self.session, &self.of, &mut moved, || {
            is_over.load(Ordering::Relaxed)
                || signals.received().is_some()
                || time.is_some_and(|time| begun.elapsed() >= time)
        })
    }
}
