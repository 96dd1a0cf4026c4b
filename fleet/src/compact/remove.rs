//! The rows of a host are removed: files with some are written again without them, in one commit per table.

use std::collections::BTreeMap;

use anyhow::Context;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::added_file::AddedFile;
use super::log::{self, Log};
use super::objects::Objects;
use super::tables::TABLES;
use crate::parquet_properties::properties;

/// What becomes of a file.
enum Without {
    /// It has no row of the host.
    Same,
    /// It has no other row.
    Nothing,
    /// These rows are the others.
    Other(AddedFile),
}

/// A host to be removed.
pub(crate) struct Removal<'o> {
    pub(crate) objects: &'o dyn Objects,
    pub(crate) host: &'o str,
    /// What the names of new files begin with.
    pub(crate) writer: String,
    /// When the log says that it was.
    pub(crate) stamp_ns: u64,
}

impl Removal<'_> {
    /// Removes its rows from all tables; returns how many there were.
    pub(crate) fn run(&self) -> anyhow::Result<u64> {
        let mut rows = 0;
        for table in TABLES {
            rows += self
                .of_table(table)
                .with_context(|| format!("tables/{table}"))?;
        }
        Ok(rows)
    }

    fn of_table(&self, table: &str) -> anyhow::Result<u64> {
        let log = Log::new(self.objects, &format!("tables/{table}"));
        let mut seen = BTreeMap::new();
        loop {
            let now = log.snapshot()?;
            for (path, file) in &now.files {
                if !seen.contains_key(path) {
                    let name = format!("{}-r{}", self.writer, seen.len());
                    seen.insert(path.clone(), self.without(table, file, &name)?);
                }
            }
            let now_ms = self.stamp_ns / 1_000_000;
            let mut actions = vec![log::about_removal(&self.writer, now_ms)];
            let mut rows = 0;
            for (path, without) in &seen {
                let other = match without {
                    Without::Same => continue,
                    Without::Nothing => None,
                    Without::Other(file) => Some(file),
                };
                let Some(old) = now.files.get(path) else {
                    continue;
                };
                rows += old.rows;
                actions.push(old.removal(now_ms, true));
                if let Some(file) = other {
                    rows -= file.rows;
                    actions.push(file.action(now_ms, true));
                }
            }
            if rows == 0 || log.commit(now.next, &actions)? {
                self.drop_unused(table, &seen, |path| {
                    rows > 0 && now.files.contains_key(path)
                });
                return Ok(rows);
            }
        }
    }

    /// Deletes new files in place of such as another run replaced. What stays is an orphan.
    fn drop_unused(
        &self,
        table: &str,
        seen: &BTreeMap<String, Without>,
        is_used: impl Fn(&str) -> bool,
    ) {
        for (path, without) in seen {
            if let Without::Other(file) = without
                && !is_used(path)
            {
                let _ = self
                    .objects
                    .delete(&format!("tables/{table}/{}", file.path));
            }
        }
    }

    /// A file without the rows of the host.
    fn without(&self, table: &str, file: &AddedFile, name: &str) -> anyhow::Result<Without> {
        let path = format!("tables/{table}/{}", file.path);
        let opened = self.objects.open(&path).with_context(|| path.clone())?;
        let mut other = AddedFile::of_hour_of(&file.date, file.hour);
        let schema = super::files::schema(table);
        let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties()?))?;
        for batch in ParquetRecordBatchReaderBuilder::try_new(opened)?.build()? {
            let batch = self.others(&batch?)?;
            let starts = batch.column_by_name("ts_ns").context("expected ts_ns")?;
            let starts = starts.as_primitive::<Int64Type>().iter();
            starts.for_each(|ns| other.count(ns.map(|ns| ns as u64)));
            writer.write(&batch)?;
        }
        if other.rows == file.rows {
            return Ok(Without::Same);
        }
        if other.rows == 0 {
            return Ok(Without::Nothing);
        }
        let bytes = writer.into_inner()?;
        other.bytes = bytes.len() as u64;
        other.path = format!("date={}/hour={:02}/{name}.parquet", other.date, other.hour);
        let path = format!("tables/{table}/{}", other.path);
        self.objects.put(&path, &bytes).context(path)?;
        Ok(Without::Other(other))
    }

    /// The rows of other hosts.
    fn others(&self, batch: &RecordBatch) -> anyhow::Result<RecordBatch> {
        let hosts = batch.column_by_name("host").context("expected host")?;
        let hosts = hosts.as_string::<i32>().iter();
        let are_others = hosts.map(|host| Some(host != Some(self.host)));
        let are_others: BooleanArray = are_others.collect();
        debug_assert_eq!(are_others.null_count(), 0);
        Ok(filter_record_batch(batch, &are_others)?)
    }
}
