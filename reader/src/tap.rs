//! A look into a session, living or dead, that does not disturb it: what it holds, as blocks.

mod look;

use ringmark_format::codec::write;

use crate::error::ReaderError;
use crate::pages::batch::{Batch, fits};
use crate::pages::drain::{Fill, FillPass, Finality, SchemaPiece, SessionDrain};
use crate::pages::open_spans;
use crate::sessions::session::Session;
pub use look::{Look, RingLook};

/// Takes out of a session what is new in it, poll by poll. Nothing is released: a recorder can run
/// at the same time.
#[derive(Debug)]
pub struct Tap {
    drain: SessionDrain,
    batch: Batch,
    /// The SESSION block was returned.
    introduced: bool,
}

impl Tap {
    /// A tap on a session.
    #[must_use]
    pub fn new(session: Session) -> Self {
        Self {
            drain: SessionDrain::observing(session),
            batch: Batch::new(),
            introduced: false,
        }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &Session {
        self.drain.session()
    }

    /// Blocks of what is new since the last call: sealed pages, and open ones that have grown, each
    /// as a whole. The schema that they need comes before them.
    ///
    /// # Errors
    /// The ring file was truncated.
    pub fn poll(&mut self) -> Result<Vec<u8>, ReaderError> {
        let mut pages = Vec::new();
        self.take_pass(SessionDrain::fill, &mut pages)?;
        self.take_pass(SessionDrain::fill_news, &mut pages)?;
        let mut blocks = self.introduction();
        blocks.extend(pages);
        Ok(blocks)
    }

    /// Appends the page blocks of one whole pass.
    fn take_pass(&mut self, fill: FillPass, blocks: &mut Vec<u8>) -> Result<(), ReaderError> {
        loop {
            self.batch.clear(u64::MAX);
            let filled = fill(&mut self.drain, &mut self.batch)?;
            blocks.extend_from_slice(self.batch.bytes());
            self.drain.release();
            if filled == Fill::PassDone {
                return Ok(());
            }
        }
    }

    /// The SESSION block once, and the schema that was published since the last call.
    fn introduction(&mut self) -> Vec<u8> {
        let uuid = self.drain.session().uuid();
        let mut blocks = Vec::new();
        if !std::mem::replace(&mut self.introduced, true) {
            fits(write::session(
                &mut blocks,
                uuid,
                &self.drain.session_content(),
            ));
        }
        while let Some(SchemaPiece { offset, bytes }) = self.drain.peek_schema() {
            fits(write::schema(&mut blocks, uuid, offset, &bytes));
            self.drain.schema_written(bytes.len());
        }
        blocks
    }

    /// OPEN_SPANS blocks as of now. Taken before the pages, and read after them, they lack no span
    /// that the pages lack.
    #[must_use]
    pub fn open_spans(&mut self) -> Vec<u8> {
        let ended = self.drain.session().ended();
        open_spans::blocks(&mut self.drain, ended)
    }

    /// An ENDING block, or nothing while the session goes on.
    #[must_use]
    pub fn ending(&self) -> Vec<u8> {
        let mut block = Vec::new();
        let session = self.session();
        if let Some(ending) = session.ending() {
            let seen_tick = session.dead_tick();
            fits(write::ending(&mut block, session.uuid(), ending, seen_tick));
        }
        block
    }

    /// A COUNTERS block as of now.
    ///
    /// # Errors
    /// The ring file was truncated.
    pub fn counters(&mut self) -> Result<Vec<u8>, ReaderError> {
        let uuid = self.drain.session().uuid();
        let mut block = Vec::new();
        let content = self
            .drain
            .counters(Finality::Interim, Some(&mut self.batch))?;
        fits(write::counters(&mut block, uuid, &content));
        Ok(block)
    }
}
