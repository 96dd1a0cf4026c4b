//! Parquet files of rows of which most columns have few different values.
//!
//! Arrow's writer hashes every value of every row. Here [`keyed`] columns get numbers of [`values`], in runs,
//! which [`hybrid`] encodes; all other columns are Arrow's. [`writer`] puts both into one file.

mod hybrid;
mod keyed;
mod values;
mod writer;

pub(crate) use keyed::{Key, NULL};
pub(crate) use values::Values;
pub(crate) use writer::Writer;
