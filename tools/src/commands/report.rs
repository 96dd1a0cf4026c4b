//! `report`: counts events, spans and calls, and sums up how long they took.

use std::io::Write;
use std::path::PathBuf;

use ringmark_console::json::{Head, JsonOption, Line};
use ringmark_console::wide::WideOption;
use ringmark_console::{Exit, Failure, Sink, Style, note, printable};
use ringmark_decoder::{Counted, Dump, Figures};

use crate::commands::report_by::ByOptions;
use crate::commands::report_changes::{Shown, Trace};
use crate::commands::report_paths::PathOptions;
use crate::commands::{report_by, report_changes, report_page, report_paths};
use crate::input::exported::tell_nothing;
use crate::input::trace_files::Input;
use crate::input::{notices, rings};
use crate::options::figures::FigureOptions;
use crate::options::rows::{LinesOption, SortBy};
use crate::output::endings;
use crate::tables::profile_table::TracerProfile;
use crate::tables::slowest::Source;
use crate::tables::{
    cover, event_table, host_table, profile_table, ran_table, slowest, span_table, summary,
};
use crate::tracing::tracer_session::TracerSession;

/// Count events, spans and calls, and sum up their durations
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Native spans, spans of 'tracing' and functions are in one table, those with
the most time of their own (SELF) first. TOTAL is from beginning to end, SELF
without the spans and calls inside; one inside another of its name is in TOTAL
once. For a span of 'tracing' SELF is the time in which threads were in it, and
in nothing inside. P50 and P99 are within 1 %. NO START and NO END count
spans that the trace does not hold whole; the times are those of the others.

Of what was recorded with --sample a table follows: the functions that ran, by
samples, in all threads, or in the spans and calls that --name and --where
choose.

A function tracer of kind 'profile' counts in the process and writes no
records. With -p Ringmark requests the counts from it. A trace file holds them
as of the tracer's last stop and of the program's exit; a process that was
killed leaves none. Percentiles marked with ~ come from a histogram by powers
of two, and may be wrong by a factor of up to two.

--paths, --callers and --callees show functions inside functions, and spans
inside spans: how often, and how long, on that path. TOTAL of a function that
calls itself counts each of its calls. For programs: 'export --format folded'.

With --where, --paths and --callees show where the time of the slow ones goes:
each tree begins with what --where chooses. EACH and SELF are the mean times in
one of those, ALL EACH and ALL SELF in one of all with their names. A line
without a COUNT is of what only the others called.

--diff compares the spans and functions of FILE, called A, with those of OTHER,
called B. Each name has two rows: A with the change from A to B, B with the same
in per cent. CHANGE is that of MEAN, or of what --sort names. A name that each
trace has in one program or module alone is compared, however those are called.
--host and --service choose in both, --pid in A. Counts of profiles are not
compared.

--by sums up the durations of all rows of 'export --format csv' by columns, or
by names of arguments: --by host,name. ROWS counts all, COUNT those with a
duration. Percentiles are within 0.4 %, bounds of --hist within 1.6 %; --hist of
several stores are merged by sums of their counts.

--html writes a page that needs no network and no other file; '?' in it shows
its keys. It holds spans, calls, events, losses and what was open at the end.
Counts of profiles are not in it.

Examples:
  ringmark report run.rmk --slowest 10
  ringmark report run.rmk --html -o run.html
  ringmark report run.rmk --where 'took>20ms' --name 'http.*'
  ringmark report run.rmk --callers malloc --sort count -n 5
  ringmark report run.rmk --name 'http.*' --where 'took>20ms' --paths
  ringmark report run.rmk --by path --name 'index.*' --sort p99
  ringmark report before.rmk --diff after.rmk --sort p99
  ringmark report /var/lib/ringmark --from 2026-01-31T12:00:00Z \\
      --to 2026-01-31T13:00:00Z
  ringmark report -p 812 --tracer profile")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    figures: FigureOptions,
    /// Compare spans and functions with those of this trace file, in the same span of time
    #[arg(long, value_name = "OTHER", conflicts_with_all = ["slowest"])]
    diff: Option<PathBuf>,
    #[command(flatten)]
    paths: PathOptions,
    #[command(flatten)]
    by: ByOptions,
    /// The greatest of this first; with --diff its largest change, for which the default is mean
    #[arg(long, value_enum, value_name = "FIGURE")]
    sort: Option<SortBy>,
    #[command(flatten)]
    lines: LinesOption,
    /// Write one HTML page: timeline, flame graph, durations, losses, open spans
    #[arg(long, conflicts_with_all = ["slowest", "diff", "json", "tracer", "sort", "lines"])]
    html: bool,
    /// Where to write the page, '-' for standard output
    #[arg(
        short,
        long,
        value_name = "OUT",
        requires = "html",
        default_value = "ringmark.html"
    )]
    output: PathBuf,
    #[command(flatten)]
    json: JsonOption,
    #[command(flatten)]
    wide: WideOption,
}

