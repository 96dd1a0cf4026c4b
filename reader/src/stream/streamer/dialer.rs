//! Connects to the collector, again and again, without ever blocking the streamer.
//!
//! A collector may take seconds to answer, or never answer. So a thread makes the connection, and
//! the streamer looks after the rings until the thread is done. The wait between two attempts
//! follows the `backoff`, with some noise: streamers that were cut off together come back one by
//! one.

use std::io;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::backoff::{Backoff, Ended, jittered};
use crate::stream::address::Address;
use crate::stream::connection::{Connection, Introduction, Refusal};
use crate::stream::credentials::Credentials;
use crate::stream::expiry::{Expiry, ExpiryWarnings};
use crate::stream::wire::Wire;

/// How often the same reason for failing is reported.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// How often the certificate is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// How the collector is reached.
pub(super) struct Dialer {
    to: Address,
    introduction: Introduction,
    credentials: Option<Credentials>,
    /// An attempt under way.
    attempt: Option<Receiver<io::Result<Connection>>>,
    backoff: Backoff,
    /// When the next attempt may begin.
    next_at: Instant,
    reported: Option<Report>,
    /// Why certificates could not be read again.
    unread: Option<String>,
    warnings: ExpiryWarnings,
    /// When the certificate is read again also while there is a connection.
    look_at: Instant,
}

/// Why the last attempts failed, and when the user was told.
struct Report {
    reason: String,
    at: Instant,
}

impl Dialer {
    /// A dialer whose first attempt may begin at once.
    pub(super) fn new(
        to: Address,
        introduction: Introduction,
        credentials: Option<Credentials>,
        first_wait: Duration,
    ) -> Self {
        Self {
            to,
            introduction,
            credentials,
            attempt: None,
            backoff: Backoff::new(first_wait),
            next_at: Instant::now(),
            reported: None,
            unread: None,
            warnings: ExpiryWarnings::default(),
            look_at: Instant::now(),
        }
    }

    /// Begins an attempt if it is time, or looks how the present one goes. Returns a connection
    /// once it is greeted.
    pub(super) fn poll(&mut self, notices: &mut Vec<String>) -> Option<Connection> {
        let Some(attempt) = &self.attempt else {
            if Instant::now() >= self.next_at {
                self.begin(notices);
            }
            return None;
        };
        let opened = match attempt.try_recv() {
            Ok(opened) => opened,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(io::ErrorKind::NotConnected.into()),
        };
        self.attempt = None;
        match opened {
            Ok(connection) => {
                // After trouble that was reported it must take pages first.
                if self.reported.is_none() {
                    notices.push(self.connected());
                }
                Some(connection)
            }
            Err(error) => {
                self.try_later(&error, notices);
                None
            }
        }
    }

    fn connected(&self) -> String {
        format!("{}: connected", self.to)
    }

    /// Takes note that the connection works: the collector took pages for good, or greeted long
    /// ago. It has `lasted` so long.
    pub(super) fn progressed(&mut self, lasted: Duration, notices: &mut Vec<String>) {
        self.backoff.progressed(lasted);
        if self.reported.take().is_some() {
            notices.push(self.connected());
        }
    }

    /// Reads certificates again, since they may have been renewed. Those that cannot be read now, as
    /// in the midst of a change, stay as they were.
    fn renew(&mut self, notices: &mut Vec<String>) {
        match self.credentials.as_ref().map(Credentials::read_again) {
            None => {}
            Some(Ok(credentials)) => {
                self.credentials = Some(credentials);
                self.unread = None;
            }
            Some(Err(error)) => {
                let text = format!("{error}; the certificate read before is used");
                if self.unread.as_ref() != Some(&text) {
                    notices.push(text.clone());
                    self.unread = Some(text);
                }
            }
        }
    }

    /// When our certificate ends.
    pub(super) fn certificate_expiry(&self) -> Option<Expiry> {
        self.credentials.as_ref()?.expiry()
    }

    /// Looks now and then whether the certificate was renewed, and warns of its end.
    pub(super) fn look_at_certificate(&mut self, notices: &mut Vec<String>) {
        if self.credentials.is_none() || Instant::now() < self.look_at {
            return;
        }
        self.look_at = Instant::now() + LOOK_EVERY;
        self.renew(notices);
        let expiry = self.credentials.as_ref().and_then(Credentials::expiry);
        notices.extend(self.warnings.due(expiry));
    }

    fn begin(&mut self, notices: &mut Vec<String>) {
        self.renew(notices);
        let (sender, attempt) = channel();
        let (to, introduction) = (self.to.clone(), self.introduction.clone());
        let credentials = self.credentials.clone();
        let connect = move || {
            let wire = Wire::connect(&to, credentials.as_ref());
            // The receiver is gone if the stream has ended.
            let _ = sender.send(wire.and_then(|wire| Connection::open(wire, &introduction)));
        };
        match thread::Builder::new()
            .name("connect".to_owned())
            .spawn(connect)
        {
            Ok(_) => self.attempt = Some(attempt),
            Err(error) => self.try_later(&error, notices),
        }
    }

    /// Schedules the next attempt after a failure, and reports its reason if that is new.
    pub(super) fn try_later(&mut self, error: &io::Error, notices: &mut Vec<String>) {
        let reason = error.to_string();
        let ended = match Refusal::of(error).is_some_and(Refusal::is_for_now) {
            true => Ended::RefusedForNow,
            false => Ended::Lost,
        };
        let is_known =
            |report: &Report| report.reason == reason && report.at.elapsed() < REPORT_EVERY;
        if !self.reported.as_ref().is_some_and(is_known) {
            let most = ended.longest().as_secs();
            notices.push(format!(
                "{}: {reason}; tried again, every {most} s in the end",
                self.to
            ));
            let at = Instant::now();
            self.reported = Some(Report { reason, at });
        }
        self.next_at = Instant::now() + jittered(self.backoff.next(ended), noise());
    }
}

/// A number that differs from streamer to streamer, and from moment to moment.
fn noise() -> u64 {
    ringmark_ring::clock::realtime_ns() ^ u64::from(std::process::id()).rotate_left(20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_differ_and_none_is_short() {
        let wait = Duration::from_millis(100);
        let waits: Vec<_> = (0..100).map(|_| jittered(wait, noise())).collect();
        let bounds = wait / 2..wait * 3 / 2;
        assert!(
            waits.iter().all(|found| bounds.contains(found)),
            "{waits:?}"
        );
        assert!(waits.iter().any(|found| *found != waits[0]), "{waits:?}");
    }

    #[test]
    fn a_reason_is_reported_once_and_the_waits_grow() {
        let to = Address::Tcp("192.0.2.1:7".to_owned());
        let first = Duration::from_millis(100);
        let mut dialer = Dialer::new(to, Introduction::default(), None, first);
        let (mut notices, refused) = (Vec::new(), io::ErrorKind::ConnectionRefused.into());
        for _ in 0..10 {
            dialer.try_later(&refused, &mut notices);
        }
        let longest = Ended::Lost.longest();
        assert_eq!(
            (notices.len(), dialer.backoff.next(Ended::Lost)),
            (1, longest)
        );
        dialer.try_later(&io::ErrorKind::TimedOut.into(), &mut notices);
        assert_eq!(notices.len(), 2, "another reason");
    }
}
