//! One session in the store: what is stored of it, and how more is added, each page once.
//!
//! A streamer that was cut off sends again what it could not know to be durable: it is left out.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, PageState, kind};
use ringmark_format::codec::write;
use ringmark_format::page::PageHeader;
use ringmark_format::store::IndexSlot;
use ringmark_format::stream::HostClock;
use ringmark_reader::SlotPosition;
use zerocopy::{FromBytes, IntoBytes};

use super::budget::{Charge, SLOT_BYTES};
use super::context::{StoreContext, SyncHandles};
use super::error::{SessionFault, StoreError, io_at};
use super::known_session::KnownSession;
use super::options::SyncMode;
use super::positions::{Before, HOLE_BYTES, PagePlace, Positions, STEP_MAX};
use super::segment::{ClosedSegment, Naming, Segment, preamble};
use super::unsynced::Unsynced;
use crate::figures::Figures;
use crate::host_clock::ClockHistory;
use crate::host_name::safe;
use crate::mutex::lock;

/// Most schema bytes of one session: they are kept in memory, as every segment begins with them.
const SCHEMA_BYTES_MAX: usize = 8 << 20;
/// Most slots of a session.
const SLOTS_MAX: usize = 4096;

/// A session that several connections may use.
pub type SharedSession = Arc<Mutex<StoredSession>>;

/// A session in the store.
#[derive(Debug)]
pub struct StoredSession {
    pub(super) uuid: Uuid,
    /// The host that sent it first, as the name of a directory.
    pub(super) host: String,
    pub(super) directory: PathBuf,
    /// Content of its SESSION block.
    pub(super) content: Vec<u8>,
    pub(super) schema: Vec<u8>,
    pub(super) slots: BTreeMap<u32, Positions>,
    pub(super) segment: Option<Segment>,
    /// Number of the next segment.
    pub(super) number: u32,
    pub(super) clocks: ClockHistory,
    pub(super) unsynced: Unsynced,
    /// A sync failed: nothing can be added, and what is not durable must go.
    pub(super) has_failed: bool,
    /// Held by the thread that syncs the session.
    sync_turn: Arc<Mutex<()>>,
    closed: Vec<ClosedSegment>,
    charge: Charge,
    context: Arc<StoreContext>,
}

