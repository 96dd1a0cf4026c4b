//! The tables of what called what: all paths as one tree, the callers of a function or span, and what
//! it called.

use std::cmp::Reverse;

use ringmark_decoder::{PathSums, Paths, unplaced_notice};

use crate::options::rows::SortBy;
use ringmark_console::units::{count, counted, duration};
use ringmark_console::{Failure, Table, printable};

/// Stands for a caller that is not in the trace.
const NO_CALLER: &str = "(no caller here)";

/// A figure that rows of paths can be ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Total,
    Own,
    Mean,
    Count,
    Name,
}

/// A row: what it is of, how deep that lies, and its figures.
struct Row {
    name: String,
    target: String,
    depth: usize,
    sums: PathSums,
}

impl Order {
    /// The order that is asked for; without any the longest total goes first.
    ///
    /// # Errors
    /// Paths have no such figure.
    pub(crate) fn of(sort: Option<SortBy>) -> Result<Self, Failure> {
        match sort {
            None | Some(SortBy::Total) => Ok(Self::Total),
            Some(SortBy::Own) => Ok(Self::Own),
            Some(SortBy::Mean) => Ok(Self::Mean),
            Some(SortBy::Count) => Ok(Self::Count),
            Some(SortBy::Name) => Ok(Self::Name),
            Some(SortBy::P50 | SortBy::P99 | SortBy::Max) => Err(Failure::usage(
                "--sort: paths have total, self, mean, count and name".to_owned(),
            )),
        }
    }

    fn figure(self, sums: &PathSums) -> Option<u64> {
        match self {
            Self::Total => sums.total(),
            Self::Own => sums.own(),
            Self::Mean => mean(sums),
            Self::Count => Some(sums.count),
            Self::Name => None,
        }
    }

    pub(super) fn sort<T>(self, rows: &mut [T], of: impl Fn(&T) -> (Vec<u8>, PathSums)) {
        rows.sort_by_cached_key(|row| {
            let (name, sums) = of(row);
            (Reverse(self.figure(&sums)), name)
        });
    }
}

fn mean(sums: &PathSums) -> Option<u64> {
    sums.total()?.checked_div(sums.timed)
}

/// All paths as a tree: each line has what took place there, indented below what was around it.
pub(crate) fn tree(paths: &Paths, order: Order, columns: Option<usize>) -> Table {
    let mut inside = paths.inside();
    let of = |place: &usize| {
        let path = &paths.paths[*place];
        (paths.names[path.name].name.clone(), path.sums)
    };
    let (mut rows, mut left) = (Vec::new(), Vec::new());
    let mut next = Some(0);
    while let Some(place) = next {
        let mut found = std::mem::take(&mut inside[place]);
        order.sort(&mut found, of);
        left.extend(found.into_iter().rev());
        next = left.pop().map(|place| {
            let path = &paths.paths[place];
            rows.push(row(paths, Some(path.name), path.depth, path.sums));
            place + 1
        });
    }
    table(&rows, "NAME", paths, columns)
}

/// Callers or callees, as [`Paths::callers`] gives them, below the heading `of`.
pub(crate) fn flat(
    paths: &Paths,
    mut found: Vec<(Option<usize>, PathSums)>,
    of: &'static str,
    order: Order,
    columns: Option<usize>,
) -> Table {
    let name = |name: Option<usize>| name.map(|name| paths.names[name].name.clone());
    order.sort(&mut found, |(place, sums)| {
        (name(*place).unwrap_or_default(), *sums)
    });
    let rows = found.into_iter();
    let rows: Vec<_> = rows.map(|(name, sums)| row(paths, name, 0, sums)).collect();
    table(&rows, of, paths, columns)
}

/// A name below what is around it. Deeper ones stand below each other where there is no room.
pub(super) fn indented(name: &str, depth: usize, columns: Option<usize>) -> String {
    let deepest = columns.map_or(usize::MAX, |columns| columns / 4);
    format!("{}{name}", " ".repeat((2 * depth).min(deepest)))
}

fn row(paths: &Paths, name: Option<usize>, depth: usize, sums: PathSums) -> Row {
    let text = |bytes: &[u8]| printable(&String::from_utf8_lossy(bytes));
    let name = name.map(|name| &paths.names[name]);
    Row {
        name: name.map_or_else(|| NO_CALLER.to_owned(), |name| text(&name.name)),
        target: name.map_or_else(String::new, |name| text(&name.target)),
        depth,
        sums,
    }
}

fn table(rows: &[Row], of: &'static str, paths: &Paths, columns: Option<usize>) -> Table {
    let has_no_end = rows.iter().any(|row| row.sums.no_end > 0);
    let no_end = has_no_end.then_some(">NO END");
    let headings = [">COUNT"].into_iter().chain(no_end);
    let headings = headings.chain([">TOTAL", ">SELF", ">MEAN", of, "TARGET"]);
    let mut table = Table::new(&headings.collect::<Vec<_>>());
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), duration);
    for row in rows {
        let mut cells = vec![count(row.sums.count)];
        cells.extend(has_no_end.then(|| count(row.sums.no_end)));
        let times = [row.sums.total(), row.sums.own(), mean(&row.sums)];
        cells.extend(times.map(time));
        let name = indented(&row.name, row.depth, columns);
        cells.extend([name, row.target.clone()]);
        table.row(cells);
    }
    let unknown: u64 = rows.iter().map(|row| row.sums.unknown_self).sum();
    if unknown > 0 {
        let those = counted(unknown, "call or span");
        table.foot([format!("SELF is without {those} that are not whole here")]);
    }
    if paths.deeper > 0 {
        let deeper = count(paths.deeper);
        table.foot([format!(
            "{deeper} with more than 255 around them are left out"
        )]);
    }
    table.foot(unplaced_notice(paths.unplaced, &count(paths.unplaced)));
    table
}
