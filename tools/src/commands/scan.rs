//! `scan`: spans, calls and events as a table, for databases and spreadsheets.

use std::io::{self, Write};
use std::path::PathBuf;

use ringmark_decoder::{ArgColumn, Chosen, Column, CsvWriter, Dump, Group, Groups, RowsEnd};

use super::export::exit_of;
use crate::input::exported::ChosenOptions;
use crate::input::trace_files::Input;
use crate::output::endings;
use ringmark_console::extension;
use ringmark_console::file::{Former, is_standard, replace};
use ringmark_console::units::{count, counted};
use ringmark_console::{Exit, Sink, note};

/// Bytes of lines that are gathered before they are written.
const LINES_BYTES: usize = 60 << 10;
/// Groups that `top` shows when no number is given.
const TOP: usize = 20;

/// Write spans, calls and events as a table: CSV, and sums by any column
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
A span or a call is one row, in the order of ends; it belongs to the time of its
end. Every other event is a row without dur_ns. ts_ns is the begin, in ns since
1970. depth counts the calls around a call, lost_before the events that its
thread lost before the row. args are JSON. --name gives each argument of the
named events a column of its own, arg_NAME.

truncated is true where a span or call has its beginning in a record that is
before --from, or not in the trace. Then ts_ns and dur_ns are empty, whichever
files were read. A span that is one record has both times. What is open at the
end has no row and is counted on standard error.

--format parquet and arrow write the same columns to a file, by ringmark-fleet,
a command of its own.

Texts are escaped as 'cat' does it, and begin with ' where a spreadsheet would
calculate. In a store, only segments of the time, hosts and services are read;
--last reads its end, unless services or processes are chosen.

top, hist and p99 sum durations up by columns: any of those above, or the name
of an argument. Percentiles are within 0.4 %, bounds of hist within 1.6 %; hist
of several stores are merged by sums of their counts.

Examples:
  ringmark scan run.rmk --name request -o requests.csv
  ringmark scan p99 --by host,name /var/lib/ringmark --from 2026-01-31T12:00:00Z
  ringmark scan top --by path run.rmk --name 'index.*'
  ringmark scan hist --by service /var/lib/ringmark --name request")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The format of the rows
    #[arg(long, value_enum, default_value = "csv")]
    format: Name,
    #[command(flatten)]
    scanned: Scanned,
}

/// A format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Name {
    /// Text, RFC 4180
    Csv,
    /// For DuckDB, Spark, ClickHouse and pandas; needs ringmark-fleet
    Parquet,
    /// Arrow IPC, a file; needs ringmark-fleet
    Arrow,
}

/// What is summed up.
#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Groups of rows with the most time, the longest sum first
    #[command(after_help = "\
Example:
  ringmark scan top --by path run.rmk --name 'index.*'")]
    Top(ByArgs),
    /// How many rows took how long, in a histogram for each group
    #[command(after_help = "\
Example:
  ringmark scan hist --by service /var/lib/ringmark --name request")]
    Hist(ByArgs),
    /// Count, sum, min, max, P50, P90 and P99 of each group, the greatest P99 first
    #[command(after_help = "\
Example:
  ringmark scan p99 --by host,name run.rmk --where 'took>1ms'")]
    P99(ByArgs),
}

/// A verb's options.
#[derive(Debug, clap::Args)]
struct ByArgs {
    /// Columns that make a group: host, service, name, thread … or an argument
    #[arg(
        long,
        value_name = "COLUMN",
        value_delimiter = ',',
        default_value = "name"
    )]
    by: Vec<String>,
    /// Only the first N groups [default: 20 for top, else all]
    #[arg(short = 'n', value_name = "N")]
    groups: Option<usize>,
    #[command(flatten)]
    scanned: Scanned,
}

/// What is read, and where the table goes.
#[derive(Debug, clap::Args)]
struct Scanned {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    chosen: ChosenOptions,
    /// Where to write it; '-' is standard output, the default of text. Else it is a file here with
    /// FILE's name and the format's ending; one that is there becomes OUT.old
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        match self.verb {
            None => match self.format {
                Name::Csv => self.scanned.run(rows),
                Name::Parquet => self.scanned.go_on("parquet"),
                Name::Arrow => self.scanned.go_on("arrow"),
            },
            Some(Verb::Top(args)) => args.run(|group| group.durations.sum_ns(), Some(TOP), sums),
            Some(Verb::Hist(args)) => args.run(|group| group.rows, None, histograms),
            Some(Verb::P99(args)) => {
                args.run(|group| group.durations.percentile_ns(99), None, sums)
            }
        }
    }
}

