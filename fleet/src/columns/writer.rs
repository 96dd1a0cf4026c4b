//! A Parquet file of keyed columns, and of others.

use std::sync::Arc;

use anyhow::{Context, bail};
use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::add_encoded_arrow_schema_to_metadata;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use zstd::bulk::Compressor;

use super::keyed::{Keyed, LEVEL, Runs};

/// A file in the making. A page has some rows of each column.
pub(crate) struct Writer {
    schema: SchemaRef,
    /// Columns that are keyed, and whether the file says their bounds.
    keyed: Vec<Option<bool>>,
    file: SerializedFileWriter<Vec<u8>>,
    arrow: ArrowRowGroupWriterFactory,
    group: Vec<Column>,
    rows: usize,
    rows_max: usize,
    zstd: Compressor<'static>,
    runs: Runs,
}

/// A column of the row group in the making.
enum Column {
    Keyed(Box<Keyed>),
    Array(Box<ArrowColumnWriter>),
}

/// The keys of a page.
pub(crate) struct Page<'w> {
    column: &'w mut Keyed,
    runs: &'w mut Runs,
}

impl Page<'_> {
    /// The key of a value in this page.
    pub(crate) fn key(&mut self, value: &[u8]) -> u32 {
        self.column.key(value)
    }

    /// Appends rows with this key.
    #[inline]
    pub(crate) fn push(&mut self, key: u32, count: u32) {
        match self.runs.last_mut() {
            Some((last, rows)) if *last == key => *rows += count,
            _ => self.runs.push((key, count)),
        }
    }

    /// Appends rows with this value.
    pub(crate) fn push_value(&mut self, value: &[u8], count: u32) {
        let key = self.key(value);
        self.push(key, count);
    }
}

impl Writer {
    /// A file without rows. `keyed` names the keyed columns, and of which of them the file says the bounds.
    pub(crate) fn new(
        schema: SchemaRef,
        keyed: &[(&str, bool)],
        mut properties: WriterProperties,
    ) -> anyhow::Result<Self> {
        add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
        let rows_max = properties.max_row_group_row_count().unwrap_or(usize::MAX);
        let columns = ArrowSchemaConverter::new().convert(&schema)?;
        let root = columns.root_schema_ptr();
        let file = SerializedFileWriter::new(Vec::new(), root, Arc::new(properties))?;
        let is_keyed = |name: &String| keyed.iter().find(|(known, _)| known == name).map(|of| of.1);
        let keyed = schema.fields().iter().map(|field| is_keyed(field.name()));
        Ok(Self {
            keyed: keyed.collect(),
            arrow: ArrowRowGroupWriterFactory::new(&file, schema.clone()),
            schema,
            file,
            group: Vec::new(),
            rows: 0,
            rows_max,
            zstd: Compressor::new(LEVEL).context("zstd")?,
            runs: Runs::new(),
        })
    }

    /// Begins a row group, unless one was begun.
    fn begin(&mut self) -> anyhow::Result<()> {
        if !self.group.is_empty() {
            return Ok(());
        }
        let number = self.file.flushed_row_groups().len();
        let arrow = self.arrow.create_column_writers(number)?.into_iter();
        let columns = self.file.schema_descr().columns().iter();
        let columns = arrow.zip(columns).zip(&self.keyed);
        let columns = columns.map(|((arrow, column), keyed)| match keyed {
            Some(bounds) => Column::Keyed(Box::new(Keyed::new(column.clone(), *bounds))),
            None => Column::Array(Box::new(arrow)),
        });
        self.group = columns.collect();
        Ok(())
    }

    fn place(&self, name: &str) -> anyhow::Result<usize> {
        Ok(self.schema.index_of(name)?)
    }

    /// Writes a page of a keyed column.
    pub(crate) fn keyed(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut Page<'_>),
    ) -> anyhow::Result<()> {
        self.begin()?;
        let place = self.place(name)?;
        let Column::Keyed(column) = &mut self.group[place] else {
            bail!("{name}: expected a keyed column");
        };
        self.runs.clear();
        let runs = &mut self.runs;
        fill(&mut Page { column, runs });
        column.page(&self.runs, &mut self.zstd)
    }

    /// Writes a page of another column.
    pub(crate) fn array(&mut self, name: &str, array: &ArrayRef) -> anyhow::Result<()> {
        self.begin()?;
        let place = self.place(name)?;
        let Column::Array(column) = &mut self.group[place] else {
            bail!("{name}: expected a column that is not keyed");
        };
        for leaf in compute_leaves(self.schema.field(place), array)? {
            column.write(&leaf)?;
        }
        Ok(())
    }

    /// Ends the page, of this many rows.
    pub(crate) fn end_page(&mut self, rows: usize) -> anyhow::Result<()> {
        self.rows += rows;
        if self.rows >= self.rows_max {
            self.end_group()?;
        }
        Ok(())
    }

