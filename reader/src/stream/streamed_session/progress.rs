//! PROGRESS of a streamed session: what collectors are told about pages that are gone or were
//! acknowledged.

use std::io;
use std::time::{Duration, Instant};

use ringmark_ring::clock;

use super::holes::note_holes;
use super::{Outgoing, StreamedSession};
use crate::stream::ledger::Moment;

/// How often collectors are told what was acknowledged, where nothing else is to be told.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// How often they are told something where nothing is new: an idle host is not a silent one.
const HEARD_EVERY: Duration = Duration::from_secs(20);

impl StreamedSession {
    /// Takes note of pages that a pass found gone.
    pub(super) fn note_holes(&mut self) {
        if let Some(mapped) = &mut self.mapped {
            note_holes(&mut mapped.drain, &mut self.ledger, self.spill.as_mut());
        }
    }

    /// Tells the collector about pages that are gone, before those that follow them.
    pub(super) fn tell_gone(&mut self, out: &mut Outgoing<'_>) -> io::Result<()> {
        self.note_holes();
        match self.ledger.is_to_tell() {
            true => self.tell_progress(0, out),
            false => Ok(()),
        }
    }

    /// Tells the collector what was acknowledged since it was told last, from time to time.
    pub(super) fn tell_acked(&mut self, out: &mut Outgoing<'_>) -> io::Result<()> {
        let is_due = self.told_at.is_none_or(|at| at.elapsed() >= PROGRESS_EVERY);
        match is_due && (self.ledger.has_news() || self.is_long_unheard()) {
            true => self.tell_progress(0, out),
            false => Ok(()),
        }
    }

    /// Whether the collector was told nothing for long.
    pub(super) fn is_long_unheard(&self) -> bool {
        self.told_at.is_none_or(|at| at.elapsed() >= HEARD_EVERY)
    }

    /// Sends PROGRESS with these flags.
    pub(super) fn tell_progress(&mut self, flags: u32, out: &mut Outgoing<'_>) -> io::Result<()> {
        let now = Moment {
            real_ns: clock::realtime_ns(),
            mono_ns: clock::monotonic_ns(),
        };
        let (blocks, release) = self.ledger.tell(self.uuid, flags, now);
        out.connection.send(&blocks)?;
        out.note_sent(self.uuid, release);
        self.told_at = Some(Instant::now());
        Ok(())
    }
}
