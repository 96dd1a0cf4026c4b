//! A session drained page by page: fill a batch, have it written, release what was in it.

use ringmark_format::session::SessionHeader;
use zerocopy::IntoBytes;

use crate::error::ReaderError;
use crate::pages::batch::Batch;
use crate::pages::counters;
use crate::pages::page_copy::{NotTaken, Visit};
use crate::pages::positions::SlotPosition;
use crate::pages::slot_reader::SlotReader;
use crate::sessions::session::Session;

/// Most schema bytes that are taken from one session.
const SCHEMA_BYTES_MAX: u64 = 64 << 20;
/// Most schema bytes that are taken at once.
const SCHEMA_PIECE: u64 = 1 << 20;

/// Where a pass stands after [`SessionDrain::fill`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// The batch is full: write it, release, and fill again.
    BatchFull,
    /// All that waited when the pass came by is in the batch.
    PassDone,
}

/// Reads one session from where its consumer stopped (discard) or from the oldest page that is
/// still there (overwrite, or observed without consuming).
#[derive(Debug)]
pub struct SessionDrain {
    session: Session,
    observe: bool,
    slots: Vec<SlotReader>,
    cursor: usize,
    /// Where this pass ends in the slot at `cursor`: a fast writer must not keep it there.
    pass_end: Option<u64>,
    schema_written: u64,
    oldest_ns: u64,
    fill: u32,
    /// Bytes of rings that this pass may still come by: rings that overlap could keep it for ever.
    budget: u64,
}

