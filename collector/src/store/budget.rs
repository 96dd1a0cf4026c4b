//! The memory that remembered sessions may take: all together, and those of one host.
//!
//! A hostile streamer can announce any number of sessions. Each session pays for what it keeps in
//! memory, and what is beyond the limits is refused before it is allocated.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

use super::error::StoreError;
use crate::figures::Figures;
use crate::mutex::lock;

/// Bytes that a session takes apart from what it sent: its entries in maps, its open segment.
const SESSION_BYTES: u64 = 1024;
/// Bytes that a slot takes.
pub(super) const SLOT_BYTES: u64 = 64;
/// The sessions of one host may take one part in this many.
const HOST_PARTS: u64 = 8;

/// The limits for the sessions of a store; the gauge in the figures counts what all of them take.
#[derive(Debug)]
pub(super) struct Budget {
    most: u64,
    figures: Arc<Figures>,
    by_host: Mutex<HashMap<String, Weak<AtomicU64>>>,
}

impl Budget {
    /// A budget of `most` bytes.
    pub(super) fn new(most: u64, figures: Arc<Figures>) -> Arc<Self> {
        Arc::new(Self {
            most,
            figures,
            by_host: Mutex::default(),
        })
    }

    /// What the sessions of one host may take.
    const fn most_of_host(&self) -> u64 {
        self.most / HOST_PARTS
    }

    /// Counts what the sessions of a host take.
    fn of(&self, host: &str) -> Arc<AtomicU64> {
        let mut by_host = lock(&self.by_host);
        if let Some(known) = by_host.get(host).and_then(Weak::upgrade) {
            return known;
        }
        by_host.retain(|_, taken| taken.strong_count() > 0);
        let new = Arc::new(AtomicU64::new(0));
        let _ = by_host.insert(host.to_owned(), Arc::downgrade(&new));
        new
    }
}

/// What one session takes; given back when dropped.
#[derive(Debug)]
pub(super) struct Charge {
    budget: Arc<Budget>,
    host: String,
    /// What all sessions of its host take.
    of_host: Arc<AtomicU64>,
    bytes: u64,
}

impl Charge {
    /// Charges a new session of a host that keeps `bytes` bytes of what it sent.
    ///
    /// # Errors
    /// All sessions together, or those of the host, would take too much.
    pub(super) fn new(budget: &Arc<Budget>, host: &str, bytes: usize) -> Result<Self, StoreError> {
        let mut charge = Self {
            budget: budget.clone(),
            host: host.to_owned(),
            of_host: budget.of(host),
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
        let all = all.fetch_add(bytes, Relaxed) + bytes;
        let of_host = self.of_host.fetch_add(bytes, Relaxed) + bytes;
        self.bytes += bytes;
        let error = match (self.budget.most, self.budget.most_of_host()) {
            (_, most) if of_host > most => StoreError::HostFull {
                host: self.host.clone(),
                most,
            },
            (most, _) if all > most => StoreError::Full { most },
            _ => return Ok(()),
        };
        self.shrink(bytes);
        Err(error)
    }

    /// Gives back all beyond this.
    pub(super) fn shrink_to(&mut self, bytes: u64) {
        self.shrink(self.bytes.saturating_sub(bytes));
    }

    fn shrink(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.of_host.fetch_sub(bytes, Relaxed);
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
        let hosts = ["a", "b", "c", "d", "e"];
        let charge = |host: &&str| Charge::new(&budget, host, 200).unwrap();
        let mut charges: Vec<_> = hosts.iter().map(charge).collect();
        let before = taken();
        assert_eq!(before, 5 * (SESSION_BYTES + 200));
        assert!(charges[0].grow(10 * SESSION_BYTES).is_err());
        assert!(Charge::new(&budget, "f", 10 * SESSION_BYTES as usize).is_err());
        assert_eq!(taken(), before, "what is refused is not taken");
        assert!(charges[0].grow(50).is_ok() && charges[0].bytes() == SESSION_BYTES + 250);
        charges[0].shrink_to(SESSION_BYTES + 200);
        assert_eq!(taken(), before);
        drop(charges);
        assert_eq!(taken(), 0);
    }

    #[test]
    fn one_host_takes_nothing_from_the_others() {
        let figures = Arc::new(Figures::default());
        let budget = Budget::new(80 * SESSION_BYTES, figures.clone());
        let of_evil: Vec<_> = (0..100)
            .map_while(|_| Charge::new(&budget, "evil", 0).ok())
            .collect();
        assert_eq!(of_evil.len(), 10, "an eighth");
        let error = Charge::new(&budget, "evil", 0).unwrap_err();
        assert!(error.to_string().starts_with("the sessions of host evil "));
        assert!(Charge::new(&budget, "web-1", 9 * SESSION_BYTES as usize).is_ok());
        drop(of_evil);
        assert!(Charge::new(&budget, "evil", 0).is_ok());
    }
}
