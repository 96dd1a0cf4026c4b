//! Ringmark's reader: attach to a session, take pages out of it, write them as blocks, release
//! them; snapshots, recovery of dead sessions, control.
//!
//! The way of the data: [`find`] a session, [`Session`] maps it, [`SessionDrain`] copies pages
//! into a [`Batch`] of blocks, [`Recorder`] writes batches and only then releases pages.
//! Live memory is seen as atomic words only; nothing in it is believed that was loaded twice.
#![forbid(unsafe_code)]

pub mod batch;
pub mod counters;
pub mod drain;
pub mod error;
pub mod find;
pub mod info;
pub mod session;
mod slot_reader;

pub use batch::{BATCH_BYTES, Batch};
pub use drain::{Fill, SessionDrain};
pub use error::ReaderError;
pub use session::{Access, Session};
