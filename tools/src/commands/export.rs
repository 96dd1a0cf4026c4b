//! `export`: writes a trace in the format of another viewer, or as a table.

use std::io;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use ringmark_console::file::{Former, is_standard, replace, tell_set_aside};
use ringmark_console::progress::ProgressLine;
use ringmark_console::units::{count, counted, size};
use ringmark_console::{Exit, Failure, Sink, extension, note};
use ringmark_decoder::{
    ArgColumn, Chosen, Dump, RowsEnd, Session, ThreadDoes, unordered_notice, unplaced_notice,
};
use ringmark_export::{Counts, Format, Plan, Signal, Written};

use super::export_rows;
use crate::input::exported::ExportedOptions;
use crate::input::trace_files::Input;
use crate::output::endings;

/// The format of an export, as the command line names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Name {
    /// For ui.perfetto.dev and trace_processor
    Perfetto,
    /// Stacks with the ns in each, for flame graphs
    Folded,
    /// A folder of CTF 1.8, for babeltrace2 and Trace Compass
    Ctf,
    /// A row for each span, call and event, RFC 4180
    Csv,
    /// Spans and calls as lines of OTLP in JSON, for the OpenTelemetry Collector, and so for Jaeger and Tempo
    Otlp,
    /// Events as log records, in the same way
    OtlpLogs,
    /// The same rows, for DuckDB, Spark, ClickHouse and pandas; needs ringmark-fleet
    Parquet,
    /// The same rows as Arrow IPC, a file; needs ringmark-fleet
    Arrow,
}

/// What a thread does, as the command line names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum State {
    /// It has a processor
    Running,
    /// It could run, and another thread has got its processor
    Ready,
    /// It waits
    Waiting,
}

impl State {
    const fn does(self) -> ThreadDoes {
        match self {
            Self::Running => ThreadDoes::Runs,
            Self::Ready => ThreadDoes::Ready,
            Self::Waiting => ThreadDoes::Waits,
        }
    }
}

/// What writes a format.
enum Writer {
    File(Format),
    Folder,
    Rows,
    /// Rows, by another command.
    Fleet,
}

impl Name {
    fn writer(self, state: Option<State>) -> Writer {
        match self {
            Self::Perfetto => Writer::File(Format::Perfetto),
            Self::Folded => Writer::File(Format::Folded(state.map(State::does))),
            Self::Ctf => Writer::Folder,
            Self::Csv | Self::Otlp | Self::OtlpLogs => Writer::Rows,
            Self::Parquet | Self::Arrow => Writer::Fleet,
        }
    }

    /// How the name of the output ends when none is given.
    const fn ending(self) -> &'static str {
        match self {
            Self::Perfetto => "pftrace",
            Self::Folded => "folded",
            Self::Ctf => "ctf",
            Self::Csv => "csv",
            Self::Otlp => "otlp.jsonl",
            Self::OtlpLogs => "otlp-logs.jsonl",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }

    /// What to do with the file.
    const fn hint(self) -> &'static str {
        match self {
            Self::Perfetto => "drop it on ui.perfetto.dev, which sends it nowhere",
            Self::Folded => "drop it on speedscope.app, or make a picture: inferno-flamegraph",
            Self::Ctf => "read it with babeltrace2",
            Self::Csv => "read it with DuckDB or a spreadsheet",
            Self::Otlp | Self::OtlpLogs => {
                "the OpenTelemetry Collector reads it with its receiver otlpjsonfile"
            }
            Self::Parquet | Self::Arrow => "read it with DuckDB or pandas",
        }
    }
}

/// Write a trace for another viewer (Perfetto, flame graphs, CTF) or as a table
#[derive(Debug, clap::Args)]
#[command(after_help = "\
perfetto: spans, calls, events, counters, flows and losses, on tracks of
processes and threads. A native span is on the track of its thread, and calls
are on a track below it. A span of tracing is on a track of its own name, with
the time in which threads were in it. What was open at the end has no end.
Losses are marks and a counter. Not carried: units of arguments, targets and
levels of native spans, ids and parents of spans, which span follows which.
Neither are source lines, and the other fields of a counter's record. What
threads did, where switches were recorded (--sched), is in their states and on
processors: Perfetto calls what is not known Stopped.

folded: for each stack the ns in its innermost span or call. A span of tracing
is below the span around it, or below its process. Not carried: everything that
has no duration, arguments, what has no beginning or no end. --state has the ns
in which threads did one thing, where switches were recorded (--sched): of what
--name and --min-time leave out, they are of what is around it. --samples has
the functions that ran in each thread, by samples (--sample).

ctf: the records as they are, a span at its end with its duration (took_ns), so
--min-time leaves out native spans and no others. Lost events are counted where
babeltrace2 looks for them. Not carried: units, labels next to numbers, absent
values next to texts, spans that are open, calls as pairs, numbers of 128 bits
but as text.

