//! Stores of objects in S3 and what speaks its protocol, and in Azure: `s3://BUCKET/PREFIX`.
//!
//! `service` knows how they differ: addresses, and settings from the environment. `bucket` is the connection, whose
//! calls wait. `place` is the store for a collector, `source` for a reader.

mod bucket;
mod place;
mod service;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use bucket::Bucket;
