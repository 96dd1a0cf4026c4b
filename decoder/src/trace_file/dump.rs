//! One or several inputs put together: sessions with their schema and pages, and what was wrong.
//!
//! Blocks may come in any order and more than once. They are grouped by session first; when all
//! inputs have been read, pages are checked, the schema is read and the clocks are fitted.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::sync::Arc;

use ringmark_format::block::{Window, kind};
use ringmark_format::clock::Sample;
use ringmark_format::ending::{Ending, EndingBlock};
use ringmark_format::store::IndexSlot;
use ringmark_format::stream::HostClock;
use ringmark_format::{PageNumber, RingId, SlotIndex, Uuid};
use zerocopy::FromBytes;

use crate::blocks::block_reader::{Block, BlockReader, Item, page_id};
use crate::blocks::damage::{Damage, Fault, PageId};
use crate::blocks::join::{Joined, join};
use crate::blocks::page::Page;
use crate::trace_file::choice::SessionChoice;
use crate::trace_file::open_spans::OpenStacks;
use crate::trace_file::process::{self, ClockParts};
use crate::trace_file::schema::{Pieces, Schema};
use crate::trace_file::session::{Counters, Session, SessionBlock, Slot};
use crate::trace_file::time::SessionClock;
use crate::trace_file::window;
use crate::words::distance::distance;
use crate::words::escape::Printable;

/// Everything that the inputs hold, put in order: the start of every analysis.
///
/// [`Self::events`] gives the events of all sessions, [`Self::verify`] the account of losses.
/// Memory is linear in the size of the inputs.
#[derive(Debug, Default)]
pub struct Dump {
    /// Sessions in the order of their first block.
    pub sessions: Vec<Session>,
    /// What could not be used, in the order in which it was found.
    pub damage: Vec<Damage>,
    /// Number of valid blocks that were read; a container counts as one.
    pub blocks: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Bytes of segments that were left out; see [`DumpBuilder::leave_out`].
    pub left_out_bytes: u64,
    /// Segments of a store that were removed while it was read. Their events count as missing, as
    /// if the segments had been removed before.
    pub removed_segments: u64,
    /// Copies of pages that brought nothing new.
    pub repeated: u64,
    /// Copies of pages that contradict another copy; each is an item of `damage` too.
    pub conflicts: u64,
    /// Blocks of kinds that are not known here.
    pub unknown_blocks: u64,
}

impl Dump {
    /// Names of event types closest to `wanted`, the closest first, at most `count`. A message
    /// suggests them when a filter matches nothing.
    #[must_use]
    pub fn closest_names(&self, wanted: &str, count: usize) -> Vec<String> {
        let types = self.sessions.iter().flat_map(|s| s.schema.types());
        let mut names: Vec<(usize, &[u8])> = types
            .map(|t| (distance(wanted.as_bytes(), &t.name), t.name.as_slice()))
            .collect();
        names.sort_unstable();
        names.dedup();
        let near = names.into_iter().take(count);
        near.map(|(_, name)| Printable(name).to_string()).collect()
    }
}

/// Puts a [`Dump`] together out of any number of inputs.
#[derive(Debug, Default)]
pub struct DumpBuilder {
    dump: Dump,
    places: HashMap<Uuid, usize>,
    partial: Vec<Partial>,
    choice: SessionChoice,
    /// Names of hosts in the stores that sessions were read from.
    hosts: HashMap<Uuid, Vec<u8>>,
}

/// Where something was read: what a [`Damage`] says about the place, for faults that are found
/// later.
#[derive(Debug, Clone)]
struct Place {
    source: Arc<str>,
    block: u64,
    offset: u64,
}

impl Place {
    fn damage(&self, page: Option<PageId>, fault: Fault) -> Damage {
        Damage {
            source: self.source.clone(),
            block: self.block,
            offset: self.offset,
            page,
            fault,
        }
    }
}

