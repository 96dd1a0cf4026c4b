//! Recordings: batches written to dumps, and only then released.
//!
//! From the ground up: `output`, files that grow and rotate; `dump`, blocks in them; `snapshot`, one
//! session as it is; `record`, sessions until they end; `on_death`, those of processes that die.

pub mod dump;
pub mod on_death;
pub mod output;
pub mod record;
pub(crate) mod snapshot;
