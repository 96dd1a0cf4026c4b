//! What a reader gets from the shared memory at one instant: the reader's own drain over the
//! mapped ring file, as it runs for a session whose process is dead; the blocks that it makes,
//! taken apart.

use ringmark_format::block::{BlockHeader, SEALED};
use ringmark_format::counters::{CountersHeader, SlotCounters};
use ringmark_format::page::PageHeader;
use ringmark_format::record::{self, Header};
use ringmark_format::slot::state;
use ringmark_format::{PageNumber, TypeId};
use ringmark_reader::{Batch, Fill, Finality, Session, SessionDrain};
use zerocopy::FromBytes;

use super::types::{self, Kind, Types};

/// A record, as far as a reader can tell one from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    /// A committed event that says who it is: its context and its number there.
    Event(u64),
    /// A committed event without payload.
    Nameless,
    /// Given up.
    Cancelled,
    /// Not committed.
    Busy,
}

/// A page that the reader returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) slot: u32,
    pub(crate) number: u64,
    pub(crate) tid: u32,
    pub(crate) first_event: u64,
    pub(crate) lost_before: u64,
    /// The reader says that it will not grow.
    pub(crate) sealed: bool,
    /// Where its records start and end in [`Image::records`].
    pub(crate) records: (usize, usize),
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Image {
    pub(crate) pages: Vec<Page>,
    pub(crate) records: Vec<Record>,
    pub(crate) slots: Vec<SlotCounters>,
    /// Slots whose claim has ended.
    pub(crate) ended: Vec<bool>,
    /// Pages in each slot's ring.
    pub(crate) ring_pages: Vec<u64>,
    /// Events lost, all causes, with a ring or without.
    pub(crate) lost: u64,
}

impl Image {
    /// Records of a page.
    pub(crate) fn records_of(&self, page: &Page) -> &[Record] {
        &self.records[page.records.0..page.records.1]
    }

    fn clear(&mut self) {
        self.pages.clear();
        self.records.clear();
        self.slots.clear();
        self.ended.clear();
        self.ring_pages.clear();
    }
}

/// Reads images of one session, again and again.
pub(crate) struct ImageReader {
    session: Option<Session>,
    batch: Batch,
    types: Types,
    schema_bytes: u64,
}

impl ImageReader {
    pub(crate) fn new(session: Session) -> Self {
        Self {
            session: Some(session),
            batch: Batch::with_room(0),
            types: Types::default(),
            schema_bytes: 0,
        }
    }

    /// The pages of blocks that another reader of the same session made.
    pub(crate) fn parse(&self, blocks: &[u8]) -> Result<Image, String> {
        let mut image = Image::default();
        take_apart(blocks, &self.types, &mut image)?;
        Ok(image)
    }

    /// What a reader gets now.
    pub(crate) fn read(&mut self, image: &mut Image) -> Result<(), String> {
        let session = self.session.take().ok_or("no session")?;
        let mut drain = SessionDrain::observing(session);
        let read = self.read_with(&mut drain, image);
        self.session = Some(drain.into_session());
        read
    }

    fn read_with(&mut self, drain: &mut SessionDrain, image: &mut Image) -> Result<(), String> {
        self.batch.clear(u64::MAX);
        image.clear();
        let sealed = drain.fill(&mut self.batch).map_err(|e| e.to_string())?;
        let open = drain.fill_open(&mut self.batch);
        let open = open.map_err(|e| e.to_string())?;
        if (sealed, open) != (Fill::PassDone, Fill::PassDone) {
            return Err("the batch of this test is too small".into());
        }
        self.follow_schema(drain)?;
        let content = drain
            .counters(Finality::Interim, None)
            .map_err(|e| e.to_string())?;
        let (header, rest) = CountersHeader::read_from_prefix(&content).map_err(|_| "counters")?;
        for entry in rest.chunks_exact(SlotCounters::BYTES) {
            let entry = SlotCounters::read_from_bytes(entry).map_err(|_| "counters")?;
            image.slots.push(entry);
        }
        let lost_in_rings = image.slots.iter().flat_map(|slot| slot.lost);
        image.lost = lost_in_rings.chain(header.lost).sum();
        let ring = drain.session().ring();
        for entry in &image.slots {
            let slot = ring.slot(entry.slot).ok_or("a counted slot")?;
            image.ended.push(slot.state() == state::SEALED);
            image.ring_pages.push(u64::from(slot.geometry().pages));
        }
        take_apart(self.batch.bytes(), &self.types, image)
    }