/// The figures to report.
struct Reported {
    /// `None`: only profiles are.
    dump: Option<Dump>,
    profiles: Vec<TracerProfile>,
    is_whole: bool,
}

impl Args {
    pub(crate) fn run(mut self) -> anyhow::Result<Exit> {
        let process = self.input.process()?;
        if let Some(other) = self.diff.take() {
            return self.compare(other, process);
        }
        if self.html {
            return self.write_page(process);
        }
        if self.paths.is_given() {
            return self.show_paths(process);
        }
        if self.by.is_given() {
            return self.show_groups(process);
        }
        let mut found = match process {
            Some(pid) => self.ask(pid)?,
            None => self.read()?,
        };
        let conditions = &self.figures.conditions;
        if !conditions.is_empty() {
            let mut filter = self.figures.calls.to_read()?;
            self.figures.conditions.add_to(&mut filter)?;
            found
                .profiles
                .iter_mut()
                .for_each(|profile| profile.narrow(&filter));
            found.profiles.retain(|profile| !profile.is_empty());
        }
        if let Some(by) = self.sort {
            let profiles = found.profiles.iter_mut();
            profiles.for_each(|profile| profile.sort(by));
        }
        let none = Dump::default();
        let dump = found.dump.as_ref().unwrap_or(&none);
        let figures = match found.dump {
            Some(_) => self.figures.figures(dump)?,
            None => dump.figures(Counted::default()),
        };
        let mut out = self.sink();
        match self.figures.slowest {
            Some(_) => self.show_slowest(&figures, dump, &mut out)?,
            None if self.json.is_on() => self.print_json(&figures, &found, &mut out)?,
            None => self.show(&figures, &found, &mut out)?,
        }
        out.finish()?;
        if self.json.is_on() && !found.is_whole {
            // Its rows have no place for what is not in them.
            cover::lines(dump).iter().for_each(|line| note(line));
        }
        if figures.is_empty() && found.profiles.is_empty() && !conditions.is_empty() {
            note(&conditions.closest(&self.figures.records(dump)?, dump));
        }
        notices::tell_gone(dump);
        Ok(Exit::lost_if(!found.is_whole || !dump.gone().is_empty()))
    }

    fn write_page(&self, process: Option<u32>) -> anyhow::Result<Exit> {
        let dump = self.read_or_ask(process)?;
        let filter = self.figures.filter(&dump)?;
        let title = match process {
            Some(pid) => format!("process {pid}"),
            None => files_shown(&self.input.files()),
        };
        let part = self.figures.part_of_all();
        let is_part = part.is_some();
        let shown = report_page::write(&dump, (filter, part), title, &self.output)?;
        if shown.is_empty() && is_part {
            let others = self.figures.records(&dump)?;
            note(&self.figures.conditions.closest(&others, &dump));
        } else {
            tell_nothing(&dump, &shown);
        }
        Ok(exit(&dump, process.is_some()))
    }

    fn show_paths(&self, process: Option<u32>) -> anyhow::Result<Exit> {
        let dump = self.read_or_ask(process)?;
        let filter = self.figures.records(&dump)?;
        let tracers = self.figures.calls.tracers(&dump)?;
        let shown = report_paths::Shown {
            sort: self.sort,
            lines: self.lines,
            columns: self.wide.columns(),
            part: self.figures.part(),
        };
        let conditions = &self.figures.conditions;
        let mut out = self.sink();
        let mut is_empty = false;
        if conditions.is_empty() {
            let paths = dump.paths(&filter, tracers);
            self.paths.write(&dump, &paths, &shown, &mut out)?;
        } else {
            let mut chosen = self.figures.filter(&dump)?;
            self.paths.add_to(&mut chosen);
            let found = dump.chosen_paths(&chosen, &filter, tracers);
            is_empty = found.chosen.paths.is_empty();
            if conditions.has_fields() {
                let how = conditions.words().join(" ");
                let found = (&found, how.as_str());
                self.paths.write_chosen(&dump, found, &shown, &mut out)?;
            } else {
                self.paths.write(&dump, &found.chosen, &shown, &mut out)?;
            }
        }
        out.finish()?;
        if is_empty {
            note(&conditions.closest(&filter, &dump));
        }
        Ok(exit(&dump, process.is_some()))
    }

