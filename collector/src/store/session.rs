//! One session in the store: what is there of it, and how more is added, each page once.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use ringmark_format::block::{BlockHeader, SEALED, kind};
use ringmark_format::codec::write;
use ringmark_format::page::PageHeader;
use ringmark_format::store::IndexSlot;
use ringmark_format::stream::HostClock;
use ringmark_format::{Uuid, align8};
use ringmark_reader::SlotPosition;
use zerocopy::{FromBytes, IntoBytes};

use super::budget::{Charge, SLOT_BYTES};
use super::context::Context;
use super::error::{StoreError, io_at};
use super::known_session::Known;
use super::options::Sync;
use super::positions::{Before, GONE_BYTES, PagePlace, Positions, STEP_MAX};
use super::segment::Segment;
use super::unsynced::Unsynced;
use crate::figures::Figures;
use crate::host_clock::Kept;
use crate::host_name::safe;
use crate::lock::lock;

/// Most schema bytes that are kept of one session, to begin further segments with.
const SCHEMA_BYTES_MAX: usize = 8 << 20;
/// Most slots of a session.
const SLOTS_MAX: usize = 4096;

/// A session that several connections may speak of.
pub type Shared = Arc<Mutex<StoredSession>>;

/// A session in the store.
#[derive(Debug)]
pub struct StoredSession {
    pub(super) uuid: Uuid,
    pub(super) host: String,
    pub(super) directory: PathBuf,
    pub(super) content: Vec<u8>,
    pub(super) schema: Vec<u8>,
    pub(super) slots: BTreeMap<u32, Positions>,
    pub(super) segment: Option<Segment>,
    /// Number of the next segment.
    pub(super) number: u32,
    pub(super) clocks: Kept,
    pub(super) unsynced: Unsynced,
    /// A sync failed: nothing can be added, and what is not durable must go.
    pub(super) has_failed: bool,
    /// Held by the thread that syncs it.
    syncing: Arc<Mutex<()>>,
    /// Segments that were closed; the file is gone as soon as it is durable.
    closed: Vec<(PathBuf, Weak<File>)>,
    charge: Charge,
    context: Arc<Context>,
}

