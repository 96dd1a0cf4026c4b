//! One session being streamed: announced, resumed, its pages sent, those that wait on disk first.
//!
//! ```text
//! New ── SESSION ── Announced ── RESUME ── Streaming ── session ended ── Ending ── Sent
//!  └──────────────── the connection was lost: from any stage ────────────────────────┘
//! ```
//!
//! What survives a connection: the rings, the files on disk, and what was acknowledged
//! ([`Ledger`]). Pages leave the rings in three ways: the collector acknowledged them,
//! they were moved to disk ([`to_spill`]), or they were found on disk already when the session was
//! met.
//!
//! The pages of a session in overwrite mode may wait for a trigger ([`upload`]). Then it is announced
//! once something happened, sent with its open pages, and waits again.

mod hold;
mod holes;
mod kept;
mod mapped;
mod pass;
mod progress;
mod send;
mod to_spill;
mod upload;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use ringmark_format::Uuid;
use ringmark_format::progress::ALL_SENT;

use hold::Hold;
use mapped::MappedSession;
pub(super) use pass::PassError;
use pass::{NOTHING, Passed};
pub use send::BATCH_BYTES;
pub(super) use to_spill::Spilled;
pub use to_spill::{Waits, is_due as is_spill_due};

use super::acked_file::AckedFile;
use super::delivered::Resumed;
use super::in_flight::Release;
use super::ledger::Ledger;
use super::outgoing::Outgoing;
use super::own_uuid;
use super::spill::Spill;
use crate::error::ReaderError;
use crate::pages::batch::Batch;
use crate::pages::counters::LastCounters;
use crate::pages::drain::{Finality, SessionDrain};
use crate::pages::positions::SlotPosition;
use crate::sessions::session::Session;

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
    /// It goes by a uuid that is not in its ring file.
    is_apart: bool,
    /// What was sent, acknowledged and lost.
    ledger: Ledger,
    /// Where that is kept on disk; `None`: the rings say it.
    acked_file: Option<AckedFile>,
    /// A part of the spill could not be read.
    spill_failed: bool,
    /// When PROGRESS was sent last.
    told_at: Option<Instant>,
    hold: Hold,
    /// How often something had what was in its rings sent.
    pub(super) uploads: u64,
}

impl StreamedSession {
    /// A session that was found, with its pages that wait on disk.
    pub(super) fn new(session: Session, spill: Option<Spill>) -> Self {
        let uuid = session.uuid();
        let mut acked_file = AckedFile::of(&session);
        let kept = acked_file.as_mut().map(AckedFile::read);
        let ledger = Ledger::new(kept.unwrap_or_default());
        let mut drain = SessionDrain::new(session).noting_holes();
        if let Some(spill) = &spill {
            // The streamer that wrote them there may have been killed before it released them.
            drain.resume(&spill.ends(), 0);
        }
        Self {
            is_apart: uuid != Uuid(drain.session().header().session),
            mapped: Some(MappedSession::new(drain)),
            acked_file,
            ..Self::with(uuid, ledger, spill)
        }
    }

    /// A session of which only the spill is left.
    pub(super) fn on_disk(uuid: Uuid, spill: Spill) -> Self {
        Self::with(uuid, Ledger::default(), Some(spill))
    }

