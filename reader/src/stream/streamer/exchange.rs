//! What a streamer and its collector say to each other over one connection, and its end.
//!
//! A round hears the collector first: acknowledgements give credit and release pages. Then each
//! session sends what waits. A failed connection costs nothing but time, since all sessions begin
//! again on the next one, after what the collector then says it has.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use ringmark_format::Uuid;
use ringmark_format::stream::kind;

use super::Streamer;
use crate::sessions::stream_status;
use crate::stream::connection::{CollectorMessage, Connection, Refusal};
use crate::stream::outgoing::Outgoing;
use crate::stream::spill::Spill;
use crate::stream::streamed_session::{PassError, Stage, StreamedSession, Waits};

/// How long a page may be under way before it counts as waiting for a slow collector.
const LATE: Duration = Duration::from_millis(100);

impl Streamer {
    /// Has the dialer make a connection, if there is none.
    pub(super) fn connect(&mut self) {
        let is_new = self.link.connect(&mut self.notices);
        self.done.connections += u64::from(is_new);
        if is_new && self.options.zero_copy && !self.disk.is_there() {
            self.notices.extend(self.link.against_references());
        }
    }

    /// One round: hears the collector, then has every session send what waits.
    pub(super) fn exchange(&mut self) -> io::Result<()> {
        if self.link.connection.is_none() {
            return Ok(());
        }
        self.link.check_collector()?;
        let heard = self.hear();
        if let Some(since) = self.link.parting {
            return self.part(since, heard);
        }
        heard?;
        if std::mem::take(&mut self.link.is_stalled) && !self.sessions.is_empty() {
            // Credit ran out in the last round: another session comes first in this one.
            self.sessions.rotate_left(1);
        }
        let mut index = 0;
        while index < self.sessions.len() {
            let Some(passed) = self.with(index, StreamedSession::advance)? else {
                continue;
            };
            self.done.pages += passed.pages;
            // In other stages no pass was made, and the figure would be that of an earlier one.
            let session = self.sessions.get(index);
            let streams = |s: &&StreamedSession| s.stage == Stage::Streaming && !s.is_held();
            let streaming = session.filter(streams);
            let drain = streaming.and_then(StreamedSession::drain);
            let fullest = drain.map(|drain| drain.fullest());
            self.pace.saw(fullest.unwrap_or_default());
            self.link.is_stalled |= !passed.done;
            let waits = self.waits(index, passed.done);
            let is_there = waits.is_none_or(|waits| self.spill_pages(index, waits));
            index += usize::from(is_there);
            self.hear()?;
            // Nothing is sent after BYE: the collector would not acknowledge it.
            if self.link.parting.is_some() {
                return Ok(());
            }
        }
        if self.schedule.are_counters_due() {
            let mut index = 0;
            while index < self.sessions.len() {
                index += usize::from(self.with(index, StreamedSession::count)?.is_some());
            }
        }
        Ok(())
    }

    /// What keeps the pages of a session in their rings; `None`: nothing does. A collector without
    /// room gives no credit, answers no SESSION, and acknowledges nothing: what is under way then
    /// fills the rings. Without a spill it has to stay there.
    fn waits(&self, index: usize, is_all_sent: bool) -> Option<Waits> {
        let session = self.sessions.get(index)?;
        let is_announced = session.stage == Stage::Announced;
        if !is_all_sent || is_announced {
            return Some(Waits::Slow);
        }
        let _ = session.spill.as_ref()?;
        if !self.link.in_flight.has(session.uuid) {
            return None;
        }
        match self.link.in_flight.age(session.uuid) >= LATE {
            true => Some(Waits::Slow),
            false => Some(Waits::UnderWay),
        }
    }

    /// Has a session act on the connection. `None`: its ring file failed, and it was dropped.
    ///
    /// # Errors
    /// The connection failed.
    pub(super) fn with<R>(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut StreamedSession, &mut Outgoing<'_>) -> Result<R, PassError>,
    ) -> io::Result<Option<R>> {
        let Some(connection) = &mut self.link.connection else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let mut out = Outgoing {
            connection,
            in_flight: &mut self.link.in_flight,
            batch: &mut self.batch,
            packer: &mut self.packer,
            rate: &mut self.rate,
            open_every: self.options.open_every,
            notices: &mut self.notices,
        };
        match act(&mut self.sessions[index], &mut out) {
            Ok(done) => Ok(Some(done)),
            Err(PassError::Connection(error)) => Err(error),
            Err(PassError::Session(error)) => {
                self.drop_session(index, &error);
                Ok(None)
            }
        }
    }

    /// Acts on what the collector said since the last call.
    pub(super) fn hear(&mut self) -> io::Result<()> {
        while let Some(connection) = &mut self.link.connection
            && let Some(message) = connection.hear()?
        {
            match message {
                CollectorMessage::Acknowledged => {}
                CollectorMessage::Resume { session, said } => {
                    let store = connection.store();
                    if let Some(session) = self.session(session) {
                        session.resume(store, &said);
                    }
                }
                CollectorMessage::Drain if !self.leaving && self.link.parting.is_none() => {
                    connection.say(kind::BYE)?;
                    self.link.parting = Some(Instant::now());
                }
                CollectorMessage::Drain => {}
            }
        }
        self.release();
        Ok(())
    }

