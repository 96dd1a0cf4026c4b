//! A session drained page by page: fill a batch, have it written, release what was in it.
//!
//! ```text
//! fill ── batch ── written for good ── release     the writer may reuse the pages
//!                └─ not written ────── rewind      the next pass takes them again
//! ```
//!
//! A caller that sends instead of writing learns later, and out of step, what is safe: it keeps
//! [`SessionDrain::taken`] with each batch and passes it to [`SessionDrain::release_to`].

mod figures;
mod newest;

#[cfg(feature = "stream")]
use ringmark_format::Uuid;
use ringmark_format::session::SessionHeader;
use zerocopy::IntoBytes;

use crate::error::ReaderError;
use crate::pages::batch::Batch;
use crate::pages::counters;
pub use crate::pages::counters::Finality;
use crate::pages::page_copy::{NotTaken, Visit};
use crate::pages::pass::Pass;
use crate::pages::positions::SlotPosition;
use crate::pages::schema;
pub use crate::pages::schema::SchemaPiece;
use crate::pages::slot_reader::SlotReader;
use crate::sessions::session::Session;
use crate::sessions::thread_names::ThreadNames;
use crate::share::Share1024;

/// Where a pass stands after [`SessionDrain::fill`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// The batch is full: write it, release, and fill again.
    BatchFull,
    /// All that waited when the pass came to each slot is in this batch or an earlier one.
    PassDone,
}

/// One call of a pass, as [`SessionDrain::fill`] is one: it fills a batch and may have to be
/// repeated until the pass is done.
pub(crate) type FillPass = fn(&mut SessionDrain, &mut Batch) -> Result<Fill, ReaderError>;

/// Reads one session from where its consumer stopped (discard), or from the oldest page that is
/// still there (overwrite, or observed without consuming).
#[derive(Debug)]
pub struct SessionDrain {
    session: Session,
    /// Whether nothing is released although the session was opened for consuming.
    observe: bool,
    slots: Vec<SlotReader>,
    pass: Pass,
    /// Bytes of the schema stream that are written.
    schema_written: u64,
    /// Pages whose events all lie before this `CLOCK_MONOTONIC` time, in ns, are left out.
    oldest_ns: u64,
    /// Part of the fullest ring that the present pass found sealed.
    fullest: Share1024,
    /// Whether pages that are gone are noted by number.
    notes_holes: bool,
    names: ThreadNames,
}

