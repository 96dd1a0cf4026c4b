//! How sessions end, counters are written, and failures are survived.

use std::path::Path;
use std::time::{Duration, Instant};

use super::Recorder;
use crate::error::ReaderError;
use crate::pages::drain::SessionDrain;

/// How often counters are written while sessions run, so that a killed recorder leaves fresh ones.
const COUNTERS_EVERY: Duration = Duration::from_secs(1);
/// How long to wait before a full disk is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

impl Recorder {
    /// A full disk is survived if that was asked for: nothing was released, the pages are taken
    /// again. A ring file that was truncated is let go. Other errors end the recording.
    pub(super) fn survive(&mut self, error: ReaderError) -> Result<(), ReaderError> {
        self.tracks.iter_mut().for_each(|t| t.drain.rewind());
        if let ReaderError::Truncated { path, .. } = &error {
            // Its figures are not read any more: touching the mapping would be fatal.
            self.tracks.retain(|t| t.drain.session().path() != path);
            self.done.sessions_done += 1;
            self.done.sessions_cut += 1;
            self.notices.push(error.to_string());
            return Ok(());
        }
        if !(error.is_no_space() && self.dump.can_resume()) {
            return Err(error);
        }
        if self.dump.drop_oldest() {
            self.done.files_removed += 1;
            self.notices
                .push(format!("{error}; removed the oldest file"));
            return Ok(());
        }
        if !self.options.wait_for_space {
            return Err(error);
        }
        if !std::mem::replace(&mut self.waits_for_space, true) {
            self.notices.push(format!("{error}; waiting for space"));
        }
        self.retry_at = Some(Instant::now() + RETRY_AFTER);
        Ok(())
    }

    /// Takes open pages, writes the last counters, and lets the session go.
    pub(super) fn end_session(&mut self, index: usize, ended: bool) -> Result<(), ReaderError> {
        self.move_pages(index, SessionDrain::fill_open)?;
        let track = &mut self.tracks[index];
        let drained = track.drain.is_drained() && !self.full;
        self.batch.clear(u64::MAX);
        let recount = self.full.then_some(&mut self.batch);
        let content = track.drain.counters(ended && drained, recount)?;
        let uuid = track.drain.session().uuid();
        self.dump.add_counters(uuid, &content)?;
        if ended && drained {
            self.remove_if_wanted(index);
        }
        self.drop_track(index);
        Ok(())
    }

    fn remove_if_wanted(&mut self, index: usize) {
        let session = self.tracks[index].drain.session();
        session.set_taken();
        if !self.options.remove_drained {
            return;
        }
        let alone = |path: &Path| self.finder.is_alone(path);
        if let Err(error) = session.remove_drained(self.options.remove_kept, alone) {
            self.notices.push(error.to_string());
        }
    }

    pub(super) fn drop_track(&mut self, index: usize) {
        let track = self.tracks.remove(index);
        self.done.sessions_done += 1;
        let skipped = track.drain.pages_skipped();
        self.done.lost = self.done.lost.saturating_add(track.drain.lost());
        self.done.pages_skipped = self.done.pages_skipped.saturating_add(skipped);
        self.dump.forget_session(track.drain.session().uuid());
    }

    pub(super) fn count_if_due(&mut self) -> Result<(), ReaderError> {
        if self.counted_at.elapsed() < COUNTERS_EVERY || self.waits_for_space {
            return Ok(());
        }
        self.counted_at = Instant::now();
        self.batch.clear(u64::MAX);
        for track in &mut self.tracks {
            let content = track.drain.counters(false, Some(&mut self.batch))?;
            if track.news.are_in(&content) {
                let uuid = track.drain.session().uuid();
                self.dump.add_counters(uuid, &content)?;
            }
        }
        Ok(())
    }
}