    fn follow_schema(&mut self, drain: &SessionDrain) -> Result<(), String> {
        let published = drain.session().ring().schema_log().published();
        if published != self.schema_bytes {
            let schema = drain.peek_schema().ok_or("a published schema")?;
            self.types = types::parse(&schema.bytes)?;
            self.schema_bytes = published;
        }
        Ok(())
    }
}

/// The pages of a batch of blocks.
fn take_apart(mut blocks: &[u8], types: &Types, image: &mut Image) -> Result<(), String> {
    while !blocks.is_empty() {
        let (block, rest) = BlockHeader::read_from_prefix(blocks).map_err(|_| "a block")?;
        let (content, rest) = rest
            .split_at_checked(block.stored_bytes as usize)
            .ok_or("a block's content")?;
        blocks = rest;
        page(&block, content, types, image)?;
    }
    image.pages.sort_by_key(|page| (page.slot, page.number));
    Ok(())
}

fn page(
    block: &BlockHeader,
    content: &[u8],
    types: &Types,
    image: &mut Image,
) -> Result<(), String> {
    let number = block.page_number;
    let (header, rest) = PageHeader::read_from_prefix(content).map_err(|_| "a page's header")?;
    if header.generation != PageNumber(number).0 + 1 || header.ring_id != block.ring_id {
        return Err(format!("page {number} says it is {header:?}"));
    }
    let first = image.records.len();
    let sealed = block.flags & SEALED != 0;
    let (words, _) = rest.as_chunks::<8>();
    let closed =
        walk(words, types, &mut image.records).map_err(|e| format!("page {number}: {e}"))?;
    if sealed && !closed {
        return Err(format!(
            "page {number} is sealed and its records do not reach its end"
        ));
    }
    image.pages.push(Page {
        slot: header.slot,
        number,
        tid: header.tid,
        first_event: header.first_event,
        lost_before: header.lost_before,
        sealed,
        records: (first, image.records.len()),
    });
    Ok(())
}

/// Walks records; returns whether the page is closed behind them.
fn walk(words: &[[u8; 8]], types: &Types, to: &mut Vec<Record>) -> Result<bool, String> {
    let word = |at: usize| words.get(at).copied().map(u64::from_le_bytes);
    let mut at = 0;
    let mut extended = false;
    while let Some(header) = word(at) {
        let span = match record::unpack(header) {
            Header::Empty => return Ok(false),
            Header::Pad => return Ok(true),
            Header::Busy(span) => {
                to.push(Record::Busy);
                span
            }
            Header::Cancelled(span) => {
                to.push(Record::Cancelled);
                span
            }
            Header::Record { type_id, .. } if type_id.0 == record::TIME_EXTEND => {
                extended = true;
                at += 2;
                continue;
            }
            Header::Record {
                type_id,
                payload_words,
                ..
            } => {
                let head = 1 + usize::from(payload_words.is_none());
                let length = payload_words.or(word(at + 1)).ok_or("a length")?;
                let payload = words
                    .get(at + head..at + head + length as usize)
                    .ok_or_else(|| format!("a record of {length} words at {at}"))?;
                to.push(event(type_id, payload, types)?);
                head as u64 + length
            }
        };
        extended = false;
        at += usize::try_from(span.max(1)).map_err(|e| e.to_string())?;
    }
    if extended {
        return Err("a time without its event".into());
    }
    // A copy of an open page ends behind its last record.
    Ok(at == words.len())
}

/// An event whose every word is what its type and its id say.
fn event(type_id: TypeId, payload: &[[u8; 8]], types: &Types) -> Result<Record, String> {
    let kind = types::find(types, type_id.0).ok_or("an event of an unknown type")?;
    let words = || payload.iter().map(|word| u64::from_le_bytes(*word));
    let torn = || {
        format!(
            "a torn event of type {kind:?}: {:x?}",
            words().collect::<Vec<_>>()
        )
    };
    match kind {
        Kind::Empty if payload.is_empty() => Ok(Record::Nameless),
        Kind::Numbered { at, length } if payload.len() == length => {
            let id = words().nth(at).ok_or_else(torn)?;
            let whole = words()
                .skip(at)
                .enumerate()
                .all(|(i, found)| found == types::word(id, i));
            let whole = whole && types::split(id).is_some();
            if whole {
                Ok(Record::Event(id))
            } else {
                Err(torn())
            }
        }
        Kind::Empty | Kind::Numbered { .. } => Err(torn()),
    }
}
