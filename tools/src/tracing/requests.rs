//! Requests to the function tracers of a session, and their answers.

use std::time::Duration;

use ringmark_format::tracer_text::{
    self, AnswerLine, Count, Request, RequestLine, TracerLine, UNKNOWN_REQUEST, Verb,
};
use ringmark_reader::{ReaderError, Session, control};

use ringmark_console::units::{count, counted};
use ringmark_console::{note, printable};

/// Text of an answer.
#[derive(Debug)]
pub(super) struct AnswerText {
    pub(super) text: String,
    pub(super) is_refusal: bool,
}

/// Sends a request and waits for the answer.
///
/// # Errors
/// The session does not answer in this time.
pub(super) fn ask(
    session: &Session,
    verb: Verb,
    lines: &[RequestLine<'_>],
    within: Duration,
) -> Result<AnswerText, ReaderError> {
    let lines = lines.to_vec();
    let text = Request { verb, lines }.to_string();
    let answer = control::request(session, &text, within)?;
    Ok(AnswerText {
        text: answer.text,
        is_refusal: answer.status != 0,
    })
}

/// Whether a session has function tracers.
///
/// # Errors
/// The session does not answer in this time.
pub(super) fn knows_tracers(session: &Session, within: Duration) -> Result<bool, ReaderError> {
    // No tracer has this name.
    let answer = ask(session, Verb::Renew, &[RequestLine::Tracer("")], within)?;
    Ok(!answer.text.starts_with(UNKNOWN_REQUEST))
}

/// An answer that is no refusal.
#[derive(Debug)]
pub(crate) struct Answer(pub(super) String);

impl Answer {
    /// The lines of kinds that are known here.
    pub(crate) fn lines(&self) -> impl Iterator<Item = AnswerLine<'_>> {
        AnswerLine::all(&self.0)
    }

    /// The lines about tracers.
    pub(crate) fn tracers(&self) -> impl Iterator<Item = TracerLine<'_>> {
        self.lines().filter_map(|line| match line {
            AnswerLine::Tracer(tracer) => Some(tracer),
            _ => None,
        })
    }

    /// A number in it; 0 if it is not there.
    pub(crate) fn count(&self, wanted: Count) -> u64 {
        tracer_text::count(&self.0, wanted).unwrap_or(0)
    }

    /// How many functions it says were matched and changed, as a line.
    pub(crate) fn summary(&self) -> String {
        let number = |wanted| self.count(wanted);
        format!(
            "{} matched, {} changed, {} enabled; {} refused",
            counted(number(Count::Matched), "function"),
            counted(number(Count::Patched), "patch site"),
            count(number(Count::Open)),
            count(number(Count::Refused))
        )
    }

    /// Prints on standard error what was refused.
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
