//! `trace`: the function tracers of a running process.

mod budget;
mod status;
mod triggers;

use std::io::Write;
use std::time::{Duration, Instant};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use ringmark_format::function::TracerKind;
use ringmark_format::tracer_text::{AnswerLine, Count, LeaseState, RequestLine, TracerLine, Verb};

use crate::output::units::{count, counted, parse_duration};
use crate::output::{Exit, Failure, Sink, note};
use crate::recording::signals::Signals;
use crate::tracing::options::{Detail, Names};
use crate::tracing::target::{Answer, Target};
use crate::tracing::triggers::Triggers;
use budget::tell_given_up;
use status::status;

/// Switch functions of a running process on and off
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A start ends with this command: Ctrl-C, --for, a lost terminal, even kill -9. --detach leaves it on.
See what comes with 'ringmark graph -p PID' or 'ringmark cat -p PID --follow'.

Examples:
  ringmark trace start -p 812 --filter 'parse_*' --for 10s
  ringmark trace stop -p 812")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Switch a tracer on, until this command ends
    Start(Start),
    /// Switch a tracer off
    Stop(Stop),
    /// Show the tracers of a process
    #[command(alias = "tracers")]
    Status(Of),
    /// Say which functions a tracer is for
    Filter(Patterns),
    /// Say which functions a tracer leaves out
    Notrace(Patterns),
    /// Start and stop a tracer where functions are entered or left, or ask for a snapshot there
    Trigger(triggers::Trigger),
    /// Change what a tracer records of a call
    Set(Set),
    /// Take a tracer away for good
    Remove(Stop),
}

/// A process and one of its tracers.
#[derive(Debug, clap::Args)]
struct Of {
    /// The process
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..))]
    pid: u32,
    /// The tracer, instead of the process's default one
    #[arg(short = 'T', long, value_name = "NAME", value_parser = parse_name)]
    tracer: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Start {
    #[command(flatten)]
    of: Of,
    /// Make a tracer of this kind, unless the process has one of that name
    #[arg(long, value_name = "KIND", requires = "tracer", value_parser = kinds())]
    kind: Option<TracerKind>,
    #[command(flatten)]
    names: Names,
    #[command(flatten)]
    triggers: Triggers,
    #[command(flatten)]
    detail: Detail,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    time: Option<Duration>,
    /// Leave it on when this command ends, which is at once
    #[arg(long, conflicts_with = "time")]
    detach: bool,
}

#[derive(Debug, clap::Args)]
struct Stop {
    #[command(flatten)]
    of: Of,
}

#[derive(Debug, clap::Args)]
struct Patterns {
    #[command(flatten)]
    of: Of,
    /// NAME or NAME@MODULE, '*' is any text; they replace those before
    #[arg(value_name = "PATTERN", required = true)]
    patterns: Vec<String>,
    /// How patterns are written
    #[arg(long = "match", value_name = "SYNTAX", default_value = "glob")]
    syntax: crate::tracing::options::Match,
}

#[derive(Debug, clap::Args)]
struct Set {
    #[command(flatten)]
    of: Of,
    #[command(flatten)]
    detail: Detail,
}

/// Kinds by their names.
fn kinds() -> impl TypedValueParser<Value = TracerKind> {
    let names = PossibleValuesParser::new(["function", "graph", "callback", "profile"]);
    names.try_map(|name| {
        let mut kinds = TracerKind::ALL.iter().copied();
        kinds.find(|kind| kind.name() == name).ok_or(name)
    })
}

/// Names stand in lines of words.
fn parse_name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(format!("found {text:?}, expected a name without spaces"));
    }
    Ok(text.to_owned())
}

impl Of {
    fn lines(&self) -> Vec<RequestLine<'_>> {
        let name = self.tracer.as_deref();
        name.map(RequestLine::Tracer).into_iter().collect()
    }

    fn lines_with<'a>(&'a self, more: &[RequestLine<'a>]) -> Vec<RequestLine<'a>> {
        [self.lines().as_slice(), more].concat()
    }

    /// Whether it means this one.
    fn means(&self, tracer: &TracerLine<'_>) -> bool {
        let name = self.tracer.as_deref();
        name.map_or(tracer.is_default, |name| tracer.name == name)
    }

    fn name(&self) -> &str {
        self.tracer.as_deref().unwrap_or("the default tracer")
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        match self.verb {
            Command::Start(start) => start.run(),
            Command::Stop(stop) => change(&stop.of, Verb::Stop, &[]),
            Command::Remove(stop) => change(&stop.of, Verb::Remove, &[]),
            Command::Status(of) => status(&of),
            Command::Filter(patterns) => patterns.run(Verb::Filter),
            Command::Notrace(patterns) => patterns.run(Verb::Notrace),
            Command::Trigger(trigger) => trigger.run(),
            Command::Set(set) if set.detail.is_empty() => Err(Failure::usage(
                "nothing to set: expected --args, --result, --min-us or --budget",
            )
            .into()),
            Command::Set(set) => change(&set.of, Verb::Set, &set.detail.lines()),
        }
    }
}

