//! A collector without sockets, for fuzzing: what a streamer sent is read from memory.

use std::io::{self, Cursor};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};

use crate::block_memory::BlockMemory;
use crate::connection_context::ConnectionContext;
use crate::figures::Figures;
use crate::host_shares::{HostLimits, HostShares};
use crate::listen::{AcceptedStream, PeerProof};
use crate::peer::Peer;
use crate::storage::Storage;
use crate::store::{DirectoryOptions, Retention, Store, StoreOptions, SyncMode};

/// Memory for large blocks, in bytes.
const MEMORY: usize = 16 << 20;

/// Receives what streamers sent, one after the other.
#[derive(Debug)]
pub struct SocketlessCollector {
    runtime: Runtime,
}

impl SocketlessCollector {
    /// A collector with a runtime of its own.
    ///
    /// # Errors
    /// The runtime does not start.
    pub fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        Ok(Self { runtime })
    }

    /// Receives what a streamer sent into a store at `root`. Returns why it was refused; `None`: it
    /// was not.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub fn receive(&self, sent: Vec<u8>, root: &Path) -> io::Result<Option<String>> {
        let figures = Arc::new(Figures::default());
        let options = StoreOptions {
            root: root.to_owned(),
            sync: SyncMode::Disk,
            segment_bytes: 64 << 10,
            segment_age: Duration::from_secs(3600),
            retention: Retention::default(),
            session_bytes: 64 << 20,
            directory: DirectoryOptions::default(),
        };
        let store = Store::open(options, figures.clone()).map_err(io::Error::other)?;
        let (_drain, draining) = watch::channel(false);
        let context = Arc::new(ConnectionContext {
            store: Storage::Disk(Box::new(store)),
            admission: watch::Sender::default(),
            handshake_within: Duration::ZERO,
            memory: BlockMemory::new(MEMORY, figures.clone()),
            connections: Arc::new(Semaphore::new(1)),
            shares: HostShares::new(HostLimits::default(), MEMORY),
            figures,
            draining,
        });
        let accepted = AcceptedStream {
            bytes: Box::new(tokio::io::join(Cursor::new(sent), Vec::new())),
            peer: PeerProof::Local,
        };
        let end = self.runtime.block_on(async {
            match Peer::greeted(accepted, context).await {
                Ok(peer) => peer.serve().await.end,
                Err(end) => end,
            }
        });
        Ok(end.why())
    }
}
