//! A collector in this process.

use std::path::Path;
use std::time::Duration;

use ringmark_collector::store::{DirectoryOptions, Retention, StoreOptions, SyncMode};
use ringmark_collector::{Collector, CollectorOptions, HostLimits};
use ringmark_reader::stream::{Address, Credentials};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

/// Where it is reached.
#[derive(Debug, Clone)]
pub struct Reached {
    /// Over TCP.
    pub plain: Address,
    /// Over TLS.
    pub tls: Address,
}

/// A collector of its own, on two cores.
pub(super) struct Collecting {
    runtime: Option<Runtime>,
    stop: Option<oneshot::Sender<()>>,
    pub(super) at: Reached,
}

impl Collecting {
    pub(super) fn start(root: &Path, sync: SyncMode, credentials: Credentials) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let options = CollectorOptions {
            listen: ["tcp://127.0.0.1:0", "tls://127.0.0.1:0"]
                .map(|to| to.parse().expect("an address"))
                .to_vec(),
            store: StoreOptions {
                root: root.to_owned(),
                sync,
                segment_bytes: 256 << 20,
                session_bytes: 64 << 20,
                segment_age: Duration::from_secs(3600),
                retention: Retention::default(),
                directory: DirectoryOptions::default(),
            },
            objects: None,
            credentials: Some(credentials),
            token: None,
            denied: Vec::new(),
            handshake_within: Duration::from_secs(8),
            connections: 16,
            hosts: HostLimits::default(),
            memory_bytes: 64 << 20,
            metrics: None,
        };
        let (notices, _) = mpsc::unbounded_channel();
        let collector = runtime.block_on(Collector::start(options, notices));
        let collector = collector.expect("a collector");
        let addresses = collector.addresses();
        let [plain, tls] = addresses.try_into().expect("two addresses");
        let (stop, stopped) = oneshot::channel();
        drop(runtime.spawn(collector.run(async move { drop(stopped.await) })));
        Self {
            runtime: Some(runtime),
            stop: Some(stop),
            at: Reached { plain, tls },
        }
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }
}
