//! Pages: copied out of the rings of a session into a batch of blocks, and released.
//!
//! The way of a page: [`drain`] goes over the slots of a session, one [`pass`] after the other; the
//! [`slot_reader`] of a slot finds the pages that wait in its ring; [`page_copy`] copies one of
//! them into the [`batch`] as a PAGE block and checks that it did not change on the way. The batch
//! goes to a file or to a collector. Only then the drain releases its pages: their writer may reuse
//! them.
//!
//! Around it: [`slot_progress`] and [`positions`] say how far a slot was taken, [`schema`] reads
//! the event types that the pages need, [`counters`] makes the content of COUNTERS blocks,
//! [`open_spans`] that of OPEN_SPANS blocks; [`codec`] packs a batch.

pub mod batch;
pub(crate) mod codec;
pub(crate) mod counters;
pub mod drain;
pub(crate) mod open_spans;
pub(crate) mod page_copy;
pub(crate) mod pass;
pub(crate) mod positions;
pub(crate) mod schema;
pub(crate) mod slot_progress;
pub(crate) mod slot_reader;
