//! How sessions end, how counters are written, and which failures a recording survives.

use std::collections::HashSet;
use std::path::Path;

use ringmark_format::ending::Ending;

use super::{Recorder, SessionEnd};
use crate::error::ReaderError;
use crate::interval::COUNTERS_EVERY;
use crate::pages::drain::{Finality, SessionDrain};
use crate::recording::dump::block_bytes;
use crate::sessions::session::{RemovalScope, Session};

impl Recorder {
    /// Decides whether the recording goes on after `error`; gives it back if not.
    ///
    /// A truncated ring file is dropped. On a full disk the oldest file of a rotating dump is
    /// removed, or the recorder waits, if that was requested. Nothing was released, so every drain
    /// is rewound and takes its pages again.
    pub(super) fn survive(&mut self, error: ReaderError) -> Result<(), ReaderError> {
        self.recorded.iter_mut().for_each(|r| r.drain.rewind());
        if let ReaderError::Truncated { path, .. } = &error {
            // Its last figures are not read: touching the mapping would be fatal.
            self.recorded.retain(|r| r.drain.session().path() != path);
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
        if !self.full_disk.begin_wait() {
            self.notices.push(format!("{error}; waiting for space"));
        }
        Ok(())
    }

    /// Takes open pages, writes the last counters, and ends the recording of a session. `wanted`
    /// says whether the session has ended; its counters are final if all of it is recorded.
    /// `open_spans`: blocks that were made before its last pages were taken.
    pub(super) fn end_session(
        &mut self,
        index: usize,
        wanted: Finality,
        open_spans: &[u8],
    ) -> Result<(), ReaderError> {
        self.move_pages(index, SessionDrain::fill_open)?;
        // After the last pages: it is to hold the time of all their records.
        self.pass_beside(index, true)?;
        let recorded = &mut self.recorded[index];
        let drained = recorded.drain.is_drained() && !self.full;
        self.batch.clear(u64::MAX);
        let recount = self.full.then_some(&mut self.batch);
        let finality = match drained {
            true => wanted,
            false => Finality::Interim,
        };
        let content = recorded.drain.counters(finality, recount)?;
        let session = recorded.drain.session();
        let (uuid, seen_tick) = (session.uuid(), session.dead_tick());
        if let Some(ending) = session.ending().filter(|_| wanted == Finality::Final) {
            let end = self.ends.of(session, ending);
            self.dump.add_ending(uuid, end.ending, seen_tick)?;
            self.ends.add(end);
        }
        let after = block_bytes(content.len()) as u64;
        self.dump.add_open_spans(open_spans, after)?;
        self.dump.add_counters(uuid, &content)?;
        let drain = self.close_session(index);
        if finality == Finality::Final {
            drain.session().set_taken();
            if self.options.remove_drained {
                self.drained.push(drain);
            }
        }
        self.remove_drained();
        Ok(())
    }

    /// Tells how a process of ours ended, by its pid here, where the kernel may not: before Linux
    /// 6.15 it told only its parent, which is the caller.
    pub fn know_ending(&mut self, pid: u32, ending: Ending) {
        self.ends.know(pid, ending);
    }

    /// How the sessions ended that did since the last call; the first thousand of them.
    pub fn take_ends(&mut self) -> Vec<SessionEnd> {
        self.ends.take()
    }

    /// Removes the ring files of drained sessions of which no other one of the process is recorded.
    pub(super) fn remove_drained(&mut self) {
        let recorded = self.recorded.iter();
        let open: HashSet<_> = recorded
            .filter_map(|recorded| recorded.drain.session().header().process())
            .collect();
        let is_over = |drain: &mut SessionDrain| {
            let process = drain.session().header().process();
            process.is_none_or(|process| !open.contains(&process))
        };
        let over: Vec<_> = self.drained.extract_if(.., is_over).collect();
        over.iter().for_each(|drain| self.remove(drain.session()));
    }

    fn remove(&mut self, session: &Session) {
        let alone = |path: &Path| self.finder.is_alone(path);
        let scope = match self.options.remove_kept {
            true => RemovalScope::Any,
            false => RemovalScope::NotKept,
        };
        if let Err(error) = session.remove_drained(scope, alone) {
            self.notices.push(error.to_string());
        }
    }

    /// Adds the figures of a session to the totals; returns it, no longer recorded.
    fn close_session(&mut self, index: usize) -> SessionDrain {
        let recorded = self.recorded.remove(index);
        self.done.sessions_done += 1;
        let skipped = recorded.drain.pages_skipped();
        self.done.lost = self.done.lost.saturating_add(recorded.drain.lost());
        let for_room = recorded.drain.lost_for_room();
        self.done.lost_for_room = self.done.lost_for_room.saturating_add(for_room);
        self.done.pages_skipped = self.done.pages_skipped.saturating_add(skipped);
        let overwritten = recorded.drain.overwritten();
        self.done.overwritten = self.done.overwritten.saturating_add(overwritten);
        self.done.waits = self.done.waits.and(recorded.drain.waits());
        self.dump.forget_session(recorded.drain.session().uuid());
        recorded.drain
    }

    /// Writes the counters of every session that has new ones, if it is time.
    pub(super) fn count_if_due(&mut self) -> Result<(), ReaderError> {
        if self.full_disk.is_known() || !self.counts.take_due(COUNTERS_EVERY) {
            return Ok(());
        }
        self.batch.clear(u64::MAX);
        for recorded in &mut self.recorded {
            let content = recorded
                .drain
                .counters(Finality::Interim, Some(&mut self.batch))?;
            if recorded.counters.differ_from(&content) {
                let uuid = recorded.drain.session().uuid();
                self.dump.add_counters(uuid, &content)?;
            }
        }
        Ok(())
    }
}
