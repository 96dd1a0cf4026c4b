//! Something that one thread owns at a time and hands on with a number, such as a region of span
//! ids. No thread waits for it.
//!
//! A region of span ids is used by one thread without atomic operations, and continued by another
//! one when the first ends. The number is how far it was used: `[L6]` and `[L5]` see to it that the
//! next owner finds the last number, so no id is given out twice.
//!
//! A thread that ends without giving the lease back keeps it for ever. That costs the region and
//! nothing else: other threads take other regions.

use core::sync::atomic::Ordering::Relaxed;

use crate::protocol::order;
use crate::protocol::sync::{AtomicBool, AtomicU64, const_unless_loom};

/// Whether it is owned, and the number that the last owner left. Process-private: no lease is in
/// shared memory, and a forked child makes its own.
#[derive(Debug, Default)]
pub struct Lease {
    owned: AtomicBool,
    number: AtomicU64,
}

impl Lease {
    const_unless_loom! {
        /// Owned by no thread, with the number 0.
        pub fn new() -> Self {
            Self {
                owned: AtomicBool::new(false),
                number: AtomicU64::new(0),
            }
        }
    }

    /// Takes the lease and returns the number that the last owner left. `None`: another thread owns
    /// it. Never waits.
    #[must_use]
    pub fn take(&self) -> Option<u64> {
        // [L5] pairs with [L6]
        if self.owned.load(Relaxed) || self.owned.swap(true, order::lease_acquire()) {
            return None;
        }
        Some(self.number.load(Relaxed))
    }

    /// Gives the lease back, with a number for the next owner. Called by the owner only: a second
    /// call would hand one region to two threads.
    pub fn give_back(&self, number: u64) {
        debug_assert!(self.owned.load(Relaxed), "returned by its owner");
        self.number.store(number, Relaxed);
        self.owned.store(false, order::lease_release()); // [L6] pairs with [L5]
    }
}
