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
        })
    }

    #[cfg(any(feature = "stream", test))]
    fn text(&self) -> String {
        let connected = u8::from(self.connected);
        format!(
            "to {}\nconnected {connected}\nin_flight {}\nspilled {}\nlag_ms {}\nlost {}\noverwritten {}\n",
            self.to, self.in_flight, self.spilled, self.lag_ms, self.lost, self.overwritten
        )
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
        };
        assert_eq!(StreamStatus::parse(&status.text()), Some(status));
        for text in ["", "to\n", "to x\nconnected 1\nin_flight -1\n"] {
            assert_eq!(StreamStatus::parse(text), None, "{text}");
        }
    }
}
