//! One session being streamed: announced, resumed, its pages sent, those that waited on disk first.

mod to_spill;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringmark_format::Uuid;

pub(super) use to_spill::Held;

use super::in_flight::Landing;
use super::outgoing::{Outgoing, SpilledSchema, news_in};
use super::spill::Spill;
use super::zero_copy;
use crate::error::ReaderError;
use crate::pages::batch::Batch;
use crate::pages::counters::News;
use crate::pages::drain::{Fill, SessionDrain};
use crate::pages::positions::SlotPosition;
use crate::recording::dump::Codec;
use crate::sessions::lifetime::Lifetime;
use crate::sessions::session::Session;

/// Bytes that are copied at once, or one page if that is larger: they stay in the cache until they
/// are summed and sent.
const BATCH: u64 = 256 << 10;

/// Bytes that are packed at once if as many come soon and fit: fewer pack badly.
const PACKED: u64 = 64 << 10;
/// How long less than that waits for more.
const PACKED_WITHIN: Duration = Duration::from_millis(100);
/// What of the fullest ring may wait for it, in 1/1024.
const CROWDED: u32 = 128;

/// How far a session has come on the present connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The collector does not know of it.
    New,
    /// SESSION was sent.
    Announced,
    /// Pages go.
    Streaming,
    /// What is left goes, open pages included.
    Ending,
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

/// What a pass did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Passed {
    /// Pages sent.
    pub(super) pages: u64,
    /// All that waited was sent; else the collector is slower than we are.
    pub(super) done: bool,
}

impl Passed {
    /// This, and then `next`.
    fn and(self, next: Self) -> Self {
        Self {
            pages: self.pages + next.pages,
            ..next
        }
    }
}

/// A session's ring file.
#[derive(Debug)]
pub(super) struct Ring {
    pub(super) drain: SessionDrain,
    lifetime: Lifetime,
    news: News,
    drained: bool,
    /// The ring file, if its pages may be sent by reference.
    by_reference: Option<Arc<File>>,
    /// It was taken anew from the oldest page on that is not released.
    rewound: bool,
    /// When its open pages were looked at last.
    opened_at: Instant,
    /// When all that waited was sent last, if nothing is left of that pass.
    passed_at: Option<Instant>,
}

impl Ring {
    /// Whether there is too little to be packed, and it can wait.
    fn waits_for_more(&mut self) -> bool {
        self.passed_at
            .is_some_and(|at| at.elapsed() < PACKED_WITHIN)
            && self.drain.waiting_bytes() < PACKED
            && self.drain.fill_1024() < CROWDED
    }
}

/// A session and how far it has come.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) uuid: Uuid,
    pub(super) stage: Stage,
    /// `None`: only its spill is left.
    pub(super) ring: Option<Ring>,
    pub(super) spill: Option<Spill>,
    /// Up to where its slots' pages were sent on this connection, or are durable.
    have: BTreeMap<u32, u64>,
}

impl Track {
    /// A session that was found, with what of it waits on disk.
    pub(super) fn new(session: Session, spill: Option<Spill>) -> Self {
        let uuid = session.uuid();
        let mut drain = SessionDrain::new(session);
        if let Some(spill) = &spill {
            // The process that spilled it may have been killed before it released it.
            drain.resume(&spill.ends(), 0);
        }
        let ring = Ring {
            drain,
            lifetime: Lifetime::new(),
            news: News::default(),
            drained: false,
            by_reference: None,
            rewound: false,
            opened_at: Instant::now(),
            passed_at: None,
        };
        Self {
            ring: Some(ring),
            ..Self::left(uuid, spill)
        }
    }

    /// Has its pages sent by reference from now on, or not. Only what is not overwritten
    /// before it is released can be: pages of a discard session.
    pub(super) fn send_by_reference(&mut self, on: bool) {
        if let Some(ring) = &mut self.ring {
            let session = ring.drain.session();
            let file = session.ring().file().try_clone().ok();
            ring.by_reference = file.filter(|_| on && session.consumes()).map(Arc::new);
        }
    }

    /// Whether its pages are sent by reference.
    pub(super) fn is_sent_by_reference(&self) -> bool {
        self.ring
            .as_ref()
            .is_some_and(|ring| ring.by_reference.is_some())
    }

    /// A session of which nothing but this is there.
    pub(super) fn left(uuid: Uuid, spill: Option<Spill>) -> Self {
        Self {
            uuid,
            stage: Stage::New,
            ring: None,
            spill,
            have: BTreeMap::new(),
        }
    }

    /// The session, to go on with it in another way.
    pub(super) fn into_session(self) -> Option<Session> {
        self.ring.map(|ring| ring.drain.into_session())
    }

