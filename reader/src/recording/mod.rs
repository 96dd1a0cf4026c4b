//! Recordings: batches written to dumps, and only then released.
//!
//! The way of the data: [`record`] follows sessions until they end and fills batches from their
//! drains; [`dump`] puts a batch after the schema that it needs, as blocks, and begins each file
//! with `preambles`; [`output`] writes the
//! blocks to a file that may rotate. [`snapshot`] does the same once, for one session as it is;
//! [`on_death`] takes a snapshot of each process that dies, of those that `held` keeps open.

pub mod dump;
mod held;
pub mod on_death;
pub mod output;
mod preambles;
pub mod record;
pub(crate) mod snapshot;
