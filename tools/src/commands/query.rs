//! `query`: SQL over what collectors have stored. `ringmark-query` answers it.

use ringmark_console::Exit;
use ringmark_console::answer::Format;
use ringmark_console::extension::{self, QUERY, Question};
use ringmark_console::units::parse_size;

/// Answer a question in SQL about a store and its tables
#[derive(Debug, clap::Args)]
#[command(after_help = "\
There are two tables: spans, with calls of functions, and events. They have the
columns of 'ringmark compact', each row once: those in the Parquet files that
its logs name, and those that no run of it has read yet, out of the segments.
Where there are no tables, all rows are read from segments, or from a trace
file.

Only files and segments of the times (ts_ns), hosts and services that WHERE
asks for are read, and only columns that are named are made.

Next to the functions of DataFusion there are p50, p90 and p99(dur_ns) and
quantile(dur_ns, 0.999): the same histogram as in 'report --by', within 0.4 %.
SQL reads alone: nothing is created, copied or read from elsewhere.
ringmark-query does it, a command of its own.

Examples:
  ringmark query 'SELECT name, count(*), p99(dur_ns) FROM spans GROUP BY name
    ORDER BY 3 DESC LIMIT 20' file:///srv/traces
  ringmark query 'DESCRIBE spans' file:///srv/traces
  ringmark query 'SELECT * FROM events' run.rmk --format csv")]
pub(crate) struct Args {
    /// The question
    #[arg(value_name = "SQL")]
    sql: String,
    /// A store, as file:///DIR, s3://BUCKET/PREFIX or a directory; or a trace file
    #[arg(value_name = "STORE")]
    store: String,
    /// Where the tables of 'ringmark compact --into' are [default: the store]
    #[arg(long, value_name = "file:///DIR")]
    tables: Option<String>,
    /// The format of the answer
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Memory for sorted and grouped rows; what needs more goes to files in TMPDIR, or is refused
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_size)]
    memory: u64,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let question = Question {
            sql: self.sql,
            store: self.store,
            tables: self.tables,
            memory: self.memory,
            format: self.format,
        };
        match extension::query(&question) {
            Some(exit) => Ok(Exit(exit)),
            None => Err(extension::go_on(QUERY, "query", extension::words()).into()),
        }
    }
}
