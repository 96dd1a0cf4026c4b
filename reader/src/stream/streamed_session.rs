//! One session being streamed: announced, resumed, its pages sent, those that wait on disk first.
//!
//! ```text
//! New ── SESSION ── Announced ── RESUME ── Streaming ── session ended ── Ending ── Sent
//!  └──────────────── the connection was lost: from any stage ────────────────────────┘
//! ```
//!
//! The collector says in RESUME what it has, so nothing here survives a connection but the rings
//! and the files on disk. Pages leave the rings in three ways: the collector acknowledged them,
//! they were moved to disk ([`to_spill`]), or they were found on disk already when the session was
//! met.
//!
//! The pages of a session in overwrite mode may wait for a trigger ([`upload`]). Then it is announced
//! once something happened, sent with its open pages, and waits again.

mod hold;
mod mapped;
mod pass;
mod to_spill;
mod upload;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use ringmark_format::Uuid;

use hold::Hold;
use mapped::MappedSession;
pub(super) use pass::PassError;
use pass::{NOTHING, Passed};
pub(super) use to_spill::{Spilled, Waits};

use super::in_flight::Release;
use super::outgoing::{Outgoing, SpilledSchema, missing_blocks};
use super::spill::Spill;
use super::zero_copy;
use crate::error::ReaderError;
use crate::pages::batch::Batch;
use crate::pages::counters::LastCounters;
use crate::pages::drain::{Fill, FillPass, Finality, SessionDrain};
use crate::pages::positions::SlotPosition;
use crate::sessions::session::{RemovalScope, Session};

/// Bytes of pages in a batch, or one page if that is larger: they stay in the cache until they are
/// sent.
const BATCH_BYTES: u64 = 256 << 10;

/// How far a session has come on the present connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The collector does not know the session.
    New,
    /// SESSION was sent; RESUME has not come.
    Announced,
    /// Sealed pages are sent as they come.
    Streaming,
    /// The session has ended: open pages and the last counters are being sent.
    Ending,
    /// Everything was sent; some of it may not be durable.
    Sent,
}

/// A session and how far it has come.
#[derive(Debug)]
pub(super) struct StreamedSession {
    pub(super) uuid: Uuid,
    pub(super) stage: Stage,
    /// `None`: its ring file is gone, only its spill is left.
    mapped: Option<MappedSession>,
    pub(super) spill: Option<Spill>,
    /// For each slot, the page before which everything was sent on this connection, or is durable.
    sent_to: BTreeMap<u32, u64>,
    hold: Hold,
    /// How often something had what was in its rings sent.
    pub(super) uploads: u64,
}

impl StreamedSession {
    /// A session that was found, with its pages that wait on disk.
    pub(super) fn new(session: Session, spill: Option<Spill>) -> Self {
        let uuid = session.uuid();
        let mut drain = SessionDrain::new(session);
        if let Some(spill) = &spill {
            // The streamer that wrote them there may have been killed before it released them.
            drain.resume(&spill.ends(), 0);
        }
        Self {
            mapped: Some(MappedSession::new(drain)),
            ..Self::on_disk(uuid, spill)
        }
    }

    /// A session of which only the spill is left.
    pub(super) fn on_disk(uuid: Uuid, spill: Option<Spill>) -> Self {
        Self {
            uuid,
            stage: Stage::New,
            mapped: None,
            spill,
            sent_to: BTreeMap::new(),
            hold: Hold::default(),
            uploads: 0,
        }
    }

    /// Has its pages sent by reference from now on. Only pages that are not overwritten before they
    /// are released can be: those of a discard session.
    pub(super) fn send_by_reference(&mut self) {
        if let Some(mapped) = &mut self.mapped {
            let session = mapped.drain.session();
            let file = session.ring().file().try_clone().ok();
            mapped.by_reference = file.filter(|_| session.consumes()).map(Arc::new);
        }
    }

