//! One session in the store: what is stored of it, and how more is added, each page once.
//!
//! A streamer that was cut off sends again what it could not know to be durable: it is left out.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, PageState, kind};
use ringmark_format::codec::write;
use ringmark_format::counters::{CountersHeader, FINAL};
use ringmark_format::progress::{ALL_SENT, Progress};
use ringmark_format::stream::HostClock;
use zerocopy::FromBytes;

use super::context::StoreContext;
use super::error::{SessionFault, StoreError};
use super::known_session::KnownSession;
use super::losses::Losses;
use super::objects::{LaneSession, SchemaStep};
use super::positions::{Before, PagePlace};
use super::segment::{clock_content, preamble};
use super::segments::Segments;
use super::session_contents::{SCHEMA_BYTES_MAX, SessionContents};
use crate::figures::Figures;
use crate::host_clock::ClockHistory;
use crate::host_name::safe;
use crate::hosts::HostLosses;

/// A session that several connections may use.
pub type SharedSession = Arc<Mutex<StoredSession>>;

/// A session in the store.
#[derive(Debug)]
pub struct StoredSession {
    pub(super) uuid: Uuid,
    /// The host that sent it first, as the name of a directory.
    host: String,
    pub(super) contents: SessionContents,
    pub(super) segments: Segments,
    pub(super) clocks: ClockHistory,
    pub(super) losses: Losses,
    /// Its way into objects; `None`: it has segments of its own.
    pub(super) lane: Option<LaneSession>,
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
        let host = safe(host);
        Ok(Self {
            uuid,
            contents: SessionContents::new(uuid, &host, content, &context.budget)?,
            host,
            segments: Segments::new(uuid, directory, context),
            clocks: ClockHistory::default(),
            losses: Losses::default(),
            lane: None,
            context: context.clone(),
        })
    }

    /// Bytes of memory that the session takes.
    #[must_use]
    pub fn remembered(&self) -> u64 {
        self.contents.remembered()
    }

    /// Whether a host sent it first.
    pub(super) fn is_of(&self, host: &str) -> bool {
        self.host == safe(host)
    }

    /// Checks a SESSION block that a host sent with this content.
    ///
    /// # Errors
    /// The session is another host's, or differs.
    pub(super) fn announced(&self, host: &str, content: &[u8]) -> Result<(), StoreError> {
        if !self.is_of(host) {
            return Err(StoreError::Foreign {
                session: self.uuid,
                owner: self.host.clone(),
                host: host.to_owned(),
            });
        }
        if self.contents.session() != content {
            return Err(self.contents.wrong(SessionFault::SessionDiffers));
        }
        Ok(())
    }

    /// Counts its losses for this host from now on.
    pub(crate) fn count_losses_in(&mut self, host: HostLosses) {
        self.losses.count_in(host);
    }

    /// How far the session is stored: what RESUME says.
    #[must_use]
    pub fn known(&self) -> KnownSession {
        let known = self.contents.known();
        match self.lane {
            None => known,
            // This collector does not know what of it is in objects.
            Some(_) => KnownSession {
                has_acked_schema: true,
                ..KnownSession::default()
            },
        }
    }

    /// Whether a segment of it was ever begun.
    pub(super) fn is_stored(&self) -> bool {
        let lane = self.lane.as_ref();
        self.segments.are_begun() || lane.is_some_and(|lane| lane.segment().is_some())
    }

    /// The segment that is being written, if there is one.
    #[must_use]
    pub fn current(&self) -> Option<PathBuf> {
        self.segments.current().map(Path::to_owned)
    }

    /// The segment that has its latest block, where segments are objects.
    pub(crate) fn segment(&self) -> Option<u64> {
        self.lane.as_ref()?.segment()
    }

    /// By how much a block can make grow what waits to be put in objects, beyond its own bytes.
    pub(crate) fn preamble_bytes(&self) -> u64 {
        self.lane.as_ref().map_or(0, LaneSession::preamble_bytes)
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
            kind::COUNTERS => {
                let counters = CountersHeader::read_from_prefix(content);
                self.append_open_if(
                    counters.is_ok_and(|(counters, _)| counters.flags & FINAL != 0),
                );
                self.append(block)?;
                self.losses.add_counters(content);
                Ok(true)
            }
            kind::PROGRESS => {
                if let Ok((progress, _)) = Progress::read_from_prefix(content) {
                    self.append_open_if(progress.flags & ALL_SENT != 0);
                    self.lane
                        .iter_mut()
                        .for_each(|lane| lane.set_epoch(progress.epoch));
                }
                self.append(block)?;
                self.contents.take_progress(content);
                Ok(true)
            }
            kind::ENDING | kind::OPEN_SPANS => {
                self.append_open_if(header.kind == kind::ENDING);
                self.append(block).map(|()| true)
            }
            // Clocks are measured here, indexes made here; a streamer's own are not stored.
            _ => Ok(false),
        }
    }

    /// Appends the open pages that wait for objects, if nothing fuller will come.
    fn append_open_if(&mut self, is_last: bool) {
        if let Some(lane) = self.lane.as_mut().filter(|_| is_last) {
            lane.append_open();
        }
    }

    /// Has schema put into an object; what is not new is left out.
    fn add_schema_object(&mut self, offset: u64, piece: &[u8]) -> Result<bool, StoreError> {
        let Some(lane) = &mut self.lane else {
            return Ok(false);
        };
        let (found, most) = (offset.saturating_add(piece.len() as u64), SCHEMA_BYTES_MAX);
        if found > most as u64 {
            let found = usize::try_from(found).unwrap_or(usize::MAX);
            return Err(self
                .contents
                .wrong(SessionFault::SchemaSize { found, most }));
        }
        match lane.schema_step(offset, piece.len()) {
            SchemaStep::Known => Ok(false),
            SchemaStep::Gap(most) => {
                let found = offset;
                Err(self.contents.wrong(SessionFault::SchemaGap { found, most }))
            }
            SchemaStep::New(at) => {
                lane.add_schema(offset + at as u64, &piece[at..]);
                Ok(true)
            }
        }
    }

    /// Keeps a page that is not sealed, for which objects wait. Returns whether it is kept: without
    /// memory for it, it is stored as it is.
    fn keep_open(&mut self, header: &BlockHeader, slot: u32, block: &[u8]) -> bool {
        let is_open = PageState::of_flags(header.flags) == PageState::Open;
        let Some(lane) = self.lane.as_mut().filter(|_| is_open) else {
            return false;
        };
        lane.keep_open(slot, header.page_number, block)
    }

    fn add_schema(&mut self, offset: u64, piece: &[u8], block: &[u8]) -> Result<bool, StoreError> {
        if self.lane.is_some() {
            return self.add_schema_object(offset, piece);
        }
        let before = self.contents.remembered();
        let new = self.contents.admit_schema(offset, piece)?;
        if new.is_empty() {
            return Ok(false);
        }
        self.append_charged(block, before)?;
        self.contents.add_schema(new);
        Ok(true)
    }

    fn add_page(
        &mut self,
        header: &BlockHeader,
        content: &[u8],
        block: &[u8],
    ) -> Result<bool, StoreError> {
        let PagePlace { slot, is_new } = self.contents.place_of(header, content)?;
        if let Err(refused) = self.contents.check_step(slot, header.page_number) {
            Figures::add(&self.context.figures.refused_pages_total, 1);
            return Err(refused);
        }
        if !is_new {
            Figures::add(&self.context.figures.repeated_pages_total, 1);
            return Ok(false);
        }
        if self.keep_open(header, slot, block) {
            return Ok(true);
        }
        if let Some(lane) = &mut self.lane {
            lane.come_to(slot, header.page_number);
        }
        let before = self.contents.remembered();
        self.contents.charge_slot(slot)?;
        self.append_charged(block, before)?;
        self.clocks.want();
        let skipped = self.contents.skipped_before(header, slot);
        self.losses.skipped(skipped, self.contents.session());
        self.contents.note_page(header, slot, Before::Whole);
        Figures::add(&self.context.figures.pages_total, 1);
        Ok(true)
    }

    /// Takes a measurement of the host's clock, and stores it if it says more than those before.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add_clock(&mut self, clock: HostClock) -> Result<(), StoreError> {
        let Some(clock) = self.clocks.due(clock) else {
            return Ok(());
        };
        if let Some(lane) = &mut self.lane {
            lane.set_clock(clock_content(&clock, self.context.id));
        }
        if !self.is_stored() {
            // A session that never sends a page needs no file. The first segment begins with the
            // clock.
            self.clocks.stored(clock);
            return Ok(());
        }
        let mut block = Vec::new();
        let header = write::header(kind::HOST_CLOCK, self.uuid);
        let content = clock_content(&clock, self.context.id);
        if write::block(&mut block, header, &content).is_ok() {
            self.append(&block)?;
            self.clocks.stored(clock);
        }
        Ok(())
    }

    fn append(&mut self, block: &[u8]) -> Result<(), StoreError> {
        if let Some(lane) = &mut self.lane {
            lane.append(block);
            return Ok(());
        }
        let clock = self.clocks.last();
        let clock = clock.map(|clock| clock_content(clock, self.context.id));
        let contents = &self.contents;
        let appended = self.segments.append(block, || {
            preamble(
                self.uuid,
                contents.session(),
                contents.schema(),
                clock.as_deref(),
            )
        });
        appended.map_err(|error| self.context.failed(error))
    }

    /// Appends a block for which memory was charged since it was `charged`. The block may come
    /// again, so what could not be written is not charged either.
    fn append_charged(&mut self, block: &[u8], charged: u64) -> Result<(), StoreError> {
        let appended = self.append(block);
        if appended.is_err() {
            self.contents.give_back_to(charged);
        }
        appended
    }
}
