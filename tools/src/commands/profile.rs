//! `profile`: where the time of a process goes that nobody prepared.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use ringmark_console::progress::ProgressLine;
use ringmark_console::signals::Signals;
use ringmark_console::units::{counted, duration, parse_duration};
use ringmark_console::wide::WideOption;
use ringmark_console::{Exit, Failure, Sink, Style, note, printable};
use ringmark_profile::{LOOK_EVERY, Profile, ProfileError, Profiler};

use crate::options::rows::LinesOption;
use crate::tables::time_table;

/// Show where the time of a running program goes: what it runs, what it waits for
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The program need not be prepared, and is not stopped or changed. Running time is
exact for each thread; that of functions is by samples, which the kernel may
refuse: then a line says how they are to be had. Waits are seen 20 times a
second: long ones are exact, those below 50ms are estimates.

Examples:
  ringmark profile -p 812
  ringmark profile -p 812 --for 30s -n 40")]
pub(crate) struct Args {
    /// The process
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..))]
    pid: u32,
    /// How long it is looked at; Ctrl-C ends earlier
    #[arg(long = "for", value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    time: Duration,
    /// Samples in each second that a thread runs
    #[arg(long, value_name = "HZ", default_value_t = 99, value_parser = clap::value_parser!(u64).range(1..=1000))]
    sample: u64,
    #[command(flatten)]
    lines: LinesOption,
    #[command(flatten)]
    wide: WideOption,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let signals = Signals::watch()?;
        let attached = Profiler::attach(self.pid, self.sample);
        let mut profiler = attached.map_err(|error| match error {
            ProfileError::NoProcess { .. } => Failure::no_target(error.to_string()),
        })?;
        let name = printable(profiler.name());
        let title = format!("{name}[{}]", self.pid);
        let lived = self.watch(&mut profiler, &signals, &title);
        let profile = profiler.profile();
        if !lived {
            note(&format!("{title} has ended"));
        }
        self.print(&profile, &title)
    }

    /// Looks until the time is over, somebody ends it, or the process does. Returns whether that lives.
    fn watch(&self, profiler: &mut Profiler, signals: &Signals, title: &str) -> bool {
        let mut line = ProgressLine::new(true);
        let begun = Instant::now();
        while begun.elapsed() < self.time && signals.received().is_none() {
            if line.due().is_some() {
                let (since, all) = (begun.elapsed().as_secs(), self.time.as_secs());
                line.show(&format!("{title}: {since} of {all} s, Ctrl-C ends"));
            }
            thread::sleep(LOOK_EVERY.min(self.time.saturating_sub(begun.elapsed())));
            if !profiler.look() {
                line.clear();
                return false;
            }
        }
        line.clear();
        true
    }

    fn print(&self, profile: &Profile, title: &str) -> anyhow::Result<Exit> {
        let columns = self.wide.columns();
        let mut out = Sink::paged().within(columns);
        let times = profile.times();
        writeln!(
            out,
            "{title}: {} of {}: {} running, {} ready to run, {} waiting",
            duration(profile.ns),
            counted(profile.threads.len() as u64, "thread"),
            duration(times.running_ns),
            duration(times.ready_ns),
            duration(times.waiting_ns)
        )?;
        for mut table in [
            time_table::functions(profile),
            time_table::waits(profile),
            time_table::threads(profile),
        ] {
            if table.is_empty() {
                continue;
            }
            table.first(self.lines.of(time_table::ROWS));
            table.fit(columns);
            writeln!(out)?;
            table.write(&mut out, Style::detect())?;
        }
        out.finish()?;
        for missing in time_table::missing(profile) {
            note(&missing);
        }
        if let Some(next) = time_table::next_step(profile, self.pid) {
            note(&next);
        }
        Ok(Exit::FINE)
    }
}
