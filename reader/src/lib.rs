//! Ringmark's reader: it maps a session, takes pages out of it, writes them as blocks, and releases
//! them. It also takes snapshots, recovers dead sessions, and sends requests to traced processes.
//!
//! The way of the data, one folder for each step:
//!
//! 1. `sessions/`: [`find`] lists ring files, [`Session`] maps one of them.
//! 2. `pages/`: [`SessionDrain`] copies pages out of the rings into a [`Batch`] of blocks.
//! 3. `recording/`: [`Recorder`] writes batches to a [`Dump`]; or `stream/`: a `Streamer` sends
//!    them to a collector.
//! 4. Only then the drain releases the pages, and their writers may reuse them.
//!
//! [`host`] looks at the system instead: what it lets programs and readers do.
//!
//! Shared memory is read through atomic words only. Each word is loaded once and bounded before it
//! is used, because its writer may be broken or hostile.
#![forbid(unsafe_code)]

pub mod error;
pub mod host;
mod interval;
mod pages;
mod recording;
pub mod regular_file;
mod sessions;
mod share;
#[cfg(feature = "stream")]
pub mod stream;
mod tap;
pub mod whole_file;

pub use error::ReaderError;
pub use pages::batch::{BATCH_BYTES, Batch};
pub use pages::codec::Codec;
pub use pages::drain::{Fill, Finality, SchemaPiece, SessionDrain};
pub use pages::positions::SlotPosition;
pub use pages::{batch, drain};
pub use recording::dump::{Destination, Dump};
pub use recording::on_death::DeathWatch;
pub use recording::output::{Durability, Output, Rotation};
pub use recording::record::{Beside, Ended, Progress, RecordOptions, Recorder};
pub use recording::snapshot::{SnapshotFigures, snapshot};
pub use recording::{dump, on_death, output, record};
pub use ringmark_ring::clock::realtime_error_ns;
pub use ringmark_ring::guard;
pub use ringmark_ring::slot::WaitCounts;
pub use sessions::file_id::FileId;
pub use sessions::info::SessionInfo;
pub use sessions::leases::{Announcement, DirectoryRemovals, Removals};
pub use sessions::pids::lives_here;
pub use sessions::selection::Selection;
pub use sessions::session::{Access, Session};
pub use sessions::stream_status::StreamStatus;
pub use sessions::{clean, control, find, info, notes, selection, session};
pub use share::Share1024;
pub use tap::{Look, RingLook, Tap};
