//! `report --by`: durations summed up by any columns of rows.

use std::io::{self, Write};

use ringmark_decoder::{Chosen, Column, Dump, Filter, Group, Groups};

use super::export_rows;
use crate::options::rows::{LinesOption, SortBy};
use crate::tables::cover;
use ringmark_console::units::{count, counted, duration};
use ringmark_console::{Failure, Sink, Style, Table, note, printable};

/// Options that ask for something else of a report.
const OTHERS: [&str; 8] = [
    "slowest", "diff", "html", "json", "tracer", "paths", "callers", "callees",
];

/// Fields that are named when one is wanted that is not there.
const FIELDS_SHOWN: usize = 12;

/// Options that ask for sums by columns.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct ByOptions {
    /// Sum up durations by these columns: host, service, name, thread … or an argument
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', conflicts_with_all = OTHERS)]
    by: Vec<String>,
    /// With --by: print CSV, durations in ns
    #[arg(long, requires = "by")]
    csv: bool,
    /// With --by: print as CSV how many rows took how long, in a histogram for each group
    #[arg(long, requires = "by", conflicts_with = "csv")]
    hist: bool,
}

/// How groups are shown.
pub(super) struct Shown {
    pub(super) sort: Option<SortBy>,
    pub(super) lines: LinesOption,
    pub(super) columns: Option<usize>,
}

/// Groups in the order in which they are shown.
type Sorted<'g> = [(Vec<u8>, &'g Group)];

impl ByOptions {
    /// Whether columns are given.
    pub(super) const fn is_given(&self) -> bool {
        !self.by.is_empty()
    }

    /// Where they are written: CSV is for programs.
    pub(super) fn sink(&self, shown: &Shown) -> Sink {
        match self.csv || self.hist {
            true => Sink::direct(),
            false => Sink::paged().within(shown.columns),
        }
    }

    /// Writes what is asked for. Returns how many rows there were.
    ///
    /// # Errors
    /// Those of writing.
    pub(super) fn write(
        &self,
        dump: &Dump,
        chosen: Chosen,
        shown: &Shown,
        out: &mut Sink,
    ) -> anyhow::Result<u64> {
        let columns = self.by.iter().map(|name| Column::named(name));
        let mut groups = Groups::new(columns.collect());
        let end = dump.each_row_by_pages(chosen, |row| {
            groups.add(row);
            anyhow::Ok(())
        })?;
        let sorted = self.sorted(&groups, shown.sort);
        require_values(&self.by, &sorted, dump)?;
        let sorted = &sorted[..shown.lines.of(sorted.len())];
        let mut header = Vec::new();
        groups.header(&mut header);
        match (self.csv, self.hist) {
            (true, _) => sums(sorted, header, out)?,
            (_, true) => histograms(sorted, header, out)?,
            (false, false) => {
                for line in cover::lines(dump) {
                    writeln!(out, "{line}")?;
                }
                let mut table = table(sorted, &header);
                table.fit(shown.columns);
                table.write(out, Style::detect())?;
            }
        }
        if groups.without_group() > 0 {
            note(&format!(
                "{} summed up as (others), because there are more than 4,096 groups",
                counted(groups.without_group(), "row")
            ));
        }
        export_rows::tell_open(&end);
        Ok(end.rows)
    }

    /// The groups in the order that is asked for; without any the longest sum goes first, with --hist the most rows.
    fn sorted<'g>(
        &self,
        groups: &'g Groups<'_>,
        sort: Option<SortBy>,
    ) -> Vec<(Vec<u8>, &'g Group)> {
        let default = match self.hist {
            true => SortBy::Count,
            false => SortBy::Total,
        };
        match sort.unwrap_or(default) {
            SortBy::Total => groups.sorted(|group| group.total_ns),
            SortBy::Mean => groups.sorted(|group| group.durations.mean_ns()),
            SortBy::P50 => groups.sorted(|group| group.durations.percentile_ns(50)),
            SortBy::P99 => groups.sorted(|group| group.durations.percentile_ns(99)),
            SortBy::Max => groups.sorted(|group| group.durations.max_ns()),
            SortBy::Count => groups.sorted(|group| group.rows),
            SortBy::Name => groups.sorted(|_| 0),
            SortBy::Own => groups.sorted(|group| group.own_ns),
        }
    }
}

