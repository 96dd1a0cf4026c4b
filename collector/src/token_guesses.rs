//! How often addresses showed a token that is not ours. One that did too often is not listened to
//! for a while: guessing takes time, whatever the token.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::mutex::lock;
use crate::unproved::network;

/// Most wrong tokens of one address in [`WITHIN`]; then it is not listened to until that is over.
pub(crate) const GUESSES_MAX: u32 = 10;
/// The time in which they are counted.
const WITHIN: Duration = Duration::from_secs(60);
/// Most addresses that are remembered; the one that began first makes way.
const ADDRESSES_MAX: usize = 4096;

/// Wrong tokens of the last minute.
#[derive(Debug, Default)]
pub(crate) struct TokenGuesses(Mutex<HashMap<IpAddr, Guesses>>);

/// Wrong tokens of one address.
#[derive(Debug, Clone, Copy)]
struct Guesses {
    begun: Instant,
    count: u32,
}

impl TokenGuesses {
    /// Whether an address showed too many wrong tokens. `None`, a unix socket, never did.
    pub(crate) fn are_too_many(&self, address: Option<IpAddr>) -> bool {
        self.are_too_many_at(address, Instant::now())
    }

    fn are_too_many_at(&self, address: Option<IpAddr>, now: Instant) -> bool {
        let found = address.and_then(|address| lock(&self.0).get(&network(address)).copied());
        let recent = found.filter(|guesses| now.duration_since(guesses.begun) < WITHIN);
        recent.is_some_and(|guesses| guesses.count >= GUESSES_MAX)
    }

    /// Counts a wrong token of an address.
    pub(crate) fn count(&self, address: Option<IpAddr>) {
        self.count_at(address, Instant::now());
    }

    fn count_at(&self, address: Option<IpAddr>, now: Instant) {
        let Some(address) = address.map(network) else {
            return;
        };
        let mut all = lock(&self.0);
        if all.len() >= ADDRESSES_MAX && !all.contains_key(&address) {
            let oldest = all.iter().min_by_key(|(_, guesses)| guesses.begun);
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                let _ = all.remove(&oldest);
            }
        }
        let none = Guesses {
            begun: now,
            count: 0,
        };
        let guesses = all.entry(address).or_insert(none);
        if now.duration_since(guesses.begun) >= WITHIN {
            *guesses = none;
        }
        guesses.count = guesses.count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u16) -> Option<IpAddr> {
        let [high, low] = last.to_be_bytes();
        Some(IpAddr::from([10, 0, high, low]))
    }

    #[test]
    fn an_address_that_guesses_waits_a_minute() {
        let (all, now) = (TokenGuesses::default(), Instant::now());
        for _ in 0..GUESSES_MAX {
            assert!(!all.are_too_many_at(address(1), now));
            all.count_at(address(1), now);
            all.count_at(None, now);
        }
        assert!(all.are_too_many_at(address(1), now));
        assert!(!all.are_too_many_at(address(2), now));
        assert!(!all.are_too_many_at(None, now), "a unix socket");
        assert!(!all.are_too_many_at(address(1), now + WITHIN));
        all.count_at(address(1), now + WITHIN);
        assert!(!all.are_too_many_at(address(1), now + WITHIN));
    }

    #[test]
    fn addresses_cannot_take_all_memory() {
        let (all, now) = (TokenGuesses::default(), Instant::now());
        for last in 0..ADDRESSES_MAX as u16 + 9 {
            all.count_at(address(last), now);
        }
        assert_eq!(lock(&all.0).len(), ADDRESSES_MAX);
    }
}
