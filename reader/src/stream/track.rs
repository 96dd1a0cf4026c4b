//! One session being streamed.

use std::io;

use ringmark_format::block::BlockHeader;
use ringmark_format::codec::write;
use ringmark_format::session::Mode;
use ringmark_format::{Uuid, align8};

use super::connection::Connection;
use super::flight::Flights;
use crate::batch::Batch;
use crate::counters::News;
use crate::drain::{Fill, SessionDrain};
use crate::dump::Codec;
use crate::error::ReaderError;
use crate::lifetime::Lifetime;
use crate::session::Session;

/// Least credit with which a batch is begun: a page of any size, its schema, counters.
pub(super) const ROOM: u64 = 2 << 20;

/// How far a session has come on the present connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The collector does not know of it.
    New,
    /// SESSION was sent.
    Announced,
    /// Pages go.
    Streaming,
    /// Everything was sent.
    Sent,
}

/// Why a pass could not be made.
pub(super) enum Trouble {
    /// The connection failed.
    Wire(io::Error),
    /// The session's file did.
    Session(ReaderError),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Wire(error)
    }
}

impl From<ReaderError> for Trouble {
    fn from(error: ReaderError) -> Self {
        Self::Session(error)
    }
}

/// Where blocks go on their way out.
pub(super) struct Way<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) flights: &'a mut Flights,
    pub(super) batch: &'a mut Batch,
    pub(super) scratch: &'a mut Vec<u8>,
    pub(super) codec: Codec,
}

/// A session and how far it has come.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) drain: SessionDrain,
    pub(super) stage: Stage,
    lifetime: Lifetime,
    news: News,
    drained: bool,
}

impl Track {
    pub(super) fn new(session: Session) -> Self {
        Self {
            drain: SessionDrain::new(session),
            stage: Stage::New,
            lifetime: Lifetime::new(),
            news: News::default(),
            drained: false,
        }
    }

    pub(super) fn uuid(&self) -> Uuid {
        self.drain.session().uuid()
    }

    /// The connection is gone: what was not durable is taken again.
    pub(super) fn begin_again(&mut self) {
        self.drain.rewind();
        self.stage = Stage::New;
        self.news = News::default();
        self.drained = false;
    }

    /// The collector says what it has.
    pub(super) fn resume(&mut self, positions: &[(u32, u64)], schema_bytes: u64) {
        if self.stage == Stage::Announced {
            self.drain.resume(positions, schema_bytes);
            self.stage = Stage::Streaming;
        }
    }

    /// Moves it on: announces it, or sends what waits; returns the pages sent.
    pub(super) fn advance(&mut self, way: &mut Way<'_>) -> Result<u64, Trouble> {
        match self.stage {
            Stage::New => {
                self.announce(way)?;
                Ok(0)
            }
            Stage::Announced | Stage::Sent => Ok(0),
            Stage::Streaming => self.stream(way),
        }
    }

    fn announce(&mut self, way: &mut Way<'_>) -> Result<(), Trouble> {
        let mut block = Vec::new();
        let content = self.drain.session_content();
        fits(write::session(&mut block, self.uuid(), &content));
        way.connection.send(&block)?;
        self.stage = Stage::Announced;
        Ok(())
    }

    fn stream(&mut self, way: &mut Way<'_>) -> Result<u64, Trouble> {
        self.drain.session().check_size()?;
        let ended = self.lifetime.has_ended(self.drain.session());
        let mut pages = self.pass(SessionDrain::fill, way)?;
        if ended && self.lifetime.is_quiet(self.drain.session(), pages) {
            pages += self.end(true, way)?;
        }
        Ok(pages)
    }

    /// Sends open pages and the last counters.
    pub(super) fn end(&mut self, ended: bool, way: &mut Way<'_>) -> Result<u64, Trouble> {
        let pages = self.pass(SessionDrain::fill_open, way)?;
        self.drained = ended && self.drain.is_drained();
        let content = self.drain.counters(self.drained, None)?;
        self.send_counters(&content, way)?;
        let end = way.connection.sent();
        way.flights.push(end, self.uuid(), self.drain.taken());
        self.stage = Stage::Sent;
        Ok(pages)
    }

    /// Fills and sends batches until a pass is done, or credit is short.
    fn pass(&mut self, fill: FillPass, way: &mut Way<'_>) -> Result<u64, Trouble> {
        let mut pages = 0;
        loop {
            while way.connection.room() < ROOM {
                way.connection.wait_for_room()?;
            }
            way.batch.clear(u64::MAX);
            let filled = fill(&mut self.drain, way.batch)?;
            pages += way.batch.pages();
            self.send_batch(way)?;
            if filled == Fill::PassDone {
                return Ok(pages);
            }
        }
    }

    fn send_batch(&mut self, way: &mut Way<'_>) -> Result<(), Trouble> {
        self.send_schema(way)?;
        if way.batch.is_empty() {
            return Ok(());
        }
        let uuid = self.uuid();
        let mut blocks = way.batch.bytes();
        if way.codec != Codec::None {
            way.scratch.clear();
            let packed = write::container(way.scratch, uuid, way.codec as u8, blocks);
            if packed.is_ok() {
                blocks = way.scratch;
            }
        }
        way.connection.send(blocks)?;
        let end = way.connection.sent();
        way.flights.push(end, uuid, self.drain.taken());
        Ok(())
    }

    fn send_schema(&mut self, way: &mut Way<'_>) -> Result<(), Trouble> {
        while let Some((offset, bytes)) = self.drain.peek_schema() {
            let mut block = Vec::with_capacity(BlockHeader::BYTES + align8(bytes.len()));
            fits(write::schema(&mut block, self.uuid(), offset, &bytes));
            way.connection.send(&block)?;
            self.drain.schema_written(bytes.len());
        }
        Ok(())
    }

    /// Sends counters, if they say something new.
    pub(super) fn count(&mut self, way: &mut Way<'_>) -> Result<(), Trouble> {
        if self.stage != Stage::Streaming {
            return Ok(());
        }
        self.drain.session().check_size()?;
        way.batch.clear(u64::MAX);
        let content = self.drain.counters(false, Some(way.batch))?;
        if self.news.are_in(&content) {
            self.send_counters(&content, way)?;
        }
        Ok(())
    }

    fn send_counters(&self, content: &[u8], way: &mut Way<'_>) -> Result<(), Trouble> {
        let mut block = Vec::new();
        fits(write::counters(&mut block, self.uuid(), content));
        way.connection.send(&block)?;
        Ok(())
    }

    /// Everything is durable: removes the ring file of a lossless session that was read to its
    /// end, unless it asked to be kept.
    pub(super) fn remove_if_drained(&self) -> Result<(), ReaderError> {
        const KEEP_ALWAYS: u32 = 1;
        let session = self.drain.session();
        let lossless = session.ring().geometry().mode == Mode::Lossless;
        if lossless && self.drained && session.header().keep != KEEP_ALWAYS {
            session.remove_file()?;
        }
        Ok(())
    }
}

/// A pass over a session: of sealed pages, or of what is left.
type FillPass = fn(&mut SessionDrain, &mut Batch) -> Result<Fill, ReaderError>;

/// Content that is bounded below the largest block by its makers.
fn fits(written: Result<(), ringmark_format::codec::CodecError>) {
    debug_assert!(written.is_ok(), "{written:?}");
}
