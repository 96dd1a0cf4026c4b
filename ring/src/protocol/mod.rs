//! The protocol of a ring: what producer and reader do to the words that they share.

pub mod clock_sample;
pub mod control_lock;
mod counts;
pub mod directory;
mod full_ring;
pub mod lease;
pub mod mailbox;
pub mod observe;
pub mod order;
mod own_rings;
mod page_words;
#[doc(hidden)]
pub mod planted;
pub mod published_static;
pub mod reservation;
pub mod schema_log;
pub mod single_instruction;
pub mod slot;
#[cfg(steps)]
pub mod steps;
pub mod sync;
pub mod writer;