impl SessionDrain {
    /// A drain that has read nothing yet.
    #[must_use]
    pub fn new(session: Session) -> Self {
        Self {
            session,
            observe: false,
            slots: Vec::new(),
            cursor: 0,
            pass_end: None,
            schema_written: 0,
            oldest_ns: 0,
            fill: 0,
            budget: 0,
        }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// A drain that only looks, whatever the session was opened for: it starts at the oldest page
    /// that is still in memory, released or not.
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

    /// Gives the session back, to be read in another way.
    #[must_use]
    pub fn into_session(self) -> Session {
        self.session
    }

    /// Content of the SESSION block.
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

    /// Schema bytes that are published and not written yet, with their offset in the stream; at
    /// most 1 MiB. To be called after pages were copied and before they are written: the type of
    /// a record is published before the record.
    #[must_use]
    pub fn peek_schema(&self) -> Option<(u64, Vec<u8>)> {
        let bytes = self.schema_at(self.schema_written)?;
        Some((self.schema_written, bytes))
    }

    /// Published schema bytes from `offset` on, as [`SessionDrain::peek_schema`] gives them.
    #[must_use]
    pub fn schema_at(&self, offset: u64) -> Option<Vec<u8>> {
        let left = SCHEMA_BYTES_MAX.saturating_sub(offset);
        let log = self.session.ring().schema_log();
        let bytes = log.read_at_most(offset, left.min(SCHEMA_PIECE));
        (!bytes.is_empty()).then_some(bytes)
    }

    /// The first `bytes` of what [`SessionDrain::peek_schema`] returned are written.
    pub fn schema_written(&mut self, bytes: usize) {
        self.schema_written += bytes as u64;
    }

    /// Leaves out pages whose events all lie before this `CLOCK_MONOTONIC` time in ns.
    pub fn keep_since(&mut self, mono_ns: u64) {
        self.oldest_ns = mono_ns;
    }

    /// Goes on with a pass over all slots: copies sealed pages into the batch, oldest first.
    ///
    /// # Errors
    /// The ring file was truncated: its mapping must not be touched any more.
    pub fn fill(&mut self, batch: &mut Batch) -> Result<Fill, ReaderError> {
        if self.cursor == 0 {
            self.session.check_size()?;
            self.follow_new_slots();
            self.fill = 0;
            self.budget = self.session.ring().map().bytes();
        }
        while self.cursor < self.slots.len() {
            if self.fill_from_slot(self.cursor, batch) == Fill::BatchFull {
                return self.session.check_whole().map(|()| Fill::BatchFull);
            }
            self.cursor += 1;
            self.pass_end = None;
        }
        self.cursor = 0;
        self.session.check_whole().map(|()| Fill::PassDone)
    }

    fn fill_from_slot(&mut self, index: usize, batch: &mut Batch) -> Fill {
        let ring = self.session.ring();
        let Some(slot) = ring.slot(index as u32) else {
            return Fill::PassDone;
        };
        let reader = &mut self.slots[index];
        let Some(waiting) = reader.waiting(ring, &slot) else {
            return Fill::PassDone;
        };
        self.fill = self.fill.max(reader.take_fill_1024());
        if self.pass_end.is_none() && !take_from(&mut self.budget, waiting.geometry.ring_bytes()) {
            return Fill::PassDone;
        }
        let visit = Visit {
            file: ring,
            session: self.session.uuid(),
            waiting,
            end: *self.pass_end.get_or_insert(waiting.sealed_end),
        };
        // Bounded by the ring's pages: `waiting` keeps `next` that close to `sealed_end`.
        while reader.next() < waiting.sealed_end.min(visit.end) {
            if self.oldest_ns > 0 && reader.skip_before(ring, &waiting, self.oldest_ns) {
                continue;
            }
            if reader.take_sealed(&visit, batch) == Err(NotTaken::BatchFull) {
                return Fill::BatchFull;
            }
        }
        Fill::PassDone
    }

    /// Bytes of all pages that a pass would take now. How full the fullest ring is then says
    /// [`SessionDrain::fill_1024`].
    pub fn waiting_bytes(&mut self) -> u64 {
        self.follow_new_slots();
        let ring = self.session.ring();
        self.fill = 0;
        let mut bytes: u64 = 0;
        for reader in &mut self.slots {
            let slot = ring.slot(reader.index());
            if let Some(waiting) = slot.and_then(|slot| reader.waiting(ring, &slot)) {
                let pages = waiting.sealed_end.saturating_sub(reader.next());
                let page_bytes = u64::from(waiting.geometry.page_bytes);
                bytes = bytes.saturating_add(pages.saturating_mul(page_bytes));
            }
            self.fill = self.fill.max(reader.take_fill_1024());
        }
        bytes
    }

    /// Where a page of a slot lies in the ring file, if that was looked at before.
    #[must_use]
    pub fn page_offset(&self, slot: u32, page: u64) -> Option<u64> {
        self.slots.get(slot as usize)?.page_offset(page)
    }

    /// Goes on with a pass over all slots: copies what is committed in open pages. Call it when
    /// [`SessionDrain::fill`] said that its pass is done.
    ///
    /// # Errors
    /// As [`SessionDrain::fill`].
    pub fn fill_open(&mut self, batch: &mut Batch) -> Result<Fill, ReaderError> {
        self.pass_open(batch, SlotReader::take_tail)
    }

    /// As [`SessionDrain::fill_open`], but for open pages that nothing was added to since the last.
    ///
    /// # Errors
    /// As [`SessionDrain::fill`].
    pub fn fill_news(&mut self, batch: &mut Batch) -> Result<Fill, ReaderError> {
        self.pass_open(batch, SlotReader::take_news)
    }

    /// As [`SessionDrain::fill_open`], of the pages that the last such pass found open, too, and
    /// that have changed since it took them: those of threads that write little.
    ///
    /// # Errors
    /// As [`SessionDrain::fill`].
    pub fn fill_lingering(&mut self, batch: &mut Batch) -> Result<Fill, ReaderError> {
        self.pass_open(batch, SlotReader::take_lingering)
    }

    fn pass_open(&mut self, batch: &mut Batch, take: TakeOpen) -> Result<Fill, ReaderError> {
        if self.cursor == 0 {
            self.session.check_size()?;
            self.budget = self.session.ring().map().bytes();
        }
        while self.cursor < self.slots.len() {
            let ring = self.session.ring();
            let reader = &mut self.slots[self.cursor];
            if let Some((waiting, slot)) = ring
                .slot(self.cursor as u32)
                .and_then(|slot| Some((reader.waiting(ring, &slot)?, slot)))
                .filter(|(waiting, _)| {
                    let bytes = waiting.geometry.ring_bytes();
                    self.pass_end.is_some() || take_from(&mut self.budget, bytes)
                })
            {
                let visit = Visit {
                    file: ring,
                    session: self.session.uuid(),
                    waiting,
                    end: *self.pass_end.get_or_insert(waiting.sealed_end),
                };
                match take(reader, &visit, batch) {
                    Err(NotTaken::BatchFull) => {
                        return self.session.check_whole().map(|()| Fill::BatchFull);
                    }
                    Ok(()) => {}
                    Err(NotTaken::Gone) => reader.count_events(ring, &slot, batch),
                }
            }
            self.pass_end = None;
            self.cursor += 1;
        }
        self.cursor = 0;
        self.session.check_whole().map(|()| Fill::PassDone)
    }

    /// Marks what was taken as written: moves *consumed* over it, if this drain consumes.
    pub fn release(&mut self) {
        let consumes = self.consumes();
        for (index, reader) in self.slots.iter_mut().enumerate() {
            let slot = self.session.ring().slot(index as u32);
            reader.written(slot.as_ref().filter(|_| consumes));
        }
    }

    /// How far every slot was taken, for [`SessionDrain::release_to`].
    #[must_use]
    pub fn taken(&self) -> Vec<SlotPosition> {
        self.slots.iter().map(SlotReader::position).collect()
    }

    /// Marks what was taken up to these positions, which [`SessionDrain::taken`] gave, as safe
    /// elsewhere: moves *consumed* over it, if this drain consumes.
    pub fn release_to(&mut self, positions: &[SlotPosition]) {
        let consumes = self.consumes();
        for at in positions {
            if let Some(reader) = self.slots.get_mut(at.slot as usize) {
                let slot = self.session.ring().slot(at.slot);
                reader.written_to(at.next_page, slot.as_ref().filter(|_| consumes));
            }
        }
    }

    /// Goes on after what a peer has already: pages before these, and the first
    /// `schema_bytes` of the schema. Pages are released as by [`SessionDrain::release_to`].
    pub fn resume(&mut self, positions: &[SlotPosition], schema_bytes: u64) {
        self.rewind();
        self.follow_new_slots();
        let ring = self.session.ring();
        let there = positions
            .iter()
            .filter_map(|&SlotPosition { slot, next_page }| {
                // The peer that said it may be wrong, or lie.
                let next_page = next_page.min(ring.slot(slot)?.produced());
                Some(SlotPosition { slot, next_page })
            });
        let there: Vec<_> = there.collect();
        self.skip_to(&there);
        self.release_to(&there);
        self.schema_written = schema_bytes;
    }

    /// Goes on after what was taken before a [`SessionDrain::rewind`], which nothing is released
    /// of yet.
    pub fn skip_to(&mut self, positions: &[SlotPosition]) {
        for at in positions {
            if let Some(reader) = self.slots.get_mut(at.slot as usize) {
                reader.skip_to(at.next_page);
            }
        }
    }

    /// Goes back to the last [`SessionDrain::release`]: what was taken since could not be written,
    /// and a new pass takes it again.
    pub fn rewind(&mut self) {
        self.cursor = 0;
        self.pass_end = None;
        self.slots.iter_mut().for_each(SlotReader::rewind);
    }

    /// Content of a COUNTERS block. `finished`: the session has ended and everything was read.
    /// With `recount`, open pages are walked once more for the number of their records; `batch`
    /// must have room for a page and is left as it was.
    ///
    /// # Errors
    /// The ring file was truncated.
    pub fn counters(
        &mut self,
        finished: bool,
        recount: Option<&mut Batch>,
    ) -> Result<Vec<u8>, ReaderError> {
        let ring = self.session.ring();
        if let Some(batch) = recount {
            for reader in &mut self.slots {
                if let Some(slot) = ring.slot(reader.index()) {
                    reader.count_events(ring, &slot, batch);
                }
            }
        }
        let entries: Vec<_> = self
            .slots
            .iter()
            .filter_map(|reader| Some((reader, ring.slot(reader.index())?)))
            .filter(|(_, slot)| slot.claims() > 0)
            .map(|(reader, slot)| counters::of_slot(reader.index(), &slot, reader.events()))
            .collect();
        let content = counters::content(&self.session, &entries, finished);
        self.session.check_whole().map(|()| content)
    }

    /// Slots seen so far.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Events lost, all causes, all rings.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let ring = self.session.ring();
        let slots = self.slots.iter().filter_map(|r| ring.slot(r.index()));
        let lost = slots.flat_map(|slot| slot.lost()).chain(ring.lost());
        lost.fold(0, u64::saturating_add)
    }

