//! The state machines of a streamer, which know neither files nor sockets: for tests and models that drive them.

pub use super::delivered::{Delivered, Resumed, Start};
pub use super::gone::overwritten;
pub use super::in_flight::{InFlight, Release};
pub use super::ledger::{Ledger, Moment};
pub use super::outgoing::{CREDIT_ENOUGH, MissingBlocks, PageGap, SpilledSchema, missing_blocks};
pub use super::positions::SpillPosition;
pub use super::rate_limit::RateLimit;
pub use super::spilled_gone::SpilledGone;
pub use super::streamed_session::{BATCH_BYTES, Waits, is_spill_due};
pub use super::streamer::backoff::{Backoff, Ended, jittered};
pub use super::terms::Terms;
pub use crate::pages::slot_progress::{Hole, SlotProgress};
pub use crate::share::Share1024;
