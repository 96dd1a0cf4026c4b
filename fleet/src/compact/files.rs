//! Rows in Parquet files: one file for each table and hour, until it is large.

use std::collections::BTreeMap;

use anyhow::Context;
use arrow_schema::SchemaRef;
use ringmark_decoder::Row;

use super::added_file::AddedFile;
use super::losses::Losses;
use super::objects::Objects;
use super::rows::Rows;
use super::tables::{Lasting, Paths};
use crate::table::stored_schema;

/// Rows of a file, at most.
const ROWS_MAX: u64 = 2 << 20;
/// Bytes of a file from which on it gets no more rows.
const BYTES_MAX: usize = 32 << 20;
/// Files that are written at a time, at most.
const OPEN_MAX: usize = 8;

/// A table, the hour of the start, and for how long.
type Place = (&'static str, u64, Lasting);

/// Files in the making.
pub(crate) struct Files<'o> {
    objects: &'o dyn Objects,
    /// What the names of the files begin with: those of no other writer do.
    writer: String,
    open: BTreeMap<Place, Open>,
    written: Written,
    number: u64,
    rows: u64,
}

/// What each table gets.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) files: BTreeMap<String, Vec<AddedFile>>,
    /// Those of them with rows that may leave it.
    pub(crate) until_heard: Paths,
}

/// A file in the making.
struct Open {
    rows: Rows,
    file: AddedFile,
    /// Rows of all files when it got its last one.
    used: u64,
}

/// The table that a row belongs to.
pub(crate) fn table_of(row: &Row<'_, '_>) -> &'static str {
    match row.kind {
        "span" | "call" => "spans",
        _ => "events",
    }
}

/// The columns of a table.
pub(crate) fn schema(table: &str) -> SchemaRef {
    match table {
        "losses" => Losses::schema(),
        _ => stored_schema(),
    }
}

impl<'o> Files<'o> {
    pub(crate) fn new(objects: &'o dyn Objects, writer: String) -> Self {
        Self {
            objects,
            writer,
            open: BTreeMap::new(),
            written: Written::default(),
            number: 0,
            rows: 0,
        }
    }

    /// Adds a row to the file of its start. One whose start is not known is where it ended.
    pub(crate) fn push(&mut self, row: &Row<'_, '_>, lasting: Lasting) -> anyhow::Result<()> {
        let table = table_of(row);
        let ns = row.start_ns.unwrap_or_else(|| row.record.wall_ns());
        let place = (table, ns / super::time::HOUR_NS, lasting);
        self.rows += 1;
        if !self.open.contains_key(&place) {
            self.make_room()?;
            self.open.insert(place, Open::new(place.1)?);
        }
        let Some(open) = self.open.get_mut(&place) else {
            return Ok(());
        };
        open.used = self.rows;
        open.push(row)?;
        if open.file.rows >= ROWS_MAX || open.rows.bytes() >= BYTES_MAX {
            self.close(place)?;
        }
        Ok(())
    }

    /// Closes the file that waits for the longest time, if there are many.
    fn make_room(&mut self) -> anyhow::Result<()> {
        let oldest = self.open.iter().min_by_key(|(_, open)| open.used);
        match oldest.map(|(place, _)| *place) {
            Some(place) if self.open.len() >= OPEN_MAX => self.close(place),
            _ => Ok(()),
        }
    }

    fn close(&mut self, place: Place) -> anyhow::Result<()> {
        let Some(open) = self.open.remove(&place) else {
            return Ok(());
        };
        let (file, bytes) = open.finish()?;
        self.put((place.0, place.2), file, &bytes)
    }

    fn put(
        &mut self,
        (table, lasting): (&str, Lasting),
        mut file: AddedFile,
        bytes: &[u8],
    ) -> anyhow::Result<()> {
        file.path = format!(
            "date={}/hour={:02}/{}-{}.parquet",
            file.date, file.hour, self.writer, self.number
        );
        file.bytes = bytes.len() as u64;
        self.number += 1;
        let name = format!("tables/{table}/{}", file.path);
        self.objects.put(&name, bytes).context(name)?;
        if lasting == Lasting::UntilHeard {
            let paths = self.written.until_heard.entry(table.to_owned());
            paths.or_default().insert(file.path.clone());
        }
        let files = self.written.files.entry(table.to_owned());
        files.or_default().push(file);
        Ok(())
    }

    /// Closes all files; returns what each table gets.
    pub(crate) fn finish(mut self, losses: Losses) -> anyhow::Result<Written> {
        while let Some(place) = self.open.keys().next().copied() {
            self.close(place)?;
        }
        for (file, lasting, bytes) in losses.finish()? {
            self.put(("losses", lasting), file, &bytes)?;
        }
        Ok(self.written)
    }
}

impl Open {
    fn new(hour: u64) -> anyhow::Result<Self> {
        Ok(Self {
            rows: Rows::new()?,
            file: AddedFile::of_hour(hour),
            used: 0,
        })
    }

    fn push(&mut self, row: &Row<'_, '_>) -> anyhow::Result<()> {
        self.file.count(row.start_ns);
        self.rows.push(row)
    }

    fn finish(self) -> anyhow::Result<(AddedFile, Vec<u8>)> {
        Ok((self.file, self.rows.finish()?))
    }
}