    /// Waits until a collector that will close has made durable what it has, and looks after the
    /// rings. Then the error ends the connection, and the dialer looks for the next collector.
    fn part(&mut self, since: Instant, heard: io::Result<()>) -> io::Result<()> {
        let durable = |c: &Connection| c.durable() == c.sent();
        if self.link.connection.as_ref().is_some_and(durable)
            || since.elapsed() > self.link.end_within()
        {
            let text = "the collector asks to come back later";
            return Err(io::Error::other(text));
        }
        heard?;
        let mut index = 0;
        while index < self.sessions.len() {
            index += usize::from(self.spill_pages(index, Waits::Slow));
        }
        self.link.is_stalled = true;
        Ok(())
    }

    /// Releases what the collector has for good, and ends sessions that it has as a whole.
    fn release(&mut self) {
        let durable = self.link.durable();
        let connection = self.link.connection.as_ref();
        let store = connection.map_or([0; 16], Connection::store);
        while let Some(batch) = self.link.in_flight.next_durable(durable) {
            self.link.has_moved = true;
            if let Some(session) = self.session(batch.session)
                && let Err(error) = session.release(&batch.release, store)
            {
                self.notices.push(error.to_string());
            }
        }
        let mut index = 0;
        while let Some(session) = self.sessions.get(index) {
            if session.stage == Stage::Sent && !self.link.in_flight.has(session.uuid) {
                self.end_session(index);
            } else {
                index += 1;
            }
        }
    }

    /// Ends a session whose every page is durable, and adds its figures to the totals.
    fn end_session(&mut self, index: usize) {
        let mut session = self.sessions.remove(index);
        if let Some(drain) = session.drain() {
            stream_status::remove(drain.session());
        }
        let alone = |path: &Path| self.finder.is_alone(path);
        if let Err(error) = session.remove_if_drained(alone) {
            self.notices.push(error.to_string());
        }
        self.done.sessions_done += 1;
        self.done.uploads += session.uploads;
        if let Some(drain) = session.drain() {
            let skipped = drain.pages_skipped();
            self.done.lost = self.done.lost.saturating_add(drain.lost());
            self.done.pages_skipped = self.done.pages_skipped.saturating_add(skipped);
            let overwritten = drain.overwritten();
            self.done.overwritten = self.done.overwritten.saturating_add(overwritten);
        }
    }

    fn session(&mut self, uuid: Uuid) -> Option<&mut StreamedSession> {
        self.sessions
            .iter_mut()
            .find(|session| session.uuid == uuid)
    }

    /// Ends the connection after an error, and has all sessions begin again on the next one. What the collector
    /// acknowledged before it closed counts, even if a write failed before it was read.
    pub(super) fn hang_up(&mut self, error: &io::Error) {
        if error.kind() == io::ErrorKind::PermissionDenied {
            self.distrust();
        }
        if matches!(
            error.kind(),
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
        ) && let Some(connection) = &mut self.link.connection
        {
            connection.hear_last_acks();
        }
        self.release();
        self.done.sent += self.link.close(&mut self.notices);
        self.sessions
            .iter_mut()
            .for_each(StreamedSession::begin_again);
        if let Some(session) = Refusal::of(error).and_then(|refusal| refusal.session) {
            self.part_with(session);
        }
        self.link.try_later(error, &mut self.notices);
    }

    /// Ends the stream of a session that the collector refused: one hostile session must not stop
    /// the others. Its uuid may be that of another session, or of this one when its host had another
    /// name, so it is tried once more under one of its own.
    fn part_with(&mut self, uuid: Uuid) {
        let its = |session: &StreamedSession| session.uuid == uuid;
        let Some(index) = self.sessions.iter().position(its) else {
            return;
        };
        let refused = self.sessions.remove(index);
        let path = refused
            .drain()
            .map(|drain| drain.session().path().display().to_string());
        let waits = refused.spill.as_ref().filter(|spill| !spill.is_empty());
        let waits = waits.map(Spill::place);
        let place = path.or_else(|| waits.clone()).unwrap_or_default();
        let host = &self.options.introduction.host;
        if let Some(session) = refused.under_own_uuid(host) {
            self.notices.push(format!(
                "{place}: refused, it goes on as session {}",
                session.uuid
            ));
            if let Some(triggers) = &self.triggers {
                triggers.watch(&session);
            }
            self.sessions.push(session);
            return;
        }
        self.done.sessions_done += 1;
        self.done.sessions_refused += 1;
        self.notices
            .push(format!("{place}: refused again, it is not streamed"));
        if let Some(waits) = waits {
            let text = format!("{waits}: refused, it stays there for the next stream");
            self.notices.push(text);
        }
    }

    /// Copies the pages of sessions that had some in flight by reference when the collector refused
    /// what it got: a program that changes a sealed page makes its checksum wrong.
    fn distrust(&mut self) {
        for session in &mut self.sessions {
            if session.is_sent_by_reference() && self.link.in_flight.has(session.uuid) {
                session.send_copies();
            }
        }
    }
}
