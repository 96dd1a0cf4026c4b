//! The command line: that of `ringmark export`, which checks it first.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Parser, Subcommand, ValueEnum};
use ringmark_cli::CompactOptions;
use ringmark_decoder::{Chosen, Dump, Filter, SessionChoice, duration_ns};

use crate::compact::TableFiles;

/// Writes traces as files for databases: Parquet and Arrow
#[derive(Debug, Parser)]
#[command(name = "ringmark-fleet", version)]
pub(crate) struct Options {
    /// As in `ringmark`; nothing here is coloured
    #[arg(long, global = true, hide = true)]
    color: Option<String>,
    /// As in `ringmark`; nothing here has a pager
    #[arg(long, global = true, hide = true)]
    no_pager: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write spans, calls and events of trace files and stores as rows
    Export(Export),
    /// Make tables of what collectors have stored as objects
    Compact(CompactOptions),
    /// The part of 'ringmark store' that reads logs of tables
    #[command(subcommand)]
    Store(Store),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Store {
    /// List the files that a table has now
    Files(TableFiles),
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Parquet, compressed with zstd
    Parquet,
    /// Arrow IPC, a file with a footer
    Arrow,
}

/// Which rows, of what, to where. The names and their meaning are those of 'ringmark export'.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// Trace files and stores, read together [default: ringmark.rmk]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The format to write
    #[arg(long, value_enum, default_value = "parquet")]
    pub(crate) format: Format,
    /// Where to write it
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// A file that is there becomes OUT.old: 'ringmark' chose the name
    #[arg(long)]
    pub(crate) set_aside: bool,
    /// Only this process
    #[arg(short, long)]
    pid: Option<u32>,
    /// Only this host's processes: '*' is any text; may be given several times
    #[arg(long, value_name = "GLOB")]
    host: Vec<String>,
    /// Only processes of this service: '*' is any text; may be given several times
    #[arg(long, value_name = "GLOB")]
    service: Vec<String>,
    /// Only the end of the trace, such as 10s; it ends when its last process does
    #[arg(long, value_name = "TIME", conflicts_with = "from")]
    last: Option<String>,
    /// Leave out what is before this
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Leave out what is at this time and later
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Only this thread; may be given several times
    #[arg(long, value_name = "TID")]
    tid: Vec<String>,
    /// Only names that match: '*' is any text, '?' any character; may be given several times
    #[arg(long, value_name = "GLOB")]
    name: Vec<String>,
    /// Only what has FIELD=VALUE, or != < <= > >=; may be given several times
    #[arg(long = "where", value_name = "FIELD=VALUE")]
    conditions: Vec<String>,
    /// Only this level and more important ones
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,
}

impl Export {
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        match self.files.is_empty() {
            true => vec!["ringmark.rmk".into()],
            false => self.files.clone(),
        }
    }

    pub(crate) fn choice(&self) -> SessionChoice {
        SessionChoice {
            hosts: self.host.clone(),
            services: self.service.clone(),
            pids: self.pid.into_iter().collect(),
            share: None,
        }
    }

    /// The filter of all options but `--last`, which needs the end of the trace.
    pub(crate) fn filter(&self) -> anyhow::Result<Filter> {
        let mut filter = self.records()?;
        for name in &self.name {
            filter.name(name);
        }
        for condition in &self.conditions {
            filter.condition(condition).context("--where")?;
        }
        if let Some(level) = &self.level {
            filter.level(level)?;
        }
        Ok(filter)
    }

    /// The filter of times and threads.
    fn records(&self) -> anyhow::Result<Filter> {
        let mut filter = Filter::new();
        if let Some(from) = &self.from {
            filter.from(from)?;
        }
        if let Some(to) = &self.to {
            filter.to(to)?;
        }
        for tid in &self.tid {
            filter.tid(tid)?;
        }
        Ok(filter)
    }

    /// A filter, at the end of the trace if that is wanted.
    pub(crate) fn within(&self, mut filter: Filter, dump: &Dump) -> anyhow::Result<Filter> {
        if let Some(last) = &self.last {
            let last = duration_ns(last)
                .with_context(|| format!("--last {last}: expected a time such as 10s"))?;
            let end_ns = dump.end_ns().unwrap_or(0);
            filter.from_wall_ns(end_ns.saturating_sub(last));
        }
        Ok(filter)
    }

    /// The rows that are chosen; `filter`: of all options.
    pub(crate) fn rows(&self, filter: &Filter, dump: &Dump) -> anyhow::Result<Chosen> {
        let is_all = self.name.is_empty() && self.conditions.is_empty() && self.level.is_none();
        Ok(Chosen {
            records: self.within(self.records()?, dump)?,
            conditions: (!is_all).then(|| filter.clone()),
        })
    }
}
