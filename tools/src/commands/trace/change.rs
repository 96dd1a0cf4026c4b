//! One request that changes a tracer, and the line that says what it did.

use std::io::Write;

use ringmark_console::json::JsonOption;
use ringmark_console::{Exit, Sink, json};
use ringmark_format::tracer_text::{AnswerLine, Count, RequestLine, Verb};

use crate::tracing::one_tracer::OneTracer;
use crate::tracing::requests::Answer;
use crate::tracing::tracer_session::TracerSession;

/// Sends a request for one tracer, and prints what it did.
///
/// # Errors
/// The process has no tracers, does not answer, or refuses.
pub(super) fn change(
    of: &OneTracer,
    json: JsonOption,
    verb: Verb,
    lines: &[RequestLine<'_>],
) -> anyhow::Result<Exit> {
    let session = TracerSession::find(of.pid)?;
    let answer = session.ask(verb, &of.lines_with(lines))?;
    let done = Done {
        of,
        verb,
        answer: &answer,
    };
    done.print(&session, json)?;
    Ok(Exit::FINE)
}

/// A request that a process has done.
pub(super) struct Done<'a> {
    pub(super) of: &'a OneTracer,
    pub(super) verb: Verb,
    pub(super) answer: &'a Answer,
}

impl Done<'_> {
    /// Prints how many functions the answer says were matched and changed; on standard error,
    /// which were refused.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub(super) fn print(&self, session: &TracerSession, json: JsonOption) -> anyhow::Result<()> {
        let mut out = Sink::direct();
        if json.is_on() {
            writeln!(out, "{}", json::Line(self.json(session)))?;
            return Ok(out.finish()?);
        }
        writeln!(out, "{}", self.answer.summary())?;
        out.finish()?;
        self.answer.tell_refusals();
        Ok(())
    }

    fn json(&self, session: &TracerSession) -> serde_json::Value {
        let number = |wanted| self.answer.count(wanted);
        let notices = self.answer.lines().filter_map(|line| match line {
            AnswerLine::Refusal(text) | AnswerLine::Note(text) => Some(text.to_owned()),
            _ => None,
        });
        let fields = serde_json::json!({
            "request": self.verb.name(),
            "tracer": self.of.tracer,
            "functions": number(Count::Matched),
            "sites_changed": number(Count::Patched),
            "sites_enabled": number(Count::Open),
            "sites_refused": number(Count::Refused),
            "notices": notices.collect::<Vec<_>>(),
        });
        json::object("tracer_change", &session.head(), fields)
    }
}