    /// Has its pages copied from now on.
    pub(super) fn send_copies(&mut self) {
        if let Some(mapped) = &mut self.mapped {
            mapped.by_reference = None;
        }
    }

    /// Whether its pages are sent by reference.
    pub(super) fn is_sent_by_reference(&self) -> bool {
        let mapped = self.mapped.as_ref();
        mapped.is_some_and(|mapped| mapped.by_reference.is_some())
    }

    /// Gives the session back, to be streamed in another way.
    pub(super) fn into_session(self) -> Option<Session> {
        self.mapped.map(|mapped| mapped.drain.into_session())
    }

    /// Its drain; `None`: only its spill is left.
    pub(super) fn drain(&self) -> Option<&SessionDrain> {
        self.mapped.as_ref().map(|mapped| &mapped.drain)
    }

    /// Begins again after a lost connection: what is not durable will be taken again.
    pub(super) fn begin_again(&mut self) {
        self.stage = Stage::New;
        self.sent_to.clear();
        if let Some(spill) = &mut self.spill {
            spill.rewind();
        }
        if let Some(mapped) = &mut self.mapped {
            mapped.drain.rewind();
            (mapped.drained, mapped.rewound) = (false, false);
            mapped.open_spans = None;
            mapped.counters = LastCounters::default();
            mapped.passed_at = None;
        }
    }

    /// Begins to send pages, after those that the collector says it has.
    pub(super) fn resume(&mut self, positions: &[SlotPosition], schema_bytes: u64) {
        if self.stage == Stage::Announced {
            self.sent_to = positions.iter().map(|p| (p.slot, p.next_page)).collect();
            if let Some(mapped) = &mut self.mapped {
                mapped.drain.resume(positions, schema_bytes);
            }
            self.stage = Stage::Streaming;
        }
    }

    /// Releases what a durable batch held: pages in rings, or files on disk.
    pub(super) fn release(&mut self, durable: &Release) -> Result<(), ReaderError> {
        if let Some(mapped) = &mut self.mapped {
            mapped.drain.release_to(&durable.pages);
        }
        match (&mut self.spill, durable.spilled_to) {
            (Some(spill), Some(to)) => spill.free(to),
            _ => Ok(()),
        }
    }

    /// Takes the next step of its stage: announces it, or sends what waits.
    pub(super) fn advance(&mut self, out: &mut Outgoing<'_>) -> Result<Passed, PassError> {
        if self.hold == Hold::Waiting {
            out.notices.extend(self.look_at_end());
        }
        if self.is_held() {
            return Ok(self.stay());
        }
        match self.stage {
            Stage::New => self.announce(out),
            Stage::Announced | Stage::Sent => Ok(NOTHING),
            Stage::Streaming => self.stream(out),
            Stage::Ending => self.end(out),
        }
    }

    fn announce(&mut self, out: &mut Outgoing<'_>) -> Result<Passed, PassError> {
        let content = match (&self.mapped, &self.spill) {
            (Some(mapped), _) => mapped.drain.session_content(),
            (None, spill) => spill
                .iter()
                .flat_map(Spill::session_content)
                .copied()
                .collect(),
        };
        out.send_session(self.uuid, &content)?;
        self.stage = Stage::Announced;
        Ok(NOTHING)
    }

    fn stream(&mut self, out: &mut Outgoing<'_>) -> Result<Passed, PassError> {
        let mut all = self.send_spilled(out)?;
        let Some(mapped) = &mut self.mapped else {
            if all.done {
                self.stage = Stage::Sent;
            }
            return Ok(all);
        };
        mapped.drain.session().check_size()?;
        if !all.done {
            return Ok(all);
        }
        if std::mem::take(&mut mapped.rewound) {
            mapped.drain.skip_to(&SlotPosition::list(&self.sent_to));
        }
        let ended = mapped.lifetime.has_ended(mapped.drain.session());
        if !ended && out.packer.packs() && mapped.waits_for_more() {
            return Ok(all);
        }
        let passed = self.pass(SessionDrain::fill, out)?;
        all.pages += passed.pages;
        all.done = passed.done;
        if let Some(mapped) = &mut self.mapped {
            mapped.passed_at = passed.done.then(Instant::now);
        }
        let is_quiet = |mapped: &MappedSession| {
            mapped
                .lifetime
                .is_quiet(mapped.drain.session(), passed.pages)
        };
        let ends = match ended {
            true => self.mapped.as_ref().is_some_and(is_quiet),
            false => self.hold == Hold::Uploading,
        };
        if passed.done && ends {
            self.stage = Stage::Ending;
            let end = self.end(out)?;
            all = all.and(end);
        } else if passed.done {
            all = all.and(self.linger(out)?);
        }
        Ok(all)
    }