    /// Whether every page was taken and released.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let ring = self.session.ring();
        ring.slots_used() as usize <= self.slots.len()
            && self.slots.iter().all(|reader| {
                ring.slot(reader.index())
                    .is_none_or(|slot| reader.next() >= slot.produced().saturating_sub(1))
            })
    }

    /// Pages that were overwritten, or gone, before they could be copied.
    #[must_use]
    pub fn pages_skipped(&self) -> u64 {
        let skipped = self.slots.iter().map(SlotReader::skipped);
        skipped.fold(0, u64::saturating_add)
    }

    /// How much of the fullest ring was found sealed in the last pass, in 1/1024 of its pages.
    #[must_use]
    pub fn fill_1024(&self) -> u32 {
        self.fill
    }

    /// How much of the fullest ring is sealed and not released, in 1/1024 of its pages.
    #[must_use]
    pub fn held_1024(&mut self) -> u32 {
        self.follow_new_slots();
        let ring = self.session.ring();
        let held = self.slots.iter_mut().filter_map(|reader| {
            let slot = ring.slot(reader.index())?;
            reader.held_1024(ring, &slot)
        });
        held.max().unwrap_or(0)
    }

    fn follow_new_slots(&mut self) {
        let ring = self.session.ring();
        let discard = self.consumes();
        for index in self.slots.len() as u32..ring.slots_used() {
            let consumed = ring.slot(index).filter(|_| discard).map(|s| s.consumed());
            self.slots.push(SlotReader::new(index, consumed));
        }
    }
}

/// Whether `bytes` are left of a budget; they are not any more.
fn take_from(budget: &mut u64, bytes: u64) -> bool {
    let left = budget.checked_sub(bytes);
    *budget = left.unwrap_or(*budget);
    left.is_some()
}

/// Takes what a pass over open pages wants of one slot.
type TakeOpen = fn(&mut SlotReader, &Visit<'_>, &mut Batch) -> Result<(), NotTaken>;
