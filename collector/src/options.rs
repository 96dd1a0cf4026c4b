//! The options of a collector.

use std::time::Duration;

use ringmark_reader::stream::{Address, Credentials};

use crate::deny_rule::DenyRule;
use crate::host_shares::HostLimits;
use crate::store::StoreOptions;
use crate::store::object_sessions::ObjectOptions;

/// How a collector is configured.
#[derive(Debug, Clone)]
pub struct CollectorOptions {
    /// The addresses at which it listens.
    pub listen: Vec<Address>,
    /// The store, and how it keeps segments.
    pub store: StoreOptions,
    /// Its segments are objects below the store's root; `None`: files of each session.
    pub objects: Option<ObjectOptions>,
    /// Our certificate, and the CA that streamers' certificates must come from, for TLS.
    pub credentials: Option<Credentials>,
    /// The token that streamers without TLS must show; `None`: they need none.
    pub token: Option<String>,
    /// Who may not come, whatever they prove.
    pub denied: Vec<DenyRule>,
    /// How long a TLS handshake may take.
    pub handshake_within: Duration,
    /// Most connections of proved hosts at a time. A quarter as many more may be proving theirs.
    pub connections: usize,
    /// What each host may take.
    pub hosts: HostLimits,
    /// Memory for large blocks of all connections, in bytes; at least 16 MiB are used.
    pub memory_bytes: usize,
    /// The `HOST:PORT` at which its figures are served.
    pub metrics: Option<String>,
}