/// One request, and what it did.
fn change(of: &Of, verb: Verb, lines: &[RequestLine<'_>]) -> anyhow::Result<Exit> {
    let target = Target::find(of.pid)?;
    let answer = target.ask(verb, &of.lines_with(lines))?;
    tell(&answer)?;
    Ok(Exit::FINE)
}

fn tell(answer: &Answer) -> anyhow::Result<()> {
    let number = |wanted| answer.count(wanted);
    let mut out = Sink::direct();
    writeln!(
        out,
        "{} matched, {} changed, {} on; {} refused",
        counted(number(Count::Matched), "function"),
        counted(number(Count::Patched), "site"),
        count(number(Count::Open)),
        count(number(Count::Refused))
    )?;
    out.finish()?;
    answer.tell_refusals();
    Ok(())
}

impl Patterns {
    fn run(self, verb: Verb) -> anyhow::Result<Exit> {
        let (filter, notrace) = match verb {
            Verb::Filter => (self.patterns, Vec::new()),
            _ => (Vec::new(), self.patterns),
        };
        let names = Names {
            filter,
            notrace,
            syntax: self.syntax,
            all_functions: false,
        };
        names.check()?;
        change(&self.of, verb, &names.lines())
    }
}

/// A start holds for so long unless it is renewed.
const LEASE: Duration = Duration::from_secs(3);
/// How often it is renewed.
const RENEW_EVERY: Duration = Duration::from_secs(1);

impl Start {
    fn run(self) -> anyhow::Result<Exit> {
        self.names.check()?;
        self.triggers.check(self.names.syntax)?;
        if self.names.is_empty() && Target::of(self.of.pid)?.is_none() {
            // Nothing is loaded for a start that would be refused.
            self.names.require()?;
        }
        let target = Target::find_or_load(self.of.pid)?;
        if self.names.is_empty() {
            self.require_functions(&target)?;
        }
        let mut lines = self.of.lines_with(&self.names.lines());
        lines.extend(self.detail.lines());
        lines.extend(self.triggers.lines(self.names.syntax));
        lines.extend(self.kind.map(RequestLine::Kind));
        let lease = RequestLine::LeaseMs(LEASE.as_millis() as u64);
        // Before the start: from then on a signal must find us ready.
        let signals = Signals::watch()?;
        if !self.detach {
            lines.push(lease);
        }
        let answer = target.ask(Verb::Start, &lines)?;
        if answer.count(Count::Matched) == 0 {
            target.ask(Verb::Stop, &self.of.lines())?;
            return Err(self.nothing_matches(&target));
        }
        tell(&answer)?;
        if self.detach {
            return Ok(Exit::FINE);
        }
        let renewal = self.of.lines_with(&[lease]);
        let (exit, told) = self.hold(&target, &renewal, &signals)?;
        if !target.has_ended() {
            let answer = target.ask(Verb::Stop, &self.of.lines())?;
            tell_given_up(&answer, told);
        }
        Ok(exit)
    }

    /// A tracer that was given functions before keeps them.
    fn require_functions(&self, target: &Target) -> anyhow::Result<()> {
        let status = target.ask(Verb::Status, &[])?;
        let tracers: Vec<_> = status.tracers().collect();
        match tracers.iter().find(|line| self.of.means(line)) {
            Some(line) if !line.filter.is_empty() => Ok(()),
            // The target says best which there are.
            None if !tracers.is_empty() && self.kind.is_none() => Ok(()),
            None if tracers.is_empty() => Ok(()),
            _ => Ok(self.names.require()?),
        }
    }

    /// Renews the start until it is to end. Says also how many given up functions were told of.
    fn hold(
        &self,
        target: &Target,
        renewal: &[RequestLine<'_>],
        signals: &Signals,
    ) -> anyhow::Result<(Exit, usize)> {
        let begun = Instant::now();
        let mut renewed = begun;
        let mut told = 0;
        let is_over = || self.time.is_some_and(|time| begun.elapsed() >= time);
        while signals.received().is_none() && !is_over() {
            std::thread::sleep(Duration::from_millis(20));
            if target.has_ended() {
                note(&format!("pid {} has ended", target.pid));
                break;
            }
            if renewed.elapsed() < RENEW_EVERY {
                continue;
            }
            renewed = Instant::now();
            let answer = target.ask(Verb::Renew, renewal)?;
            told += tell_given_up(&answer, told);
            let state = answer.lines().find_map(|line| match line {
                AnswerLine::State(state) => Some(state),
                _ => None,
            });
            match state {
                Some(LeaseState::Off) => {
                    note(&format!("{} was stopped", self.of.name()));
                    break;
                }
                Some(LeaseState::Detached) => {
                    note(&format!("{} was started for good", self.of.name()));
                    return Ok((Exit::FINE, told));
                }
                Some(LeaseState::On) | None => {}
            }
        }
        Ok((Exit::FINE, told))
    }

    fn nothing_matches(&self, target: &Target) -> anyhow::Error {
        let pid = self.of.pid;
        let mut what = format!("{:?}", self.names.filter.join(" "));
        if self.names.filter.is_empty() {
            // What it was given before, or `*`.
            let status = target.ask(Verb::Status, &[]).ok();
            let mut tracers = status.iter().flat_map(Answer::tracers);
            let meant = tracers.find(|line| self.of.means(line));
            let filter = meant.map_or("", |line| line.filter);
            what = format!("the filter of {}, {filter:?},", self.of.name());
        }
        Failure::no_target(format!(
            "pid {pid}: {what} matches no function; 'ringmark functions -p {pid}' lists them"
        ))
        .into()
    }
}
