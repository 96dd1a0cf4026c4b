//! How often a function was called, by its own count.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Calls of one function.
pub(crate) struct Count {
    pub(crate) name: &'static str,
    pub(crate) calls: AtomicU64,
}

impl Count {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self {
            name,
            calls: AtomicU64::new(0),
        }
    }

    pub(crate) fn add(&self) {
        self.calls.fetch_add(1, Relaxed);
    }
}
