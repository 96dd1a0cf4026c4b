//! The status of a session's stream, written once a second to a file next to its ring file.
//!
//! `ringmark list` reads it: it has no other way to the streamer.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::session::Session;
#[cfg(feature = "stream")]
use crate::whole_file;

/// Most bytes of the file that are read.
const BYTES_MAX: usize = 4096;
/// Age after which a status no longer counts: its streamer is gone.
const STALE: Duration = Duration::from_secs(5);

/// What is to be said about policies to people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyState {
    /// Serial of the policy that holds; `None`: none does.
    pub serial: Option<u64>,
    /// When it ends, in seconds since 1970.
    pub until_s: Option<u64>,
    /// Why the last one that came was refused.
    pub refused: Option<String>,
}

/// The status of a session's stream, as its streamer last wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamStatus {
    /// Address of the collector.
    pub to: String,
    /// Whether there is a connection.
    pub connected: bool,
    /// Bytes that are in flight: sent, and not known to be durable.
    pub in_flight: u64,
    /// Bytes that wait on disk.
    pub spilled: u64,
    /// How long the oldest page that is not durable has waited, in ms.
    pub lag_ms: u64,
    /// Events that the program lost since the session started.
    pub lost: u64,
    /// Events that were overwritten before they could be sent.
    pub overwritten: u64,
    /// Events in pages that were left out, because the budget of its service did not allow them.
    pub over_budget: u64,
    /// The policy that holds, and what was refused.
    pub policy: PolicyState,
}

impl StreamStatus {
    /// The status of a session. `None`: it is not streamed.
    #[must_use]
    pub fn of(session: &Session) -> Option<Self> {
        let path = place(session)?;
        let about = fs::symlink_metadata(&path).ok()?;
        let age = about.modified().ok()?.elapsed().unwrap_or_default();
        if !about.is_file() || age > STALE {
            return None;
        }
        let mut bytes = fs::read(&path).ok()?;
        bytes.truncate(BYTES_MAX);
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    fn parse(text: &str) -> Option<Self> {
        let value = |name| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let number = |name| value(name)?.parse::<u64>().ok();
        Some(Self {
            to: value("to")?.to_owned(),
            connected: number("connected")? != 0,
            in_flight: number("in_flight")?,
            spilled: number("spilled")?,
            lag_ms: number("lag_ms")?,
            lost: number("lost")?,
            overwritten: number("overwritten")?,
            over_budget: number("over_budget")?,
            policy: PolicyState {
                serial: number("policy_serial"),
                until_s: number("policy_until"),
                refused: value("policy_refused").map(str::to_owned),
            },
        })
    }

    #[cfg(any(feature = "stream", test))]
    fn text(&self) -> String {
        let connected = u8::from(self.connected);
        let mut text = format!(
            "to {}\nconnected {connected}\nin_flight {}\nspilled {}\nlag_ms {}\nlost {}\noverwritten {}\n\
             over_budget {}\n",
            self.to,
            self.in_flight,
            self.spilled,
            self.lag_ms,
            self.lost,
            self.overwritten,
            self.over_budget
        );
        let PolicyState {
            serial,
            until_s,
            refused,
        } = &self.policy;
        for (name, number) in [("policy_serial", serial), ("policy_until", until_s)] {
            text.extend(number.map(|number| format!("{name} {number}\n")));
        }
        let refused = refused.as_ref().map(|why| why.replace('\n', " "));
        text.extend(refused.map(|why| format!("policy_refused {why}\n")));
        text
    }

    /// Writes the status.
    #[cfg(feature = "stream")]
    pub(crate) fn write(&self, session: &Session) -> std::io::Result<()> {
        let Some(path) = place(session) else {
            return Ok(());
        };
        whole_file::replace(&path, "stream.new", self.text())
    }
}

/// Removes the status of a session that is not streamed any more.
#[cfg(feature = "stream")]
pub(crate) fn remove(session: &Session) {
    if let Some(path) = place(session) {
        // A file that cannot be removed is stale soon; a session that starts later removes it.
        let _ = fs::remove_file(path);
    }
}

/// The path of the status file. `None`: the ring file has no name of its own.
fn place(session: &Session) -> Option<PathBuf> {
    let path: &Path = session.path();
    let is_named = path
        .extension()
        .is_some_and(|extension| extension == "ring");
    is_named.then(|| path.with_extension("stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read() {
        let status = StreamStatus {
            to: "tcp://a b:7".to_owned(),
            connected: true,
            in_flight: 1,
            spilled: 2,
            lag_ms: 3,
            lost: 4,
            overwritten: 5,
            over_budget: 6,
            policy: PolicyState {
                serial: Some(7),
                until_s: Some(8),
                refused: Some("no".to_owned()),
            },
        };
        assert_eq!(StreamStatus::parse(&status.text()), Some(status));
        for text in ["", "to\n", "to x\nconnected 1\nin_flight -1\n"] {
            assert_eq!(StreamStatus::parse(text), None, "{text}");
        }
    }
}