impl SessionDrain {
    /// A drain that has read nothing yet.
    #[must_use]
    pub fn new(session: Session) -> Self {
        Self {
            session,
            observe: false,
            slots: Vec::new(),
            pass: Pass::default(),
            schema_written: 0,
            oldest_ns: 0,
            fullest: Share1024::default(),
            notes_holes: false,
            names: ThreadNames::default(),
        }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// What its threads are called.
    pub(crate) fn names(&self) -> &ThreadNames {
        &self.names
    }

    /// Looks at what all its threads are called now.
    pub(crate) fn look_at_names(&mut self) {
        self.names.look_at_all(&self.session);
    }

    /// A drain that releases nothing, whatever the session was opened for. It starts at the oldest
    /// page that is still in memory, released or not.
    #[must_use]
    pub fn observing(session: Session) -> Self {
        Self {
            observe: true,
            ..Self::new(session)
        }
    }

    fn consumes(&self) -> bool {
        self.session.consumes() && !self.observe
    }

    /// Has the session go by another uuid from now on.
    #[cfg(feature = "stream")]
    pub(crate) fn set_uuid(&mut self, uuid: Uuid) {
        self.session.set_uuid(uuid);
    }

    /// Gives the session back, to be read in another way.
    #[must_use]
    pub fn into_session(self) -> Session {
        self.session
    }

    /// Content of the SESSION block: the validated header, and the session's attributes.
    #[must_use]
    pub fn session_content(&self) -> Vec<u8> {
        let geometry = self.session.ring().geometry();
        let mut header: SessionHeader = geometry.header;
        header.attributes_bytes = geometry.attributes.len() as u32;
        header.session = self.session.uuid().0;
        let mut content = header.as_bytes().to_vec();
        content.extend_from_slice(&geometry.attributes);
        content
    }

    /// The next piece of schema that is published and not written. It is to be asked for after
    /// pages were copied and before they are written: the type of a record is published before the
    /// record, so what these pages need is there by then.
    #[must_use]
    pub fn peek_schema(&self) -> Option<SchemaPiece> {
        self.schema_at(self.schema_written)
    }

    /// Published schema from `offset` on; `None`: there is none yet.
    #[must_use]
    pub fn schema_at(&self, offset: u64) -> Option<SchemaPiece> {
        schema::piece_at(&self.session, offset)
    }

    /// Counts the first `bytes` of what [`SessionDrain::peek_schema`] returned as written.
    pub fn schema_written(&mut self, bytes: usize) {
        self.schema_written += bytes as u64;
    }

    /// Leaves out pages whose events all lie before this `CLOCK_MONOTONIC` time in ns.
    pub fn keep_since(&mut self, mono_ns: u64) {
        self.oldest_ns = mono_ns;
    }

    /// Goes on with a pass over all slots, or begins one: copies sealed pages into the batch, each
    /// slot's oldest first.
    ///
    /// # Errors
    /// The ring file was truncated: its mapping must not be touched any more.
    pub fn fill(&mut self, batch: &mut Batch) -> Result<Fill, ReaderError> {
        if self.pass.is_at_first_slot() {
            self.session.check_size()?;
            self.follow_new_slots();
            self.names.look(&self.session);
            self.fullest = Share1024::default();
            self.pass.allow(self.session.ring().map().bytes());
        }
        while self.pass.slot() < self.slots.len() {
            if self.fill_from_slot(self.pass.slot(), batch) == Fill::BatchFull {
                return self.session.check_whole().map(|()| Fill::BatchFull);
            }
            self.pass.leave_slot();
        }
        self.pass.end();
        self.session.check_whole().map(|()| Fill::PassDone)
    }

    fn fill_from_slot(&mut self, index: usize, batch: &mut Batch) -> Fill {
        let ring = self.session.ring();
        let Some(slot) = ring.slot(index as u32) else {
            return Fill::PassDone;
        };
        let reader = &mut self.slots[index];
        let Some(there) = reader.look(ring, &slot) else {
            return Fill::PassDone;
        };
        self.fullest = self.fullest.max(reader.take_fullest());
        let Some(end) = self.pass.visit(&there) else {
            return Fill::PassDone;
        };
        let visit = Visit {
            file: ring,
            session: self.session.uuid(),
            there,
            end,
        };
        // Bounded by the ring's pages: `look` keeps `next` that close to `sealed_end`.
        while reader.next() < there.sealed_end.min(end) {
            if self.oldest_ns > 0 && reader.skip_before(ring, &there, self.oldest_ns) {
                continue;
            }
            if reader.take_sealed(&visit, batch) == Err(NotTaken::BatchFull) {
                return Fill::BatchFull;
            }
        }
        Fill::PassDone
    }

    /// Bytes of all pages that a pass would take now. [`SessionDrain::fullest`] is then as of this
    /// call.
    pub fn waiting_bytes(&mut self) -> u64 {
        self.follow_new_slots();
        let ring = self.session.ring();
        self.fullest = Share1024::default();
        let mut bytes: u64 = 0;
        for reader in &mut self.slots {
            let slot = ring.slot(reader.index());
            if let Some(there) = slot.and_then(|slot| reader.look(ring, &slot)) {
                let pages = there.sealed_end.saturating_sub(reader.next());
                let page_bytes = u64::from(there.geometry.page_bytes);
                bytes = bytes.saturating_add(pages.saturating_mul(page_bytes));
            }
            self.fullest = self.fullest.max(reader.take_fullest());
        }
        bytes
    }

    /// Offset of a page in the ring file, if its slot was looked at and the page was copied as it
    /// lies there.
    #[must_use]
    pub fn page_offset(&self, slot: u32, page: u64) -> Option<u64> {
        self.slots.get(slot as usize)?.page_offset(page)
    }

    /// Goes on with a pass over all slots, or begins one: copies what is committed in open pages.
    /// It is to be called when the pass of [`SessionDrain::fill`] is done.
    ///
    /// # Errors
    /// As [`SessionDrain::fill`].
    pub fn fill_open(&mut self, batch: &mut Batch) -> Result<Fill, ReaderError> {
        self.pass_open(batch, SlotReader::take_tail)
    }

    /// As [`SessionDrain::fill_open`], but leaves out open pages that have not grown since the last
    /// such pass.
    ///
    /// # Errors
    /// As [`SessionDrain::fill`].
    pub fn fill_news(&mut self, batch: &mut Batch) -> Result<Fill, ReaderError> {
        self.pass_open(batch, SlotReader::take_news)
    }

    /// As [`SessionDrain::fill_open`], but takes only pages that the last such pass found open,
    /// too, and that have changed since they were taken: those of threads that write little.
    ///
    /// # Errors
    /// As [`SessionDrain::fill`].
    pub fn fill_lingering(&mut self, batch: &mut Batch) -> Result<Fill, ReaderError> {
        self.pass_open(batch, SlotReader::take_lingering)
    }

    fn pass_open(&mut self, batch: &mut Batch, take: TakeOpen) -> Result<Fill, ReaderError> {
        if self.pass.is_at_first_slot() {
            self.session.check_size()?;
            self.pass.allow(self.session.ring().map().bytes());
        }
        while self.pass.slot() < self.slots.len() {
            if self.fill_open_slot(self.pass.slot(), batch, take) == Fill::BatchFull {
                return self.session.check_whole().map(|()| Fill::BatchFull);
            }
            self.pass.leave_slot();
        }
        self.pass.end();
        self.session.check_whole().map(|()| Fill::PassDone)
    }

    fn fill_open_slot(&mut self, index: usize, batch: &mut Batch, take: TakeOpen) -> Fill {
        let ring = self.session.ring();
        let Some(slot) = ring.slot(index as u32) else {
            return Fill::PassDone;
        };
        let reader = &mut self.slots[index];
        let Some(there) = reader.look(ring, &slot) else {
            return Fill::PassDone;
        };
        let Some(end) = self.pass.visit(&there) else {
            return Fill::PassDone;
        };
        let visit = Visit {
            file: ring,
            session: self.session.uuid(),
            there,
            end,
        };
        match take(reader, &visit, batch) {
            Err(NotTaken::BatchFull) => return Fill::BatchFull,
            Ok(()) => {}
            Err(NotTaken::Gone) => reader.count_events(ring, &slot, batch),
        }
        Fill::PassDone
    }

    /// Counts every page taken as written: *consumed* moves over them, if this drain consumes.
    pub fn release(&mut self) {
        let consumes = self.consumes();
        for (index, reader) in self.slots.iter_mut().enumerate() {
            let slot = self.session.ring().slot(index as u32);
            reader.written(slot.as_ref().filter(|_| consumes));
        }
    }

    /// How far every slot was taken: what [`SessionDrain::release_to`] wants once that is safe.
    #[must_use]
    pub fn taken(&self) -> Vec<SlotPosition> {
        self.slots.iter().map(SlotReader::position).collect()
    }

    /// Counts the pages before these positions, which [`SessionDrain::taken`] returned, as written
    /// elsewhere: *consumed* moves over them, if this drain consumes.
    pub fn release_to(&mut self, positions: &[SlotPosition]) {
        let consumes = self.consumes();
        for at in positions {
            if let Some(reader) = self.slots.get_mut(at.slot as usize) {
                let slot = self.session.ring().slot(at.slot);
                reader.written_to(at.next_page, slot.as_ref().filter(|_| consumes));
            }
        }
    }

    /// Goes on after what a collector already has: the pages before these positions, and the first
    /// `schema_bytes` of the schema. Its pages are released as by [`SessionDrain::release_to`].
    pub fn resume(&mut self, positions: &[SlotPosition], schema_bytes: u64) {
        self.rewind();
        self.follow_new_slots();
        let ring = self.session.ring();
        let there = positions
            .iter()
            .filter_map(|&SlotPosition { slot, next_page }| {
                // A collector may be wrong, or lie: no position lies beyond what was produced.
                let next_page = next_page.min(ring.slot(slot)?.produced());
                Some(SlotPosition { slot, next_page })
            });
        let there: Vec<_> = there.collect();
        self.skip_to(&there);
        self.release_to(&there);
        self.schema_written = schema_bytes;
    }

    /// Goes on at these positions after a [`SessionDrain::rewind`], without releasing anything: the
    /// pages before them are on their way already.
    pub fn skip_to(&mut self, positions: &[SlotPosition]) {
        for at in positions {
            if let Some(reader) = self.slots.get_mut(at.slot as usize) {
                reader.skip_taken(at.next_page);
            }
        }
    }

    /// Goes back to the last [`SessionDrain::release`]: what was taken since could not be written,
    /// and a new pass takes it again.
    pub fn rewind(&mut self) {
        self.pass.end();
        self.slots.iter_mut().for_each(SlotReader::rewind);
    }

    /// Content of a COUNTERS block. With `recount`, open pages are walked once more for the number
    /// of their records; that batch must have room for a page and is left as it was.
    ///
    /// # Errors
    /// The ring file was truncated.
    pub fn counters(
        &mut self,
        finality: Finality,
        recount: Option<&mut Batch>,
    ) -> Result<Vec<u8>, ReaderError> {
        if let Some(batch) = recount {
            self.recount(batch);
        }
        let ring = self.session.ring();
        let entries: Vec<_> = self
            .slots
            .iter()
            .filter_map(|reader| Some((reader, ring.slot(reader.index())?)))
            .filter(|(_, slot)| slot.claims() > 0)
            .map(|(reader, slot)| counters::of_slot(reader.index(), &slot, reader.events()))
            .collect();
        let content = counters::content(&self.session, &entries, finality);
        self.session.check_whole().map(|()| content)
    }

    /// Walks open pages for the number of their records. `batch` must have room for a page, and is
    /// left as it was.
    pub(crate) fn recount(&mut self, batch: &mut Batch) {
        self.follow_new_slots();
        let ring = self.session.ring();
        for reader in &mut self.slots {
            if let Some(slot) = ring.slot(reader.index()) {
                reader.count_events(ring, &slot, batch);
            }
        }
    }

    /// Slots that were claimed so far, as of the last pass: the entries of a COUNTERS block.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Whether every slot was seen and at most its newest page was not taken.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let ring = self.session.ring();
        ring.slots_used() as usize <= self.slots.len()
            && self.slots.iter().all(|reader| {
                ring.slot(reader.index())
                    .is_none_or(|slot| reader.next() >= slot.produced().saturating_sub(1))
            })
    }

    /// The part of the fullest ring that the last pass found sealed: how close the program came to
    /// losing events.
    #[must_use]
    pub fn fullest(&self) -> Share1024 {
        self.fullest
    }

    /// The part of the fullest ring that is sealed and not released now, taken or not.
    #[must_use]
    pub fn fullest_held(&mut self) -> Share1024 {
        self.follow_new_slots();
        let ring = self.session.ring();
        let held = self.slots.iter_mut().filter_map(|reader| {
            let slot = ring.slot(reader.index())?;
            reader.held(ring, &slot)
        });
        held.max().unwrap_or_default()
    }

    fn follow_new_slots(&mut self) {
        let ring = self.session.ring();
        let discard = self.consumes();
        for index in self.slots.len() as u32..ring.slots_used() {
            let consumed = ring.slot(index).filter(|_| discard).map(|s| s.consumed());
            let mut reader = SlotReader::new(index, consumed);
            if self.notes_holes {
                reader.note_holes();
            }
            self.slots.push(reader);
        }
    }
}

/// What one kind of pass over open pages takes of a slot.
type TakeOpen = fn(&mut SlotReader, &Visit<'_>, &mut Batch) -> Result<(), NotTaken>;
