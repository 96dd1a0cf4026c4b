//! `top`: what living sessions do now, as a screen that is drawn again and again.

use std::io;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use ringmark_console::json::JsonOption;
use ringmark_console::units::parse_duration;
use ringmark_console::wide::WideOption;
use ringmark_console::{Exit, Failure, Sink, note_lines};

use crate::input::rings;
use crate::live::names::Order;
use crate::live::screen::Left;
use crate::live::watch::{Target, Watch};
use crate::live::{once, screen};
use crate::options::rows::LinesOption;
use crate::output::last_words::Show;
use crate::output::{endings, last_words};

/// Watch running programs: rates, losses, hottest spans and functions, open spans
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Rates, fill and losses are exact. Spans, functions and events are counted in the
newest pages, with 1 % of a core. Where programs write more than that, they are
estimates, and the screen shows from which part of the events. No program is
stopped or waited for, and a recorder may run as well.

Keys: q ends, ? shows all keys, t switches function tracers off and on, w writes
a snapshot, / filters. When the process of -p ends, its end and what its threads
did last are printed.

Examples:
  ringmark top -p 812
  ringmark top --sort count
  ringmark top -p 812 --once
  ringmark top --once --json | jq '.pid, .events_per_s, .lost'")]
pub(crate) struct Args {
    /// The process [default: all that you may read]
    #[arg(short, long, value_parser = crate::options::process::parse_process)]
    pid: Option<u32>,
    /// Print figures once, as text, and end
    #[arg(long)]
    once: bool,
    /// Time between two looks
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_interval)]
    interval: Duration,
    /// What names are ordered by
    #[arg(long, value_enum, value_name = "FIGURE", default_value_t)]
    sort: Order,
    #[command(flatten)]
    lines: LinesOption,
    #[command(flatten)]
    json: JsonOption,
    #[command(flatten)]
    wide: WideOption,
}

/// A shorter interval would cost more than the figures are worth.
const SHORTEST: Duration = Duration::from_millis(100);

fn parse_interval(text: &str) -> Result<Duration, String> {
    let found = parse_duration(text)?;
    match found < SHORTEST {
        true => Err(format!("found {text:?}, expected at least 100ms")),
        false => Ok(found),
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let target = self.pid.map_or(Target::All, Target::Pid);
        if !self.once && (self.json.is_on() || !io::stdout().is_terminal()) {
            let text = match self.json.is_on() {
                true => "--json: expected --once with it",
                false => "standard output is no terminal, expected one, or --once",
            };
            return Err(Failure::usage(text).into());
        }
        let mut watch = Watch::new(target)?;
        if watch.has_ended() {
            return tell_end(watch);
        }
        if self.once {
            return self.print(&mut watch);
        }
        match screen::run(&mut watch, self.interval, self.sort)? {
            Left::Wanted => Ok(Exit::FINE),
            Left::ProcessEnded => tell_end(watch),
        }
    }

    fn print(&self, watch: &mut Watch) -> anyhow::Result<Exit> {
        let model = once::figures(watch, self.interval);
        let columns = self.wide.columns();
        let mut out = match self.json.is_on() {
            true => Sink::direct(),
            false => Sink::direct().within(columns),
        };
        if self.json.is_on() {
            for object in once::objects(&model, self.sort) {
                writeln!(out, "{object}")?;
            }
        } else {
            once::write(&mut out, &model, self.sort, self.lines, columns)?;
        }
        out.finish()?;
        Ok(Exit::FINE)
    }
}

/// Says what the threads of a process did last, and how it ended: the end stands where it is seen.
fn tell_end(watch: Watch) -> anyhow::Result<Exit> {
    let dump = rings::of_sessions(watch.into_sessions())?;
    note_lines(&last_words::text(&dump, Show::Short));
    endings::tell_all(&dump);
    Ok(Exit::FINE)
}