csv: a span or a call is one row, in the order of ends. Every other event is a
row without dur_ns. ts_ns is the begin, in ns since 1970. depth counts the calls
around a call, lost_before the events that its thread lost before the row. args
are JSON. --name gives each argument of the named events a column of its own,
arg_NAME. truncated is true where a span or call has its beginning in a record
that is before --from, or not in the trace. Then ts_ns and dur_ns are empty,
whichever files were read. A span that is one record has both times. Where
switches were recorded, running_ns, ready_ns and waiting_ns follow. Texts are
escaped as 'cat' does it, and begin with ' where a spreadsheet would calculate.
Not carried: what was open at the end, which is counted, and links.

otlp: a line for some hundred spans and calls, as the file receiver of the
OpenTelemetry Collector (otlpjsonfile) reads it. A span is in the one that its
record names, else in the one around it on its thread. A trace is named after
its outermost span, or by the field 'traceparent' of a span in it. otlp-logs:
events, with the span that they are in. Not carried: what was open at the end,
losses, what threads did.

parquet, arrow: the same columns, written by ringmark-fleet, a command of its
own, from files and stores.

A span or call belongs to the time of its end: --from and --to choose by it. In
a store, only segments of the time, hosts and services are read; --last reads
its end, unless services or processes are chosen.

Examples:
  ringmark export run.rmk
  ringmark export run.rmk --format csv --name request -o requests.csv
  ringmark export run.rmk --last 10s --min-time 100us -o - | gzip > run.gz
  ringmark export run.rmk --format folded -o - | head
  ringmark export -p 812 --name 'request.*'")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// The format to write
    #[arg(long, value_enum, default_value = "perfetto")]
    format: Name,
    /// With --format folded: the time in which threads did this, where their switches were recorded
    #[arg(long, value_enum)]
    state: Option<State>,
    /// With --format folded: the functions that ran, by samples (--sample)
    #[arg(long, conflicts_with_all = ["state", "name", "conditions", "level", "min_time"])]
    samples: bool,
    /// Where to write it, '-' for standard output. By default a file here with FILE's name and the
    /// format's ending; one that is there becomes OUT.old
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    exported: ExportedOptions,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        self.check_folded()?;
        let format = match self.format.writer(self.state) {
            Writer::File(Format::Folded(_)) if self.samples => Some(Format::FoldedSamples),
            Writer::File(format) => Some(format),
            Writer::Folder => None,
            Writer::Rows => return self.rows(),
            Writer::Fleet => {
                let wanted = format!("--format {}", self.format.ending());
                self.exported.check_rows(&self.input, &wanted)?;
                let (path, _) = self.output();
                let named = self.output.is_none().then_some(path);
                return extension::write(&wanted, named.as_deref());
            }
        };
        let is_bare = self.format != Name::Folded;
        let (dump, is_running) = self.exported.read(&self.input, is_bare)?;
        if self.state.is_some() && !dump.sessions.iter().any(Session::has_switches) {
            let text =
                "no switches of threads: record with --sched, for --state to say what threads did";
            return Err(Failure::unreadable(text).into());
        }
        if self.samples && !dump.sessions.iter().any(Session::has_samples) {
            let text =
                "no samples of what ran: record with --sample 99, for --samples to show them";
            return Err(Failure::unreadable(text).into());
        }
        let plan = self.exported.plan(&dump)?;
        let shown = self.write(&plan, format)?;
        self.exported.tell_if_nothing(&dump, &shown);
        endings::tell(&dump);
        unordered_notice(&dump).iter().for_each(|line| note(line));
        Ok(exit_of(&dump, is_running))
    }

    /// Whether --state and --samples fit the format.
    fn check_folded(&self) -> anyhow::Result<()> {
        let option = match (self.state, self.samples) {
            (Some(_), _) => "--state",
            (None, true) => "--samples",
            (None, false) => return Ok(()),
        };
        if self.format == Name::Folded {
            return Ok(());
        }
        let found = self.format.to_possible_value();
        let found = found
            .as_ref()
            .map_or("another", clap::builder::PossibleValue::get_name);
        let text = format!("{option}: found --format {found}, expected --format folded");
        Err(Failure::usage(&text).into())
    }

    /// Writes rows.
    fn rows(&self) -> anyhow::Result<Exit> {
        let wanted = self.format.to_possible_value();
        let wanted = wanted.as_ref().map_or("csv", |value| value.get_name());
        let chosen = self.exported.chosen_rows(&format!("--format {wanted}"))?;
        let is_bare = self.format == Name::Csv;
        let (dump, is_running) = chosen.read(&self.input, is_bare)?;
        let args = dump.arg_columns(&chosen.filter(&dump)?);
        let rows = chosen.rows(&dump)?;
        let rows = (&rows, &args[..]);
        let (path, former) = self.output();
        let (end, written) = match is_standard(&path) {
            true => {
                let mut out = Sink::direct();
                let end = self.write_rows(&dump, rows, &mut out)?;
                out.finish()?;
                end
            }
            false => {
                let write = |out: &mut _| self.write_rows(&dump, rows, out);
                let (end, old) = replace(&path, former, write)?;
                if let Some(old) = old {
                    tell_set_aside(&path, &old);
                }
                let (path, rows) = (path.display(), counted(end.1, "row"));
                note(&format!("{path}: {rows}; {}", self.format.hint()));
                end
            }
        };
        match self.format {
            Name::Csv => export_rows::tell(&end),
            _ => export_rows::tell_open(&end),
        }
        if written == 0 {
            let _ = chosen.tell_closest(&dump);
        }
        endings::tell(&dump);
        unordered_notice(&dump).iter().for_each(|line| note(line));
        Ok(exit_of(&dump, is_running))
    }

    /// Writes rows in this format. Returns what a walk over them says, and how many were written.
    fn write_rows(
        &self,
        dump: &Dump,
        (chosen, args): (&Chosen, &[ArgColumn]),
        out: &mut impl io::Write,
    ) -> io::Result<(RowsEnd, u64)> {
        let signal = match self.format {
            Name::Otlp => Signal::Traces,
            Name::OtlpLogs => Signal::Logs,
            _ => {
                let end = export_rows::write_csv(dump, (chosen, args), out)?;
                return Ok((end, end.rows));
            }
        };
        ringmark_export::write_otlp(dump, chosen, signal, out)
    }

    /// What is written, and what becomes of a file that is there.
    fn output(&self) -> (PathBuf, Former) {
        match &self.output {
            Some(path) => (path.clone(), Former::Replaced),
            None => (
                self.input.named_after(self.format.ending()),
                Former::SetAside,
            ),
        }
    }

    /// Writes a file of this format, or a folder. Returns what was written.
    fn write(&self, plan: &Plan<'_>, format: Option<Format>) -> anyhow::Result<Counts> {
        let (path, former) = self.output();
        let path = path.as_path();
        let mut line = ProgressLine::new(true);
        let progress = |done: u64, all: u64| {
            if line.due().is_some() {
                line.show(&format!("{} % of {all} records", 100 * done / all.max(1)));
            }
        };
        let (written, old) = match format {
            None => (
                folder(path, |to| ringmark_export::write_ctf(plan, to, progress))?,
                None,
            ),
            Some(format) if is_standard(path) => {
                if io::stdout().is_terminal() {
                    let text = "standard output is a terminal, expected a file or a pipe";
                    return Err(Failure::usage(text).into());
                }
                let mut out = io::stdout().lock();
                let written = ringmark_export::write(plan, format, &mut out, progress)?;
                line.clear();
                tell(&written);
                return Ok(written.shown);
            }
            Some(format) => replace(path, former, |out| {
                ringmark_export::write(plan, format, out, progress)
            })?,
        };
        line.clear();
        tell(&written);
        if let Some(old) = old {
            tell_set_aside(path, &old);
        }
        note(&format!(
            "{}: {}, {}; {}",
            path.display(),
            shown(&written.shown),
            size(written.bytes),
            self.format.hint()
        ));
        Ok(written.shown)
    }
}

