//! Memory for large blocks that are being received: one pool for all connections, of which no host
//! takes more than its share.
//!
//! A host that asks for more than its share waits for itself. The rest is given in the order of
//! asking. A peer that sends slowly could hold memory that others need,
//! so while connections wait, a block must come at a least speed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::figures::Figures;
use crate::host_shares::HostShare;

/// How long a block may take whatever its size.
const GRACE: Duration = Duration::from_secs(1);
/// Least speed while other connections wait for memory, in bytes per second.
const FAST: u64 = 4 << 20;

/// The pool.
#[derive(Debug)]
pub(crate) struct BlockMemory {
    /// One permit for each byte.
    free: Arc<Semaphore>,
    /// Connections that wait for memory.
    waiting: AtomicU64,
    figures: Arc<Figures>,
}

/// Memory that one connection took; given back when dropped.
#[derive(Debug)]
pub(crate) struct TakenMemory {
    permit: OwnedSemaphorePermit,
    _of_host: OwnedSemaphorePermit,
    since: Instant,
    figures: Arc<Figures>,
}

/// A connection that waits; counted until this is dropped, also if the wait is given up.
struct Waits<'a>(&'a AtomicU64);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl BlockMemory {
    /// A pool of this many bytes.
    pub(crate) fn new(bytes: usize, figures: Arc<Figures>) -> Self {
        Self {
            free: Arc::new(Semaphore::new(bytes)),
            waiting: AtomicU64::new(0),
            figures,
        }
    }

    /// Waits for `bytes` of a host's share. `None`: neither that nor the pool ever has as many.
    pub(crate) async fn take(&self, host: &HostShare, bytes: usize) -> Option<TakenMemory> {
        let wanted = u32::try_from(bytes).ok()?;
        let of_host = host.memory.clone().acquire_many_owned(wanted).await.ok()?;
        self.waiting.fetch_add(1, Relaxed);
        let waits = Waits(&self.waiting);
        let permit = self.free.clone().acquire_many_owned(wanted).await.ok()?;
        drop(waits);
        Figures::add(&self.figures.memory_bytes, bytes as u64);
        Some(TakenMemory {
            permit,
            _of_host: of_host,
            since: Instant::now(),
            figures: self.figures.clone(),
        })
    }

    /// Whether memory has been held for longer than its size justifies while connections wait.
    pub(crate) fn is_wanted_back(&self, taken: &TakenMemory) -> bool {
        let bytes = taken.permit.num_permits() as u64;
        let fair = GRACE + Duration::from_millis(bytes * 1000 / FAST);
        self.waiting.load(Relaxed) > 0 && taken.since.elapsed() > fair
    }
}

impl Drop for TakenMemory {
    fn drop(&mut self) {
        let bytes = self.permit.num_permits() as u64;
        Figures::take(&self.figures.memory_bytes, bytes);
    }
}
