//! `trace start`: a tracer is on as long as this command runs.

use std::time::{Duration, Instant};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use ringmark_console::json::JsonOption;
use ringmark_console::signals::Signals;
use ringmark_console::units::parse_duration;
use ringmark_console::{Exit, Failure};
use ringmark_format::function::TracerKind;
use ringmark_format::tracer_text::{Count, RequestLine, Verb};

use super::change::Done;
use crate::tracing::lease;
use crate::tracing::moved_sites::MovedSites;
use crate::tracing::one_tracer::OneTracer;
use crate::tracing::options::{CallChoice, CallDetail, FunctionNames};
use crate::tracing::requests::Answer;
use crate::tracing::rings::{Rings, parse_ring};
use crate::tracing::tracer_session::TracerSession;
use crate::tracing::triggers::{Triggers, exit_of};

#[derive(Debug, clap::Args)]
pub(super) struct StartArgs {
    #[command(flatten)]
    of: OneTracer,
    /// Make a function tracer of this kind, unless the process has one of that name
    #[arg(long, value_name = "KIND", requires = "tracer", value_parser = kinds())]
    kind: Option<TracerKind>,
    #[command(flatten)]
    names: FunctionNames,
    #[command(flatten)]
    choice: CallChoice,
    #[command(flatten)]
    triggers: Triggers,
    #[command(flatten)]
    detail: CallDetail,
    /// Size of each thread's ring, such as 4M, where this command loads the function tracer; all rings
    /// together take up to 16 times that
    #[arg(long, value_name = "SIZE", value_parser = parse_ring)]
    ring: Option<u32>,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    time: Option<Duration>,
    /// End at once and leave the function tracer on
    #[arg(long, conflicts_with = "time")]
    detach: bool,
    #[command(flatten)]
    json: JsonOption,
}

/// Parses a kind by its name.
fn kinds() -> impl TypedValueParser<Value = TracerKind> {
    let names = PossibleValuesParser::new(["function", "graph", "callback", "profile"]);
    names.try_map(|name| {
        let mut kinds = TracerKind::ALL.iter().copied();
        kinds.find(|kind| kind.name() == name).ok_or(name)
    })
}

impl StartArgs {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        self.names.check()?;
        self.choice.check(self.names.syntax)?;
        self.triggers.check(self.names.syntax)?;
        if self.names.is_empty() && TracerSession::of(self.of.pid)?.is_none() {
            // Nothing is loaded for a start that would be refused.
            self.names.require()?;
        }
        let mut meant = self.names.lines();
        meant.extend(self.choice.lines(self.names.syntax));
        let mut moved = MovedSites::of(self.of.pid, &meant);
        let found = moved.look();
        let session =
            TracerSession::find_or_load(self.of.pid, Rings::kept(self.ring), found.any())?;
        found.tell(self.of.pid);
        found.hand_over(&session)?;
        if self.names.is_empty() {
            self.require_functions(&session)?;
        }
        let mut lines = self.of.lines_with(&self.names.lines());
        // A start that names functions is a new one; one that does not goes on as before.
        if self.names.is_empty() {
            lines.extend(self.choice.lines(self.names.syntax));
            lines.extend(self.detail.lines());
        } else {
            lines.extend(self.choice.all_lines(self.names.syntax));
            lines.extend(self.detail.all_lines());
        }
        lines.extend(self.triggers.lines(self.names.syntax));
        lines.extend(self.kind.map(RequestLine::Kind));
        // Before the start: from then on a signal must find us ready.
        let signals = Signals::watch()?;
        if !self.detach {
            lines.push(lease::line());
        }
        let answer = session.ask(Verb::Start, &lines)?;
        if answer.count(Count::Matched) == 0 {
            session.ask(Verb::Stop, &self.of.lines())?;
            return Err(self.nothing_matches(&session));
        }
        let done = Done {
            of: &self.of,
            verb: Verb::Start,
            answer: &answer,
        };
        done.print(&session, self.json)?;
        let exit = match self.triggers.is_empty() {
            true => Exit::FINE,
            false => exit_of(&session, &self.of)?,
        };
        if self.detach {
            return Ok(exit);
        }
        let begun = Instant::now();
        let is_over = || {
            signals.received().is_some() || self.time.is_some_and(|time| begun.elapsed() >= time)
        };
        lease::hold(&session, &self.of, &mut moved, is_over)?;
        Ok(exit)
    }

    /// Checks that the tracer has functions: a start without any keeps those given before.
    fn require_functions(&self, session: &TracerSession) -> anyhow::Result<()> {
        let status = session.ask(Verb::Status, &[])?;
        let tracers: Vec<_> = status.tracers().collect();
        match tracers.iter().find(|line| self.of.is(line)) {
            Some(line) if !line.filter.is_empty() => Ok(()),
            // The process refuses, and says which tracers it has.
            None if !tracers.is_empty() && self.kind.is_none() => Ok(()),
            None if tracers.is_empty() => Ok(()),
            _ => Ok(self.names.require()?),
        }
    }

    fn nothing_matches(&self, session: &TracerSession) -> anyhow::Error {
        let pid = self.of.pid;
        let mut what = format!("{:?}", self.names.filter.join(" "));
        if self.names.filter.is_empty() {
            // What it was given before, or `*`.
            let status = session.ask(Verb::Status, &[]).ok();
            let mut tracers = status.iter().flat_map(Answer::tracers);
            let meant = tracers.find(|line| self.of.is(line));
            let filter = meant.map_or("", |line| line.filter);
            what = format!("the filter of {}, {filter:?},", self.of.name());
        }
        Failure::no_target(format!(
            "pid {pid}: {what} matches no function; 'ringmark functions -p {pid}' lists them"
        ))
        .into()
    }
}