/// A session while it is being put together. Pages are kept by slot, number and ring id, so that
/// a further copy of a page finds the first one.
#[derive(Debug)]
struct Partial {
    uuid: Uuid,
    first: Place,
    block: Option<SessionBlock>,
    schema: Pieces,
    pages: BTreeMap<(u32, u64, u64), (Page, Place)>,
    counters: Option<Counters>,
    samples: Vec<Sample>,
    host_clocks: Vec<HostClock>,
    left_out: Vec<IndexSlot>,
    open_spans: OpenStacks,
    ending: Option<Ending>,
    /// From the latest WINDOW block after the latest SESSION block.
    window: Option<Window>,
    /// From the earliest to the latest time of all WINDOW blocks of pieces.
    piece: Option<(u64, u64)>,
    /// Whether something was read without a window before it.
    is_whole: bool,
    /// Whether the streamer or recorder sampled the session's own clocks.
    shares_clocks: bool,
}

impl DumpBuilder {
    /// A builder that has read nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps only the sessions that `choice` lets pass.
    pub fn choose(&mut self, choice: SessionChoice) {
        self.choice = choice;
    }

    /// Tells under which name a store holds the host of a session.
    pub fn name_host(&mut self, session: Uuid, host: &[u8]) {
        self.hosts.insert(session, host.to_vec());
    }

    /// Reads all of `input`. Messages call it `source`, usually a path.
    ///
    /// # Errors
    /// The input is unreadable: it gave no valid block, or has a newer major version or another
    /// byte order. The error is its first damage. Other damage is kept in [`Dump::damage`].
    pub fn read(&mut self, source: &str, input: impl Read) -> Result<(), Damage> {
        let mut reader = BlockReader::new(source, input);
        let source: Arc<str> = source.into();
        let first = self.dump.damage.len();
        while let Some(item) = reader.next_item() {
            match item {
                Item::Damage(damage) => self.dump.damage.push(damage),
                Item::Block(block) => self.take(&source, &block),
            }
        }
        let (blocks, bytes) = (reader.valid_blocks(), reader.offset());
        self.dump.blocks += blocks;
        self.dump.bytes += bytes;
        let mut new = self.dump.damage[first..].iter();
        let refused = new.find(|d| {
            let foreign = matches!(d.fault, Fault::NewerMajor { .. } | Fault::ForeignEndian);
            foreign || blocks == 0
        });
        match refused {
            Some(damage) => Err(damage.clone()),
            None => Ok(()),
        }
    }

    /// Tells of a segment that is not read: what its index lists is not missing. `slots` are the
    /// slots of `session` in the segment, `bytes` is its size.
    pub fn leave_out(&mut self, session: Uuid, slots: &[IndexSlot], bytes: u64) {
        let place = Place {
            source: "an index".into(),
            block: 0,
            offset: 0,
        };
        let session = self.session(session, &place);
        session.left_out.extend_from_slice(slots);
        self.dump.left_out_bytes += bytes;
    }

    fn take(&mut self, source: &Arc<str>, block: &Block<'_>) {
        let place = Place {
            source: source.clone(),
            block: block.number,
            offset: block.offset,
        };
        if let Err(fault) = self.take_block(&place, block) {
            if matches!(fault, Fault::Conflict { .. }) {
                self.dump.conflicts += 1;
            }
            let damage = place.damage(page_id(&block.header), fault);
            self.dump.damage.push(damage);
        }
    }

    fn take_block(&mut self, place: &Place, block: &Block<'_>) -> Result<(), Fault> {
        let uuid = Uuid(block.header.session);
        match block.header.kind {
            kind::SESSION => {
                let read = SessionBlock::read(block.content, uuid.0)?;
                let session = self.session(uuid, place);
                session.block.get_or_insert(read);
                session.window = None;
            }
            kind::SCHEMA => {
                let offset = block.header.page_number;
                self.session(uuid, place)
                    .schema
                    .add(offset, block.content)?;
            }
            kind::COUNTERS => {
                let counters = Counters::read(block.content)?;
                self.session(uuid, place).take_counters(counters);
            }
            kind::PAGE => {
                let page = Page::read(block)?;
                let joined = self.session(uuid, place).take_page(page, place)?;
                self.dump.repeated += u64::from(joined == Some(Joined::Repeated));
            }
            kind::WINDOW => self.session(uuid, place).take_window(block.content)?,
            kind::OPEN_SPANS => self.session(uuid, place).open_spans.take(block.content)?,
            kind::ENDING => self.session(uuid, place).take_ending(block.content)?,
            kind::HOST_CLOCK => self.session(uuid, place).take_clock(block.content)?,
            _ => self.dump.unknown_blocks += 1,
        }
        Ok(())
    }

