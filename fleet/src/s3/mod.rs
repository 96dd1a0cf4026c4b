//! Stores of objects in S3, and in whatever speaks its protocol: `s3://BUCKET/PREFIX`.
//!
//! `bucket` is the connection: its settings come from the environment, its calls wait. `place` is the
//! store for a collector, `source` for a reader.

mod bucket;
mod place;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use bucket::Bucket;
