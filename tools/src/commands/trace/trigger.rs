//! `trace trigger`: functions at which a tracer starts, stops, or asks for a snapshot.

use ringmark_console::json::JsonOption;
use ringmark_console::{Exit, Sink};
use ringmark_format::tracer_text::{RequestLine, Verb};

use super::change::change;
use super::status::{write_json, write_triggers};
use crate::tracing::one_tracer::OneTracer;
use crate::tracing::options::PatternSyntax;
use crate::tracing::tracer_session::TracerSession;
use crate::tracing::triggers::{Triggers, exit_of};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
FUNCTION:entry=start     record calls from this one on; until then, pause
FUNCTION:exit=stop       record no calls that begin after this one ends
FUNCTION:entry=snapshot  have 'ringmark snapshot -p PID --on-trigger' copy the
                         rings

A trigger acts on its tracer for all threads, as long as the tracer is on. One
that is at no function acts once a module with such a function is loaded; the
command then ends with 4. Without TRIGGER, the triggers are listed.

Example:
  ringmark trace trigger -p 812 handle_request:entry=start \\
      handle_request:exit=stop")]
pub(super) struct TriggerArgs {
    #[command(flatten)]
    of: OneTracer,
    /// FUNCTION:entry=ACTION or FUNCTION:exit=ACTION; FUNCTION is NAME or NAME@MODULE, ACTION is
    /// start, stop or snapshot; these triggers replace those given before
    #[arg(value_name = "TRIGGER")]
    triggers: Vec<String>,
    /// Remove all triggers
    #[arg(long, conflicts_with = "triggers")]
    none: bool,
    /// How function names are written
    #[arg(long = "match", value_name = "SYNTAX", default_value = "glob")]
    syntax: PatternSyntax,
    #[command(flatten)]
    json: JsonOption,
}

impl TriggerArgs {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        if self.none {
            return change(
                &self.of,
                self.json,
                Verb::Trigger,
                &[RequestLine::NoTriggers],
            );
        }
        let triggers = Triggers {
            triggers: self.triggers,
        };
        if !triggers.is_empty() {
            triggers.check(self.syntax)?;
            let lines = triggers.lines(self.syntax);
            change(&self.of, self.json, Verb::Trigger, &lines)?;
            return exit_of(&TracerSession::find(self.of.pid)?, &self.of);
        }
        let session = TracerSession::find(self.of.pid)?;
        let answer = session.ask(Verb::Status, &self.of.lines())?;
        let mut out = Sink::direct();
        match self.json.is_on() {
            true => write_json(&mut out, &answer, &self.of, &session.head())?,
            false => write_triggers(&mut out, &answer, self.of.tracer.as_deref())?,
        }
        out.finish()?;
        Ok(Exit::FINE)
    }
}
