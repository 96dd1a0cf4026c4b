//! What all connections of a collector share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::block_memory::BlockMemory;
use crate::figures::Figures;
use crate::store::Store;

/// The collector as its connections see it.
pub(crate) struct ConnectionContext {
    pub(crate) store: Store,
    /// The token that streamers without TLS must show; `None`: they need none.
    pub(crate) token: Option<Vec<u8>>,
    /// How long a TLS handshake may take.
    pub(crate) handshake_within: Duration,
    pub(crate) figures: Arc<Figures>,
    pub(crate) memory: BlockMemory,
    /// Whether the collector is about to end: connections then send DRAIN.
    pub(crate) draining: watch::Receiver<bool>,
}
