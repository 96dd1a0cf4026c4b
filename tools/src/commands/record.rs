//! `record`: writes whole sessions to a trace file while the programs run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use ringmark_reader::{Access, ReaderError, Selection, Session, find, on_death};

use crate::input::trace_files;
use crate::recording::attached::Attached;
use crate::recording::named_triggers::Names;
use crate::recording::outcome::{Outcome, write_status};
use crate::recording::settings::ProgramOptions;
use crate::recording::trace_file::FileOptions;
use crate::recording::watches::ThreadOptions;
use crate::recording::{command, deaths, sessions};
use crate::tables::summary;
use crate::tracing::preload::{FunctionOptions, Wanted};
use crate::tracing::rings::{Rings, parse_ring};
use ringmark_console::file::{DEFAULT_FILE, destination, is_standard};
use ringmark_console::units::parse_duration;
use ringmark_console::{Exit, Failure};

/// Record programs to a trace file while they run
#[derive(Debug, clap::Args)]
#[command(override_usage = "ringmark record [OPTIONS] <-p PID|--all|[--] CMD...>")]
#[command(after_help = "\
A program started here is traced with
RINGMARK=mode=discard,ring=1M,session=64M,keep=always unless RINGMARK is set to
more than 1; with --kind ring=8M,session=128M. A session is the most that all
rings take together. What it leaves is kept until it is recorded, unless
RINGMARK says keep=….

With -p PID and --kind, the function tracer is loaded into the process if it is
not there. Functions are traced while this command runs, and no longer if it is
killed. Then a summary is printed, as 'run' does. Without --filter and --budget
tracing may take 10 % of the program's CPU time: functions that take more are
switched off and named, and 'verify' counts them. --budget off records all.

Ctrl-C once finishes the trace file, twice ends now. While a program that was
started here runs, all signals are its own: they are passed on, and the
recording ends with the program.

Examples:
  ringmark record -o run.rmk -- ./server --port 80
  ringmark record -p 812 --kind graph --for 1s
  ringmark record -p 812 --rotate 64M --keep 10
  ringmark record --all --on-death /var/lib/ringmark --ends panic

Files of --on-death are named by process, pid and end: shop-812-SIGSEGV.rmk,
shop-812-exit-1.rmk. DIR must be there. --ends all writes one after exit status
0, too, --ends panic one for a panic that is caught, --on NAME one for an event
or a span: shop-812-panic.rmk, half a second later, while the program goes on,
and at most one in ten seconds of each session.

Where a program did not end well, the last lines say how it ended, what each
thread did last, and which spans it had open.")]
pub(crate) struct Args {
    /// Trace file to write; one that is there becomes FILE.old
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    output: PathBuf,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    file: FileOptions,
    /// Write a trace file of a session into DIR when its process ends badly: see --ends
    #[arg(long, value_name = "DIR", requires = "all", conflicts_with = "output")]
    on_death: Option<PathBuf>,
    /// After which ends --on-death writes one
    #[arg(long, value_enum, default_value_t = Ends::Crash, requires = "on_death")]
    ends: Ends,
    /// With --on-death: write one, too, when an event or a span whose name matches comes, while the
    /// process goes on; may be given several times
    #[arg(long, value_name = "GLOB", requires = "on_death")]
    on: Vec<String>,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    #[arg(conflicts_with_all = ["command", "on_death"])]
    time: Option<Duration>,
    /// Write to FILE how the recording went, as one line of JSON
    #[arg(long, value_name = "FILE")]
    status_file: Option<PathBuf>,
    /// Print names at full length, even on a narrower terminal
    #[arg(long, requires = "kind")]
    wide: bool,
    /// Size of each thread's ring, such as 32M, where --kind loads the function tracer; by default
    /// 1M to 16M, by the number of threads. All rings together take up to 64M, or 16 times SIZE
    #[arg(long, value_name = "SIZE", value_parser = parse_ring)]
    #[arg(requires = "kind", conflicts_with = "command")]
    ring: Option<u32>,
    #[command(flatten)]
    threads: ThreadOptions,
    #[command(flatten)]
    program: ProgramOptions,
    // Last: its heading stands above all options that follow.
    #[command(flatten)]
    functions: FunctionOptions,
}

