//! A look into a living (or dead) session, without disturbing it.

use ringmark_decoder::{Dump, DumpBuilder};
use ringmark_format::codec::{CodecError, write};
use ringmark_reader::{Access, Batch, Fill, ReaderError, Session, SessionDrain, find};

use crate::output::Failure;

/// What a session has to say, taken out bit by bit as blocks.
#[derive(Debug)]
pub(crate) struct Tap {
    drain: SessionDrain,
    batch: Batch,
    introduced: bool,
}

impl Tap {
    /// A tap on a session.
    pub(crate) fn new(session: Session) -> Self {
        Self {
            drain: SessionDrain::observing(session),
            batch: Batch::new(),
            introduced: false,
        }
    }

    /// The session.
    pub(crate) fn session(&self) -> &Session {
        self.drain.session()
    }

    /// Blocks of what is new, and of every open page that has something new, as far as it is.
    ///
    /// # Errors
    /// The ring file was truncated.
    pub(crate) fn poll(&mut self) -> Result<Vec<u8>, ReaderError> {
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
            bounded(write::session(
                &mut blocks,
                uuid,
                &self.drain.session_content(),
            ));
        }
        while let Some((offset, piece)) = self.drain.peek_schema() {
            bounded(write::schema(&mut blocks, uuid, offset, &piece));
            self.drain.schema_written(piece.len());
        }
        blocks
    }

    /// A COUNTERS block as of now.
    pub(crate) fn counters(&mut self) -> Result<Vec<u8>, ReaderError> {
        let uuid = self.drain.session().uuid();
        let mut block = Vec::new();
        let content = self.drain.counters(false, Some(&mut self.batch))?;
        bounded(write::counters(&mut block, uuid, &content));
        Ok(block)
    }
}

/// The reader bounds sessions, schema pieces and counters below the largest block.
fn bounded(written: Result<(), CodecError>) {
    debug_assert!(written.is_ok(), "{written:?}");
}

/// Taps on the sessions of a process, living ones first.
///
/// # Errors
/// It has none, or we may not look.
pub(crate) fn taps(pid: u32) -> anyhow::Result<Vec<Tap>> {
    let sessions = find::by_pid(pid)?;
    let open = |found| Session::open_found(found, Access::Observe).map(Tap::new);
    Ok(sessions.iter().map(open).collect::<Result<_, _>>()?)
}

/// What the rings of a process hold now.
///
/// # Errors
/// As [`taps`].
pub(crate) fn snapshot(pid: u32) -> anyhow::Result<Dump> {
    let mut builder = DumpBuilder::new();
    for mut tap in taps(pid)? {
        let mut blocks = tap.poll()?;
        blocks.extend(tap.counters()?);
        let name = format!("pid {pid}");
        builder
            .read(&name, blocks.as_slice())
            .map_err(|damage| Failure::unreadable(damage.to_string()))?;
    }
    Ok(builder.finish())
}
