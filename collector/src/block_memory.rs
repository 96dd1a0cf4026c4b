//! Memory for large blocks on their way in: one pool for all connections, given in the order of asking.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::figures::Figures;

/// How long a block may take in any case.
const GRACE: Duration = Duration::from_secs(1);
/// Least speed while others wait for memory, bytes per second.
const FAST: u64 = 4 << 20;

/// The pool.
#[derive(Debug)]
pub(crate) struct Memory {
    free: Arc<Semaphore>,
    waiting: AtomicU64,
    figures: Arc<Figures>,
}

/// A part of it, given back when dropped.
#[derive(Debug)]
pub(crate) struct Part {
    permit: OwnedSemaphorePermit,
    since: Instant,
    figures: Arc<Figures>,
}

/// A connection that waits, counted until it is dropped.
struct Waits<'a>(&'a AtomicU64);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Memory {
    pub(crate) fn new(bytes: usize, figures: Arc<Figures>) -> Self {
        Self {
            free: Arc::new(Semaphore::new(bytes)),
            waiting: AtomicU64::new(0),
            figures,
        }
    }

    /// Waits for `bytes`. `None`: they will never be free.
    pub(crate) async fn take(&self, bytes: usize) -> Option<Part> {
        let wanted = u32::try_from(bytes).ok()?;
        self.waiting.fetch_add(1, Relaxed);
        let waits = Waits(&self.waiting);
        let permit = self.free.clone().acquire_many_owned(wanted).await.ok()?;
        drop(waits);
        Figures::add(&self.figures.memory_bytes, bytes as u64);
        Some(Part {
            permit,
            since: Instant::now(),
            figures: self.figures.clone(),
        })
    }

    /// Whether a part is held for longer than is fair while others wait.
    pub(crate) fn is_wanted_back(&self, part: &Part) -> bool {
        let bytes = part.permit.num_permits() as u64;
        let fair = GRACE + Duration::from_millis(bytes * 1000 / FAST);
        self.waiting.load(Relaxed) > 0 && part.since.elapsed() > fair
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let bytes = self.permit.num_permits() as u64;
        Figures::take(&self.figures.memory_bytes, bytes);
    }
}