    fn show_groups(&self, process: Option<u32>) -> anyhow::Result<Exit> {
        // Which finished spans are around an event is not asked.
        let dump = match process {
            Some(pid) => rings::snapshot(pid)?,
            None => self.input.read_bare_for(&self.figures.to_read()?)?,
        };
        let shown = report_by::Shown {
            sort: self.sort,
            lines: self.lines,
            columns: self.wide.columns(),
        };
        let mut out = self.by.sink(&shown);
        let rows = self
            .by
            .write(&dump, self.figures.rows(&dump)?, &shown, &mut out)?;
        out.finish()?;
        let conditions = &self.figures.conditions;
        if rows == 0 && !conditions.is_empty() {
            note(&conditions.closest(&self.figures.records(&dump)?, &dump));
        }
        endings::tell(&dump);
        Ok(exit(&dump, process.is_some()))
    }

    fn read_or_ask(&self, process: Option<u32>) -> anyhow::Result<Dump> {
        match process {
            Some(pid) => rings::snapshot(pid),
            None => self.input.read_for(&self.figures.to_read()?),
        }
    }

    fn read(&self) -> anyhow::Result<Reported> {
        let dump = self.input.read_for(&self.figures.to_read()?)?;
        Ok(Reported {
            profiles: profile_table::in_dump(&dump, &self.figures.calls)?,
            is_whole: dump.verify().is_clean(),
            dump: Some(dump),
        })
    }

