//! Rate-limits repeated notices, so that a remote peer cannot fill the log.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::units::counted;

/// How often the same notice is printed.
const PRINT_EVERY: Duration = Duration::from_secs(60);
/// Most notices that are printed in that time.
const MOST: usize = 1000;

/// The notices that were printed lately.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// When each was printed, by its text without a port.
    printed: HashMap<String, Instant>,
    /// Notices left out since that was printed last.
    left_out: u64,
}

impl Repeats {
    /// The lines to print for a notice at the time `now`: none if it was printed lately, else how
    /// many were left out before, then the notice.
    pub(crate) fn filter(&mut self, notice: String, now: Instant) -> Vec<String> {
        self.printed
            .retain(|_, at| now.duration_since(*at) < PRINT_EVERY);
        let what = without_port(&notice);
        if self.printed.contains_key(&what) || self.printed.len() >= MOST {
            self.left_out += 1;
            return Vec::new();
        }
        let _ = self.printed.insert(what, now);
        self.rest().into_iter().chain([notice]).collect()
    }

    /// The line that says how many notices were left out since it was printed last.
    pub(crate) fn rest(&mut self) -> Option<String> {
        let left_out = std::mem::take(&mut self.left_out);
        let text = || format!("{} like those above left out", counted(left_out, "notice"));
        (left_out > 0).then(text)
    }
}

/// The notice without the port of its peer: each connection has another one.
fn without_port(notice: &str) -> String {
    match notice.split_once(": ") {
        Some((from, what)) => match from.parse::<SocketAddr>() {
            Ok(address) => format!("{}: {what}", address.ip()),
            Err(_) => notice.to_owned(),
        },
        None => notice.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_repeated_is_counted() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        let mut filter = |text: &str, after| repeats.filter(text.to_owned(), now + after);
        let soon = Duration::from_secs(1);
        assert_eq!(filter("10.0.0.1:5: no", Duration::ZERO), ["10.0.0.1:5: no"]);
        assert!(filter("10.0.0.1:6: no", soon).is_empty());
        assert!(filter("10.0.0.1:7: no", soon).is_empty());
        let told = ["2 notices like those above left out", "10.0.0.2:7: no"];
        assert_eq!(filter("10.0.0.2:7: no", soon), told);
        assert_eq!(filter("10.0.0.1:8: why", soon), ["10.0.0.1:8: why"]);
        assert_eq!(filter("10.0.0.1:9: no", PRINT_EVERY), ["10.0.0.1:9: no"]);
    }

    #[test]
    fn strangers_do_not_make_it_grow() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        let printed = (0..5000).map(|n| repeats.filter(format!("stranger {n}"), now).len());
        assert_eq!(printed.sum::<usize>(), MOST);
        assert_eq!(
            repeats.rest().as_deref(),
            Some("4,000 notices like those above left out")
        );
    }
}