/// Checks that some row has a value in each column.
///
/// # Errors
/// None has: a mistyped name would put all rows together.
fn require_values(names: &[String], all: &Sorted<'_>, dump: &Dump) -> Result<(), Failure> {
    let mut is_there = vec![all.is_empty(); names.len()];
    for (key, _) in all {
        let cells = cells(key);
        let cells = cells.iter().zip(&mut is_there);
        cells.for_each(|(cell, is_there)| *is_there |= !cell.is_empty());
    }
    let Some(place) = is_there.iter().position(|is_there| !is_there) else {
        return Ok(());
    };
    let mut every = Filter::new();
    let fields = dump.arg_columns(every.name("*")).into_iter();
    let fields = fields.map(|field| printable(&String::from_utf8_lossy(&field.name)));
    let fields: Vec<_> = fields.take(FIELDS_SHOWN).collect();
    let there = match fields.as_slice() {
        [] => "no event or span has fields".to_owned(),
        names => format!("fields of events and spans: {}", names.join(", ")),
    };
    let name = &names[place];
    Err(Failure::usage(format!(
        "--by {name}: no row has a value in it; {there}"
    )))
}

/// The groups as a table.
fn table(groups: &Sorted<'_>, header: &[u8]) -> Table {
    let mut headings: Vec<_> = cells(header)
        .iter()
        .map(|name| name.to_uppercase())
        .collect();
    let figures = [
        ">ROWS", ">COUNT", ">TOTAL", ">SELF", ">MEAN", ">MIN", ">P50", ">P90", ">P99", ">MAX",
    ];
    headings.extend(figures.map(str::to_owned));
    let mut table = Table::of(headings);
    for (key, group) in groups {
        let mut row = cells(key);
        for cell in row.iter_mut().filter(|cell| cell.is_empty()) {
            "-".clone_into(cell);
        }
        let durations = &group.durations;
        let [p50, p90, p99] = durations.percentiles_ns([50, 90, 99]);
        let times = [
            group.total_ns,
            durations.mean_ns(),
            durations.min_ns(),
            p50,
            p90,
            p99,
            durations.max_ns(),
        ];
        row.extend([count(group.rows), count(durations.count())]);
        row.extend(times.map(|ns| match durations.count() {
            0 => "-".to_owned(),
            _ => duration(ns),
        }));
        let own = match group.owned {
            0 => "-".to_owned(),
            _ => duration(group.own_ns),
        };
        row.insert(row.len() + 1 - times.len(), own);
        table.row(row);
    }
    table
}

/// The cells of a line of CSV that ends with a comma.
fn cells(line: &[u8]) -> Vec<String> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let text = String::from_utf8_lossy(line);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(std::mem::take(&mut cell)),
            letter => cell.push(letter),
        }
    }
    cells
}

/// Writes a line for each group.
fn sums(groups: &Sorted<'_>, header: Vec<u8>, out: &mut impl Write) -> io::Result<()> {
    let mut lines = [&header[..], Group::SUMS.as_bytes(), b"\r\n"].concat();
    for (key, group) in groups {
        lines.extend_from_slice(key);
        group.sums(&mut lines);
    }
    out.write_all(&lines)
}

/// Writes a line for each bucket of each group.
fn histograms(groups: &Sorted<'_>, header: Vec<u8>, out: &mut impl Write) -> io::Result<()> {
    let mut lines = [&header[..], Group::BUCKETS.as_bytes(), b"\r\n"].concat();
    for (key, group) in groups {
        group.buckets(key, &mut lines);
        out.write_all(&lines)?;
        lines.clear();
    }
    out.write_all(&lines)
}

#[cfg(test)]
mod tests {
    use super::cells;

    #[test]
    fn cells_are_as_they_were_before_they_became_csv() {
        assert_eq!(cells(b"a,\"b,\"\"c\",,"), ["a", "b,\"c", ""]);
        assert_eq!(cells(b""), [""; 0]);
    }
}
