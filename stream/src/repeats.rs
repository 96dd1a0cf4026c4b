//! Rate-limits notices, so that a remote peer cannot fill the log, nor hide other notices in it.
//!
//! Refusals count by the address of the peer and the reason: what the peer says has no part in it.
//! Hosts that come and go count by name, apart from them. The collector's own notices have a count
//! of their own, so peers never hold them back.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use ringmark_collector::{Doing, Notice, Reason, Severity};

use ringmark_console::units::counted;

/// How often the same notice is printed.
const PRINT_EVERY: Duration = Duration::from_secs(60);
/// Most refusals that are printed in that time, and most notices about hosts that come and go.
const MOST: usize = 200;

/// The notices that were printed lately.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// Refusals, by address and reason. The address of a unix socket is `None`.
    refusals: Lately<(Option<IpAddr>, Reason)>,
    /// Hosts that came or went.
    visits: Lately<(Option<String>, Doing)>,
    /// The collector's own.
    own: Lately<String>,
    /// Notices left out since that was printed last.
    left_out: u64,
}

/// When each notice of one kind was printed last.
#[derive(Debug)]
struct Lately<K>(HashMap<K, Instant>);

impl<K> Default for Lately<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Lately<K> {
    /// Whether to print a notice now, which then counts as printed. At most `most` others were
    /// printed lately.
    fn is_due(&mut self, key: K, now: Instant, most: usize) -> bool {
        self.0.retain(|_, at| now.duration_since(*at) < PRINT_EVERY);
        if self.0.contains_key(&key) || self.0.len() >= most {
            return false;
        }
        self.0.insert(key, now).is_none()
    }
}

impl Repeats {
    /// What to print for a notice at the time `now`: nothing if it was printed lately, else how many
    /// were left out before, then the notice.
    pub(crate) fn filter(&mut self, notice: Notice, now: Instant) -> Vec<Notice> {
        if !self.is_due(&notice, now) {
            self.left_out += 1;
            return Vec::new();
        }
        self.rest().into_iter().chain([notice]).collect()
    }

    /// Whether to print a notice now, which then counts as printed.
    fn is_due(&mut self, notice: &Notice, now: Instant) -> bool {
        let Some(origin) = &notice.origin else {
            // However many there are, each is printed.
            return self.own.is_due(notice.text.clone(), now, usize::MAX);
        };
        match origin.doing {
            Doing::Refused(reason) => {
                let key = (origin.address, reason);
                self.refusals.is_due(key, now, MOST)
            }
            doing => {
                let key = (origin.host.clone(), doing);
                self.visits.is_due(key, now, MOST)
            }
        }
    }

    /// The notice of how many were left out since it was printed last.
    pub(crate) fn rest(&mut self) -> Option<Notice> {
        let left_out = std::mem::take(&mut self.left_out);
        (left_out > 0).then(|| Notice {
            severity: Severity::Info,
            origin: None,
            text: format!("{} like those above left out", counted(left_out, "notice")),
        })
    }
}

#[cfg(test)]
mod tests {
    use ringmark_collector::Origin;

    use super::*;

    fn about(last: u16, doing: Doing, text: &str) -> Notice {
        let [high, low] = last.to_be_bytes();
        let severity = Severity::Warning;
        let origin = Origin {
            address: Some(IpAddr::from([10, 0, high, low])),
            shown: format!("10.0.{high}.{low}:5"),
            doing,
            host: Some(format!("web-{last}")),
            session: None,
            sessions: 0,
            bytes: 0,
        };
        Notice {
            severity,
            origin: Some(origin),
            text: text.to_owned(),
        }
    }

    fn own(text: &str) -> Notice {
        Notice {
            severity: Severity::Error,
            origin: None,
            text: text.to_owned(),
        }
    }

    #[test]
    fn what_is_repeated_is_counted() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        let mut filter = |notice: Notice, after| {
            let printed = repeats.filter(notice, now + after).into_iter();
            printed.map(|notice| notice.to_string()).collect::<Vec<_>>()
        };
        let soon = Duration::from_secs(1);
        let first = filter(
            about(1, Doing::Refused(Reason::Protocol), "no"),
            Duration::ZERO,
        );
        assert_eq!(first, ["10.0.0.1:5: no"]);
        assert!(
            filter(
                about(1, Doing::Refused(Reason::Protocol), "no, otherwise said"),
                soon
            )
            .is_empty()
        );
        assert!(filter(about(1, Doing::Refused(Reason::Protocol), "no"), soon).is_empty());
        let other = ["2 notices like those above left out", "10.0.0.2:5: no"];
        assert_eq!(
            filter(about(2, Doing::Refused(Reason::Protocol), "no"), soon),
            other
        );
        assert_eq!(
            filter(about(1, Doing::Refused(Reason::NoToken), "why"), soon),
            ["10.0.0.1:5: why"]
        );
        let again = filter(
            about(1, Doing::Refused(Reason::Protocol), "no"),
            PRINT_EVERY,
        );
        assert_eq!(again, ["10.0.0.1:5: no"]);
    }

    #[test]
    fn strangers_neither_fill_the_log_nor_hide_our_own_trouble() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        let mut printed = 0;
        for last in 0..5000 {
            let refused = about(last, Doing::Refused(Reason::Protocol), "x");
            printed += repeats.filter(refused, now).len();
        }
        assert_eq!(printed, MOST);
        let told = repeats.filter(own("/store: write: broken"), now);
        let told: Vec<_> = told.iter().map(ToString::to_string).collect();
        let left_out = "4,800 notices like those above left out";
        assert_eq!(told, [left_out, "/store: write: broken"]);
        assert!(repeats.filter(own("/store: write: broken"), now).is_empty());
        let came = |last| about(last, Doing::Came, "connected");
        assert!(!repeats.filter(came(1), now).is_empty());
        assert!(repeats.filter(came(1), now).is_empty());
        assert!(
            !repeats
                .filter(about(1, Doing::Went, "gone"), now)
                .is_empty()
        );
        let all = (0..5000).map(|n| repeats.filter(own(&format!("removed {n}")), now).len());
        assert!(all.sum::<usize>() >= 5000);
    }
}
