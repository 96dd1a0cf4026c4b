//! Ringmark's reader: attach to a session, take pages out of it, write them as blocks, release
//! them; snapshots, recovery of dead sessions, control.
//!
//! The way of the data, a folder each: [`find`] a session, [`Session`] maps it (`sessions/`),
//! [`SessionDrain`] copies pages into a [`Batch`] of blocks (`pages/`), [`Recorder`] writes batches
//! (`recording/`), or a `Streamer` sends them to a collector (`stream/`), and only then pages are
//! released. Live memory is seen as atomic words only; nothing in it is believed that was loaded
//! twice.
#![forbid(unsafe_code)]

pub mod error;
mod pages;
mod recording;
mod sessions;
#[cfg(feature = "stream")]
pub mod stream;
mod tap;

pub use error::ReaderError;
pub use pages::batch::{BATCH_BYTES, Batch};
pub use pages::drain::{Fill, SessionDrain};
pub use pages::positions::SlotPosition;
pub use pages::{batch, drain};
pub use recording::dump::{Codec, Destination, Dump};
pub use recording::on_death::DeathWatch;
pub use recording::output::{Output, Rotation};
pub use recording::record::{Ended, Progress, RecordOptions, Recorder};
pub use recording::snapshot::{SnapshotFigures, snapshot};
pub use recording::{dump, on_death, output, record};
pub use ringmark_ring::guard;
pub use sessions::file_id::FileId;
pub use sessions::info::SessionInfo;
pub use sessions::leases::{DirectoryGone, Gone};
pub use sessions::selection::Selection;
pub use sessions::session::{Access, Session};
pub use sessions::{clean, control, find, info, notes, selection, session};
pub use tap::Tap;
