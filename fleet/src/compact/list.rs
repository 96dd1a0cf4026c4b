//! The files that a table has now, for engines that do not read its log.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use ringmark_console::extension::store_url;
use ringmark_decoder::parse_timestamp;

use super::added_file::AddedFile;
use super::log::Log;
use super::objects;
use super::tables::TABLES;

/// Which files of a table to list.
#[derive(Debug, clap::Args)]
pub(crate) struct TableFiles {
    /// Where the tables are: the store, or the place of --into
    #[arg(value_name = "URL")]
    dir: String,
    /// The table
    #[arg(long, value_name = "NAME", default_value = "spans", value_parser = TABLES)]
    table: String,
    /// Only files with rows that began at this time or later
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only files with rows that began before this time
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
}

/// Prints the paths of the files, one a line.
pub(crate) fn list(options: &TableFiles) -> anyhow::Result<()> {
    let time = |option: &str, text: &Option<String>| {
        let parsed = text.as_deref().map(|text| {
            let expected =
                || format!("{option} {text}: expected a time such as 2026-01-31T12:00:00Z");
            parse_timestamp(text).with_context(expected)
        });
        parsed.transpose()
    };
    let (from, to) = (time("--from", &options.from)?, time("--to", &options.to)?);
    let tables = objects::place(&options.dir, super::new_uuid()?)?;
    let table = format!("tables/{}", options.table);
    let now = Log::new(&*tables, &table).snapshot()?;
    if now.next == 0 {
        let dir = &options.dir;
        bail!("{dir}: found no {table}, expected tables of 'ringmark compact'");
    }
    let bound = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let is_wanted = |file: &&AddedFile| {
        let is_within = |(first, last): (i64, i64)| {
            from.is_none_or(|from| last >= bound(from)) && to.is_none_or(|to| first < bound(to))
        };
        // When a row without a known start began is not known.
        file.without_time > 0 || file.times.is_some_and(is_within)
    };
    let root = match store_url(Path::new(&options.dir)) {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => objects::path(&options.dir)?.display().to_string(),
    };
    let mut out = std::io::stdout().lock();
    for file in now.files.values().filter(is_wanted) {
        writeln!(out, "{root}/{table}/{}", file.path)?;
    }
    Ok(())
}