/// The ends after which a trace file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ends {
    /// Every end but exit status 0: a signal, another status, a panic, an end that is not known
    Crash,
    /// The same, and each panic that is caught, while the process goes on
    Panic,
    /// Every end
    All,
}

impl From<Ends> for on_death::Ends {
    fn from(ends: Ends) -> Self {
        match ends {
            Ends::Crash | Ends::Panic => Self::Crash,
            Ends::All => Self::All,
        }
    }
}

/// Options that say what to record.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Target {
    /// Record a process that runs, by its pid
    #[arg(short, long, value_parser = crate::options::process::parse_process)]
    pid: Option<u32>,
    /// Record all sessions, present and future
    #[arg(long)]
    all: bool,
    /// Start this program and record it and what it starts
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    command: Vec<OsString>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if let Some(directory) = &self.on_death {
            let names = Names::new(&self.on, self.ends == Ends::Panic);
            return deaths::watch(directory, self.file.codec(), (self.ends.into(), names));
        }
        let result = self.record();
        if let Ok(outcome) = &result {
            outcome.tell(&self.output);
            if outcome.progress.sessions_done > 0 {
                self.summary()?;
            }
            outcome.tell_ends(&self.output);
        }
        write_status(self.status_file.as_ref(), &result)?;
        Ok(result?.exit())
    }

    fn record(&self) -> anyhow::Result<Outcome> {
        if let Some(option) = self.program.first()
            && self.target.command.is_empty()
        {
            let text = format!("{option}: expected -- CMD, which is started with it");
            return Err(Failure::usage(text).into());
        }
        match (self.target.pid, self.functions.wanted()?) {
            (Some(pid), Some(wanted)) => self.attached(pid, &wanted),
            (Some(pid), None) => {
                check(pid)?;
                self.sessions(Selection::Pid(pid))
            }
            (None, Some(_)) if self.target.all => {
                let text = "--kind: expected -p PID or -- CMD, found --all";
                Err(Failure::usage(text).into())
            }
            (None, _) if self.target.all => self.sessions(Selection::All),
            (None, _) => {
                let preload = self.functions.preload()?;
                let (command, preload) = (&self.target.command, preload.as_ref());
                let (output, threads) = (&self.output, self.threads);
                command::record(command, output, &self.file, &self.program, preload, threads)
            }
        }
    }

    fn sessions(&self, selection: Selection) -> anyhow::Result<Outcome> {
        let to = destination(&self.output)?;
        let file = self.file.create(&to)?;
        let options = self.file.record_options();
        sessions::record(selection, file, options, self.time, self.threads)
    }

    /// Records a process with its functions.
    fn attached(&self, pid: u32, wanted: &Wanted<'_>) -> anyhow::Result<Outcome> {
        let to = destination(&self.output)?;
        match check(pid) {
            // It has no events of its own.
            Err(ReaderError::NotTraced { .. }) => {}
            checked => checked?,
        }
        let attached = Attached::load(pid, wanted, Rings::recorded(self.ring))?;
        let file = self.file.create(&to)?;
        attached.record(file, self.file.record_options(), self.time, self.threads)
    }

    /// Prints what functions were recorded and how long they took, where that was asked for.
    fn summary(&self) -> anyhow::Result<()> {
        if self.functions.kind.is_none() || self.target.pid.is_none() || is_standard(&self.output) {
            return Ok(());
        }
        let dump = trace_files::read(std::slice::from_ref(&self.output))?;
        summary::print(&dump, self.wide, true)
    }
}

/// Checks that a process can be recorded, before the trace file of an earlier recording is renamed.
fn check(pid: u32) -> Result<(), ReaderError> {
    let found = find::by_pid(pid)?;
    found
        .iter()
        .try_for_each(|place| Session::open_found(place, Access::Consume).map(drop))
}
