//! What all connections of a collector share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::block_memory::Memory;
use crate::figures::Figures;
use crate::store::Store;

/// The collector, as its connections see it.
pub(crate) struct Common {
    pub(crate) store: Store,
    /// The token of streamers that come without TLS; none: they need not show one.
    pub(crate) token: Option<Vec<u8>>,
    pub(crate) handshake_within: Duration,
    pub(crate) figures: Arc<Figures>,
    pub(crate) memory: Memory,
    /// Whether the collector is about to end.
    pub(crate) draining: watch::Receiver<bool>,
}
