//! The end of a stream on request: everything that is there now is sent and made durable.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use ringmark_format::stream::kind;

use super::Streamer;
use crate::error::ReaderError;
use crate::interval::SCAN_EVERY;
use crate::stream::streamed_session::StreamedSession;

impl Streamer {
    /// Sends what is there now, open pages included, and waits until it is durable.
    ///
    /// # Errors
    /// It is not durable in time; what is not was not released.
    pub(super) fn finish(&mut self) -> Result<(), ReaderError> {
        let begun = Instant::now();
        self.leaving = true;
        let mut said_bye = false;
        while !(self.sessions.is_empty() && said_bye) {
            let ended = self.leave().and_then(|()| {
                if self.sessions.is_empty()
                    && let Some(connection) = &mut self.link.connection
                {
                    said_bye = true;
                    connection.say(kind::BYE)?;
                }
                Ok(())
            });
            if let Err(error) = ended {
                self.hang_up(&error);
            }
            if self.sessions.is_empty() && self.link.connection.is_none() {
                return Ok(());
            }
            let within = self.link.end_within();
            if begun.elapsed() > within {
                return Err(self.not_durable(within));
            }
            match &self.link.connection {
                Some(connection) => drop(connection.wait(SCAN_EVERY)),
                None => thread::sleep(SCAN_EVERY),
            }
        }
        Ok(())
    }

    /// One round towards the end.
    fn leave(&mut self) -> io::Result<()> {
        self.connect();
        if self.link.connection.is_none() {
            return Ok(());
        }
        self.hear()?;
        let mut index = 0;
        while index < self.sessions.len() {
            let passed = self.with(index, StreamedSession::leave)?;
            self.done.pages += passed.map_or(0, |passed| passed.pages);
            index += usize::from(passed.is_some());
        }
        self.hear()
    }

    fn not_durable(&self, within: Duration) -> ReaderError {
        let waits = self.options.spill.as_ref().map(|spill| {
            let (bytes, directory) = (self.figures().spilled, spill.directory.display());
            format!("; {bytes} bytes wait in {directory} for the next stream")
        });
        let text = format!(
            "{} sessions are not durable after {} s; what is not was not released{}",
            self.sessions.len(),
            within.as_secs(),
            waits.unwrap_or_default()
        );
        ReaderError::Collector {
            address: self.options.to.to_string(),
            source: io::Error::new(io::ErrorKind::TimedOut, text),
        }
    }
}