    /// Pages of living rings that a recorder has taken already are not missing.
    fn ask(&self, pid: u32) -> anyhow::Result<Reported> {
        // A process that we may only watch is not asked.
        let session = TracerSession::of(pid).ok().flatten();
        let ask = |session| profile_table::of_process(&session, &self.figures.calls);
        let profiles = session.map_or(Ok(Vec::new()), ask)?;
        let uncounted = profiles.iter().map(|profile| profile.uncounted).max();
        if let Some(calls) = uncounted.filter(|calls| *calls > 0) {
            note(&format!(
                "{calls} calls were not counted: their threads could not be set up (no memory, no descriptor, or no /proc)"
            ));
        }
        let mut is_whole = uncounted.unwrap_or(0) == 0;
        if self.figures.calls.tracer().is_some() && !profiles.is_empty() {
            self.figures.require_all()?;
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

    fn compare(&self, other: PathBuf, process: Option<u32>) -> anyhow::Result<Exit> {
        if process.is_some() {
            let text = "--diff: found a running process, expected FILE";
            return Err(Failure::usage(text).into());
        }
        let filter = self.figures.to_read()?;
        let first = self.input.read_for(&filter)?;
        let second = self.input.read_other(&other, &filter)?;
        let trace = |name, dump| {
            let figures = self.figures.figures(dump)?;
            anyhow::Ok(Trace {
                name,
                dump,
                figures,
            })
        };
        let traces = [
            trace(files_shown(&self.input.files()), &first)?,
            trace(files_shown(&[other]), &second)?,
        ];
        let shown = Shown {
            sort: self.sort,
            lines: self.lines,
            json: self.json,
            columns: self.wide.columns(),
        };
        let conditions = &self.figures.conditions;
        let mut out = self.sink();
        let exit = report_changes::write(&traces, &shown, !conditions.is_empty(), &mut out)?;
        out.finish()?;
        if traces.iter().all(|trace| trace.figures.is_empty()) && !conditions.is_empty() {
            note(&conditions.closest(&self.figures.records(&first)?, &first));
        }
        Ok(exit)
    }

    fn sink(&self) -> Sink {
        match self.json.is_on() {
            true => Sink::direct(),
            false => Sink::paged().within(self.wide.columns()),
        }
    }

    fn write_json(
        &self,
        objects: impl Iterator<Item = serde_json::Value>,
        out: &mut Sink,
    ) -> anyhow::Result<()> {
        let mut lines = objects.map(Line);
        Ok(lines.try_for_each(|line| writeln!(out, "{line}"))?)
    }

    /// Whose figures the rows are.
    fn head(&self, found: &Reported) -> Head {
        match &found.dump {
            Some(dump) => Head::of_all(&dump.sessions),
            None => Head {
                pid: self.input.process().ok().flatten(),
                ..Head::default()
            },
        }
    }

    fn show_slowest(
        &self,
        figures: &Figures<'_>,
        dump: &Dump,
        out: &mut Sink,
    ) -> anyhow::Result<()> {
        let (files, pid) = (self.input.files(), self.input.process()?);
        let source = Source {
            files: &files,
            pid,
            dump,
            is_part: !self.input.choice().is_all(),
        };
        if self.json.is_on() {
            let objects = slowest::as_json(&figures.slowest, &source);
            return self.write_json(objects.into_iter(), out);
        }
        for line in cover::lines(dump).iter().chain(&self.figures.part()) {
            writeln!(out, "{line}")?;
        }
        let form = (Style::detect(), self.wide.columns());
        slowest::write(&figures.slowest, &source, form, out)?;
        // They have no duration, so they are not among the slowest.
        if let Some(line) = span_table::open_spans(figures) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn print_json(
        &self,
        figures: &Figures<'_>,
        found: &Reported,
        out: &mut Sink,
    ) -> anyhow::Result<()> {
        let head = self.head(found);
        let spans = span_table::rows(figures, self.sort);
        let spans = spans
            .iter()
            .take(self.lines.of(spans.len()))
            .map(|row| row.as_json(&head));
        let profiles = found.profiles.iter();
        let profiles =
            profiles.flat_map(|profile| profile.as_json(&head).take(self.lines.of(usize::MAX)));
        let events = event_table::rows(&figures.events, self.sort);
        let events = events
            .iter()
            .take(self.lines.of(events.len()))
            .map(|row| row.as_json(&head));
        let ran = figures.ran.iter();
        let ran =
            ran.flat_map(|ran| ran_table::as_json(ran, &head).take(self.lines.of(usize::MAX)));
        for row in spans.chain(ran).chain(profiles).chain(events) {
            writeln!(out, "{row}")?;
        }
        Ok(())
    }

    fn show(&self, figures: &Figures<'_>, found: &Reported, out: &mut Sink) -> anyhow::Result<()> {
        let covers = found.dump.iter().flat_map(cover::lines);
        let sessions = found.dump.iter().flat_map(|dump| &dump.sessions);
        let has_ended = sessions.into_iter().any(|session| session.ending.is_some());
        let read_from = match self.input.process()? {
            Some(_) if has_ended => "it has ended".to_owned(),
            Some(_) => "it runs".to_owned(),
            None => files_shown(&self.input.files()),
        };
        let origin = found.dump.as_ref();
        let origin = origin.and_then(|dump| cover::origin(dump, &read_from));
        for line in covers.chain(origin).chain(self.figures.part()) {
            writeln!(out, "{line}")?;
        }
        let hosts = found.dump.as_ref().and_then(host_table::table);
        let rows = summary::tables(figures, &found.profiles, self.sort);
        for (place, mut table) in hosts.into_iter().chain(rows).enumerate() {
            if place > 0 {
                writeln!(out)?;
            }
            self.lines.cut(&mut table);
            table.fit(self.wide.columns());
            table.write(out, Style::detect())?;
        }
        Ok(())
    }
}

/// Pages of living rings that a recorder has taken already are not missing.
fn exit(dump: &Dump, is_living: bool) -> Exit {
    notices::tell_gone(dump);
    let found = dump.verify();
    Exit::lost_if(match is_living {
        true => found.lost > 0 || !found.damage.is_empty(),
        false => !found.is_clean(),
    })
}

/// The names of files, as a title.
fn files_shown(files: &[PathBuf]) -> String {
    let names = files.iter().map(|file| file.display().to_string());
    printable(&names.collect::<Vec<_>>().join(", "))
}
