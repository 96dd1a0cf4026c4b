//! The memory that all remembered sessions may take together.
//!
//! A hostile streamer can announce any number of sessions. Each session pays for what it keeps in
//! memory, and what is beyond the limit is refused before it is allocated.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::error::StoreError;
use crate::figures::Figures;

/// Bytes that a session takes apart from what it sent: its entries in maps, its open segment.
const SESSION_BYTES: u64 = 1024;
/// Bytes that a slot takes.
pub(super) const SLOT_BYTES: u64 = 64;

/// The limit for all sessions of a store; the gauge in the figures counts what they take.
#[derive(Debug)]
pub(super) struct Budget {
    most: u64,
    figures: Arc<Figures>,
}

impl Budget {
    /// A budget of `most` bytes.
    pub(super) fn new(most: u64, figures: Arc<Figures>) -> Arc<Self> {
        Arc::new(Self { most, figures })
    }
}

/// What one session takes; given back when dropped.
#[derive(Debug)]
pub(super) struct Charge {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Charge {
    /// Charges a new session that keeps `bytes` bytes of what it sent.
    ///
    /// # Errors
    /// All sessions together would take too much.
    pub(super) fn new(budget: &Arc<Budget>, bytes: usize) -> Result<Self, StoreError> {
        let mut charge = Self {
            budget: budget.clone(),
            bytes: 0,
        };
        charge.grow(SESSION_BYTES + bytes as u64)?;
        Ok(charge)
    }

    /// Bytes that the session takes.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Charges `bytes` more.
    ///
    /// # Errors
    /// As [`Charge::new`].
    pub(super) fn grow(&mut self, bytes: u64) -> Result<(), StoreError> {
        let all = &self.budget.figures.session_bytes;
        let before = all.fetch_add(bytes, Relaxed);
        self.bytes += bytes;
        if before + bytes > self.budget.most {
            self.shrink(bytes);
            return Err(StoreError::Full {
                most: self.budget.most,
            });
        }
        Ok(())
    }

    /// Gives back all beyond this.
    pub(super) fn shrink_to(&mut self, bytes: u64) {
        self.shrink(self.bytes.saturating_sub(bytes));
    }

    fn shrink(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.budget.figures.session_bytes.fetch_sub(bytes, Relaxed);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sessions_take_is_bounded_and_given_back() {
        let figures = Arc::new(Figures::default());
        let budget = Budget::new(10 * SESSION_BYTES, figures.clone());
        let taken = || figures.session_bytes.load(Relaxed);
        let mut charges: Vec<_> = (0..5).map(|_| Charge::new(&budget, 500).unwrap()).collect();
        let before = taken();
        assert_eq!(before, 5 * (SESSION_BYTES + 500));
        assert!(charges[0].grow(10 * SESSION_BYTES).is_err());
        assert!(Charge::new(&budget, 10 * SESSION_BYTES as usize).is_err());
        assert_eq!(taken(), before, "what is refused is not taken");
        assert!(charges[0].grow(100).is_ok() && charges[0].bytes() == SESSION_BYTES + 600);
        drop(charges);
        assert_eq!(taken(), 0);
    }
}
