//! A session of one connection, on its way into segments.
//!
//! A page that is not sealed will come again, fuller. Only the latest copy is kept, in memory, until its
//! session or its connection ends: a slow thread would otherwise be stored many times. Where there is no
//! memory for it, it is stored as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::codec::write;
use ringmark_format::stream::{HostClock, HostClockSource};

use super::open_segment::{Owner, SchemaPiece};
use super::uploader::Uploads;

/// Bytes of the content of a HOST_CLOCK block.
const CLOCK_BYTES: usize = HostClock::BYTES + HostClockSource::BYTES;

/// Where a session's schema stands on this connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum SchemaStep {
    /// All of it came before.
    Known,
    /// Its bytes from here on are new.
    New(usize),
    /// Bytes before it are missing; this is where the schema ended.
    Gap(u64),
}

/// An open page that waits to be sealed.
#[derive(Debug)]
struct OpenPage {
    number: u64,
    block: Vec<u8>,
    /// Memory that was taken for it, and for what it is stored with.
    taken: u64,
}

/// A session on its way into segments.
#[derive(Debug)]
pub(in crate::store) struct LaneSession {
    uploads: Arc<Uploads>,
    owner: Owner,
    /// Content of its SESSION block.
    content: Vec<u8>,
    /// Content of the latest HOST_CLOCK block.
    clock: Option<Vec<u8>>,
    /// Whether schema came on this connection: before that any beginning is right.
    has_schema: bool,
    open_pages: BTreeMap<u32, OpenPage>,
    /// The segment that has its latest block.
    segment: Option<u64>,
}

impl LaneSession {
    pub(in crate::store) fn new(uploads: &Arc<Uploads>, owner: Owner, content: &[u8]) -> Self {
        Self {
            uploads: uploads.clone(),
            owner,
            content: content.to_vec(),
            clock: None,
            has_schema: false,
            open_pages: BTreeMap::new(),
            segment: None,
        }
    }

    /// The segment that has its latest block.
    pub(in crate::store) const fn segment(&self) -> Option<u64> {
        self.segment
    }

    /// Notes the clock of its host, with which it begins in each segment.
    pub(in crate::store) fn set_clock(&mut self, content: Vec<u8>) {
        self.clock = Some(content);
    }

    /// Notes the number of its connection.
    pub(in crate::store) const fn set_epoch(&mut self, epoch: u32) {
        self.owner.epoch = epoch;
    }

    /// Appends a whole block.
    pub(in crate::store) fn append(&mut self, block: &[u8]) {
        let (owner, preamble) = (&self.owner, || self.preamble());
        let segment = self.uploads.append(owner, block, preamble);
        self.note_segment(segment);
    }

    #[cfg(feature = "models")]
    /// Counts bytes of blocks that are not there; returns the number of their segment.
    pub(in crate::store) fn count(&mut self, bytes: u64) -> u64 {
        let (owner, preamble) = (&self.owner, || self.preamble());
        let segment = self.uploads.count(owner, bytes, preamble);
        self.note_segment(segment);
        segment
    }

    fn note_segment(&mut self, segment: u64) {
        self.segment = Some(segment);
        self.owner.from = segment;
    }

    /// What of a piece of schema is new.
    pub(in crate::store) const fn schema_step(&self, offset: u64, bytes: usize) -> SchemaStep {
        let end = self.owner.schema_bytes;
        if !self.has_schema {
            return SchemaStep::New(0);
        }
        match offset > end {
            true => SchemaStep::Gap(end),
            false if offset + bytes as u64 <= end => SchemaStep::Known,
            false => SchemaStep::New((end - offset) as usize),
        }
    }

    /// Adds schema from this offset on.
    pub(in crate::store) fn add_schema(&mut self, offset: u64, piece: &[u8]) {
        self.has_schema = true;
        self.owner.schema_bytes = offset + piece.len() as u64;
        let piece = SchemaPiece::new(&self.owner, &self.content, offset, piece);
        let segment = self.uploads.add_schema(&self.owner, piece, self.preamble());
        self.note_segment(segment);
    }

    /// By how much a block can make grow what waits to be put, beyond its own bytes: the session begins in a segment,
    /// and its schema in an object.
    pub(in crate::store) const fn preamble_bytes(&self) -> u64 {
        (2 * (self.content.len() + CLOCK_BYTES + 2 * BlockHeader::BYTES)) as u64
    }

    /// Keeps a page that is not sealed in place of its earlier copy. Returns false if there is no memory for it.
    pub(in crate::store) fn keep_open(&mut self, slot: u32, number: u64, block: &[u8]) -> bool {
        self.come_to(slot, number);
        let taken = block.len() as u64 + self.preamble_bytes();
        if self.open_pages.contains_key(&slot) || !self.uploads.keep(taken) {
            return false;
        }
        let page = OpenPage {
            number,
            block: block.to_vec(),
            taken,
        };
        let _ = self.open_pages.insert(slot, page);
        true
    }

    /// Notes that this page of a slot has come. The open copy of the same page is dropped. That of an
    /// earlier page is appended: the ring has gone past it, and no other copy will come.
    pub(in crate::store) fn come_to(&mut self, slot: u32, number: u64) {
        let open = self.open_pages.get(&slot);
        if open.is_none_or(|open| open.number > number) {
            return;
        }
        if let Some(open) = self.open_pages.remove(&slot) {
            if open.number < number {
                self.append(&open.block);
            }
            self.uploads.let_go(open.taken);
        }
    }

    /// Appends all pages that are kept: nothing fuller will come.
    pub(in crate::store) fn append_open(&mut self) {
        for page in std::mem::take(&mut self.open_pages).into_values() {
            self.append(&page.block);
            self.uploads.let_go(page.taken);
        }
    }

    /// What it begins with in each segment.
    fn preamble(&self) -> Vec<u8> {
        let mut blocks = Vec::new();
        let session: Uuid = self.owner.session;
        // Both came in blocks, so they fit into blocks.
        let _ = write::session(&mut blocks, session, &self.content);
        if let Some(clock) = &self.clock {
            let _ = write::block(&mut blocks, write::header(kind::HOST_CLOCK, session), clock);
        }
        blocks
    }
}

impl Drop for LaneSession {
    /// The connection has ended: its host may be gone.
    fn drop(&mut self) {
        self.append_open();
    }
}
