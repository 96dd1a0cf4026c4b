//! What all connections of a collector share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinError, spawn_blocking};

use crate::block_memory::BlockMemory;
use crate::deny_rule::DenyRule;
use crate::figures::Figures;
use crate::host_shares::HostShares;
use crate::storage::Storage;

/// The collector as its connections see it.
pub(crate) struct ConnectionContext {
    pub(crate) store: Storage,
    /// Who may come. It may change.
    pub(crate) admission: watch::Sender<Arc<AdmissionRules>>,
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

impl ConnectionContext {
    /// Makes a call that may wait for the store's disk: apart from the threads that serve connections. What goes into
    /// objects waits in memory, so there it is made here. Each thread more would take memory for its stack and its heap.
    pub(crate) fn at_store<R>(&self, call: impl FnOnce() -> R) -> R {
        match self.store.objects() {
            Some(_) => call(),
            None => self.figures.disk_calls.off_the_workers(call),
        }
    }

    /// The same with a call of which its task does not wait for others.
    ///
    /// # Errors
    /// The call panicked.
    pub(crate) async fn apart_at_store<R: Send + 'static>(
        &self,
        call: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, JoinError> {
        if self.store.objects().is_some() {
            return Ok(call());
        }
        let figures = self.figures.clone();
        spawn_blocking(move || figures.disk_calls.count(call)).await
    }
}

/// Who may come.
#[derive(Debug, Default)]
pub(crate) struct AdmissionRules {
    /// The token that streamers without TLS must show; `None`: they need none.
    pub(crate) token: Option<Vec<u8>>,
    /// Hosts that may not come, and certificates that are not accepted any more.
    pub(crate) denied: BTreeSet<DenyRule>,
}

impl AdmissionRules {
    /// The rules with this token, and who is denied.
    pub(crate) fn new(token: Option<String>, denied: &[DenyRule]) -> Arc<Self> {
        Arc::new(Self {
            token: token.map(String::into_bytes),
            denied: denied.iter().cloned().collect(),
        })
    }

    /// Whether a host may not come.
    pub(crate) fn is_denied(&self, host: &str) -> bool {
        self.denied.contains(&DenyRule::host(host))
    }

    /// Whether the certificate of this serial number is not accepted any more.
    pub(crate) fn is_revoked(&self, serial: &str) -> bool {
        self.denied.contains(&DenyRule::Serial(serial.to_owned()))
    }
}
