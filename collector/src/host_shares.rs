//! What one host may take of the collector, over all its connections: connections, memory for large
//! blocks, and how fast it may send.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use ringmark_format::block::{BlockHeader, CONTENT_BYTES_MAX};
use tokio::sync::Semaphore;

use crate::mutex::lock;

/// A host may have one part in this many of the memory for large blocks.
const MEMORY_PARTS: usize = 4;
/// Bytes of the largest block.
const BLOCK_BYTES_MAX: usize = BlockHeader::BYTES + CONTENT_BYTES_MAX as usize;
/// What a host with a bounded rate may send at once after a pause.
const BURST: Duration = Duration::from_secs(1);

/// What each host may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostLimits {
    /// Most connections at a time.
    pub connections: usize,
    /// Most bytes of blocks per second; `None`: as fast as they come.
    pub bytes_per_second: Option<u64>,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            bytes_per_second: None,
        }
    }
}

/// The shares of all hosts that have connections.
#[derive(Debug)]
pub(crate) struct HostShares {
    limits: Mutex<HostLimits>,
    /// Memory for large blocks that one host may take, in bytes.
    memory: usize,
    by_host: Mutex<HashMap<String, Weak<HostShare>>>,
}

/// The share of one host. Each of its connections holds it.
#[derive(Debug)]
pub(crate) struct HostShare {
    /// One permit for each byte of a large block.
    pub(crate) memory: Arc<Semaphore>,
    rate: Option<Rate>,
}

/// The host has as many connections as it may have.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("host {host} has {most} connections, expected no more (--connections-per-host)")]
pub(crate) struct TooManyOfHost {
    host: String,
    most: usize,
}

impl HostShares {
    /// Shares of a collector with this memory for large blocks.
    pub(crate) fn new(limits: HostLimits, memory_bytes: usize) -> Self {
        Self {
            limits: Mutex::new(limits),
            memory: (memory_bytes / MEMORY_PARTS).max(BLOCK_BYTES_MAX),
            by_host: Mutex::default(),
        }
    }

    /// The share of a host, for a connection more.
    ///
    /// # Errors
    /// It has too many.
    pub(crate) fn enter(&self, host: &str) -> Result<Arc<HostShare>, TooManyOfHost> {
        let mut by_host = lock(&self.by_host);
        by_host.retain(|_, share| share.strong_count() > 0);
        let limits = *lock(&self.limits);
        let known = by_host.get(host).and_then(Weak::upgrade);
        let Some(share) = known else {
            let share = Arc::new(self.share(limits));
            let _ = by_host.insert(host.to_owned(), Arc::downgrade(&share));
            return Ok(share);
        };
        // One reference more than connections: `share`.
        if Arc::strong_count(&share) > limits.connections {
            return Err(TooManyOfHost {
                host: host.to_owned(),
                most: limits.connections,
            });
        }
        Ok(share)
    }

    fn share(&self, limits: HostLimits) -> HostShare {
        HostShare {
            memory: Arc::new(Semaphore::new(self.memory)),
            rate: limits.bytes_per_second.map(Rate::new),
        }
    }

    /// Other limits from now on. A host that is connected keeps its rate until it has gone.
    pub(crate) fn limit(&self, limits: HostLimits) {
        *lock(&self.limits) = limits;
    }
}

impl HostShare {
    /// How long the host must wait after it has sent these bytes.
    pub(crate) fn pay(&self, bytes: u64) -> Duration {
        let wait = self
            .rate
            .as_ref()
            .map(|rate| rate.pay(bytes, Instant::now()));
        wait.unwrap_or_default()
    }
}

/// A bound for how fast a host sends: it may run into debt, and then waits.
#[derive(Debug)]
struct Rate {
    bytes_per_second: f64,
    account: Mutex<Account>,
}

/// What a host may send without waiting.
#[derive(Debug)]
struct Account {
    bytes: f64,
    at: Instant,
}

impl Rate {
    fn new(bytes_per_second: u64) -> Self {
        let bytes_per_second = bytes_per_second.max(1) as f64;
        Self {
            bytes_per_second,
            account: Mutex::new(Account {
                bytes: bytes_per_second * BURST.as_secs_f64(),
                at: Instant::now(),
            }),
        }
    }

    fn pay(&self, bytes: u64, now: Instant) -> Duration {
        let mut account = lock(&self.account);
        let passed = now.saturating_duration_since(account.at).as_secs_f64();
        let most = self.bytes_per_second * BURST.as_secs_f64();
        account.bytes = (account.bytes + passed * self.bytes_per_second).min(most) - bytes as f64;
        account.at = now;
        Duration::from_secs_f64((-account.bytes / self.bytes_per_second).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_no_more_connections_than_it_may() {
        let limits = HostLimits {
            connections: 2,
            bytes_per_second: None,
        };
        let shares = HostShares::new(limits, 64 << 20);
        let (first, _second) = (shares.enter("a").unwrap(), shares.enter("a").unwrap());
        let told = shares.enter("a").unwrap_err().to_string();
        assert!(told.starts_with("host a has 2 connections"), "{told}");
        let _other = shares.enter("b").unwrap();
        drop(first);
        assert!(shares.enter("a").is_ok());
    }

    #[test]
    fn a_host_that_sends_faster_than_it_may_waits() {
        let rate = Rate::new(1000);
        let begun = lock(&rate.account).at;
        assert_eq!(rate.pay(1000, begun), Duration::ZERO, "a burst");
        assert_eq!(rate.pay(500, begun), Duration::from_millis(500));
        let later = begun + Duration::from_secs(1);
        assert_eq!(rate.pay(0, later), Duration::ZERO);
        let much_later = begun + Duration::from_secs(100);
        assert_eq!(rate.pay(1500, much_later), Duration::from_millis(500));
    }
}
