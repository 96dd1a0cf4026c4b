//! Something that one thread owns at a time and hands on with a number, such as a region of span
//! ids. No thread waits for it.

use core::sync::atomic::Ordering::Relaxed;

use crate::protocol::order;
use crate::protocol::sync::{AtomicBool, AtomicU64, const_unless_loom};

/// Who owns it, and the number that the last owner left.
#[derive(Debug, Default)]
pub struct Lease {
    owned: AtomicBool,
    number: AtomicU64,
}

impl Lease {
    const_unless_loom! {
        /// Nobody's, with the number 0.
        pub fn new() -> Self {
            Self {
                owned: AtomicBool::new(false),
                number: AtomicU64::new(0),
            }
        }
    }

    /// Takes it: the number that the last owner left. `None`: somebody owns it.
    #[must_use]
    pub fn take(&self) -> Option<u64> {
        // [L5] pairs with [L6]
        if self.owned.load(Relaxed) || self.owned.swap(true, order::lease_acquire()) {
            return None;
        }
        Some(self.number.load(Relaxed))
    }

    /// Gives it back, with a number for the next owner. Only its owner may.
    pub fn give_back(&self, number: u64) {
        self.number.store(number, Relaxed);
        self.owned.store(false, order::lease_release()); // [L6] pairs with [L5]
    }
}
