//! Requests to the tracers of a process.

use std::thread;
use std::time::{Duration, Instant};

use ringmark_format::tracer_text::{
    self, AnswerLine, Count, Request, RequestLine, TracerLine, UNKNOWN_REQUEST, Verb,
};
use ringmark_reader::{Access, ReaderError, Session, control, find};

use super::inject;
use crate::output::{Failure, note, printable};

/// How long a process has for its answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long a tracer that the process was started with has until it answers.
const START_WITHIN: Duration = Duration::from_secs(2);
const GLANCE: Duration = Duration::from_millis(5);

/// The session of a process that answers for its tracers.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) pid: u32,
    session: Session,
}

/// Text of an answer.
#[derive(Debug)]
pub(crate) struct Answer(String);

impl Target {
    /// Finds it. Nothing is done to a process that has none.
    ///
    /// # Errors
    /// There is no such process, it has no session with tracers, or we may not.
    pub(crate) fn find(pid: u32) -> anyhow::Result<Self> {
        let missing = || {
            let text = format!(
                "pid {pid}: runs without the function tracer; 'ringmark trace start -p {pid}' loads it"
            );
            inject::obstacle(pid).unwrap_or_else(|| Failure::no_target(text))
        };
        let mut found = Self::of(pid)?;
        let end = Instant::now() + START_WITHIN;
        while found.is_none() && inject::is_starting(pid) && Instant::now() < end {
            thread::sleep(GLANCE);
            found = Self::of(pid)?;
        }
        Ok(found.ok_or_else(missing)?)
    }

    /// Finds it; a process that has none gets the shared object loaded.
    ///
    /// # Errors
    /// As [`Target::find`], or it cannot be loaded.
    pub(crate) fn find_or_load(pid: u32) -> anyhow::Result<Self> {
        if let Some(target) = Self::of(pid)? {
            return Ok(target);
        }
        inject::load(pid)?;
        let missing =
            || Failure::no_target(format!("pid {pid}: still without the function tracer"));
        Ok(Self::of(pid)?.ok_or_else(missing)?)
    }

    /// The session that knows tracers: a program may have one of its own beside it.
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
                Ok(Some(target)) => return Ok(Some(target)),
                Ok(None) => {}
                Err(error) => trouble = Some(error),
            }
        }
        trouble.map_or(Ok(None), |error| Err(error.into()))
    }

    fn at(pid: u32, place: &find::Found) -> Result<Option<Self>, ReaderError> {
        let session = Session::open_found(place, Access::Control)?;
        let knows = knows_tracers(&session, ANSWER_WITHIN)?;
        Ok(knows.then_some(Self { pid, session }))
    }

    /// Sends a request.
    ///
    /// # Errors
    /// No answer, or the answer is no.
    pub(crate) fn ask(&self, verb: Verb, lines: &[RequestLine<'_>]) -> anyhow::Result<Answer> {
        let lines = lines.to_vec();
        let text = Request { verb, lines }.to_string();
        let answer = control::request(&self.session, &text, ANSWER_WITHIN)?;
        if answer.status != 0 {
            let text = printable(&answer.text);
            return Err(Failure::no_target(format!("pid {}: {text}", self.pid)).into());
        }
        Ok(Answer(answer.text))
    }

    /// Whether the process has ended, or closed its session.
    pub(crate) fn has_ended(&self) -> bool {
        self.session.ended()
    }
}

/// Whether a session has tracers.
///
/// # Errors
/// It does not answer.
pub(crate) fn knows_tracers(session: &Session, within: Duration) -> Result<bool, ReaderError> {
    // Also old tracers know this verb, and none has this name.
    let request = Request {
        verb: Verb::Renew,
        lines: vec![RequestLine::Tracer("")],
    };
    let answer = control::request(session, &request.to_string(), within)?;
    Ok(!answer.text.starts_with(UNKNOWN_REQUEST))
}

impl Answer {
    /// Its lines, but for those that are not known.
    pub(crate) fn lines(&self) -> impl Iterator<Item = AnswerLine<'_>> {
        AnswerLine::all(&self.0)
    }

    /// The tracers in it.
    pub(crate) fn tracers(&self) -> impl Iterator<Item = TracerLine<'_>> {
        self.lines().filter_map(|line| match line {
            AnswerLine::Tracer(tracer) => Some(tracer),
            _ => None,
        })
    }

    /// A number; 0 where it is not said.
    pub(crate) fn count(&self, wanted: Count) -> u64 {
        tracer_text::count(&self.0, wanted).unwrap_or(0)
    }

    /// Says on standard error what was not done.
    pub(crate) fn tell_refusals(&self) {
        let (mut refusals, mut notes) = (Vec::new(), Vec::new());
        for line in self.lines() {
            match line {
                AnswerLine::Refusal(text) => refusals.push(text),
                AnswerLine::Note(text) => notes.push(text),
                _ => {}
            }
        }
        let told = (refusals.len() + notes.len()) as u64;
        let all = refusals.into_iter().chain(notes);
        all.for_each(|text| note(&printable(text)));
        let refused = self.count(Count::Refused);
        if refused > told {
            note(&format!("and {} more", refused - told));
        }
    }
}