impl StoredSession {
    pub(super) fn new(
        uuid: Uuid,
        host: &str,
        directory: PathBuf,
        content: &[u8],
        context: &Arc<Context>,
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
            clocks: Kept::default(),
            unsynced: Unsynced::default(),
            has_failed: false,
            syncing: Arc::default(),
            closed: Vec::new(),
            charge: Charge::new(&context.budget, content.len())?,
            context: context.clone(),
        })
    }

    /// Bytes that are remembered of it.
    #[must_use]
    pub fn remembered(&self) -> u64 {
        self.charge.bytes()
    }

    /// Charges what the files of a session that was found again say, as a whole.
    pub(super) fn charge_all(&mut self) -> Result<(), StoreError> {
        let bytes = self.content.len() + self.schema.len();
        let slots = self.slots.len() as u64 * SLOT_BYTES;
        let gone: u64 = self.slots.values().map(Positions::stretches).sum();
        self.charge.grow(bytes as u64 + slots + gone * GONE_BYTES)
    }

    /// Checks SESSION, which a host sent with this content.
    pub(super) fn announced(&self, host: &str, content: &[u8]) -> Result<(), StoreError> {
        if self.host != safe(host) {
            return Err(StoreError::Foreign {
                session: self.uuid,
                owner: self.host.clone(),
                host: host.to_owned(),
            });
        }
        if self.content != content {
            return Err(self.wrong("SESSION differs from the one that is stored"));
        }
        Ok(())
    }

    fn wrong(&self, what: impl Into<String>) -> StoreError {
        StoreError::Protocol {
            session: self.uuid,
            what: what.into(),
        }
    }

    /// What is there.
    #[must_use]
    pub fn known(&self) -> Known {
        Known {
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

    /// Whether a file of it was ever written.
    pub(super) fn is_stored(&self) -> bool {
        self.number > 0
    }

    /// What is to be synced now.
    ///
    /// # Errors
    /// A sync of it failed.
    pub(super) fn take_unsynced(&mut self) -> Result<Unsynced, StoreError> {
        self.check()?;
        Ok(std::mem::take(&mut self.unsynced))
    }

    fn check(&self) -> Result<(), StoreError> {
        if !self.has_failed {
            return Ok(());
        }
        let source = io::Error::other("a sync failed, it is found again");
        Err(io_at("use", &self.directory)(source))
    }

    /// Leaves its files with what is durable, to be found again.
    pub(super) fn give_up(&mut self) -> Result<(), StoreError> {
        self.segment = None;
        self.unsynced.cut(&self.directory)
    }

    /// What the thread that syncs it needs without having it locked.
    pub(super) fn for_sync(&self) -> (Arc<Mutex<()>>, Arc<Context>) {
        (self.syncing.clone(), self.context.clone())
    }

    /// Where its files lie.
    pub(super) fn place(&self) -> PathBuf {
        self.directory.clone()
    }

    /// Whether a segment is written now, or holds what is not durable.
    pub(super) fn has_use_for(&self, segment: &Path) -> bool {
        let mut closed = self.closed.iter();
        self.writes(segment)
            || closed.any(|(path, file)| path == segment && file.strong_count() > 0)
    }

    /// Whether a segment is written now.
    pub(super) fn writes(&self, segment: &Path) -> bool {
        self.segment.as_ref().is_some_and(|s| s.path() == segment)
    }

    /// The segment that is written now.
    #[must_use]
    pub fn current(&self) -> Option<PathBuf> {
        self.segment.as_ref().map(|s| s.path().to_owned())
    }

    /// Adds a whole checked block of any stored kind but SESSION and CONTAINER. Returns whether
    /// it was new.
    ///
    /// # Errors
    /// It contradicts what is there, or cannot be written.
    pub fn add(
        &mut self,
        header: &BlockHeader,
        content: &[u8],
        block: &[u8],
    ) -> Result<bool, StoreError> {
        match header.kind {
            kind::SCHEMA => self.add_schema(header.page_number, content, block),
            kind::PAGE => self.add_page(header, content, block),
            kind::COUNTERS => self.append(block).map(|()| true),
            // Measured by us alone; of kinds that are not known nothing can be said.
            _ => Ok(false),
        }
    }

    fn add_schema(&mut self, offset: u64, piece: &[u8], block: &[u8]) -> Result<bool, StoreError> {
        let have = self.schema.len() as u64;
        if offset > have {
            return Err(self.wrong(format!("schema at {offset}, expected at most {have}")));
        }
        let known = (have - offset) as usize;
        let (old, new) = piece.split_at(known.min(piece.len()));
        if self
            .schema
            .get(offset as usize..offset as usize + old.len())
            != Some(old)
        {
            return Err(self.wrong("schema differs from what is stored"));
        }
        if new.is_empty() {
            return Ok(false);
        }
        if self.schema.len() + new.len() > SCHEMA_BYTES_MAX {
            let found = self.schema.len() + new.len();
            return Err(self.wrong(format!(
                "{found} bytes of schema, expected at most {SCHEMA_BYTES_MAX}"
            )));
        }
        self.charge.grow(new.len() as u64)?;
        self.append(block)?;
        self.schema.extend_from_slice(new);
        Ok(true)
    }

    /// Checks a page against its block, and finds its place.
    ///
    /// # Errors
    /// It contradicts itself, or there are too many slots.
    pub(super) fn place_of(
        &self,
        header: &BlockHeader,
        content: &[u8],
    ) -> Result<PagePlace, StoreError> {
        let Ok((page, _)) = PageHeader::read_from_prefix(content) else {
            return Err(self.wrong("a page without a header"));
        };
        if page.generation != header.page_number.wrapping_add(1) || page.ring_id != header.ring_id {
            return Err(self.wrong("a page that is not the one that its block names"));
        }
        let positions = self.slots.get(&page.slot);
        if positions.is_none() && self.slots.len() >= SLOTS_MAX {
            return Err(self.wrong(format!("pages of more than {SLOTS_MAX} slots")));
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
            let what = format!("page {found} of slot {slot}, expected one from {next} to {most}");
            return Err(self.wrong(what));
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
        self.have_found(header, slot, Before::Whole);
        Figures::add(&self.context.figures.pages_total, 1);
        Ok(true)
    }

    /// Adds a segment that was found, and may not be on the disk.
    pub(super) fn found(&mut self, segment: File) {
        self.writing(&Arc::new(segment), u64::MAX);
    }

    /// Goes on with the last segment, which was found.
    pub(super) fn found_last(&mut self, segment: Segment) {
        self.writing(segment.file(), segment.bytes());
        self.segment = Some(segment);
    }

    /// Takes over what an index says of a slot.
    pub(super) fn have_until(&mut self, slot: &IndexSlot) {
        let positions = self.slots.entry(slot.slot).or_default();
        positions.have_until(slot.next_page);
    }

    /// Notes that a page is there.
    pub(super) fn have_found(&mut self, header: &BlockHeader, slot: u32, before: Before) {
        if header.flags & SEALED == 0 {
            return;
        }
        let positions = self.slots.entry(slot).or_default();
        match before {
            Before::Damage => positions.have_after_damage(header.page_number),
            Before::Whole => positions.have(header.page_number),
        }
    }

    /// A measurement of the host's clock: stored if those that are there do not say as much.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add_clock(&mut self, clock: HostClock) -> Result<(), StoreError> {
        let Some(clock) = self.clocks.due(clock) else {
            return Ok(());
        };
        if !self.is_stored() {
            // A session that never sends a page needs no file; the first segment begins with this.
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

    /// Appends a whole block to the present segment; begins a new one if it must.
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
            self.unsynced.writing(segment.file(), segment.bytes());
        }
        segment.append(block)?;
        Figures::add(&self.context.figures.stored_bytes_total, block.len() as u64);
        Ok(())
    }

    /// Begins a segment. It gets its name when it is durable, and what was added before it.
    fn begin(&mut self) -> Result<(), StoreError> {
        let path = ringmark_decoder::store::segment(&self.directory, self.uuid, self.number);
        let (is_unnamed, within) = (self.is_synced(), self.context.options.directory);
        let segment = Segment::create(&path, is_unnamed, &self.preamble(), within)?;
        self.number += 1;
        self.writing(segment.file(), 0);
        if is_unnamed {
            self.unsynced.named(path);
        }
        self.segment = Some(segment);
        Figures::add(&self.context.figures.segments_total, 1);
        Ok(())
    }

    fn is_synced(&self) -> bool {
        self.context.options.sync == Sync::Disk
    }

    /// Notes a file that is written, or was found with these bytes: to be synced, if anything is.
    fn writing(&mut self, file: &Arc<File>, bytes: u64) {
        if self.is_synced() {
            self.unsynced.writing(file, bytes);
        }
    }

    /// What every segment starts with, so that each can be read alone.
    fn preamble(&self) -> Vec<u8> {
        const PIECE: usize = 1 << 20;
        let mut blocks = Vec::with_capacity(BlockHeader::BYTES + align8(self.content.len()));
        // Both were taken from blocks: they fit into blocks.
        let _ = write::session(&mut blocks, self.uuid, &self.content);
        for (number, piece) in self.schema.chunks(PIECE).enumerate() {
            let _ = write::schema(&mut blocks, self.uuid, (number * PIECE) as u64, piece);
        }
        if let Some(clock) = self.clocks.last() {
            let header = write::header(kind::HOST_CLOCK, self.uuid);
            let _ = write::block(&mut blocks, header, clock.as_bytes());
        }
        blocks
    }

    fn close(&mut self) {
        if let Some(segment) = self.segment.take() {
            lock(&self.context.unindexed).push(segment.path().to_owned());
            self.closed.retain(|(_, file)| file.strong_count() > 0);
            let file = Arc::downgrade(segment.file());
            self.closed.push((segment.path().to_owned(), file));
        }
    }

    /// Closes the present segment if it is old.
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
