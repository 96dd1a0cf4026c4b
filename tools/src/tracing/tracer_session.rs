//! The session of a process that answers requests to its function tracers.

use std::thread;
use std::time::{Duration, Instant};

use ringmark_format::tracer_text::{RequestLine, Verb};
use ringmark_reader::{Access, ReaderError, Session, SessionInfo, find};

use super::inject;
use super::mounts;
use super::movable;
use super::requests::{self, Answer, knows_tracers};
use super::rings::Rings;
use ringmark_console::json::Head;
use ringmark_console::{Failure, printable};

/// How long a process has for its answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long a tracer that the process was started with has until it answers.
const START_WITHIN: Duration = Duration::from_secs(2);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The session of a process that answers for its tracers. The process may have a second session,
/// for events of its own, that does not.
#[derive(Debug)]
pub(crate) struct TracerSession {
    pid: u32,
    session: Session,
}

impl TracerSession {
    /// Finds it. A process without one is left as it is.
    ///
    /// # Errors
    /// There is no such process, it has no session with tracers, or we may not.
    pub(crate) fn find(pid: u32) -> anyhow::Result<Self> {
        let missing = || {
            let text = format!(
                "pid {pid}: runs without the function tracer; 'ringmark trace start -p {pid}' loads it"
            );
            let untraceable = || match movable::has_any(pid) {
                true => None,
                false => inject::require_sites(pid).err(),
            };
            let obstacle = inject::obstacle(pid).or_else(untraceable);
            obstacle.unwrap_or_else(|| Failure::no_target(text))
        };
        let mut found = Self::of(pid)?;
        let end = Instant::now() + START_WITHIN;
        while found.is_none() && inject::is_starting(pid) && Instant::now() < end {
            thread::sleep(LOOK_EVERY);
            found = Self::of(pid)?;
        }
        Ok(found.ok_or_else(missing)?)
    }

    /// Finds it, after loading the shared object into a process that has none. `rings`: what its
    /// session is to be like. `moved`: whether functions are to be traced there without patch sites of their
    /// compiler, or the first reason why one cannot.
    ///
    /// # Errors
    /// As [`TracerSession::find`], the object cannot be loaded, or the session is there and not so.
    pub(crate) fn find_or_load(
        pid: u32,
        rings: Rings,
        moved: Result<(), Option<&str>>,
    ) -> anyhow::Result<Self> {
        if let Some(session) = Self::of(pid)? {
            rings.check(pid, session.session.header())?;
            return Ok(session);
        }
        let is_nameless = !mounts::shares_sessions(pid);
        let settings = rings.settings(threads_of(pid), is_nameless);
        if let Err(refusal) = moved {
            inject::require_sites(pid).map_err(|failure| match refusal {
                Some(text) => Failure::no_target(format!("pid {pid}: {}", printable(text))),
                None if movable::has_any(pid) => Failure::no_target(format!(
                    "pid {pid}: no function that can be traced is meant; 'ringmark functions -p {pid}' lists them, \
                     NAME@MODULE means those of a library"
                )),
                None => failure,
            })?;
        }
        inject::load(pid, &settings, is_nameless)?;
        let missing =
            || Failure::no_target(format!("pid {pid}: still without the function tracer"));
        Ok(Self::of(pid)?.ok_or_else(missing)?)
    }

    /// The session, if the process has one now.
    ///
    /// # Errors
    /// There is no such process, or we may not.
    pub(crate) fn of(pid: u32) -> anyhow::Result<Option<Self>> {
        let places = match find::by_pid(pid) {
            Ok(places) => places,
            Err(ReaderError::NotTraced { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut trouble = None;
        for place in &places {
            match Self::at(pid, place) {
                Ok(Some(session)) => return Ok(Some(session)),
                Ok(None) => {}
                Err(error) => trouble = Some(error),
            }
        }
        trouble.map_or(Ok(None), |error| Err(error.into()))
    }

    fn at(pid: u32, place: &find::FoundSession) -> Result<Option<Self>, ReaderError> {
        let session = Session::open_found(place, Access::Control)?;
        let knows = knows_tracers(&session, ANSWER_WITHIN)?;
        Ok(knows.then_some(Self { pid, session }))
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub(crate) fn ask(&self, verb: Verb, lines: &[RequestLine<'_>]) -> anyhow::Result<Answer> {
        let answer = requests::ask(&self.session, verb, lines, ANSWER_WITHIN)?;
        if answer.is_refusal {
            let text = printable(&answer.text);
            return Err(Failure::no_target(format!("pid {}: {text}", self.pid)).into());
        }
        Ok(Answer(answer.text))
    }

    /// Process id of its program.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// What JSON about it begins with.
    pub(crate) fn head(&self) -> Head {
        Head::of_info(&SessionInfo::of(&self.session), Some(self.pid))
    }

    /// Whether the process has ended, or closed its session.
    pub(crate) fn has_ended(&self) -> bool {
        self.session.ended()
    }
}

/// Number of threads of a process.
fn threads_of(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).map_or(1, Iterator::count)
}
