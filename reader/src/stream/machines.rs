//! The state machines of a streamer, which know neither files nor sockets: for tests that drive them.

pub use super::delivered::{Delivered, Resumed, Start, StoreSide};
pub use super::in_flight::{InFlight, Release};
pub use super::ledger::{Ledger, Moment};
pub use super::outgoing::{MissingBlocks, PageGap, SpilledSchema, missing_blocks};
pub use super::positions::SpillPosition;
pub use crate::pages::slot_progress::{Hole, SlotProgress};