    fn session(&mut self, uuid: Uuid, place: &Place) -> &mut Partial {
        let next = self.partial.len();
        let index = *self.places.entry(uuid).or_insert(next);
        if index == next {
            self.partial.push(Partial {
                uuid,
                first: place.clone(),
                block: None,
                schema: Pieces::default(),
                pages: BTreeMap::new(),
                counters: None,
                samples: Vec::new(),
                host_clocks: Vec::new(),
                left_out: Vec::new(),
                open_spans: OpenStacks::default(),
                ending: None,
                window: None,
                piece: None,
                is_whole: false,
                shares_clocks: false,
            });
        }
        &mut self.partial[index]
    }

    /// Checks every page and reads the schema, session by session, then puts the sessions of each
    /// process together and fits the clocks.
    #[must_use]
    pub fn finish(mut self) -> Dump {
        let mut clocks = Vec::new();
        for partial in self.partial.into_iter().filter(Partial::is_known) {
            let number = self.dump.sessions.len();
            let damaged = self.dump.damage.len();
            let (mut session, clock) = partial.finish(number, &mut self.dump.damage);
            session.stored_host = self.hosts.remove(&session.uuid);
            if self.choice.passes(&session) {
                self.dump.sessions.push(session);
                clocks.push(clock);
            } else {
                self.dump.damage.truncate(damaged);
            }
        }
        process::join(&mut self.dump.sessions, clocks);
        self.dump
    }
}

impl Partial {
    /// Whether more than an index was read of it.
    fn is_known(&self) -> bool {
        self.block.is_some() || self.left_out.is_empty() || !self.pages.is_empty()
    }

    fn take_clock(&mut self, content: &[u8]) -> Result<(), Fault> {
        let (new, _) = HostClock::read_from_prefix(content).map_err(|_| Fault::Value {
            what: "size of a HOST_CLOCK block",
            found: content.len() as u64,
            expected: HostClock::BYTES as u64,
        })?;
        self.host_clocks.push(new);
        Ok(())
    }

    fn take_window(&mut self, content: &[u8]) -> Result<(), Fault> {
        let (new, rest) = Window::read_from_prefix(content).map_err(|_| Fault::Value {
            what: "size of a WINDOW block",
            found: content.len() as u64,
            expected: Window::BYTES as u64,
        })?;
        self.piece = window::widest(self.piece, &new);
        self.samples.extend(window::samples(rest));
        self.window = Some(new);
        Ok(())
    }

    /// A known end counts before one that is not, the later before the earlier.
    fn take_ending(&mut self, content: &[u8]) -> Result<(), Fault> {
        let (new, _) = EndingBlock::read_from_prefix(content).map_err(|_| Fault::Value {
            what: "size of an ENDING block",
            found: content.len() as u64,
            expected: EndingBlock::BYTES as u64,
        })?;
        let is_known = |ending: &Option<Ending>| ending.is_some_and(Ending::is_known);
        let new = Ending::of_block(&new);
        if new.is_some() && (is_known(&new) || !is_known(&self.ending)) {
            self.ending = new;
        }
        Ok(())
    }

    fn take_counters(&mut self, new: Counters) {
        self.is_whole |= self.window.is_none();
        self.shares_clocks |= new.sample().is_some();
        self.samples.extend(new.sample());
        let older = self.counters.as_ref().map(Counters::age);
        if older.is_none_or(|age| new.age() >= age) {
            self.counters = Some(new);
        }
    }