    fn with(uuid: Uuid, mut ledger: Ledger, spill: Option<Spill>) -> Self {
        if let Some(spill) = &spill {
            ledger.gone.add(spill.gone().all());
        }
        Self {
            uuid,
            stage: Stage::New,
            mapped: None,
            spill,
            is_apart: false,
            ledger,
            acked_file: None,
            spill_failed: false,
            told_at: None,
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

    /// The same session under a uuid of its own. `None`: it has one already.
    pub(super) fn under_own_uuid(mut self, host: &str) -> Option<Self> {
        if self.is_apart {
            return None;
        }
        self.begin_again();
        let uuid = own_uuid::of(self.uuid, host);
        let acked = self.acked();
        let mut ledger = Ledger::new(self.ledger.delivered.of_another_uuid());
        ledger.gone.add(&own_uuid::elsewhere(&acked));
        ledger.gone.add(self.ledger.gone.unacknowledged());
        if let Some(mapped) = &mut self.mapped {
            mapped.drain.set_uuid(uuid);
        }
        Some(Self {
            uuid,
            ledger,
            is_apart: true,
            spill_failed: false,
            told_at: None,
            ..self
        })
    }

    /// For each slot, the page before which all was acknowledged: neither the rings nor the spill have
    /// more of it to send.
    fn acked(&mut self) -> BTreeMap<u32, u64> {
        let mut acked = self.ledger.delivered.acked().clone();
        let taken = self.mapped.as_ref().map(|mapped| mapped.drain.taken());
        for at in taken.unwrap_or_default() {
            let known = acked.entry(at.slot).or_default();
            *known = at.next_page.max(*known);
        }
        let begins = self.spill.iter().filter(|spill| !spill.is_empty());
        for (slot, page) in begins.flat_map(Spill::begins) {
            // The rings gave more than that away, to the spill.
            let known = self.ledger.delivered.acked().get(slot);
            acked.insert(*slot, known.map_or(*page, |known| *known.max(page)));
        }
        acked
    }

    /// Its drain; `None`: only its spill is left.
    pub(super) fn drain(&self) -> Option<&SessionDrain> {
        self.mapped.as_ref().map(|mapped| &mapped.drain)
    }

    /// Begins again after a lost connection: what is not durable will be taken again.
    pub(super) fn begin_again(&mut self) {
        self.stage = Stage::New;
        self.note_holes();
        self.ledger.begin_again();
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

    /// Begins to send pages, after those that this collector has, or that another one acknowledged.
    pub(super) fn resume(&mut self, store: [u8; 16], said: &Resumed) {
        if self.stage != Stage::Announced {
            return;
        }
        let (mapped, spill) = (&mut self.mapped, &self.spill);
        let start = self.ledger.resume(store, said, |slot| {
            let produced = mapped.as_ref().map_or(0, |m| m.drain.produced(slot));
            produced.max(spill.as_ref().map_or(0, |spill| spill.end_of(slot)))
        });
        for (slot, page) in spill.iter().flat_map(Spill::begins) {
            self.ledger.sent_to.entry(*slot).or_insert(*page);
        }
        if let Some(mapped) = mapped {
            mapped.drain.resume(&start.slots, start.schema_bytes);
            let waits = spill.as_ref().is_some_and(|spill| !spill.is_empty());
            if mapped.drain.session().consumes() && !waits {
                self.ledger.delivered.begin_at(&mapped.drain.taken());
            }
        }
        self.stage = Stage::Streaming;
    }

    /// Releases what a durable batch held, pages in rings or files on disk: they are in this store.
    pub(super) fn release(
        &mut self,
        durable: &Release,
        store: [u8; 16],
    ) -> Result<(), ReaderError> {
        self.ledger.release(durable, store);
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
            (None, spill) => {
                let content = spill.as_ref().map(Spill::session_content);
                own_uuid::of_content(content.unwrap_or_default(), self.uuid).into_owned()
            }
        };
        out.send_session(self.uuid, &content)?;
        self.stage = Stage::Announced;
        Ok(NOTHING)
    }

    fn stream(&mut self, out: &mut Outgoing<'_>) -> Result<Passed, PassError> {
        if self.ledger.is_to_tell() && out.has_room()? {
            self.tell_gone(out)?;
        }
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
            mapped
                .drain
                .skip_to(&SlotPosition::list(&self.ledger.sent_to));
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
            let taken = mapped.taken();
            self.tell_progress(ALL_SENT, out)?;
            out.send_counters(self.uuid, &content)?;
            out.note_sent(self.uuid, taken);
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

    /// Sends counters, if they differ from the last ones.
    pub(super) fn count(&mut self, out: &mut Outgoing<'_>) -> Result<(), PassError> {
        let is_unheard = self.is_long_unheard();
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
        if mapped.counters.differ_from(&content) || is_unheard {
            out.send_counters(self.uuid, &content)?;
        }
        Ok(self.tell_acked(out)?)
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
                to_spill::move_pages(&mut mapped.drain, &mut self.ledger, spill, batch)?
            }
            false => Spilled::default(),
        };
        Ok(Spilled { fullest, ..spilled })
    }
}
