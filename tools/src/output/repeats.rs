//! Rate-limits notices, so that a remote peer cannot fill the log, nor hide other notices in it.
//!
//! Notices about a peer count by its address and the code of its refusal: what it says has no part
//! in it. The collector's own notices have a count of their own, so peers never hold them back.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use ringmark_collector::{Notice, Severity};

use super::units::counted;

/// How often the same notice is printed.
const PRINT_EVERY: Duration = Duration::from_secs(60);
/// Most notices about peers that are printed in that time.
const MOST: usize = 200;

/// The notices that were printed lately.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// When the last one about each peer was printed.
    peers: HashMap<PeerFault, Instant>,
    /// When each of the collector's own was printed.
    own: HashMap<String, Instant>,
    /// Notices left out since that was printed last.
    left_out: u64,
}

/// What peers of one address did wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PeerFault {
    /// `None`: a unix socket.
    address: Option<IpAddr>,
    code: u32,
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
        let is_recent = |at: &Instant| now.duration_since(*at) < PRINT_EVERY;
        let Some(origin) = &notice.origin else {
            self.own.retain(|_, at| is_recent(at));
            // However many there are, each is printed.
            return self.own.insert(notice.text.clone(), now).is_none();
        };
        self.peers.retain(|_, at| is_recent(at));
        let fault = PeerFault {
            address: origin.address,
            code: origin.code,
        };
        if self.peers.contains_key(&fault) || self.peers.len() >= MOST {
            return false;
        }
        self.peers.insert(fault, now).is_none()
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

    fn about(last: u8, code: u32, text: &str) -> Notice {
        let address = Some(IpAddr::from([10, 0, 0, last]));
        let shown = format!("10.0.0.{last}:5");
        Notice {
            severity: Severity::Warning,
            origin: Some(Origin {
                address,
                shown,
                code,
            }),
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
        let first = filter(about(1, 1, "no"), Duration::ZERO);
        assert_eq!(first, ["10.0.0.1:5: no"]);
        assert!(filter(about(1, 1, "no, otherwise said"), soon).is_empty());
        assert!(filter(about(1, 1, "no"), soon).is_empty());
        let other = ["2 notices like those above left out", "10.0.0.2:5: no"];
        assert_eq!(filter(about(2, 1, "no"), soon), other);
        assert_eq!(filter(about(1, 3, "why"), soon), ["10.0.0.1:5: why"]);
        let again = filter(about(1, 1, "no"), PRINT_EVERY);
        assert_eq!(again, ["10.0.0.1:5: no"]);
    }

    #[test]
    fn strangers_neither_fill_the_log_nor_hide_our_own_trouble() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        let mut printed = 0;
        for code in 0..5000 {
            printed += repeats.filter(about(1, code, "x"), now).len();
        }
        assert_eq!(printed, MOST);
        let told = repeats.filter(own("/store: write: broken"), now);
        let told: Vec<_> = told.iter().map(ToString::to_string).collect();
        let left_out = "4,800 notices like those above left out";
        assert_eq!(told, [left_out, "/store: write: broken"]);
        assert!(repeats.filter(own("/store: write: broken"), now).is_empty());
        let all = (0..5000).map(|n| repeats.filter(own(&format!("removed {n}")), now).len());
        assert!(all.sum::<usize>() >= 5000);
    }
}
