//! The command line, as a person calls it.

mod bad_dumps;
mod changes;
mod common;
mod demo;
mod export_names;
mod first_steps;
mod fleet;
mod help;
mod json;
mod json_readers;
mod look;
mod overwritten;
mod parquet;
mod profile;
mod recording;
mod slowest;
mod targets;
mod times;