    /// Sends what is in open pages, at intervals: a thread that writes little seals none for long.
    fn linger(&mut self, out: &mut Outgoing<'_>) -> Result<Passed, PassError> {
        let is_due = |mapped: &&mut MappedSession| mapped.open_sent_at.elapsed() >= out.open_every;
        if self.mapped.as_mut().filter(is_due).is_none() {
            return Ok(NOTHING);
        }
        let passed = self.pass(SessionDrain::fill_lingering, out)?;
        if let Some(mapped) = self.mapped.as_mut().filter(|_| passed.done) {
            mapped.open_sent_at = Instant::now();
        }
        Ok(passed)
    }

    /// Sends open pages, then what else stands at the end of a session, the last counters at last.
    fn end(&mut self, out: &mut Outgoing<'_>) -> Result<Passed, PassError> {
        if let Some(mapped) = &mut self.mapped {
            mapped.copy_open_spans();
        }
        let passed = self.pass(SessionDrain::fill_open, out)?;
        if let Some(mapped) = self.mapped.as_mut().filter(|_| passed.done) {
            let ended = mapped.drain.session().ended();
            mapped.drained = ended && mapped.drain.is_drained();
            let finality = Finality::final_if(mapped.drained);
            out.send_last_words(&mapped.take_last_words(ended))?;
            let content = mapped.drain.counters(finality, None)?;
            out.send_counters(self.uuid, &content)?;
            out.note_sent(self.uuid, Release::pages(mapped.drain.taken()));
            self.sent_all(ended);
        }
        Ok(passed)
    }

    /// Takes the next step towards an end now: what the session writes from now on is not streamed.
    pub(super) fn leave(&mut self, out: &mut Outgoing<'_>) -> Result<Passed, PassError> {
        if let Some(mapped) = &mut self.mapped {
            mapped.passed_at = None;
        }
        let passed = self.advance(out)?;
        if self.is_held() {
            self.stage = Stage::Sent;
        } else if self.stage == Stage::Streaming && passed.done {
            self.stage = Stage::Ending;
            return Ok(passed.and(self.end(out)?));
        }
        Ok(passed)
    }

    /// Fills and sends batches until the pass is done or the credit is short.
    fn pass(&mut self, fill: FillPass, out: &mut Outgoing<'_>) -> Result<Passed, PassError> {
        let mut pages = 0;
        let Some(mapped) = &mut self.mapped else {
            return Ok(NOTHING);
        };
        while out.has_room()? {
            out.batch.clear(BATCH_BYTES);
            let mut filled = fill(&mut mapped.drain, out.batch)?;
            if filled == Fill::BatchFull && out.batch.is_empty() {
                // A page larger than a batch goes alone.
                out.batch.clear(u64::MAX);
                filled = fill(&mut mapped.drain, out.batch)?;
            }
            pages += out.batch.pages();
            out.send_schema(self.uuid, &mut mapped.drain)?;
            if !out.batch.is_empty() {
                match mapped
                    .by_reference
                    .as_ref()
                    .filter(|_| out.connection.takes_references())
                {
                    Some(file) => {
                        let blocks = out.batch.bytes();
                        zero_copy::send_batch(blocks, &mapped.drain, file, out.connection)?;
                        if zero_copy::releases_when_sent() {
                            mapped.drain.release();
                        }
                    }
                    None => out.send_batch(self.uuid)?,
                }
                let taken = mapped.drain.taken();
                let taken_to = taken.iter().map(|p| (p.slot, p.next_page));
                self.sent_to.extend(taken_to);
                out.note_sent(self.uuid, Release::pages(taken));
            }
            if filled == Fill::PassDone {
                return Ok(Passed { pages, done: true });
            }
        }
        Ok(Passed { pages, done: false })
    }

