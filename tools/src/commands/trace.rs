//! `trace`: the function tracers of a running process.

mod change;
mod start;
mod status;
mod trigger;

use change::change;
use ringmark_console::json::JsonOption;
use ringmark_console::{Exit, Failure, note, printable};
use ringmark_format::tracer_text::Verb;

use crate::tracing::one_tracer::OneTracer;
use crate::tracing::options::{CallChoice, CallDetail, FunctionNames, PatternSyntax};
use crate::tracing::requests::Answer;
use crate::tracing::tracer_session::TracerSession;

/// Enable and disable functions of a running process
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A start ends with this command: on Ctrl-C, after --for, with a lost terminal,
even on kill -9. --detach leaves the tracer on. 'ringmark graph -p PID' and
'ringmark cat -p PID --follow' show what it records.

Examples:
  ringmark trace start -p 812 --filter 'parse_*' --for 10s
  ringmark trace stop -p 812")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Switch a function tracer on, until this command ends
    #[command(after_help = "\
Examples:
  ringmark trace start -p 812 --filter 'parse_*' --for 10s
  ringmark trace start -p 812 --all-functions --kind profile --budget 2%")]
    Start(start::StartArgs),
    /// Switch a function tracer off
    #[command(after_help = "Example: ringmark trace stop -p 812")]
    Stop(StopArgs),
    /// Show the function tracers of a process
    #[command(after_help = "Example: ringmark trace status -p 812")]
    Status(status::StatusArgs),
    /// Name the functions that a function tracer traces
    #[command(after_help = "Example: ringmark trace filter -p 812 'parse_*' 'read_*@libpng*'")]
    Filter(PatternArgs),
    /// Name the functions that a function tracer leaves out
    #[command(after_help = "Example: ringmark trace notrace -p 812 'hash_*'")]
    Notrace(PatternArgs),
    /// Have functions start and stop a function tracer, or ask for a snapshot
    Trigger(trigger::TriggerArgs),
    /// Change which calls a function tracer records, and what of them
    #[command(after_help = "\
Examples:
  ringmark trace set -p 812 --min-time 100us
  ringmark trace set -p 812 --max-depth 3")]
    Set(SetArgs),
    /// Remove a function tracer for good
    #[command(after_help = "Example: ringmark trace remove -p 812 --tracer slow")]
    Remove(StopArgs),
}

#[derive(Debug, clap::Args)]
struct StopArgs {
    #[command(flatten)]
    of: OneTracer,
    #[command(flatten)]
    json: JsonOption,
}

#[derive(Debug, clap::Args)]
struct PatternArgs {
    #[command(flatten)]
    of: OneTracer,
    /// NAME or NAME@MODULE, '*' is any text; these patterns replace those given before
    #[arg(value_name = "PATTERN", required = true)]
    patterns: Vec<String>,
    /// How patterns are written
    #[arg(long = "match", value_name = "SYNTAX", default_value = "glob")]
    syntax: PatternSyntax,
    #[command(flatten)]
    json: JsonOption,
}

#[derive(Debug, clap::Args)]
struct SetArgs {
    #[command(flatten)]
    of: OneTracer,
    #[command(flatten)]
    choice: CallChoice,
    /// How patterns are written
    #[arg(long = "match", value_name = "SYNTAX", default_value = "glob")]
    syntax: PatternSyntax,
    #[command(flatten)]
    detail: CallDetail,
    #[command(flatten)]
    json: JsonOption,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        match self.action {
            Action::Start(start) => start.run(),
            Action::Stop(stop) => stop.stop(),
            Action::Status(status) => status.run(),
            Action::Filter(patterns) => patterns.run(Verb::Filter),
            Action::Notrace(patterns) => patterns.run(Verb::Notrace),
            Action::Trigger(trigger) => trigger.run(),
            Action::Set(set) => set.run(),
            Action::Remove(stop) => change(&stop.of, stop.json, Verb::Remove, &[]),
        }
    }
}

impl PatternArgs {
    fn run(self, verb: Verb) -> anyhow::Result<Exit> {
        let (filter, notrace) = match verb {
            Verb::Filter => (self.patterns, Vec::new()),
            _ => (Vec::new(), self.patterns),
        };
        let names = FunctionNames {
            filter,
            notrace,
            syntax: self.syntax,
            all_functions: false,
        };
        names.check()?;
        change(&self.of, self.json, verb, &names.lines())
    }
}

impl StopArgs {
    /// Stops the function tracer, and says which others are on.
    fn stop(&self) -> anyhow::Result<Exit> {
        let exit = change(&self.of, self.json, Verb::Stop, &[])?;
        let pid = self.of.pid;
        // Without an answer nothing is known of the others.
        let status = TracerSession::find(pid).and_then(|session| session.ask(Verb::Status, &[]));
        let status = status.ok();
        let all = status.iter().flat_map(Answer::tracers);
        for other in all.filter(|tracer| tracer.state != "off" && !self.of.is(tracer)) {
            let name = printable(other.name);
            note(&format!(
                "{name} is on: 'ringmark trace stop -p {pid} --tracer {name}' stops it"
            ));
        }
        Ok(exit)
    }
}

impl SetArgs {
    fn run(self) -> anyhow::Result<Exit> {
        if self.detail.is_empty() && self.choice.is_empty() {
            let text = "nothing to set: expected --args, --result, --min-time, --budget, --max-depth, --inside \
                        or --caller";
            return Err(Failure::usage(text).into());
        }
        self.choice.check(self.syntax)?;
        let mut lines = self.choice.lines(self.syntax);
        lines.extend(self.detail.lines());
        change(&self.of, self.json, Verb::Set, &lines)
    }
}
