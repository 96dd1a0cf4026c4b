//! Sends a session's blocks over the connection, and notes what is in flight.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use ringmark_format::Uuid;
use ringmark_format::block::kind;
use ringmark_format::block_at::Blocks;
use ringmark_format::codec::write;

use super::connection::Connection;
use super::in_flight::{InFlight, Release};
use super::positions::{SlotPage, page_of};
use super::rate_limit::RateLimit;
use crate::pages::batch::{Batch, fits};
use crate::pages::codec::Packer;
use crate::pages::drain::{SchemaPiece, SessionDrain};

/// Credit with which a batch is begun, in bytes. A collector of objects gives little more than a batch or two
/// at a time and acknowledges seconds later, so that a streamer which asked for more would wait for each
/// acknowledgement. With a small window, less is enough.
pub const CREDIT_ENOUGH: u64 = 256 << 10;

/// What a session needs to send blocks; lent by the streamer for one step.
pub(super) struct Outgoing<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) in_flight: &'a mut InFlight,
    /// Buffer for pages.
    pub(super) batch: &'a mut Batch,
    /// Packs what is sent.
    pub(super) packer: &'a mut Packer,
    /// How fast it may send.
    pub(super) rate: &'a mut RateLimit,
    /// How often open pages are sent.
    pub(super) open_every: Duration,
    /// Notices for the user.
    pub(super) notices: &'a mut Vec<String>,
}

impl Outgoing<'_> {
    /// Whether a batch may be sent now: there is credit for it, and it is not too fast. Reads the
    /// collector's messages if credit is short.
    pub(super) fn has_room(&mut self) -> io::Result<bool> {
        if !self.rate.allows(self.connection.sent()) {
            return Ok(false);
        }
        if !self.connection.has_room(CREDIT_ENOUGH) {
            self.connection.listen()?;
        }
        Ok(self.connection.has_room(CREDIT_ENOUGH))
    }

    /// Sends SESSION: announces a session.
    pub(super) fn send_session(&mut self, uuid: Uuid, content: &[u8]) -> io::Result<()> {
        let mut block = Vec::new();
        fits(write::session(&mut block, uuid, content));
        self.connection.send(&block)
    }

    /// Sends the schema that is published and not sent: it must precede the pages that need it.
    pub(super) fn send_schema(&mut self, uuid: Uuid, drain: &mut SessionDrain) -> io::Result<()> {
        while let Some(SchemaPiece { offset, bytes }) = drain.peek_schema() {
            let mut block = Vec::new();
            fits(write::schema(&mut block, uuid, offset, &bytes));
            self.connection.send(&block)?;
            drain.schema_written(bytes.len());
        }
        Ok(())
    }

    /// Sends OPEN_SPANS and ENDING blocks, one by one: each waits for credit of its own.
    pub(super) fn send_last_words(&mut self, blocks: &[u8]) -> io::Result<()> {
        Blocks::new(blocks).try_for_each(|block| self.connection.send(block.bytes))
    }

    /// Sends COUNTERS.
    pub(super) fn send_counters(&mut self, uuid: Uuid, content: &[u8]) -> io::Result<()> {
        let mut block = Vec::new();
        fits(write::counters(&mut block, uuid, content));
        self.connection.send(&block)
    }

    /// Sends the pages in the batch.
    pub(super) fn send_batch(&mut self, uuid: Uuid) -> io::Result<()> {
        let blocks = self.packer.pack(uuid, self.batch.bytes());
        self.connection.send(blocks)
    }

    /// Sends blocks from disk: pages, and in part schema.
    pub(super) fn send_blocks(&mut self, uuid: Uuid, blocks: &[u8]) -> io::Result<()> {
        let blocks = self.packer.pack(uuid, blocks);
        self.connection.send(blocks)
    }

    /// Notes that all that was sent up to now must be durable before `release` is released.
    pub(super) fn note_sent(&mut self, uuid: Uuid, release: Release) {
        self.in_flight.push(self.connection.sent(), uuid, release);
    }
}

/// The blocks that a collector lacks.
#[derive(Debug)]
pub struct MissingBlocks {
    /// Whole blocks.
    pub blocks: Vec<u8>,
    /// Number of pages in them.
    pub pages: u64,
    /// Pages between them that are not in the spill.
    pub gaps: Vec<PageGap>,
}

/// Pages of a slot that are not where they were to be.
#[derive(Debug, Clone, Copy)]
pub struct PageGap {
    /// Its slot.
    pub slot: u32,
    /// The first of them.
    pub from: u64,
    /// The page after the last.
    pub to: u64,
}

/// Where the schema of spilled pages comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpilledSchema {
    /// From the spill: the ring file that had it is gone.
    Send,
    /// From the ring file.
    LeaveOut,
}

/// The blocks in a piece of a spill that are to be sent to a collector which has each slot's pages
/// before `sent_to`. That moves over the pages returned.
#[must_use]
pub fn missing_blocks(
    piece: &[u8],
    sent_to: &mut BTreeMap<u32, u64>,
    schema: SpilledSchema,
) -> MissingBlocks {
    let mut missing = MissingBlocks {
        blocks: Vec::with_capacity(piece.len()),
        pages: 0,
        gaps: Vec::new(),
    };
    for block in Blocks::new(piece) {
        if let Some(SlotPage { slot, page }) = page_of(&block) {
            let next = sent_to.entry(slot).or_insert(page);
            if page < *next {
                continue;
            }
            if page > *next {
                let (from, to) = (*next, page);
                missing.gaps.push(PageGap { slot, from, to });
            }
            *next = page.saturating_add(1);
            missing.pages += 1;
        } else if block.header.kind != kind::SCHEMA || schema == SpilledSchema::LeaveOut {
            continue;
        }
        missing.blocks.extend_from_slice(block.bytes);
    }
    missing
}