impl StoredSession {
    /// A session without files.
    ///
    /// # Errors
    /// All sessions together would take too much memory.
    pub(super) fn new(
        uuid: Uuid,
        host: &str,
        directory: PathBuf,
        content: &[u8],
        context: &Arc<StoreContext>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            uuid,
            host: safe(host),
            directory,
            content: content.to_vec(),
            schema: Vec::new(),
            slots: BTreeMap::new(),
            segment: None,
            number: 0,
            clocks: ClockHistory::default(),
            unsynced: Unsynced::default(),
            has_failed: false,
            sync_turn: Arc::default(),
            closed: Vec::new(),
            charge: Charge::new(&context.budget, content.len())?,
            context: context.clone(),
        })
    }

    /// Bytes of memory that the session takes.
    #[must_use]
    pub fn remembered(&self) -> u64 {
        self.charge.bytes()
    }

    /// Charges what was read from the files of a session that was found again.
    ///
    /// # Errors
    /// All sessions together would take too much memory.
    pub(super) fn charge_all(&mut self) -> Result<(), StoreError> {
        let bytes = self.content.len() + self.schema.len();
        let slots = self.slots.len() as u64 * SLOT_BYTES;
        let holes: u64 = self.slots.values().map(Positions::holes).sum();
        self.charge.grow(bytes as u64 + slots + holes * HOLE_BYTES)
    }

    /// Checks a SESSION block that a host sent with this content.
    ///
    /// # Errors
    /// The session is another host's, or differs.
    pub(super) fn announced(&self, host: &str, content: &[u8]) -> Result<(), StoreError> {
        if self.host != safe(host) {
            return Err(StoreError::Foreign {
                session: self.uuid,
                owner: self.host.clone(),
                host: host.to_owned(),
            });
        }
        if self.content != content {
            return Err(self.wrong(SessionFault::SessionDiffers));
        }
        Ok(())
    }

    fn wrong(&self, source: SessionFault) -> StoreError {
        StoreError::Protocol {
            session: self.uuid,
            source,
        }
    }

    /// How far the session is stored: what RESUME says.
    #[must_use]
    pub fn known(&self) -> KnownSession {
        KnownSession {
            schema_bytes: self.schema.len() as u64,
            slots: self
                .slots
                .iter()
                .map(|(&slot, positions)| SlotPosition {
                    slot,
                    next_page: positions.resume(),
                })
                .collect(),
        }
    }

    /// Whether a segment of it was ever begun.
    pub(super) fn is_stored(&self) -> bool {
        self.number > 0
    }

    /// Takes what is to be synced now.
    ///
    /// # Errors
    /// An earlier sync failed.
    pub(super) fn take_unsynced(&mut self) -> Result<Unsynced, StoreError> {
        self.check()?;
        Ok(std::mem::take(&mut self.unsynced))
    }

    /// Refuses any use of a session whose sync failed.
    fn check(&self) -> Result<(), StoreError> {
        if !self.has_failed {
            return Ok(());
        }
        let source = io::Error::other("a sync failed, it is found again");
        Err(io_at("use", &self.directory)(source))
    }

    /// Cuts its files back to what is durable, so that the session can be found again.
    ///
    /// # Errors
    /// A file cannot be cut.
    pub(super) fn give_up(&mut self) -> Result<(), StoreError> {
        self.segment = None;
        self.unsynced.cut(&self.directory)
    }

    /// What a thread needs to sync the session without keeping it locked.
    pub(super) fn sync_handles(&self) -> SyncHandles {
        SyncHandles {
            turn: self.sync_turn.clone(),
            context: self.context.clone(),
        }
    }

    /// The directory of its segments.
    pub(super) fn place(&self) -> PathBuf {
        self.directory.clone()
    }

    /// Whether a segment is being written, or holds what is not durable: it must not be removed.
    pub(super) fn has_use_for(&self, segment: &Path) -> bool {
        let mut closed = self.closed.iter();
        self.writes(segment)
            || closed.any(|closed| closed.path() == segment && closed.is_unsynced())
    }

    /// Whether a segment is being written.
    pub(super) fn writes(&self, segment: &Path) -> bool {
        self.segment.as_ref().is_some_and(|s| s.path() == segment)
    }

    /// The segment that is being written, if there is one.
    #[must_use]
    pub fn current(&self) -> Option<PathBuf> {
        self.segment.as_ref().map(|s| s.path().to_owned())
    }

    /// Adds a whole checked block, not SESSION or CONTAINER; returns whether it was new.
    ///
    /// # Errors
    /// It contradicts what is stored, or cannot be written.
    pub fn add(
        &mut self,
        header: &BlockHeader,
        content: &[u8],
        block: &[u8],
    ) -> Result<bool, StoreError> {
        match header.kind {
            kind::SCHEMA => self.add_schema(header.page_number, content, block),
            kind::PAGE => self.add_page(header, content, block),
            kind::COUNTERS | kind::ENDING | kind::OPEN_SPANS => self.append(block).map(|()| true),
            // Clocks are measured here, indexes made here; a streamer's own are not stored.
            _ => Ok(false),
        }
    }

    fn add_schema(&mut self, offset: u64, piece: &[u8], block: &[u8]) -> Result<bool, StoreError> {
        let have = self.schema.len() as u64;
        if offset > have {
            let (found, most) = (offset, have);
            return Err(self.wrong(SessionFault::SchemaGap { found, most }));
        }
        let known = (have - offset) as usize;
        let (old, new) = piece.split_at(known.min(piece.len()));
        if self
            .schema
            .get(offset as usize..offset as usize + old.len())
            != Some(old)
        {
            return Err(self.wrong(SessionFault::SchemaDiffers));
        }
        if new.is_empty() {
            return Ok(false);
        }
        if self.schema.len() + new.len() > SCHEMA_BYTES_MAX {
            let (found, most) = (self.schema.len() + new.len(), SCHEMA_BYTES_MAX);
            return Err(self.wrong(SessionFault::SchemaSize { found, most }));
        }
        self.charge.grow(new.len() as u64)?;
        self.append(block)?;
        self.schema.extend_from_slice(new);
        Ok(true)
    }

    /// Checks a page against its block's header, and finds its slot.
    ///
    /// # Errors
    /// They contradict each other, or the session would have too many slots.
    pub(super) fn place_of(
        &self,
        header: &BlockHeader,
        content: &[u8],
    ) -> Result<PagePlace, StoreError> {
        let Ok((page, _)) = PageHeader::read_from_prefix(content) else {
            return Err(self.wrong(SessionFault::PageWithoutHeader));
        };
        if page.generation != header.page_number.wrapping_add(1) || page.ring_id != header.ring_id {
            return Err(self.wrong(SessionFault::OtherPage));
        }
        let positions = self.slots.get(&page.slot);
        if positions.is_none() && self.slots.len() >= SLOTS_MAX {
            return Err(self.wrong(SessionFault::TooManySlots { most: SLOTS_MAX }));
        }
        Ok(PagePlace {
            slot: page.slot,
            is_new: positions.is_none_or(|there| there.is_new(header.page_number)),
        })
    }

    fn add_page(
        &mut self,
        header: &BlockHeader,
        content: &[u8],
        block: &[u8],
    ) -> Result<bool, StoreError> {
        let PagePlace { slot, is_new } = self.place_of(header, content)?;
        let next = self.slots.get(&slot).map_or(0, Positions::next);
        let (found, most) = (header.page_number, next.saturating_add(STEP_MAX));
        if found > most {
            Figures::add(&self.context.figures.refused_pages_total, 1);
            return Err(self.wrong(SessionFault::PageNumber {
                found,
                slot,
                next,
                most,
            }));
        }
        if !is_new {
            Figures::add(&self.context.figures.repeated_pages_total, 1);
            return Ok(false);
        }
        if !self.slots.contains_key(&slot) {
            self.charge.grow(SLOT_BYTES)?;
        }
        self.append(block)?;
        self.clocks.want();
        self.note_page(header, slot, Before::Whole);
        Figures::add(&self.context.figures.pages_total, 1);
        Ok(true)
    }

    /// Takes note of a closed segment that was found. It may not be durable: the machine may have
    /// written it just before the collector was killed.
    pub(super) fn note_closed(&mut self, segment: File) {
        self.note_written(&Arc::new(segment), u64::MAX);
    }

    /// Goes on with the last segment that was found.
    pub(super) fn go_on_with(&mut self, segment: Segment) {
        self.note_written(segment.file(), segment.bytes());
        self.segment = Some(segment);
    }

    /// Takes over what an index says about a slot.
    pub(super) fn have_until(&mut self, slot: &IndexSlot) {
        let positions = self.slots.entry(slot.slot).or_default();
        positions.have_until(slot.next_page);
    }

    /// Notes that a page is stored. An open page does not count: it will come again, sealed.
    pub(super) fn note_page(&mut self, header: &BlockHeader, slot: u32, before: Before) {
        if PageState::of_flags(header.flags) == PageState::Open {
            return;
        }
        let positions = self.slots.entry(slot).or_default();
        match before {
            Before::Damage => positions.have_after_damage(header.page_number),
            Before::Whole => positions.have(header.page_number),
        }
    }

    /// Takes a measurement of the host's clock, and stores it if it says more than those before.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add_clock(&mut self, clock: HostClock) -> Result<(), StoreError> {
        let Some(clock) = self.clocks.due(clock) else {
            return Ok(());
        };
        if !self.is_stored() {
            // A session that never sends a page needs no file. The first segment begins with the
            // clock.
            self.clocks.stored(clock);
            return Ok(());
        }
        let mut block = Vec::new();
        let header = write::header(kind::HOST_CLOCK, self.uuid);
        if write::block(&mut block, header, clock.as_bytes()).is_ok() {
            self.append(&block)?;
            self.clocks.stored(clock);
        }
        Ok(())
    }

    /// Appends a whole block to the present segment, or to a new one if that is full or broken.
    fn append(&mut self, block: &[u8]) -> Result<(), StoreError> {
        self.check()?;
        let full =
            |s: &Segment| s.bytes() + block.len() as u64 > self.context.options.segment_bytes;
        if self
            .segment
            .as_ref()
            .is_some_and(|s| s.is_broken() || full(s))
        {
            self.close();
        }
        if self.segment.is_none() {
            self.begin()?;
        }
        let is_synced = self.is_synced();
        let Some(segment) = &mut self.segment else {
            return Ok(());
        };
        if is_synced {
            self.unsynced.add_file(segment.file(), segment.bytes());
        }
        segment.append(block)?;
        Figures::add(&self.context.figures.stored_bytes_total, block.len() as u64);
        Ok(())
    }

    /// Begins a segment. In a store that syncs, it gets its name only when it is durable.
    fn begin(&mut self) -> Result<(), StoreError> {
        let path = ringmark_decoder::store::segment(&self.directory, self.uuid, self.number);
        let options = &self.context.options;
        let beginning = preamble(self.uuid, &self.content, &self.schema, self.clocks.last());
        let (naming, within) = (Naming::under(options.sync), options.directory);
        let segment = Segment::create(&path, naming, &beginning, within)?;
        self.number += 1;
        self.note_written(segment.file(), 0);
        if self.is_synced() {
            self.unsynced.add_name(path);
        }
        self.segment = Some(segment);
        Figures::add(&self.context.figures.segments_total, 1);
        Ok(())
    }

    fn is_synced(&self) -> bool {
        self.context.options.sync == SyncMode::Disk
    }

    /// Has the next sync include a file, which has `bytes_before` bytes now, in a store that syncs.
    fn note_written(&mut self, file: &Arc<File>, bytes_before: u64) {
        if self.is_synced() {
            self.unsynced.add_file(file, bytes_before);
        }
    }

    /// Closes the present segment; its index is made later.
    fn close(&mut self) {
        if let Some(segment) = self.segment.take() {
            lock(&self.context.unindexed).push(segment.path().to_owned());
            self.closed.retain(ClosedSegment::is_unsynced);
            self.closed.push(ClosedSegment::of(&segment));
        }
    }

    /// Closes the present segment if it has the configured age.
    pub fn rotate_if_old(&mut self) {
        let age = self.context.options.segment_age;
        if self
            .segment
            .as_ref()
            .is_some_and(|s| s.begun().elapsed() >= age)
        {
            self.close();
        }
    }
}
