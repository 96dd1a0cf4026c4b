//! The way to the collector: a connection, or the attempts to make one.

use std::io;
use std::time::{Duration, Instant, SystemTime};

use super::dialer::Dialer;
use crate::stream::connection::Connection;
use crate::stream::expiry::Expiry;
use crate::stream::in_flight::InFlight;
use crate::stream::terms::Terms;

/// The connection to the collector, and what is known about its absence.
pub(super) struct CollectorLink {
    dialer: Dialer,
    pub(super) connection: Option<Connection>,
    /// Nothing is in flight without a connection.
    pub(super) in_flight: InFlight,
    /// Since when there has been no connection; of no meaning while there is one.
    away_since: Instant,
    /// The collector gave too little credit in the last round.
    pub(super) is_stalled: bool,
    /// When the collector announced that it will close.
    pub(super) parting: Option<Instant>,
    /// Within how long the latest collector acknowledges everything at the end.
    end_within: Duration,
    /// Since when there has been a connection; of no meaning while there is none.
    connected_since: Instant,
    /// The collector took pages for good since this was last asked.
    pub(super) has_moved: bool,
}

/// How long an idle connection lasts before it counts as one that works.
const SETTLED_AFTER: Duration = Duration::from_secs(60);

impl CollectorLink {
    /// A link without a connection yet.
    pub(super) fn new(dialer: Dialer) -> Self {
        Self {
            dialer,
            connection: None,
            in_flight: InFlight::default(),
            away_since: Instant::now(),
            is_stalled: false,
            parting: None,
            end_within: Terms::read(&[]).end_within(),
            connected_since: Instant::now(),
            has_moved: false,
        }
    }

    /// Has the dialer make a connection, if there is none. Returns whether one was made now.
    pub(super) fn connect(&mut self, notices: &mut Vec<String>) -> bool {
        if self.connection.is_some() {
            self.note_progress(notices);
            return false;
        }
        self.connection = self.dialer.poll(notices);
        self.connected_since = Instant::now();
        let terms = self.connection.as_ref().map(Connection::terms);
        self.end_within = terms.map_or(self.end_within, Terms::end_within);
        self.connection.is_some()
    }

    /// How long to wait for the last acknowledgements.
    pub(super) fn end_within(&self) -> Duration {
        self.end_within
    }

    /// Why the collector gets no pages by reference; `None`: it may.
    pub(super) fn against_references(&self) -> Option<String> {
        self.connection.as_ref()?.terms().against_references()
    }

    /// Has the dialer begin its waits anew if the connection works.
    fn note_progress(&mut self, notices: &mut Vec<String>) {
        let lasted = self.connected_since.elapsed();
        if std::mem::take(&mut self.has_moved) || lasted >= SETTLED_AFTER {
            self.dialer.progressed(lasted, notices);
        }
    }

    /// For how long there has been no collector; `None`: there is one.
    pub(super) fn away(&self) -> Option<Duration> {
        let is_away = self.connection.is_none();
        is_away.then(|| self.away_since.elapsed())
    }

    /// When our certificate ends.
    pub(super) fn certificate_expiry(&self) -> Option<Expiry> {
        self.dialer.certificate_expiry()
    }

    /// Looks whether the collector's certificate is still good.
    ///
    /// # Errors
    /// It has ended since the handshake.
    pub(super) fn check_collector(&self) -> io::Result<()> {
        let expiry = self.connection.as_ref().and_then(Connection::peer_expiry);
        match expiry.is_some_and(|expiry| expiry.is_over(SystemTime::now())) {
            true => Err(io::Error::other("the collector's certificate has ended")),
            false => Ok(()),
        }
    }

    /// Looks now and then at our certificate.
    pub(super) fn look_at_certificate(&mut self, notices: &mut Vec<String>) {
        self.dialer.look_at_certificate(notices);
    }

    /// Bytes sent on this connection.
    pub(super) fn sent(&self) -> u64 {
        self.connection.as_ref().map_or(0, Connection::sent)
    }

    /// Bytes of them that are known to be durable.
    pub(super) fn durable(&self) -> u64 {
        self.connection.as_ref().map_or(0, Connection::durable)
    }

    /// Closes the connection and returns the bytes that were sent on it.
    pub(super) fn close(&mut self, notices: &mut Vec<String>) -> u64 {
        if self.connection.is_some() {
            self.note_progress(notices);
        }
        (self.is_stalled, self.parting) = (false, None);
        self.in_flight = InFlight::default();
        let Some(connection) = self.connection.take() else {
            return 0;
        };
        self.away_since = Instant::now();
        connection.sent()
    }

    /// Has the dialer wait before its next attempt, after this error.
    pub(super) fn try_later(&mut self, error: &io::Error, notices: &mut Vec<String>) {
        self.dialer.try_later(error, notices);
    }
}
