//! Sends a session's blocks over the connection, and notes them among what is under way.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use ringmark_format::Uuid;
use ringmark_format::block::kind;
use ringmark_format::block_at::Blocks;
use ringmark_format::codec::write;

use super::connection::Connection;
use super::in_flight::{Flights, Landing};
use super::positions::{SlotPage, page_of};
use crate::pages::batch::{Batch, fits};
use crate::pages::drain::SessionDrain;
use crate::recording::dump::Codec;

/// Least credit with which a batch is begun: a page of any size, its schema, counters.
const ROOM: u64 = 2 << 20;

/// What a track needs to send blocks.
pub(super) struct Outgoing<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) flights: &'a mut Flights,
    pub(super) batch: &'a mut Batch,
    pub(super) scratch: &'a mut Vec<u8>,
    pub(super) codec: Codec,
    /// How often open pages are sent.
    pub(super) open_every: Duration,
    pub(super) notices: &'a mut Vec<String>,
}

impl Outgoing<'_> {
    /// Whether a batch may be begun.
    pub(super) fn has_room(&mut self) -> io::Result<bool> {
        if self.connection.room() < ROOM {
            self.connection.listen()?;
        }
        Ok(self.connection.room() >= ROOM)
    }

    pub(super) fn send_session(&mut self, uuid: Uuid, content: &[u8]) -> io::Result<()> {
        let mut block = Vec::new();
        fits(write::session(&mut block, uuid, content));
        self.connection.send(&block)
    }

    /// Sends the schema that is published and was not sent.
    pub(super) fn send_schema(&mut self, uuid: Uuid, drain: &mut SessionDrain) -> io::Result<()> {
        while let Some((offset, bytes)) = drain.peek_schema() {
            let mut block = Vec::new();
            fits(write::schema(&mut block, uuid, offset, &bytes));
            self.connection.send(&block)?;
            drain.schema_written(bytes.len());
        }
        Ok(())
    }

    pub(super) fn send_counters(&mut self, uuid: Uuid, content: &[u8]) -> io::Result<()> {
        let mut block = Vec::new();
        fits(write::counters(&mut block, uuid, content));
        self.connection.send(&block)
    }

    /// Sends the batch.
    pub(super) fn send_batch(&mut self, uuid: Uuid) -> io::Result<()> {
        let blocks = pack(self.codec, uuid, self.batch.bytes(), self.scratch);
        self.connection.send(blocks)
    }

    /// Sends blocks that are pages, mostly.
    pub(super) fn send_blocks(&mut self, uuid: Uuid, blocks: &[u8]) -> io::Result<()> {
        let blocks = pack(self.codec, uuid, blocks, self.scratch);
        self.connection.send(blocks)
    }

    /// What was sent last is under way.
    pub(super) fn note(&mut self, uuid: Uuid, landing: Landing) {
        self.flights.push(self.connection.sent(), uuid, landing);
    }
}

fn pack<'b>(codec: Codec, uuid: Uuid, blocks: &'b [u8], scratch: &'b mut Vec<u8>) -> &'b [u8] {
    if codec == Codec::None || blocks.is_empty() {
        return blocks;
    }
    scratch.clear();
    match write::container(scratch, uuid, codec as u8, blocks) {
        Ok(()) => scratch,
        Err(_) => blocks,
    }
}

/// What a collector needs of a spilled piece.
pub(super) struct SpilledNews {
    pub(super) blocks: Vec<u8>,
    /// Pages in them.
    pub(super) pages: u64,
}

/// Whether a spilled piece's schema is sent, too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SpilledSchema {
    /// It is: the ring file that had it is gone.
    Send,
    /// It is not: it is sent from the ring file.
    LeaveOut,
}

/// The blocks of a spilled piece that a collector which has `have` needs. `have` moves on.
pub(super) fn news_in(
    piece: &[u8],
    have: &mut BTreeMap<u32, u64>,
    schema: SpilledSchema,
) -> SpilledNews {
    let mut news = SpilledNews {
        blocks: Vec::with_capacity(piece.len()),
        pages: 0,
    };
    for block in Blocks::new(piece) {
        if let Some(SlotPage { slot, page }) = page_of(&block) {
            let next = have.entry(slot).or_default();
            if page < *next {
                continue;
            }
            *next = page.saturating_add(1);
            news.pages += 1;
        } else if block.header.kind != kind::SCHEMA || schema == SpilledSchema::LeaveOut {
            continue;
        }
        news.blocks.extend_from_slice(block.bytes);
    }
    news
}
