//! A column of a row group as numbers of its different values: its values are hashed when they are met, and not
//! again for each row.

use anyhow::Context;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

use super::hybrid::Hybrid;
use super::values::Values;

/// Level of the compression; see [`crate::parquet_properties`].
pub(super) const LEVEL: i32 = 1;
/// Bytes of different values, at most: pages with others have values in place of numbers.
const VALUES_BYTES_MAX: usize = 1 << 20;

/// The number of a value in its column, or [`NULL`].
pub(crate) type Key = u32;
/// No value.
pub(crate) const NULL: Key = Key::MAX;
/// Keys, each with how many rows in a row have it.
pub(super) type Runs = Vec<(Key, u32)>;

/// A column in the making.
pub(super) struct Keyed {
    column: ColumnDescPtr,
    has_bounds: bool,
    values: Values,
    /// Values that pages have by number.
    known: usize,
    /// There are too many values: those of later pages stand in them.
    is_plain: bool,
    pages: TrackedWrite<Vec<u8>>,
    offsets: OffsetIndexBuilder,
    encodings: Vec<Encoding>,
    rows: u64,
    nulls: u64,
    uncompressed: usize,
}

impl Keyed {
    /// Without rows. `has_bounds`: the file says which are the least and the greatest value.
    pub(super) fn new(column: ColumnDescPtr, has_bounds: bool) -> Self {
        Self {
            has_bounds,
            values: Values::new(column.physical_type() == Type::BYTE_ARRAY),
            known: 0,
            is_plain: false,
            pages: TrackedWrite::new(Vec::new()),
            offsets: OffsetIndexBuilder::new(),
            encodings: vec![Encoding::RLE, Encoding::PLAIN],
            rows: 0,
            nulls: 0,
            uncompressed: 0,
            column,
        }
    }

    /// The key of a value, for the next page.
    pub(super) fn key(&mut self, value: &[u8]) -> Key {
        match self.is_plain {
            true => self.values.push(value),
            false => self.values.number(value),
        }
    }

    /// Writes a page.
    pub(super) fn page(
        &mut self,
        runs: &[(Key, u32)],
        zstd: &mut Compressor<'_>,
    ) -> anyhow::Result<()> {
        let mut page = self.levels(runs);
        let rows: u32 = runs.iter().map(|run| run.1).sum();
        let of_values = runs.iter().filter(|run| run.0 != NULL);
        let is_plain = self.is_plain || self.values.plain.len() > VALUES_BYTES_MAX;
        let encoding = match is_plain {
            true => {
                for (key, count) in of_values {
                    for _ in 0..*count {
                        page.extend_from_slice(self.values.plain(*key));
                    }
                }
                self.values.truncate(self.known);
                self.is_plain = true;
                Encoding::PLAIN
            }
            false => {
                self.known = self.values.len();
                let largest = self.known.saturating_sub(1) as u32;
                let width = u32::BITS - largest.leading_zeros();
                page.push(width as u8);
                let mut keys = Hybrid::new(width, page);
                of_values.for_each(|(key, count)| keys.push(*key, *count));
                page = keys.finish();
                Encoding::RLE_DICTIONARY
            }
        };
        if !self.encodings.contains(&encoding) {
            self.encodings.push(encoding);
        }
        let to_write = Page::DataPage {
            buf: compressed(&page, zstd)?,
            num_values: rows,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let to_write = CompressedPage::new(to_write, page.len());
        let written = SerializedPageWriter::new(&mut self.pages).write_page(to_write)?;
        let size = i32::try_from(written.bytes_written).context("a page of some MB")?;
        self.offsets
            .append_offset_and_size(written.offset as i64, size);
        self.offsets.append_row_count(i64::from(rows));
        self.offsets.append_unencoded_byte_array_data_bytes(None);
        self.uncompressed += written.uncompressed_size;
        self.rows += u64::from(rows);
        Ok(())
    }

    /// What a page says of nulls, for a column that may have some.
    fn levels(&mut self, runs: &[(Key, u32)]) -> Vec<u8> {
        if self.column.max_def_level() == 0 {
            return Vec::new();
        }
        let mut levels = Hybrid::new(1, vec![0; 4]);
        for (key, count) in runs {
            let is_null = *key == NULL;
            levels.push(u32::from(!is_null), *count);
            self.nulls += if is_null { u64::from(*count) } else { 0 };
        }
        let mut levels = levels.finish();
        let length = levels.len() as u32 - 4;
        levels[..4].copy_from_slice(&length.to_le_bytes());
        levels
    }

    /// The bytes of all pages, and what the file says of them.
    pub(super) fn finish(
        mut self,
        zstd: &mut Compressor<'_>,
    ) -> anyhow::Result<(Bytes, ColumnCloseResult)> {
        let mut chunk = TrackedWrite::new(Vec::new());
        let dictionary = Page::DictionaryPage {
            buf: compressed(&self.values.plain, zstd)?,
            num_values: self.values.len() as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let dictionary = CompressedPage::new(dictionary, self.values.plain.len());
        let written = SerializedPageWriter::new(&mut chunk).write_page(dictionary)?;
        self.uncompressed += written.uncompressed_size;
        let statistics = self.statistics();
        let (mut chunk, first) = (chunk.into_inner()?, written.bytes_written as i64);
        chunk.extend(self.pages.into_inner()?);
        let compression = Compression::ZSTD(ZstdLevel::try_new(LEVEL)?);
        let metadata = ColumnChunkMetaData::builder(self.column)
            .set_encodings(self.encodings)
            .set_compression(compression)
            .set_num_values(self.rows as i64)
            .set_total_compressed_size(chunk.len() as i64)
            .set_total_uncompressed_size(self.uncompressed as i64)
            .set_dictionary_page_offset(Some(0))
            .set_data_page_offset(first)
            .set_statistics(statistics)
            .build()?;
        let mut offsets = self.offsets.build();
        for location in &mut offsets.page_locations {
            location.offset += first;
        }
        let close = ColumnCloseResult {
            bytes_written: chunk.len() as u64,
            rows_written: self.rows,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: Some(offsets),
        };
        Ok((chunk.into(), close))
    }

    /// The bounds of its values, if all of them are known by number.
    fn statistics(&self) -> Statistics {
        let has_bounds = self.has_bounds && !self.is_plain;
        let numbers = if has_bounds {
            0..self.values.len() as u32
        } else {
            0..0
        };
        let values = numbers.map(|number| self.values.get(number));
        let nulls = Some(self.nulls);
        match self.column.physical_type() {
            Type::BYTE_ARRAY => {
                let bound =
                    |value: Option<&[u8]>| value.map(|value| ByteArray::from(value.to_vec()));
                let (min, max) = (bound(values.clone().min()), bound(values.max()));
                Statistics::new(min, max, None, nulls, false)
            }
            Type::INT64 => {
                let numbers =
                    values.filter_map(|value| Some(i64::from_le_bytes(value.try_into().ok()?)));
                Statistics::new(numbers.clone().min(), numbers.max(), None, nulls, false)
            }
            _ => {
                let numbers =
                    values.filter_map(|value| Some(i32::from_le_bytes(value.try_into().ok()?)));
                Statistics::new(numbers.clone().min(), numbers.max(), None, nulls, false)
            }
        }
    }
}

fn compressed(bytes: &[u8], zstd: &mut Compressor<'_>) -> anyhow::Result<Bytes> {
    Ok(zstd.compress(bytes).context("zstd")?.into())
}
