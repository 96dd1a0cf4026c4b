//! The file that is written: Parquet or Arrow IPC, next to its place until it is whole.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use ringmark_console::file::require_no_trace;
use ringmark_decoder::{Chosen, Dump, Filter, RowsEnd};

use crate::options::{Export, Format};
use crate::parquet_properties::properties;
use crate::table::Table;

/// Writes the rows that are chosen.
pub(crate) fn write(
    options: &Export,
    dump: &Dump,
    chosen: Chosen,
    filter: &Filter,
) -> anyhow::Result<RowsEnd> {
    let path = options.output.as_path();
    if path.as_os_str() == "-" || path.is_dir() {
        bail!("-o {}: expected the name of a file", path.display());
    }
    let shown = || path.display().to_string();
    // A device or a pipe is written as it is.
    if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        let file = File::create(path).with_context(shown)?;
        return write_to(file, options.format, (dump, chosen, filter)).with_context(shown);
    }
    if !options.set_aside {
        require_no_trace(path)?;
    }
    let part = with_ending(path, ".part");
    let file = File::create(&part).with_context(shown)?;
    let done = write_to(file, options.format, (dump, chosen, filter));
    let done = done.and_then(|end| Ok(put_in_place(&part, options).map(|()| end)?));
    if done.is_err() {
        // What is there is of no use.
        let _ = fs::remove_file(&part);
    }
    done.with_context(shown)
}

/// Gives the whole file its name, and what has this name another one, if the user did not choose it.
fn put_in_place(part: &Path, options: &Export) -> io::Result<()> {
    let path = options.output.as_path();
    if options.set_aside && path.symlink_metadata().is_ok() {
        let old = with_ending(path, ".old");
        fs::rename(path, &old)?;
        let (path, old) = (path.display(), old.display());
        eprintln!("ringmark-fleet: {path}: was there, and is {old} now");
    }
    fs::rename(part, path)
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut named = path.as_os_str().to_owned();
    named.push(ending);
    named.into()
}

fn write_to(
    file: File,
    format: Format,
    (dump, chosen, filter): (&Dump, Chosen, &Filter),
) -> anyhow::Result<RowsEnd> {
    let mut table = Table::new(dump.arg_columns(filter));
    let mut writer = Writer::new(file, format, table.schema())?;
    let end = dump.each_row(chosen, |row| {
        table.push(row);
        match table.is_full() {
            true => writer.write(&table.take()?),
            false => anyhow::Ok(()),
        }
    })?;
    writer.write(&table.take()?)?;
    writer.finish()?;
    Ok(end)
}

/// What writes batches of rows.
enum Writer {
    Parquet(Box<ArrowWriter<BufWriter<File>>>),
    Arrow(Box<FileWriter<BufWriter<File>>>),
}

impl Writer {
    fn new(file: File, format: Format, schema: SchemaRef) -> anyhow::Result<Self> {
        let file = BufWriter::new(file);
        Ok(match format {
            Format::Parquet => {
                let writer = ArrowWriter::try_new(file, schema, Some(properties()?))?;
                Self::Parquet(Box::new(writer))
            }
            Format::Arrow => Self::Arrow(Box::new(FileWriter::try_new(file, &schema)?)),
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        match self {
            Self::Parquet(writer) => writer.write(batch)?,
            Self::Arrow(writer) => writer.write(batch)?,
        }
        Ok(())
    }

    fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Parquet(writer) => drop(writer.close()?),
            Self::Arrow(mut writer) => writer.finish()?,
        }
        Ok(())
    }
}
