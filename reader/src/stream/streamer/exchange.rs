//! The connection: made, spoken over, given up and made again.

use std::io;
use std::path::Path;
use std::sync::mpsc::{TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use ringmark_format::Uuid;
use ringmark_format::stream::kind;

use super::Streamer;
use crate::stream::connection::{Connection, Refusal, Said};
use crate::stream::in_flight::Flights;
use crate::stream::outgoing::Outgoing;
use crate::stream::status;
use crate::stream::streamed_session::{Stage, Track, Trouble};
use crate::stream::wire::Wire;

/// How often counters are sent.
const COUNTERS_EVERY: Duration = Duration::from_secs(1);
/// How long a collector that goes may take to make durable what it has.
const PART_WITHIN: Duration = Duration::from_secs(10);
/// Longest wait before a collector is tried again.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// How often it is told why there is no collector, while the reason is the same.
const TELL_EVERY: Duration = Duration::from_secs(60);

impl Streamer {
    /// Makes a connection, if there is none. A collector may take seconds to answer, or never do:
    /// meanwhile the rings are looked after.
    pub(super) fn connect(&mut self) {
        let Some(coming) = &self.coming else {
            if self.connection.is_none() && Instant::now() >= self.retry_at {
                self.begin_connecting();
            }
            return;
        };
        let opened = match coming.try_recv() {
            Ok(opened) => opened,
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => Err(io::ErrorKind::NotConnected.into()),
        };
        self.coming = None;
        match opened {
            Ok(connection) => {
                self.notices.push(format!("{}: connected", self.options.to));
                self.connection = Some(connection);
                self.done.connections += 1;
                self.retry = self.options.retry;
                self.told = None;
            }
            Err(error) => self.try_later(&error),
        }
    }

    fn begin_connecting(&mut self) {
        let (tell, coming) = channel();
        let (to, introduction) = (self.options.to.clone(), self.options.introduction.clone());
        let credentials = self.options.credentials.clone();
        let connect = move || {
            let wire = Wire::connect(&to, credentials.as_ref());
            // When the stream has ended there is no receiver any more.
            let _ = tell.send(wire.and_then(|wire| Connection::open(wire, &introduction)));
        };
        match thread::Builder::new()
            .name("connect".to_owned())
            .spawn(connect)
        {
            Ok(_) => self.coming = Some(coming),
            Err(error) => self.try_later(&error),
        }
    }

    /// Hears what the collector says, then sends what waits.
    pub(super) fn exchange(&mut self) -> io::Result<()> {
        if self.connection.is_none() {
            return Ok(());
        }
        let heard = self.hear();
        if let Some(since) = self.parting {
            return self.part(since, heard);
        }
        heard?;
        if std::mem::take(&mut self.stalled) && !self.tracks.is_empty() {
            // The one that had to wait comes first.
            self.tracks.rotate_left(1);
        }
        let mut index = 0;
        while index < self.tracks.len() {
            let Some(passed) = self.with(index, Track::advance)? else {
                continue;
            };
            self.done.pages += passed.pages;
            // Otherwise no pass was made, and the figure is that of an earlier one.
            let track = self.tracks.get(index);
            let drain = track.filter(|track| track.stage == Stage::Streaming);
            let fill = drain.and_then(Track::drain).map(|drain| drain.fill_1024());
            self.pace.saw(fill.unwrap_or(0));
            self.stalled |= !passed.done;
            index += usize::from(passed.done || self.hold(index, None));
            self.hear()?;
        }
        if self.counted_at.elapsed() >= COUNTERS_EVERY {
            self.counted_at = Instant::now();
            let mut index = 0;
            while index < self.tracks.len() {
                index += usize::from(self.with(index, Track::count)?.is_some());
            }
        }
        Ok(())
    }

    /// Has a track act on the connection. `None`: its file was truncated, it is gone.
    pub(super) fn with<R>(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut Track, &mut Outgoing<'_>) -> Result<R, Trouble>,
    ) -> io::Result<Option<R>> {
        let Some(connection) = &mut self.connection else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let mut out = Outgoing {
            connection,
            flights: &mut self.flights,
            batch: &mut self.batch,
            scratch: &mut self.scratch,
            codec: self.options.codec,
            open_every: self.options.open_every,
            notices: &mut self.notices,
        };
        match act(&mut self.tracks[index], &mut out) {
            Ok(done) => Ok(Some(done)),
            Err(Trouble::Wire(error)) => Err(error),
            Err(Trouble::Session(error)) => {
                self.drop_track(index, &error);
                Ok(None)
            }
        }
    }

    pub(super) fn hear(&mut self) -> io::Result<()> {
        while let Some(connection) = &mut self.connection
            && let Some(said) = connection.hear()?
        {
            match said {
                Said::Durable => {}
                Said::Resume {
                    session,
                    schema_bytes,
                    slots,
                } => {
                    if let Some(track) = self.track(session) {
                        track.resume(&slots, schema_bytes);
                    }
                }
                Said::Drain if !self.leaving && self.parting.is_none() => {
                    connection.say(kind::BYE)?;
                    self.parting = Some(Instant::now());
                }
                Said::Drain => {}
            }
        }
        self.release();
        Ok(())
    }

    /// Sends nothing more to a collector that goes; when it has made durable what it has, or is
    /// gone, the next one is looked for. Meanwhile the rings are looked after.
    fn part(&mut self, since: Instant, heard: io::Result<()>) -> io::Result<()> {
        // It may have closed after its last word.
        self.release();
        let durable = |c: &Connection| c.durable() == c.sent();
        if self.connection.as_ref().is_some_and(durable) || since.elapsed() > PART_WITHIN {
            let text = "the collector asks to come back later";
            return Err(io::Error::other(text));
        }
        heard?;
        let mut index = 0;
        while index < self.tracks.len() {
            index += usize::from(self.hold(index, None));
        }
        self.stalled = true;
        Ok(())
    }

    /// What the collector has for good is released, and sessions that it has whole are done.
    fn release(&mut self) {
        let durable = self.connection.as_ref().map_or(0, Connection::durable);
        while let Some((session, landing)) = self.flights.landed(durable) {
            if let Some(track) = self.track(session)
                && let Err(error) = track.landed(&landing)
            {
                self.notices.push(error.to_string());
            }
        }
        let mut index = 0;
        while let Some(track) = self.tracks.get(index) {
            if track.stage == Stage::Sent && !self.flights.holds(track.uuid) {
                self.done_with(index);
            } else {
                index += 1;
            }
        }
    }

    fn done_with(&mut self, index: usize) {
        let track = self.tracks.remove(index);
        if let Some(drain) = track.drain() {
            status::forget(drain.session());
        }
        let alone = |path: &Path| self.finder.is_alone(path);
        if let Err(error) = track.remove_if_drained(alone) {
            self.notices.push(error.to_string());
        }
        self.done.sessions_done += 1;
        let (lost, skipped) = track
            .drain()
            .map_or((0, 0), |drain| (drain.lost(), drain.pages_skipped()));
        self.done.lost = self.done.lost.saturating_add(lost);
        self.done.pages_skipped = self.done.pages_skipped.saturating_add(skipped);
    }

    fn track(&mut self, session: Uuid) -> Option<&mut Track> {
        self.tracks.iter_mut().find(|track| track.uuid == session)
    }

    pub(super) fn hang_up(&mut self, error: &io::Error) {
        if let Some(connection) = self.connection.take() {
            self.done.sent += connection.sent();
            self.away_since = Instant::now();
        }
        if error.kind() == io::ErrorKind::PermissionDenied {
            self.distrust();
        }
        (self.stalled, self.parting) = (false, None);
        self.flights = Flights::default();
        self.tracks.iter_mut().for_each(Track::begin_again);
        let refusal = error.get_ref().and_then(|e| e.downcast_ref::<Refusal>());
        if let Some(session) = refusal.and_then(|refusal| refusal.session) {
            self.part_with(session);
        }
        self.try_later(error);
    }

    /// The collector refused this session: one that lies must not stop the others. Its uuid may be
    /// another session's: it gets one of its own, and if that does not help, it is let go.
    fn part_with(&mut self, session: Uuid) {
        let Some(index) = self.tracks.iter().position(|track| track.uuid == session) else {
            return;
        };
        let track = self.tracks.remove(index);
        let uuid = track.uuid;
        if let Some(options) = &self.options.spill
            && track.spill.as_ref().is_some_and(|spill| !spill.is_empty())
        {
            let place = options.directory.join(format!("{uuid}.*.rmk"));
            let text = format!(
                "{}: refused, it stays there for the next stream",
                place.display()
            );
            self.notices.push(text);
        }
        let Some(mut session) = track.into_session() else {
            self.done.sessions_done += 1;
            return;
        };
        let is_first = session.uuid() == Uuid(session.header().session);
        if is_first {
            self.notices.push(self.owners.set_apart(&mut session));
            self.follow(session);
        } else {
            self.done.sessions_done += 1;
            let path = session.path().display();
            self.notices
                .push(format!("{path}: refused again, it is not streamed"));
        }
    }

    /// The collector refused what was under way. A page that its program changed after it was
    /// sealed has another checksum than was sent: from now on such programs' pages are copied.
    fn distrust(&mut self) {
        for track in &mut self.tracks {
            if track.is_sent_by_reference() && self.flights.holds(track.uuid) {
                track.send_by_reference(false);
            }
        }
    }

    fn try_later(&mut self, error: &io::Error) {
        let wait = jittered(self.retry);
        let reason = error.to_string();
        let is_known =
            |(told, at): &(String, Instant)| *told == reason && at.elapsed() < TELL_EVERY;
        if !self.told.as_ref().is_some_and(is_known) {
            let most = RETRY_MAX.as_secs();
            let text = format!(
                "{}: {reason}; tried again, every {most} s in the end",
                self.options.to
            );
            self.notices.push(text);
            self.told = Some((reason, Instant::now()));
        }
        self.retry_at = Instant::now() + wait;
        self.retry = (self.retry * 2).min(RETRY_MAX);
    }
}

/// Half to one and a half of it: streamers that were cut off together come back one by one.
fn jittered(wait: Duration) -> Duration {
    let noise = ringmark_ring::clock::realtime_ns() ^ u64::from(std::process::id()).rotate_left(20);
    let part = noise.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
    wait / 2 + wait * part as u32 / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_differ_and_none_is_short() {
        let wait = Duration::from_millis(100);
        let waits: Vec<_> = (0..100).map(|_| jittered(wait)).collect();
        let bounds = wait / 2..wait * 3 / 2;
        assert!(
            waits.iter().all(|found| bounds.contains(found)),
            "{waits:?}"
        );
        assert!(waits.iter().any(|found| *found != waits[0]), "{waits:?}");
    }
}
