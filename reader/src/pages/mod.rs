//! Pages: copied out of the rings of a session into a batch of blocks, and released.
//!
//! From the ground up: `batch`, where they go; `page_copy`, one page; `slot_progress` and
//! `positions`, how far a slot was taken; `slot_reader`, one slot; `counters`, its COUNTERS block;
//! `drain`, all slots of a session.

pub mod batch;
pub(crate) mod counters;
pub mod drain;
pub(crate) mod page_copy;
pub(crate) mod positions;
pub(crate) mod slot_progress;
pub(crate) mod slot_reader;