    fn take_page(&mut self, mut page: Page, place: &Place) -> Result<Option<Joined>, Fault> {
        self.is_whole |= self.window.is_none();
        match self.window {
            Some(window) if window.to_mono_ns == 0 => page.from_mono_ns = window.from_mono_ns,
            Some(window) => page.piece = Some((window.from_mono_ns, window.to_mono_ns)),
            None => {}
        }
        let key = (page.header.slot, page.number.0, page.ring.0);
        match self.pages.get_mut(&key) {
            Some((kept, _)) => join(kept, &page).map(Some),
            None => {
                self.pages.insert(key, (page, place.clone()));
                Ok(None)
            }
        }
    }

    /// The session, but for its clock, and what that is made of.
    fn finish(mut self, number: usize, damage: &mut Vec<Damage>) -> (Session, ClockParts) {
        let mut faults = Vec::new();
        if self.block.is_none() {
            faults.push(Fault::NoSession(self.uuid));
        }
        let stream = self.schema.join();
        let mut schema = Schema::read(&stream, &mut faults);
        self.schema_end(&schema, &mut faults);
        damage.extend(faults.into_iter().map(|f| self.first.damage(None, f)));
        let slots = self.take_slots(&mut schema, damage);
        self.left_out
            .sort_unstable_by_key(|s| (s.slot, s.first_event));
        let (header, attributes) = match self.block {
            Some(block) => (Some(block.header), block.attributes),
            None => (None, Vec::new()),
        };
        let mut session = Session {
            uuid: self.uuid,
            stored_host: None,
            header,
            attributes,
            schema,
            clock: SessionClock::new(None, Vec::new()),
            slots,
            counters: self.counters,
            ending: self.ending,
            left_out: self.left_out,
            open_stacks: self.open_spans.finish(),
            window: self
                .window
                .filter(|_| !self.is_whole)
                .map(|w| w.from_mono_ns),
            piece: self.piece.filter(|_| !self.is_whole),
            process: number,
            number,
            clock_of: number,
            has_spans: false,
            name: Vec::new(),
        };
        session.finish_name();
        let clock = ClockParts {
            samples: self.samples,
            measured: self.host_clocks,
            shares_clocks: self.shares_clocks,
        };
        (session, clock)
    }

    /// Reports a schema stream that ends before the length that the counters have, unless its end
    /// was reported already.
    fn schema_end(&self, schema: &Schema, faults: &mut Vec<Fault>) {
        let length = self.counters.as_ref().map_or(0, |c| c.header.schema_bytes);
        let from = schema.bytes;
        let told = faults
            .iter()
            .any(|f| matches!(f, Fault::SchemaGap { .. } | Fault::SchemaEntry { .. }));
        if from < length && !told {
            faults.push(Fault::SchemaGap { from, to: length });
        }
    }

    /// Checks the pages, gathers their clock samples, and sorts the pages into slots. Damage of a
    /// page is reported with its place; its sound part is kept.
    fn take_slots(&mut self, schema: &mut Schema, damage: &mut Vec<Damage>) -> Vec<Slot> {
        let mut slots: Vec<Slot> = Vec::new();
        for ((slot, number, ring), (mut page, place)) in std::mem::take(&mut self.pages) {
            if let Some(fault) = page.check(|id| schema.cover(id)) {
                let id = PageId {
                    session: self.uuid,
                    ring: RingId(ring),
                    number: PageNumber(number),
                };
                damage.push(place.damage(Some(id), fault));
            }
            let sample = Sample {
                tick: page.header.tick_base,
                mono_ns: page.header.mono_base_ns,
            };
            if sample.mono_ns != 0 {
                self.samples.push(sample);
            }
            match slots.last_mut() {
                Some(last) if last.index.0 == slot => last.pages.push(page),
                _ => slots.push(Slot {
                    index: SlotIndex(slot),
                    pages: vec![page],
                }),
            }
        }
        slots
    }
}
