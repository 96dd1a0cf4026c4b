//! Credit is memory: what streamers may send and have not sent, and what waits for its upload, are
//! together no more than the collector has room for.
//!
//! One half is for the least that a connection needs, the other for those that send much. So idle
//! connections cannot take it all, and a connection for which there is nothing waits with a credit of 0.

use std::sync::Mutex;

use tokio::sync::watch;

use crate::mutex::lock;

/// The memory of all connections.
#[derive(Debug)]
pub(crate) struct Credits {
    most: u64,
    /// What is given and not used, and what waits.
    taken: Mutex<u64>,
    /// Changes whenever some is free again.
    freed: watch::Sender<()>,
}

/// How much a connection asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Without this it cannot send anything.
    pub(crate) least: u64,
    /// What it can use.
    pub(crate) most: u64,
}

impl Credits {
    /// `most` bytes.
    pub(crate) fn new(most: u64) -> Self {
        Self {
            most,
            taken: Mutex::new(0),
            freed: watch::Sender::new(()),
        }
    }

    /// What is given and not used, and what waits.
    #[cfg(test)]
    fn taken(&self) -> u64 {
        *lock(&self.taken)
    }

    /// Takes what can be given to a connection that has `unused` left. 0: it has enough, or there is nothing.
    pub(crate) fn take(&self, wanted: Wanted, unused: u64) -> u64 {
        let mut taken = lock(&self.taken);
        let free = self.most.saturating_sub(*taken);
        let is_plenty = free > self.most / 2;
        let up_to = if is_plenty { wanted.most } else { wanted.least };
        // Not for a little more: each time costs a message.
        if unused >= up_to / 2 && unused >= wanted.least {
            return 0;
        }
        let more = up_to.saturating_sub(unused);
        match more <= free {
            true => *taken += more,
            false => return 0,
        }
        more
    }

    /// Counts bytes that were sent on credit and wait now.
    pub(super) fn hold(&self, bytes: u64) {
        *lock(&self.taken) += bytes;
    }

    /// Gives back.
    pub(crate) fn give(&self, bytes: u64) {
        let mut taken = lock(&self.taken);
        *taken = taken.saturating_sub(bytes);
        drop(taken);
        self.freed.send_replace(());
    }

    /// Follows whether some is free again.
    pub(crate) fn follow(&self) -> watch::Receiver<()> {
        self.freed.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Wanted = Wanted {
        least: 10,
        most: 40,
    };

    #[test]
    fn no_more_is_given_than_there_is_and_the_least_is_kept_for_many() {
        let credits = Credits::new(100);
        assert_eq!(credits.take(WANTED, 0), 40);
        assert_eq!(credits.take(WANTED, 0), 40, "more than a half was free");
        assert_eq!(credits.take(WANTED, 0), 10, "only the least");
        assert_eq!(credits.take(WANTED, 0), 10);
        assert_eq!((credits.take(WANTED, 0), credits.taken()), (0, 100));
        credits.give(9);
        assert_eq!(credits.take(WANTED, 0), 0, "not a part of the least");
        assert_eq!(credits.take(WANTED, 1), 9);
    }

    #[test]
    fn one_that_has_enough_gets_nothing() {
        let credits = Credits::new(1000);
        assert_eq!((credits.take(WANTED, 20), credits.take(WANTED, 40)), (0, 0));
        assert_eq!(credits.take(WANTED, 19), 21);
        // One whose least has grown gets it.
        let wanted = Wanted {
            least: 35,
            ..WANTED
        };
        assert_eq!(credits.take(wanted, 30), 10);
        credits.hold(5);
        assert_eq!(credits.taken(), 36);
    }
}