    pub(super) fn drain(&self) -> Option<&SessionDrain> {
        self.ring.as_ref().map(|ring| &ring.drain)
    }

    /// The connection is gone: what was not durable is taken again.
    pub(super) fn begin_again(&mut self) {
        self.stage = Stage::New;
        self.have.clear();
        if let Some(spill) = &mut self.spill {
            spill.rewind();
        }
        if let Some(ring) = &mut self.ring {
            ring.drain.rewind();
            (ring.news, ring.drained, ring.rewound) = (News::default(), false, false);
            ring.passed_at = None;
        }
    }

    /// Goes on after what the collector says it has.
    pub(super) fn resume(&mut self, positions: &[SlotPosition], schema_bytes: u64) {
        if self.stage == Stage::Announced {
            self.have = positions.iter().map(|p| (p.slot, p.next_page)).collect();
            if let Some(ring) = &mut self.ring {
                ring.drain.resume(positions, schema_bytes);
            }
            self.stage = Stage::Streaming;
        }
    }

    /// Releases what the collector has for good.
    pub(super) fn landed(&mut self, landed: &Landing) -> Result<(), ReaderError> {
        if let Some(ring) = &mut self.ring {
            ring.drain.release_to(&landed.rings);
        }
        match (&mut self.spill, landed.spilled) {
            (Some(spill), Some(to)) => spill.free(to),
            _ => Ok(()),
        }
    }

    /// Moves it on: announces it, or sends what waits.
    pub(super) fn advance(&mut self, out: &mut Outgoing<'_>) -> Result<Passed, Trouble> {
        match self.stage {
            Stage::New => self.announce(out),
            Stage::Announced | Stage::Sent => Ok(NOTHING),
            Stage::Streaming => self.stream(out),
            Stage::Ending => self.end(out),
        }
    }

    fn announce(&mut self, out: &mut Outgoing<'_>) -> Result<Passed, Trouble> {
        let content = match (&self.ring, &self.spill) {
            (Some(ring), _) => ring.drain.session_content(),
            (None, spill) => spill
                .iter()
                .flat_map(Spill::session_content)
                .copied()
                .collect(),
        };
        out.send_session(self.uuid, &content)?;
        self.stage = Stage::Announced;
        Ok(NOTHING)
    }

    fn stream(&mut self, out: &mut Outgoing<'_>) -> Result<Passed, Trouble> {
        let mut all = self.send_spilled(out)?;
        let Some(ring) = &mut self.ring else {
            if all.done {
                self.stage = Stage::Sent;
            }
            return Ok(all);
        };
        ring.drain.session().check_size()?;
        if !all.done {
            return Ok(all);
        }
        if std::mem::take(&mut ring.rewound) {
            ring.drain.skip_to(&SlotPosition::list(&self.have));
        }
        let ended = ring.lifetime.has_ended(ring.drain.session());
        if !ended && out.codec != Codec::None && ring.waits_for_more() {
            return Ok(all);
        }
        let passed = self.pass(SessionDrain::fill, out)?;
        all.pages += passed.pages;
        all.done = passed.done;
        if let Some(ring) = &mut self.ring {
            ring.passed_at = passed.done.then(Instant::now);
        }
        let is_quiet = |ring: &Ring| ring.lifetime.is_quiet(ring.drain.session(), passed.pages);
        if passed.done && ended && self.ring.as_ref().is_some_and(is_quiet) {
            self.stage = Stage::Ending;
            let end = self.end(out)?;
            all = all.and(end);
        } else if passed.done {
            all = all.and(self.linger(out)?);
        }
        Ok(all)
    }

    /// Sends what is in open pages, now and then: a thread that writes little seals none for long.
    fn linger(&mut self, out: &mut Outgoing<'_>) -> Result<Passed, Trouble> {
        let is_due = |ring: &&mut Ring| ring.opened_at.elapsed() >= out.open_every;
        if self.ring.as_mut().filter(is_due).is_none() {
            return Ok(NOTHING);
        }
        let passed = self.pass(SessionDrain::fill_lingering, out)?;
        if let Some(ring) = self.ring.as_mut().filter(|_| passed.done) {
            ring.opened_at = Instant::now();
        }
        Ok(passed)
    }

    /// Sends open pages and the last counters.
    fn end(&mut self, out: &mut Outgoing<'_>) -> Result<Passed, Trouble> {
        let passed = self.pass(SessionDrain::fill_open, out)?;
        if let Some(ring) = self.ring.as_mut().filter(|_| passed.done) {
            let ended = ring.drain.session().ended();
            ring.drained = ended && ring.drain.is_drained();
            let content = ring.drain.counters(ring.drained, None)?;
            out.send_counters(self.uuid, &content)?;
            out.note(self.uuid, Landing::pages(ring.drain.taken()));
            self.stage = Stage::Sent;
        }
        Ok(passed)
    }

