//! `compact`: tables of what collectors have stored as objects. `ringmark-fleet` makes them.

use ringmark_console::json::{Head, JsonOption, Line, object};
use ringmark_console::{Exit, extension};

/// Make Parquet tables of what collectors have stored as objects
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each run reads the segments that no run has read, and adds the rows that ended
in them to three tables below tables/: spans (with calls), events and losses.
A Delta log says which files count, for DuckDB, Spark and others.

A row is there once, whatever is killed, however many runs there are at the same
time, and however late pages come. A span or call gets its row when it has
ended, or when its session is over: then it has no dur_ns. Pages that wait for
earlier ones are read by a later run. ringmark-fleet does it, a command of its
own.

Examples:
  ringmark compact file:///srv/traces
  ringmark compact file:///srv/traces --merge --keep-raw 48h")]
pub struct CompactOptions {
    /// The store that collectors write to with --objects: file:///DIR, s3://BUCKET/PREFIX or
    /// az://CONTAINER/PREFIX
    #[arg(value_name = "URL")]
    pub store: String,
    /// Where the tables are: another directory or bucket [default: the store]
    #[arg(long, value_name = "URL")]
    pub into: Option<String>,
    /// A host that said nothing for so long is given up, until it is heard again: what is there of it gets rows
    #[arg(long, value_name = "TIME", default_value = "24h")]
    pub silent: String,
    /// Merge small files of an hour
    #[arg(long)]
    pub merge: bool,
    /// Delete segments that were uploaded longer ago, if their rows are in the tables
    #[arg(long, value_name = "TIME")]
    pub keep_raw: Option<String>,
    /// Remove all rows of a host from the tables. Segments keep its events until --keep-raw deletes them
    #[arg(long, value_name = "HOST")]
    pub rm_host: Option<String>,
    #[command(flatten)]
    json: JsonOption,
}

impl CompactOptions {
    /// What a run did, as a line of JSON; `None`: JSON is not wanted.
    #[must_use]
    pub fn compacted(&self, fields: serde_json::Value) -> Option<String> {
        let object = object("compacted", &Head::default(), fields);
        self.json.is_on().then(|| Line(object).to_string())
    }

    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        extension::write("compact", None)
    }
}