/// Groups in the order in which they are shown.
type Sorted<'g> = [(Vec<u8>, &'g Group)];

/// What was read, and what of it is chosen.
struct Source<'d> {
    dump: &'d Dump,
    chosen: Chosen,
    /// Arguments that are columns.
    args: Vec<ArgColumn>,
}

impl ByArgs {
    /// Sums up by columns; the groups with the greatest `figure` come first.
    fn run(
        self,
        figure: impl Fn(&Group) -> u64,
        most: Option<usize>,
        write: impl Fn(&Sorted<'_>, Vec<u8>, &mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<Exit> {
        let columns: Vec<_> = self.by.iter().map(|name| Column::named(name)).collect();
        let most = self.groups.or(most).unwrap_or(usize::MAX);
        self.scanned.run(|source, out| {
            let mut groups = Groups::new(columns.clone());
            let end = source
                .dump
                .each_row_by_pages(source.chosen.clone(), |row| {
                    groups.add(row);
                    io::Result::Ok(())
                })?;
            let sorted = groups.sorted(&figure);
            let mut header = Vec::new();
            groups.header(&mut header);
            write(&sorted[..most.min(sorted.len())], header, out)?;
            if groups.without_group() > 0 {
                note(&format!(
                    "{} summed up as (others), because there are more than 4,096 groups",
                    counted(groups.without_group(), "row")
                ));
            }
            Ok(end)
        })
    }
}

impl Scanned {
    /// Goes on as the command that writes this format.
    fn go_on(&self, format: &str) -> anyhow::Result<Exit> {
        let wanted = format!("--format {format}");
        self.chosen.check_rows(&self.input, &wanted)?;
        let named = self.output.is_none();
        let named = named.then(|| self.input.named_after(format));
        extension::write(&wanted, named.as_deref())
    }

    fn run(
        &self,
        write: impl Fn(&Source<'_>, &mut dyn Write) -> io::Result<RowsEnd>,
    ) -> anyhow::Result<Exit> {
        let (dump, is_running) = self.chosen.read(&self.input)?;
        let source = Source {
            chosen: self.chosen.rows(&dump)?,
            args: dump.arg_columns(&self.chosen.filter(&dump)?),
            dump: &dump,
        };
        let output = self.output.as_deref().filter(|path| !is_standard(path));
        let end = match output {
            None => {
                let mut out = Sink::direct();
                let end = write(&source, &mut out)?;
                out.finish()?;
                end
            }
            Some(path) => replace(path, Former::Replaced, |out| write(&source, out))?.0,
        };
        tell(&end);
        if end.rows == 0 {
            let _ = self.chosen.tell_closest(&dump);
        }
        endings::tell(&dump);
        Ok(exit_of(&dump, is_running))
    }
}

/// Writes a line for each row.
fn rows(source: &Source<'_>, out: &mut dyn Write) -> io::Result<RowsEnd> {
    let mut writer = CsvWriter::new(source.args.clone());
    let mut lines = Vec::with_capacity(LINES_BYTES + 4096);
    writer.header(&mut lines);
    let end = source.dump.each_row(source.chosen.clone(), |row| {
        writer.write(row, &mut lines);
        if lines.len() >= LINES_BYTES {
            out.write_all(&lines)?;
            lines.clear();
        }
        io::Result::Ok(())
    })?;
    out.write_all(&lines)?;
    Ok(end)
}

/// Writes a line for each group.
fn sums(groups: &Sorted<'_>, header: Vec<u8>, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = [&header[..], Group::SUMS.as_bytes(), b"\r\n"].concat();
    for (key, group) in groups {
        lines.extend_from_slice(key);
        group.sums(&mut lines);
    }
    out.write_all(&lines)
}

/// Writes a line for each bucket of each group.
fn histograms(groups: &Sorted<'_>, header: Vec<u8>, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = [&header[..], Group::BUCKETS.as_bytes(), b"\r\n"].concat();
    for (key, group) in groups {
        group.buckets(key, &mut lines);
        out.write_all(&lines)?;
        lines.clear();
    }
    out.write_all(&lines)
}

/// Says what has no row, or none after it.
fn tell(end: &RowsEnd) {
    if end.open > 0 {
        note(&format!(
            "spans and calls that were open at the end, without a row: {}; 'ringmark cat' shows them",
            count(end.open)
        ));
    }
    if end.lost_after > 0 {
        note(&format!(
            "{} lost after the last row of their thread: no lost_before counts them",
            counted(end.lost_after, "event")
        ));
    }
}