    /// Moves it on to its end: nothing more is wanted of it than what is there now.
    pub(super) fn leave(&mut self, out: &mut Outgoing<'_>) -> Result<Passed, Trouble> {
        if let Some(ring) = &mut self.ring {
            ring.passed_at = None;
        }
        let passed = self.advance(out)?;
        if self.stage == Stage::Streaming && passed.done {
            self.stage = Stage::Ending;
            return Ok(passed.and(self.end(out)?));
        }
        Ok(passed)
    }

    /// Fills and sends batches until a pass is done, or credit is short.
    fn pass(&mut self, fill: FillPass, out: &mut Outgoing<'_>) -> Result<Passed, Trouble> {
        let mut pages = 0;
        let Some(ring) = &mut self.ring else {
            return Ok(NOTHING);
        };
        while out.has_room()? {
            out.batch.clear(BATCH);
            let mut filled = fill(&mut ring.drain, out.batch)?;
            if filled == Fill::BatchFull && out.batch.is_empty() {
                out.batch.clear(u64::MAX);
                filled = fill(&mut ring.drain, out.batch)?;
            }
            pages += out.batch.pages();
            out.send_schema(self.uuid, &mut ring.drain)?;
            if !out.batch.is_empty() {
                match ring
                    .by_reference
                    .as_ref()
                    .filter(|_| out.connection.takes_references())
                {
                    Some(file) => {
                        let blocks = out.batch.bytes();
                        zero_copy::send_batch(blocks, &ring.drain, file, out.connection)?;
                        if zero_copy::releases_when_sent() {
                            ring.drain.release();
                        }
                    }
                    None => out.send_batch(self.uuid)?,
                }
                let taken = ring.drain.taken();
                let taken_to = taken.iter().map(|p| (p.slot, p.next_page));
                self.have.extend(taken_to);
                out.note(self.uuid, Landing::pages(taken));
            }
            if filled == Fill::PassDone {
                return Ok(Passed { pages, done: true });
            }
        }
        Ok(Passed { pages, done: false })
    }

    /// Sends what waits on disk, but what the collector has.
    fn send_spilled(&mut self, out: &mut Outgoing<'_>) -> Result<Passed, Trouble> {
        let mut pages = 0;
        let Some(spill) = &mut self.spill else {
            return Ok(NOTHING);
        };
        while !spill.is_read() {
            if !out.has_room()? {
                return Ok(Passed { pages, done: false });
            }
            let piece = spill.read().unwrap_or_else(|error| {
                out.notices.push(error.to_string());
                Vec::new()
            });
            if let Some(ring) = &mut self.ring {
                out.send_schema(self.uuid, &mut ring.drain)?;
            }
            let schema = match self.ring {
                Some(_) => SpilledSchema::LeaveOut,
                None => SpilledSchema::Send,
            };
            let news = news_in(&piece, &mut self.have, schema);
            out.send_blocks(self.uuid, &news.blocks)?;
            out.note(self.uuid, Landing::spilled(spill.read_to()));
            pages += news.pages;
        }
        Ok(Passed { pages, done: true })
    }

    /// Sends counters, if they say something new.
    pub(super) fn count(&mut self, out: &mut Outgoing<'_>) -> Result<(), Trouble> {
        let Some(ring) = self
            .ring
            .as_mut()
            .filter(|_| self.stage == Stage::Streaming)
        else {
            return Ok(());
        };
        ring.drain.session().check_size()?;
        out.batch.clear(u64::MAX);
        let content = ring.drain.counters(false, Some(out.batch))?;
        if ring.news.are_in(&content) {
            out.send_counters(self.uuid, &content)?;
        }
        Ok(())
    }

    /// Everything is durable: says so in the ring file of a session that was read to its end, and
    /// removes it, unless it asked to be kept.
    pub(super) fn remove_if_drained(
        &self,
        alone: impl FnOnce(&Path) -> bool,
    ) -> Result<(), ReaderError> {
        let Some(ring) = self.ring.as_ref().filter(|ring| ring.drained) else {
            return Ok(());
        };
        let session = ring.drain.session();
        session.set_taken();
        session.remove_drained(false, alone)
    }
}

/// A pass over a session: of sealed pages, or of what is left.
type FillPass = fn(&mut SessionDrain, &mut Batch) -> Result<Fill, ReaderError>;

/// Nothing to send, nothing sent.
const NOTHING: Passed = Passed {
    pages: 0,
    done: true,
};
