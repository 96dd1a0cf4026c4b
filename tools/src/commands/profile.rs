//! `profile`: where the time of a process goes that nobody prepared.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ringmark_console::file::{Former, is_standard, replace, require_no_trace};
use ringmark_console::progress::ProgressLine;
use ringmark_console::signals::Signals;
use ringmark_console::units::{parse_duration, size};
use ringmark_console::wide::WideOption;
use ringmark_console::{Exit, Failure, Sink, Style, descriptors, note, printable};
use ringmark_export::{ProfileWords, write_profile};
use ringmark_profile::{LOOK_EVERY, Profile, Profiler};

use crate::options::rows::LinesOption;
use crate::recording::profiled_program::ProfiledProgram;
use crate::recording::traced_program::exit_code;
use crate::tables::time_table;

/// How long a running process is looked at, where nothing else is asked for.
const TIME: Duration = Duration::from_secs(5);

/// Show where the time of a program goes: what it runs, what it waits for
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The program need not be prepared, and is not stopped or changed. Running time is
exact for each thread; that of functions is by samples, which the kernel may
refuse: then a line says how they are to be had. Waits are seen 20 times a
second: long ones are exact, those below 50ms are estimates.

Examples:
  ringmark profile -p 812
  ringmark profile -p 812 --for 30s -n 40
  ringmark profile -p 812 --html slow.html
  ringmark profile -- ./mine")]
pub(crate) struct Args {
    /// The process
    #[arg(short, long, value_parser = crate::options::process::parse_process, required_unless_present = "command")]
    pid: Option<u32>,
    /// How long it is looked at; Ctrl-C ends earlier [default: 5s for a process, to its end for a program]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    time: Option<Duration>,
    /// Samples in each second that a thread runs
    #[arg(long, value_name = "HZ", default_value_t = 99, value_parser = clap::value_parser!(u64).range(1..=1000))]
    sample: u64,
    /// Write a page for a browser, too: what ran and what was waited for as flame graphs, and all rows
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    lines: LinesOption,
    #[command(flatten)]
    wide: WideOption,
    /// A program with its arguments, which is started
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "CMD", conflicts_with = "pid")]
    command: Vec<OsString>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if let Some(page) = &self.html {
            require_place(page)?;
        }
        match self.pid {
            Some(pid) => self.run_beside(pid),
            None => self.run_program(),
        }
    }

    /// Looks at a process that runs, until the time is over, somebody ends it, or the process does.
    fn run_beside(&self, pid: u32) -> anyhow::Result<Exit> {
        let signals = Signals::watch()?;
        let mut profiler = self.attach(pid)?;
        let title = title(&profiler, pid);
        let time = self.time.unwrap_or(TIME);
        let mut line = ProgressLine::new(true);
        let begun = Instant::now();
        let mut lives = true;
        while lives && begun.elapsed() < time && signals.received().is_none() {
            if line.due().is_some() {
                let seconds = begun.elapsed().as_secs();
                line.show(&format!(
                    "{title}: {seconds} of {} s, Ctrl-C ends",
                    time.as_secs()
                ));
            }
            thread::sleep(LOOK_EVERY.min(time.saturating_sub(begun.elapsed())));
            lives = profiler.look();
        }
        line.clear();
        if !lives {
            note(&format!("{title} has ended"));
        }
        self.print(&mut profiler, pid)?;
        Ok(Exit::FINE)
    }

    /// Starts a program, looks at it, and ends as it does.
    fn run_program(&self) -> anyhow::Result<Exit> {
        let mut program = ProfiledProgram::start(&self.command)?;
        let pid = program.pid();
        let mut profiler = self.attach(pid)?;
        let begun = Instant::now();
        let is_over = || self.time.is_some_and(|time| begun.elapsed() >= time);
        while program.ended()?.is_none() && !is_over() {
            thread::sleep(LOOK_EVERY);
            profiler.look();
        }
        self.print(&mut profiler, pid)?;
        Ok(exit_code(program.wait()?))
    }

    fn attach(&self, pid: u32) -> Result<Profiler, Failure> {
        descriptors::take_all();
        Profiler::attach(pid, self.sample).map_err(|error| Failure::no_target(error.to_string()))
    }

    fn print(&self, profiler: &mut Profiler, pid: u32) -> anyhow::Result<()> {
        let profile = &profiler.profile();
        let title = title(profiler, pid);
        let summary = time_table::whole(profile);
        self.print_tables(profile, &format!("{title}: {summary}"))?;
        let missing = time_table::missing(profile);
        let next = time_table::next_step(profile, pid);
        missing.iter().chain(&next).for_each(|text| note(text));
        if let Some(page) = &self.html {
            let words = ProfileWords {
                title,
                summary,
                notes: missing,
            };
            let (bytes, _) = replace(page, Former::Replaced, |out| {
                write_profile(profile, &words, out)
            })?;
            let (page, bytes) = (page.display(), size(bytes));
            note(&format!("{page}: {bytes}; open it in a browser"));
        }
        Ok(())
    }

    fn print_tables(&self, profile: &Profile, first_line: &str) -> anyhow::Result<()> {
        let columns = self.wide.columns();
        let (mut out, style) = match self.pid {
            Some(_) => (Sink::paged().within(columns), Style::detect()),
            None => (Sink::error().within(columns), Style::none()),
        };
        writeln!(out, "{first_line}")?;
        for mut table in [
            time_table::functions(profile),
            time_table::waits(profile),
            time_table::threads(profile),
        ] {
            if table.is_empty() {
                continue;
            }
            table.first(self.lines.or(time_table::ROWS));
            table.fit(columns);
            writeln!(out)?;
            table.write(&mut out, style)?;
        }
        out.finish()?;
        Ok(())
    }
}

/// Whether a page can be written there: this is better said before the time of a profile than after it.
fn require_place(page: &Path) -> Result<(), Failure> {
    if is_standard(page) {
        let text = "--html -: standard output has the tables; expected the name of a file";
        return Err(Failure::usage(text));
    }
    let folder = page
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if page.is_dir() || !folder.is_dir() {
        let page = page.display();
        let text =
            format!("--html {page}: expected the name of a file in a directory that is there");
        return Err(Failure::usage(text));
    }
    require_no_trace(page)
}

/// The process as its tables call it.
fn title(profiler: &Profiler, pid: u32) -> String {
    format!("{}[{pid}]", printable(profiler.name()))
}