/// What an output holds, in words; nothing that is 0.
pub(super) fn shown(counts: &Counts) -> String {
    let all = [
        (counts.slices, "slice"),
        (counts.instants, "event"),
        (counts.counters, "value"),
        (counts.losses, "gap"),
    ];
    let words = all.into_iter().filter(|(number, _)| *number > 0);
    let words: Vec<_> = words.map(|(number, what)| counted(number, what)).collect();
    match words.is_empty() {
        true => "nothing".to_owned(),
        false => words.join(", "),
    }
}

/// Says whether the whole input is sound, whatever part of it was exported. In a running process,
/// what a recorder has taken is not missing.
pub(super) fn exit_of(dump: &Dump, is_running: bool) -> Exit {
    let found = dump.verify();
    match is_running {
        true => Exit::lost_if(found.lost > 0 || !found.damage.is_empty()),
        false => Exit::lost_if(!found.is_clean()),
    }
}

/// Writes a new folder.
fn folder(
    path: &Path,
    write: impl FnOnce(&Path) -> io::Result<Written>,
) -> anyhow::Result<Written> {
    if is_standard(path) {
        let text = "ctf is a folder, which standard output cannot hold: name one with -o";
        return Err(Failure::usage(text).into());
    }
    if path.exists() {
        let text = format!(
            "{}: is there, expected a new folder to write",
            path.display()
        );
        return Err(Failure::usage(text).into());
    }
    let failed = |error: io::Error| Failure {
        exit: Exit::LOST,
        text: format!("{}: {error}", path.display()),
    };
    Ok(write(path).map_err(failed)?)
}

/// Says what the output does not have.
pub(super) fn tell(written: &Written) {
    for (what, number) in &written.left_out {
        note(&format!("not in the output: {what}: {}", count(*number)));
    }
    let unplaced = unplaced_notice(written.unplaced, &count(written.unplaced));
    unplaced.iter().for_each(|line| note(line));
}
