//! Rows summed up by columns: how many there are, and how long they took.

use std::collections::HashMap;

use crate::events::nesting::{Ended, Waiting};
use crate::rows::cell;
use crate::rows::column::Column;
use crate::rows::near::Near;
use crate::rows::row::Row;
use crate::sums::durations::Durations;
use crate::words::number::unsigned;

/// Groups that are summed up one by one; the others are summed up together. Each has a histogram of
/// some KiB.
const GROUPS_MAX: usize = 4096;
/// What the columns of the others hold.
const OTHERS: &[u8] = b"(others)";

/// The rows that have the same cells in some columns.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Number of the rows.
    pub rows: u64,
    /// How long those took that have a duration.
    pub durations: Durations,
    /// The same together, in ns. One inside another one of the group and thread is not counted again, unless it is a
    /// span over threads.
    pub total_ns: u64,
    /// How much of that was spent in nothing inside them, in ns, of those of which it is known.
    pub own_ns: u64,
    /// Number of those.
    pub owned: u64,
}

/// Groups of the rows of a dump, by columns.
#[derive(Debug, Default)]
pub struct Groups<'d> {
    columns: Vec<Column>,
    groups: Vec<Group>,
    /// Their numbers, by the cells of the columns.
    numbers: HashMap<Vec<u8>, usize>,
    others: Group,
    /// By number of the group and thread: what has ended, and is in nothing of its group that has.
    outermost: HashMap<(usize, u32), Waiting>,
    near: Near<'d>,
    /// Memory that is used again.
    key: Vec<u8>,
}

impl<'d> Groups<'d> {
    /// No rows, which will be grouped by these columns.
    #[must_use]
    pub fn new(columns: Vec<Column>) -> Self {
        Self {
            columns,
            ..Self::default()
        }
    }

    /// Adds a row.
    pub fn add(&mut self, row: &Row<'_, 'd>) {
        let place = self.near.place(&self.columns, row);
        let known = place.and_then(|place| self.near.number(place));
        let number = known.unwrap_or_else(|| {
            let number = self.number(row);
            if let Some(place) = place {
                self.near.keep(place, number);
            }
            number
        });
        let group = self.groups.get_mut(number).unwrap_or(&mut self.others);
        group.rows += 1;
        if let Some(ns) = row.dur_ns {
            group.durations.add(ns);
            let inside = match row.start_ns {
                Some(from) if !row.is_over_threads() => {
                    let key = (number, row.record.thread());
                    let to = from.saturating_add(ns);
                    let ended = self.outermost.entry(key).or_default();
                    ended.end(Ended { from, to, part: ns }).min(ns)
                }
                _ => 0,
            };
            group.total_ns = group.total_ns.saturating_add(ns - inside);
        }
        if let Some(ns) = row.own_ns {
            group.own_ns = group.own_ns.saturating_add(ns);
            group.owned += 1;
        }
    }

    /// The number of the group of a row. The others have one that no group has.
    fn number(&mut self, row: &Row<'_, 'd>) -> usize {
        self.key.clear();
        for column in &self.columns {
            column.cell(row, &mut self.key);
            self.key.push(b',');
        }
        if let Some(number) = self.numbers.get(&self.key) {
            return *number;
        }
        let number = self.groups.len();
        if number < GROUPS_MAX {
            self.numbers.insert(self.key.clone(), number);
            self.groups.push(Group::default());
        }
        number
    }

    /// Rows that have no group of their own, because there were too many groups: more than 4,096.
    #[must_use]
    pub const fn without_group(&self) -> u64 {
        self.others.rows
    }

    /// The groups, each with the cells of its columns, each of which a comma follows; those with the greatest `figure`
    /// first. The rows with empty cells come later, those without a group of their own last.
    #[must_use]
    pub fn sorted(&self, figure: impl Fn(&Group) -> u64) -> Vec<(Vec<u8>, &Group)> {
        let numbers = self.numbers.iter();
        let group = |(key, number): (&Vec<u8>, &usize)| (key.clone(), &self.groups[*number]);
        let mut sorted: Vec<_> = numbers.map(group).collect();
        // What has no cell in any column is what nobody asked for.
        let has_cells = |key: &[u8]| key.iter().any(|byte| *byte != b',');
        sorted.sort_by_cached_key(|(key, group)| {
            (!has_cells(key), u64::MAX - figure(group), key.clone())
        });
        if self.others.rows > 0 {
            let columns = self.columns.iter();
            let key = columns.flat_map(|_| [OTHERS, b","].concat()).collect();
            sorted.push((key, &self.others));
        }
        sorted
    }

    /// Appends the names of the columns, a comma after each.
    pub fn header(&self, out: &mut Vec<u8>) {
        for column in &self.columns {
            column.header(out);
            out.push(b',');
        }
    }
}

impl Group {
    /// Names of the cells of [`Self::sums`].
    pub const SUMS: &'static str = "rows,count,sum_ns,min_ns,max_ns,p50_ns,p90_ns,p99_ns";
    /// Names of the cells of [`Self::buckets`].
    pub const BUCKETS: &'static str = "from_ns,to_ns,count";

    /// Appends the rest of the group's line: its sums. Percentiles are within 0.4 %, and exact up to 256
    /// durations.
    pub fn sums(&self, out: &mut Vec<u8>) {
        let durations = &self.durations;
        let count = durations.count();
        unsigned(self.rows, out);
        out.push(b',');
        unsigned(count, out);
        let [p50, p90, p99] = durations.percentiles_ns([50, 90, 99]);
        let (min, max) = (durations.min_ns(), durations.max_ns());
        for figure in [durations.sum_ns(), min, max, p50, p90, p99] {
            out.push(b',');
            cell::number((count > 0).then_some(figure), out);
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Appends a line for each bucket of the group's histogram, with the cells of its columns before it.
    pub fn buckets(&self, key: &[u8], out: &mut Vec<u8>) {
        for bucket in self.durations.buckets() {
            out.extend_from_slice(key);
            unsigned(bucket.from_ns, out);
            out.push(b',');
            unsigned(bucket.to_ns, out);
            out.push(b',');
            unsigned(bucket.count, out);
            out.extend_from_slice(b"\r\n");
        }
    }
}
