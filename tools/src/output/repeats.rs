//! What many say again and again, said now and then: a log that a stranger cannot fill.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::units::counted;

/// How often the same thing is said.
const SAY_EVERY: Duration = Duration::from_secs(60);
/// Most things that are said in that time.
const MOST: usize = 1000;

/// What was said lately.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    said: HashMap<String, Instant>,
    left_out: u64,
}

impl Repeats {
    /// What to say when this is to be said at that time: it, if it was not said lately, behind how
    /// much was left out before.
    pub(crate) fn say(&mut self, notice: String, now: Instant) -> Vec<String> {
        self.said
            .retain(|_, at| now.duration_since(*at) < SAY_EVERY);
        let what = without_port(&notice);
        if self.said.contains_key(&what) || self.said.len() >= MOST {
            self.left_out += 1;
            return Vec::new();
        }
        let _ = self.said.insert(what, now);
        self.rest().into_iter().chain([notice]).collect()
    }

    /// How much was left out since that was said last.
    pub(crate) fn rest(&mut self) -> Option<String> {
        let left_out = std::mem::take(&mut self.left_out);
        let text = || format!("{} like those above left out", counted(left_out, "notice"));
        (left_out > 0).then(text)
    }
}

/// Each connection of a peer has another port.
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
    fn what_is_said_again_is_counted() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        let mut say = |text: &str, after| repeats.say(text.to_owned(), now + after);
        let soon = Duration::from_secs(1);
        assert_eq!(say("10.0.0.1:5: no", Duration::ZERO), ["10.0.0.1:5: no"]);
        assert!(say("10.0.0.1:6: no", soon).is_empty());
        assert!(say("10.0.0.1:7: no", soon).is_empty());
        let told = ["2 notices like those above left out", "10.0.0.2:7: no"];
        assert_eq!(say("10.0.0.2:7: no", soon), told);
        assert_eq!(say("10.0.0.1:8: why", soon), ["10.0.0.1:8: why"]);
        assert_eq!(say("10.0.0.1:9: no", SAY_EVERY), ["10.0.0.1:9: no"]);
    }

    #[test]
    fn strangers_do_not_make_it_grow() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        let said = (0..5000).map(|n| repeats.say(format!("stranger {n}"), now).len());
        assert_eq!(said.sum::<usize>(), MOST);
        assert_eq!(
            repeats.rest().as_deref(),
            Some("4,000 notices like those above left out")
        );
    }
}
