//! How columns are encoded in Parquet files.

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

/// Rows in a row group: some MB, so that engines skip whole ones by their times.
const GROUP_ROWS: usize = 512 << 10;

/// zstd at level 1, which is smaller here than level 3; times as differences; all else by dictionary.
pub(crate) fn properties() -> anyhow::Result<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_max_row_group_row_count(Some(GROUP_ROWS));
    for column in ["ts_ns", "idx"] {
        let path = ColumnPath::from(column);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    let durations = ColumnPath::from("dur_ns");
    Ok(properties
        .set_column_dictionary_enabled(durations, false)
        .build())
}