    fn end_group(&mut self) -> anyhow::Result<()> {
        self.rows = 0;
        if self.group.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for column in self.group.drain(..) {
            match column {
                Column::Keyed(column) => {
                    let (bytes, close) = column.finish(&mut self.zstd)?;
                    group.append_column(&bytes, close)?;
                }
                Column::Array(column) => column.close()?.append_to_row_group(&mut group)?,
            }
        }
        group.close()?;
        Ok(())
    }

    /// Bytes of the row groups that are ended.
    pub(crate) fn bytes(&self) -> usize {
        self.file.bytes_written()
    }

    /// The bytes of the file.
    pub(crate) fn finish(mut self) -> anyhow::Result<Vec<u8>> {
        self.end_group()?;
        Ok(self.file.into_inner()?)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{Array, Int64Array};
    use arrow_schema::{DataType, Field, Schema};
    use bytes::Bytes;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::super::NULL;
    use super::*;
    use crate::parquet_properties::properties;

    const KEYED: [(&str, bool); 3] = [("text", true), ("long", true), ("many", true)];

    /// The text, the number and the long text of a row.
    fn row(number: usize) -> (Option<String>, i64, String) {
        let text = (!number.is_multiple_of(7)).then(|| format!("text {}", number / 1000 % 5));
        // More than a column keeps by number.
        let many = format!("{number} {}", "many ".repeat(40));
        (text, (number % 3) as i64, many)
    }

    fn file(pages: usize, rows: usize) -> Vec<u8> {
        let field = |name: &str, kind| Field::new(name, kind, name == "text");
        let schema = Schema::new(vec![
            field("text", DataType::Utf8),
            field("long", DataType::Int64),
            field("many", DataType::Utf8),
            field("array", DataType::Int64),
        ]);
        let properties = properties().expect("properties");
        let mut writer = Writer::new(Arc::new(schema), &KEYED, properties).expect("a file");
        for page in 0..pages {
            let of_page = (page * rows..(page + 1) * rows).map(row);
            let fill = |to: &mut Page<'_>, value: Option<&[u8]>| match value {
                Some(value) => to.push_value(value, 1),
                None => to.push(NULL, 1),
            };
            let (texts, longs) = (of_page.clone(), of_page.clone());
            let text = |to: &mut Page<'_>| {
                texts.for_each(|row| fill(to, row.0.as_deref().map(str::as_bytes)));
            };
            writer.keyed("text", text).expect("texts");
            let long = |to: &mut Page<'_>| {
                longs.for_each(|row| fill(to, Some(&row.1.to_le_bytes())));
            };
            writer.keyed("long", long).expect("numbers");
            let many = |to: &mut Page<'_>| {
                of_page.for_each(|row| fill(to, Some(row.2.as_bytes())));
            };
            writer.keyed("many", many).expect("texts");
            let numbers =
                Int64Array::from_iter_values((page * rows..).take(rows).map(|n| n as i64));
            writer
                .array("array", &(Arc::new(numbers) as _))
                .expect("numbers");
            writer.end_page(rows).expect("a page");
        }
        writer.finish().expect("a file")
    }

    #[test]
    fn rows_are_read_back() {
        let bytes = Bytes::from(file(40, 1000));
        let about = SerializedFileReader::new(bytes.clone()).expect("Parquet");
        let group = about.metadata().row_group(0);
        let bounds = |column: usize| group.column(column).statistics().expect("bounds").clone();
        assert_eq!(bounds(0).min_bytes_opt(), Some(&b"text 0"[..]));
        assert_eq!(bounds(0).max_bytes_opt(), Some(&b"text 4"[..]));
        assert_eq!(bounds(0).null_count_opt(), Some(40_000_u64.div_ceil(7)));
        assert_eq!(bounds(1).max_bytes_opt(), Some(&2_i64.to_le_bytes()[..]));
        // Not all of its values are known by number.
        assert_eq!(bounds(2).max_bytes_opt(), None);
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).expect("Parquet");
        let mut number = 0;
        for batch in reader.build().expect("Parquet") {
            let batch = batch.expect("rows");
            let [text, many] = [0, 2].map(|column| batch.column(column).as_string::<i32>());
            let [long, array] = [1, 3].map(|of| batch.column(of).as_primitive::<Int64Type>());
            for at in 0..batch.num_rows() {
                let of_text = text.is_valid(at).then(|| text.value(at).to_owned());
                let found = (of_text, long.value(at), many.value(at).to_owned());
                assert_eq!(found, row(number));
                assert_eq!(array.value(at), number as i64);
                number += 1;
            }
        }
        assert_eq!(number, 40_000);
    }

    #[test]
    fn an_empty_file_is_read() {
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file(0, 0)));
        assert_eq!(reader.expect("Parquet").metadata().num_row_groups(), 0);
    }
}
