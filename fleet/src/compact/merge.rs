//! Small files of an hour become one: late pages and frequent runs leave many.

use std::collections::BTreeMap;

use anyhow::Context;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::added_file::AddedFile;
use super::log::{self, Log};
use super::objects::Objects;
use super::plan::Plan;
use super::snapshot::Snapshot;
use super::tables::TABLES;
use crate::parquet_properties::properties;

/// Files that are merged with others have fewer bytes.
const SMALL_BYTES: u64 = 32 << 20;
/// Small files of an hour from which on they are merged.
const FILES_MIN: usize = 2;
/// Rows of a merged file, at most, but for the last file in it.
const ROWS_MAX: u64 = 4 << 20;

/// Merges what is small, but for files that leave their table if a host that was given up speaks again; returns how many files
/// became how many. `stamp_ns`: when the log says that it was.
pub(crate) fn merge(
    objects: &dyn Objects,
    (writer, stamp_ns): (&str, u64),
) -> anyhow::Result<(usize, usize)> {
    let (mut before, mut after) = (0, 0);
    for table in TABLES {
        let log = Log::new(objects, &format!("tables/{table}"));
        let mut now = log.snapshot()?;
        // It is of the last batch in the table, or of a later one.
        let plan = Plan::decided(objects)?;
        now.files.retain(|path, _| !plan.may_leave(table, path));
        for (number, group) in groups(&now).into_iter().enumerate() {
            let file = one(objects, table, &group, &format!("{writer}-m{number}"))?;
            if replace(&log, (&group, &file), stamp_ns / 1_000_000)? {
                before += group.len();
                after += 1;
            } else {
                let _ = objects.delete(&format!("tables/{table}/{}", file.path));
            }
        }
    }
    Ok((before, after))
}

/// The files that become one, by hour.
fn groups(table: &Snapshot) -> Vec<Vec<AddedFile>> {
    let mut hours: BTreeMap<(&str, u32), Vec<&AddedFile>> = BTreeMap::new();
    let files = table.files.values();
    for file in files.filter(|file| file.bytes < SMALL_BYTES) {
        let hour = (file.date.as_str(), file.hour);
        hours.entry(hour).or_default().push(file);
    }
    let mut groups = Vec::new();
    for mut files in hours.into_values() {
        files.sort_by_key(|file| file.times);
        let mut group: Vec<AddedFile> = Vec::new();
        for file in files {
            if group.iter().map(|file| file.rows).sum::<u64>() >= ROWS_MAX {
                groups.push(std::mem::take(&mut group));
            }
            group.push(file.clone());
        }
        groups.push(group);
    }
    groups.retain(|group| group.len() >= FILES_MIN);
    groups
}

/// Writes the rows of several files as one.
fn one(
    objects: &dyn Objects,
    table: &str,
    group: &[AddedFile],
    name: &str,
) -> anyhow::Result<AddedFile> {
    let schema = super::files::schema(table);
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties()?))?;
    for file in group {
        let path = format!("tables/{table}/{}", file.path);
        let opened = objects.open(&path).with_context(|| path.clone())?;
        for batch in ParquetRecordBatchReaderBuilder::try_new(opened)?.build()? {
            writer.write(&batch?)?;
        }
    }
    let bytes = writer.into_inner()?;
    let first = group.first().context("expected files")?;
    let mut merged = AddedFile::of_hour_of(&first.date, first.hour);
    let times = group.iter().filter_map(|file| file.times);
    merged.times = times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    merged.rows = group.iter().map(|file| file.rows).sum();
    merged.without_time = group.iter().map(|file| file.without_time).sum();
    merged.bytes = bytes.len() as u64;
    merged.path = format!(
        "date={}/hour={:02}/{name}.parquet",
        merged.date, merged.hour
    );
    let path = format!("tables/{table}/{}", merged.path);
    objects.put(&path, &bytes).context(path)?;
    Ok(merged)
}

/// Commits one file in place of others; `false`: another writer has replaced some of them.
fn replace(
    log: &Log<'_>,
    (group, file): (&[AddedFile], &AddedFile),
    now_ms: u64,
) -> anyhow::Result<bool> {
    loop {
        let now = log.snapshot()?;
        if !group.iter().all(|old| now.files.contains_key(&old.path)) {
            return Ok(false);
        }
        let mut actions = vec![log::about_merge(&file.path, now_ms)];
        actions.extend(group.iter().map(|old| old.removal(now_ms, false)));
        actions.push(file.action(now_ms, false));
        if log.commit(now.next, &actions)? {
            return Ok(true);
        }
    }
}