    /// Sends what waits on disk, without what the collector has.
    fn send_spilled(&mut self, out: &mut Outgoing<'_>) -> Result<Passed, PassError> {
        let mut pages = 0;
        let Some(spill) = &mut self.spill else {
            return Ok(NOTHING);
        };
        while !spill.is_read() {
            if !out.has_room()? {
                return Ok(Passed { pages, done: false });
            }
            let piece = spill.read().unwrap_or_else(|error| {
                out.notices.push(error.to_string());
                Vec::new()
            });
            if let Some(mapped) = &mut self.mapped {
                out.send_schema(self.uuid, &mut mapped.drain)?;
            }
            let schema = match self.mapped {
                Some(_) => SpilledSchema::LeaveOut,
                None => SpilledSchema::Send,
            };
            let missing = missing_blocks(&piece, &mut self.sent_to, schema);
            out.send_blocks(self.uuid, &missing.blocks)?;
            out.note_sent(self.uuid, Release::spilled(spill.read_to()));
            pages += missing.pages;
        }
        Ok(Passed { pages, done: true })
    }

    /// Sends counters, if they differ from the last ones.
    pub(super) fn count(&mut self, out: &mut Outgoing<'_>) -> Result<(), PassError> {
        let Some(mapped) = self
            .mapped
            .as_mut()
            .filter(|_| self.stage == Stage::Streaming && self.hold == Hold::Never)
        else {
            return Ok(());
        };
        mapped.drain.session().check_size()?;
        out.batch.clear(u64::MAX);
        let content = mapped.drain.counters(Finality::Interim, Some(out.batch))?;
        if mapped.counters.differ_from(&content) {
            out.send_counters(self.uuid, &content)?;
        }
        Ok(())
    }

    /// Moves sealed pages to the spill if they must not wait in their rings any longer; see
    /// [`to_spill::is_due`]. A session without a spill keeps its pages.
    pub(super) fn spill_pages(
        &mut self,
        waits: Waits,
        batch: &mut Batch,
    ) -> Result<Spilled, ReaderError> {
        let stays = matches!(self.stage, Stage::Ending | Stage::Sent) || self.is_held();
        let Some(mapped) = self.mapped.as_mut().filter(|_| !stays) else {
            return Ok(Spilled::default());
        };
        mapped.drain.session().check_size()?;
        // Before there is a connection this also maps the rings of threads that come.
        let fullest = mapped.drain.fullest_held();
        let Some(spill) = &mut self.spill else {
            return Ok(Spilled::default());
        };
        let spilled = match to_spill::is_due(fullest, waits) {
            true => {
                mapped.rewound = true;
                to_spill::move_pages(&mut mapped.drain, spill, batch)?
            }
            false => Spilled::default(),
        };
        Ok(Spilled { fullest, ..spilled })
    }

    /// Marks a session that was read to its end and is durable, or of which nothing is wanted, as
    /// consumed; removes its ring file unless it requests to be kept.
    pub(super) fn remove_if_drained(
        &self,
        alone: impl FnOnce(&Path) -> bool,
    ) -> Result<(), ReaderError> {
        let is_done = |mapped: &&MappedSession| mapped.drained || self.hold == Hold::Unwanted;
        let Some(mapped) = self.mapped.as_ref().filter(is_done) else {
            return Ok(());
        };
        let session = mapped.drain.session();
        session.set_taken();
        session.remove_drained(RemovalScope::NotKept, alone)
    }
}
