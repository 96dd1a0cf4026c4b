//! `report`: counts events and calls, and sums up how long they took.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ringmark_decoder::{Dump, FunctionTimes};

use crate::input::{rings, trace_files};
use crate::output::file::DEFAULT_FILE;
use crate::output::json::{Head, JsonOption};
use crate::output::{Exit, Failure, Sink, Style, columns, note};
use crate::tables::calls::CallOptions;
use crate::tables::cover;
use crate::tables::event_table;
use crate::tables::function_table;
use crate::tables::profile_table::{self, TracerProfile};
use crate::tracing::tracer_session::TracerSession;

/// Count events and calls, and sum up their durations
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The functions with the most time of their own (SELF) come first.

A function tracer of kind 'profile' counts in the process and writes no
records. With -p the process is asked for its counts. A trace file holds them
as of the tracer's last stop and of the program's exit; a process that was
killed leaves none. Percentiles marked with ~ come from a histogram by powers
of two, and may be wrong by a factor of up to two.

Examples:
  ringmark report run.rmk --diff before.rmk
  ringmark report /var/lib/ringmark --from 2026-01-31T12:00:00Z \\
      --to 2026-01-31T13:00:00Z
  ringmark report -p 812 --tracer profile")]
pub(crate) struct Args {
    /// Trace files and stores, read together; '-' is standard input
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE, conflicts_with = "pid")]
    files: Vec<PathBuf>,
    /// Report what is in the rings of a process now, and the counts of its profile tracers
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "diff")]
    pid: Option<u32>,
    #[command(flatten)]
    calls: CallOptions,
    /// Compare the functions with those of this trace file, in the same span of time
    #[arg(long, value_name = "FILE")]
    diff: Option<PathBuf>,
    #[command(flatten)]
    json: JsonOption,
    /// Print names at full length, even on a narrower terminal
    #[arg(long)]
    wide: bool,
}

/// The figures to report.
struct Reported {
    /// `None`: only profiles are.
    dump: Option<Dump>,
    profiles: Vec<TracerProfile>,
    is_whole: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let found = match self.pid {
            Some(pid) => self.ask(pid)?,
            None => self.read()?,
        };
        let functions = match &found.dump {
            Some(dump) => function_table::times(dump, &self.calls)?,
            None => Vec::new(),
        };
        let mut out = if self.json.is_on() {
            Sink::direct()
        } else {
            Sink::paged()
        };
        match &self.diff {
            Some(other) => self.compare(&functions, other, &mut out)?,
            None => self.show(&functions, &found, &mut out)?,
        }
        out.finish()?;
        Ok(Exit::lost_if(!found.is_whole))
    }

    fn read(&self) -> anyhow::Result<Reported> {
        let dump = trace_files::read_for(&self.files, &self.calls.filter()?)?;
        Ok(Reported {
            profiles: profile_table::in_dump(&dump, &self.calls)?,
            is_whole: dump.verify().is_clean(),
            dump: Some(dump),
        })
    }

    /// Pages of living rings that a recorder has taken already are not missing.
    fn ask(&self, pid: u32) -> anyhow::Result<Reported> {
        // A process that we may only watch is not asked.
        let session = TracerSession::of(pid).ok().flatten();
        let ask = |session| profile_table::of_process(&session, &self.calls);
        let profiles = session.map_or(Ok(Vec::new()), ask)?;
        let uncounted = profiles.iter().map(|profile| profile.uncounted).max();
        if let Some(calls) = uncounted.filter(|calls| *calls > 0) {
            note(&format!("no memory to count {calls} calls"));
        }
        let mut is_whole = uncounted.unwrap_or(0) == 0;
        if self.calls.tracer().is_some() && !profiles.is_empty() {
            self.calls.require_all()?;
            return Ok(Reported {
                dump: None,
                profiles,
                is_whole,
            });
        }
        let dump = rings::snapshot(pid)?;
        let verified = dump.verify();
        is_whole &= verified.lost == 0 && verified.damage.is_empty();
        Ok(Reported {
            dump: Some(dump),
            profiles,
            is_whole,
        })
    }

    fn compare(
        &self,
        before: &[FunctionTimes],
        other: &Path,
        out: &mut Sink,
    ) -> anyhow::Result<()> {
        let other = trace_files::read_for(&[other.to_owned()], &self.calls.filter()?)?;
        let after = function_table::times(&other, &self.calls)?;
        let changes = function_table::changes(before, &after);
        if changes.is_empty() {
            return Err(
                Failure::unreadable("--diff: neither trace file has function records").into(),
            );
        }
        if self.json.is_on() {
            let lines = changes.iter().map(function_table::change_as_json);
            let mut lines = lines.map(|line| self.json.form(line));
            return Ok(lines.try_for_each(|line| writeln!(out, "{line}"))?);
        }
        let mut table = function_table::changes_table(&changes);
        table.fit(self.columns());
        Ok(table.write(out, Style::detect())?)
    }

    /// Whose figures the rows are.
    fn head(&self, found: &Reported) -> Head {
        match &found.dump {
            Some(dump) => Head::of_all(&dump.sessions),
            None => Head {
                pid: self.pid,
                ..Head::default()
            },
        }
    }

    fn columns(&self) -> Option<usize> {
        columns(io::stdout()).filter(|_| !self.wide)
    }

    fn show(
        &self,
        functions: &[FunctionTimes],
        found: &Reported,
        out: &mut Sink,
    ) -> anyhow::Result<()> {
        let filter = self.calls.filter()?;
        let rows = found
            .dump
            .as_ref()
            .map(|dump| event_table::rows(dump, &filter));
        let rows = rows.unwrap_or_default();
        if self.json.is_on() {
            let head = self.head(found);
            let lines = functions.iter().map(|f| function_table::as_json(f, &head));
            let profiles = found.profiles.iter();
            let profiles = profiles.flat_map(|profile| profile.as_json(&head));
            let rows = rows.iter().map(|row| row.as_json(&head));
            let lines = lines.chain(profiles).chain(rows);
            let mut lines = lines.map(|line| self.json.form(line));
            return Ok(lines.try_for_each(|line| writeln!(out, "{line}"))?);
        }
        for line in found.dump.iter().flat_map(cover::lines) {
            writeln!(out, "{line}")?;
        }
        let mut tables = Vec::new();
        if !functions.is_empty() {
            tables.push(function_table::table(functions));
        }
        tables.extend(found.profiles.iter().map(TracerProfile::table));
        if tables.is_empty() || !rows.is_empty() {
            tables.push(event_table::table(&rows));
        }
        for (place, table) in tables.iter_mut().enumerate() {
            if place > 0 {
                writeln!(out)?;
            }
            table.fit(self.columns());
            table.write(out, Style::detect())?;
        }
        Ok(())
    }
}
