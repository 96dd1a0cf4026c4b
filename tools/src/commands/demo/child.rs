//! The traced side of the demo: this binary, started again. The traced program and its recorder are
//! thus two processes, as in practice.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ringmark::{Builder, Mode, Session, event};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::index::{Job, JobDone};
use super::median::median;
use ringmark_console::Exit;

/// How the job is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Trace {
    /// Not at all.
    Off,
    /// As `RINGMARK` says, as with any program.
    Env,
    /// Overwrite mode with its defaults: the rings hold the last moments.
    Flight,
    /// Discard mode, for a recorder that runs at the same time.
    Record,
    /// Discard mode with rings of two pages of 4 KiB.
    Tiny,
}

/// One traced job of the demo
#[derive(Debug, clap::Args)]
pub(crate) struct JobArgs {
    pub(super) dir: PathBuf,
    #[arg(long, value_enum, default_value = "env")]
    pub(super) trace: Trace,
    /// Measure what an event costs instead.
    #[arg(long)]
    pub(super) measure: bool,
    /// Standard input is a file in which the workers count.
    #[arg(long)]
    pub(super) tally: bool,
    #[arg(long, default_value_t = workers())]
    pub(super) workers: usize,
    #[arg(long, default_value_t = 0)]
    pub(super) events_min: u64,
    #[arg(long, default_value_t = u64::MAX)]
    pub(super) files_max: u64,
    #[arg(long)]
    pub(super) seconds_max: Option<u64>,
    /// Absolute path of a file to leave out.
    #[arg(long)]
    pub(super) skip: Option<PathBuf>,
}

/// Number of workers: that of the processors, at least 2, at most 8.
pub(super) fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 8))
}

impl JobArgs {
    /// Options for a whole pass over `dir`, traced as `RINGMARK` says.
    pub(super) fn by_hand(dir: PathBuf) -> Self {
        Self {
            dir,
            trace: Trace::Env,
            measure: false,
            tally: false,
            workers: workers(),
            events_min: 0,
            files_max: u64::MAX,
            seconds_max: None,
            skip: None,
        }
    }

    /// Prints where the session is, does the job, prints its totals as a line of JSON.
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        // Without its parent the job has no purpose. If this is refused, it ends by itself.
        if self.trace != Trace::Env {
            let _ = set_parent_process_death_signal(Some(Signal::KILL));
        }
        let session = self.start_session();
        if !matches!(self.trace, Trace::Off | Trace::Env) {
            say_session(&session)?;
        }
        let result = if self.measure {
            measure(session.ok())
        } else {
            self.index()?
        };
        writeln!(io::stdout(), "{result}")?;
        Ok(Exit::FINE)
    }

    fn start_session(&self) -> Result<Session, String> {
        let builder = match self.trace {
            Trace::Off => return Err("not wanted".to_owned()),
            Trace::Env => {
                return ringmark::start_from_env()
                    .ok_or_else(|| "RINGMARK does not ask for it".to_owned());
            }
            Trace::Flight => Session::builder(),
            Trace::Record => discard(64 << 10, 8 << 20),
            Trace::Tiny => discard(4 << 10, 8 << 10),
        };
        let builder = builder.control(false).warm(self.workers as u32);
        builder.start().map_err(|error| error.to_string())
    }

    fn index(self) -> anyhow::Result<serde_json::Value> {
        let tally = self
            .tally
            .then(|| io::stdin().as_fd().try_clone_to_owned())
            .transpose()?;
        let job = Job {
            root: self.dir,
            workers: self.workers,
            skip: self.skip,
            events_min: self.events_min,
            files_max: self.files_max,
            time_max: self.seconds_max.map_or(Duration::MAX, Duration::from_secs),
            tally: tally.map(File::from),
        };
        let JobDone {
            totals,
            passes,
            took,
        } = job.run();
        Ok(serde_json::json!({
            "files": totals.files,
            "directories": totals.directories,
            "bytes": totals.bytes,
            "lines": totals.lines,
            "unreadable": totals.unreadable,
            "events": totals.events,
            "passes": passes,
            "workers": job.workers,
            "took_ns": took.as_nanos() as u64,
        }))
    }
}

fn discard(page_bytes: u32, ring_bytes: u32) -> Builder {
    let builder = Session::builder().mode(Mode::Discard);
    builder
        .page_bytes(page_bytes)
        .ring_bytes(ring_bytes)
        .session_bytes(64 << 20)
}

/// Prints `session PATH`, or `off REASON`.
fn say_session(session: &Result<Session, String>) -> io::Result<()> {
    let mut line = match session {
        Ok(session) => [b"session ", session.path().as_os_str().as_bytes()].concat(),
        Err(reason) => [b"off ", reason.as_bytes()].concat(),
    };
    line.push(b'\n');
    let mut out = io::stdout();
    out.write_all(&line)?;
    out.flush()
}

/// Measures, in ns, one reading of the clock and one event with a number: medians of many short runs.
fn measure(session: Option<Session>) -> serde_json::Value {
    const RUNS: usize = 1_000;
    let (mut clock, mut events) = (Vec::with_capacity(RUNS), Vec::with_capacity(RUNS));
    for _ in 0..RUNS {
        clock.push(nanoseconds_each(|_| {
            black_box(ringmark::ticks());
        }));
        events.push(nanoseconds_each(|n| {
            event!("demo.measured", value = black_box(n))
        }));
    }
    serde_json::json!({
        "clock": session.map_or("none", |s| s.clock().name()),
        "clock_ns": median(&mut clock),
        "event_ns": median(&mut events),
    })
}

fn nanoseconds_each(mut body: impl FnMut(u64)) -> f64 {
    const TIMES: u64 = 1_000;
    let start = Instant::now();
    (0..TIMES).for_each(&mut body);
    start.elapsed().as_nanos() as f64 / TIMES as f64
}
