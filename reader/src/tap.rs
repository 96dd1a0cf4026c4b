//! A look into a living (or dead) session, without disturbing it: what it holds, as blocks.

use ringmark_format::codec::write;

use crate::error::ReaderError;
use crate::pages::batch::{Batch, fits};
use crate::pages::drain::{Fill, SessionDrain};
use crate::sessions::session::Session;

/// What a session has to say, taken out bit by bit as blocks.
#[derive(Debug)]
pub struct Tap {
    drain: SessionDrain,
    batch: Batch,
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

    /// Blocks of what is new, and of every open page that has something new, as far as it is.
    ///
    /// # Errors
    /// The ring file was truncated.
    pub fn poll(&mut self) -> Result<Vec<u8>, ReaderError> {
        let mut pages = Vec::new();
        loop {
            self.batch.clear(u64::MAX);
            let filled = self.drain.fill(&mut self.batch)?;
            pages.extend_from_slice(self.batch.bytes());
            self.drain.release();
            if filled == Fill::PassDone {
                break;
            }
        }
        loop {
            self.batch.clear(u64::MAX);
            let filled = self.drain.fill_news(&mut self.batch)?;
            pages.extend_from_slice(self.batch.bytes());
            self.drain.release();
            if filled == Fill::PassDone {
                break;
            }
        }
        let mut blocks = self.introduction();
        blocks.extend(pages);
        Ok(blocks)
    }

    /// SESSION once, and SCHEMA as far as it is new: the types of all pages that were taken.
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
        while let Some((offset, piece)) = self.drain.peek_schema() {
            fits(write::schema(&mut blocks, uuid, offset, &piece));
            self.drain.schema_written(piece.len());
        }
        blocks
    }

    /// A COUNTERS block as of now.
    ///
    /// # Errors
    /// The ring file was truncated.
    pub fn counters(&mut self) -> Result<Vec<u8>, ReaderError> {
        let uuid = self.drain.session().uuid();
        let mut block = Vec::new();
        let content = self.drain.counters(false, Some(&mut self.batch))?;
        fits(write::counters(&mut block, uuid, &content));
        Ok(block)
    }
}
