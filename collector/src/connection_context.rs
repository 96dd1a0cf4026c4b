//! What all connections of a collector share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

use crate::block_memory::BlockMemory;
use crate::figures::Figures;
use crate::host_shares::HostShares;
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
    /// One permit for each connection of a proved host.
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) shares: HostShares,
    /// Whether the collector is about to end: connections then send DRAIN.
    pub(crate) draining: watch::Receiver<bool>,
}
