//! What the tables and their state are called.

use std::collections::{BTreeMap, BTreeSet};

/// The tables. Losses come first: with them a batch is decided.
pub(crate) const TABLES: [&str; 3] = ["losses", "events", "spans"];
/// Above all plans and blocks.
pub(crate) const STATE: &str = "tables/state";

/// By table, paths of files in it.
pub(crate) type Paths = BTreeMap<String, BTreeSet<String>>;

/// Whether a file of a table is one of these.
pub(crate) fn has(files: &Paths, (table, path): (&str, &str)) -> bool {
    files.get(table).is_some_and(|paths| paths.contains(path))
}

/// Whether rows stay, or leave their table if a host that was given up speaks again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lasting {
    Always,
    UntilHeard,
}
