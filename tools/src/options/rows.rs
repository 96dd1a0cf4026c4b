//! Options that say which rows of a table come first, and how many are shown.

use ringmark_decoder::CallTimes;

use ringmark_console::Table;

/// The option that bounds tables.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct LinesOption {
    /// Only the first N rows of each table
    #[arg(short = 'n', value_name = "N")]
    lines: Option<usize>,
}

impl LinesOption {
    /// How many rows of `all` are shown.
    pub(crate) fn of(self, all: usize) -> usize {
        self.lines.map_or(all, |lines| lines.min(all))
    }

    /// How many rows are shown where `usual` are without the option.
    pub(crate) fn or(self, usual: usize) -> usize {
        self.lines.unwrap_or(usual)
    }

    /// Leaves out the rows of a table that are not shown.
    pub(crate) fn cut(self, table: &mut Table) {
        if let Some(lines) = self.lines {
            table.first(lines);
        }
    }
}

/// The figure, or the name, that rows are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SortBy {
    Total,
    #[value(name = "self")]
    Own,
    Mean,
    P50,
    P99,
    Max,
    Count,
    Name,
}

impl SortBy {
    /// Puts the rows with the greatest figure first, or those whose name does.
    pub(crate) fn sort<T>(
        self,
        rows: &mut [T],
        name: impl Fn(&T) -> String,
        figures: impl Fn(&T) -> (u64, Option<CallTimes>),
    ) {
        match self {
            Self::Name => rows.sort_by_key(name),
            _ => rows.sort_by_key(|row| std::cmp::Reverse(self.figure(figures(row)))),
        }
    }

    /// The figure of a row; `None`: not known.
    fn figure(self, (count, times): (u64, Option<CallTimes>)) -> Option<u64> {
        match self {
            Self::Total => times.map(|times| times.total),
            Self::Own => times.map(|times| times.own),
            Self::Mean => times.map(|times| times.mean),
            Self::P50 => times.map(|times| times.median),
            Self::P99 => times.map(|times| times.p99),
            Self::Max => times.map(|times| times.longest),
            Self::Count | Self::Name => Some(count),
        }
    }
}
