//! Ringmark's reader: attach to a session, take pages out of it, write them as blocks, release
//! them; snapshots, recovery of dead sessions, control.
//!
//! The way of the data: [`find`] a session, [`Session`] maps it, [`SessionDrain`] copies pages
//! into a [`Batch`] of blocks, [`Recorder`] writes batches and only then releases pages.
//! Live memory is seen as atomic words only; nothing in it is believed that was loaded twice.
#![forbid(unsafe_code)]

pub mod batch;
pub mod clean;
pub mod control;
mod counters;
mod directories;
pub mod drain;
pub mod dump;
pub mod error;
mod file_id;
pub mod find;
mod found;
mod glance;
pub mod info;
mod leases;
mod lifetime;
pub mod notes;
pub mod on_death;
pub mod output;
mod pace;
mod page_copy;
mod pids;
mod positions;
mod progress;
pub mod record;
pub mod selection;
pub mod session;
mod slot_reader;
pub mod snapshot;
#[cfg(feature = "stream")]
pub mod stream;
mod uuid_owners;

pub use batch::{BATCH_BYTES, Batch};
pub use drain::{Fill, SessionDrain};
pub use dump::{Codec, Destination, Dump};
pub use error::ReaderError;
pub use file_id::FileId;
pub use info::SessionInfo;
pub use leases::{DirectoryGone, Gone};
pub use on_death::DeathWatch;
pub use output::{Output, Rotation};
pub use positions::SlotPosition;
pub use record::{Ended, Progress, RecordOptions, Recorder};
pub use ringmark_ring::guard;
pub use selection::Selection;
pub use session::{Access, Session};
pub use snapshot::{SnapshotFigures, snapshot};
