//! A session while it is being put together: blocks in any order and more than once.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringmark_format::ending::{Ending, EndingBlock};
use ringmark_format::store::IndexSlot;
use ringmark_format::{PageNumber, RingId, SlotIndex, Uuid};
use zerocopy::FromBytes;

use crate::blocks::damage::{Damage, Fault, PageId, Place};
use crate::blocks::join::{Joined, join};
use crate::blocks::page::Page;
use crate::trace_file::clock_parts::ClockParts;
use crate::trace_file::extent::Extent;
use crate::trace_file::finished_spans::ReachingSpans;
use crate::trace_file::loss::after;
use crate::trace_file::open_spans::OpenStacks;
use crate::trace_file::packed_stream::PackedStream;
use crate::trace_file::progress::HostProgress;
use crate::trace_file::schema::Schema;
use crate::trace_file::schema_pieces::Pieces;
use crate::trace_file::session::{Counters, Session, SessionBlock, Slot};
use crate::trace_file::switch_blocks::SwitchBlocks;
use crate::trace_file::time::SessionClock;
use crate::trace_file::type_set::TypeSet;

/// A session while it is being put together. Pages are kept by slot, number and ring id, so that
/// a further copy of a page finds the first one.
#[derive(Debug)]
pub(crate) struct SessionBuilder {
    uuid: Uuid,
    first: Place,
    block: Option<SessionBlock>,
    schema: Pieces,
    /// Bytes of the schema stream that its pages need.
    schema_needed: u64,
    pages: BTreeMap<(u32, u64, u64), CheckedPage>,
    /// Types of the records in the pages.
    types: TypeSet,
    counters: Option<Counters>,
    clock: ClockParts,
    /// Slots of segments that were not read.
    left_out: Vec<IndexSlot>,
    open_spans: OpenStacks,
    switches: SwitchBlocks,
    ending: Option<Ending>,
    /// Tick at which its process was found dead; 0: not known.
    dead_tick: u64,
    extent: Extent,
    progress: HostProgress,
    /// The host that was proved to have sent it.
    owner: Option<Vec<u8>>,
}

/// A page, where it was read, and what ends its walk before its end.
#[derive(Debug)]
struct CheckedPage {
    page: Page,
    place: Place,
    fault: Option<Box<Fault>>,
}

impl SessionBuilder {
    /// A session of which nothing is known but where its first block stands.
    pub(crate) fn new(uuid: Uuid, first: Place) -> Self {
        Self {
            uuid,
            first,
            block: None,
            schema: Pieces::default(),
            schema_needed: 0,
            pages: BTreeMap::new(),
            types: TypeSet::default(),
            counters: None,
            clock: ClockParts::default(),
            left_out: Vec::new(),
            open_spans: OpenStacks::default(),
            switches: SwitchBlocks::default(),
            ending: None,
            dead_tick: 0,
            extent: Extent::default(),
            progress: HostProgress::default(),
            owner: None,
        }
    }

    /// Whether blocks of this proved host are of this session; `None`: the host is not known.
    pub(crate) fn may_be_of(&self, host: Option<&Vec<u8>>) -> bool {
        host.is_none() || self.owner.is_none() || self.owner.as_ref() == host
    }

    /// Notes its proved host.
    pub(crate) fn own(&mut self, host: Option<&Vec<u8>>) {
        if self.owner.is_none() {
            self.owner = host.cloned();
        }
    }

    /// Pages of it need its schema stream up to this byte.
    pub(crate) fn need_schema(&mut self, bytes: u64) {
        self.schema_needed = self.schema_needed.max(bytes);
    }

    /// Pages of a slot in their order: number, and reservations of the slot before and up to the end.
    pub(crate) fn pages_of(&self, slot: u32) -> impl Iterator<Item = (u64, u64, u64)> {
        let pages = self.pages.range((slot, 0, 0)..=(slot, u64::MAX, u64::MAX));
        pages.map(|((_, number, _), checked)| {
            let page = &checked.page;
            (*number, page.header.first_event, after(page))
        })
    }

    /// Takes pieces of slots that earlier parts hold; see [`CARRIED_LOSS`](crate::trace_file::loss::CARRIED_LOSS).
    pub(crate) fn carry_out(&mut self, pieces: Vec<IndexSlot>) {
        self.left_out.extend(pieces);
    }

    /// Whether more than an index was read of it.
    pub(crate) fn is_known(&self) -> bool {
        self.block.is_some() || self.left_out.is_empty() || !self.pages.is_empty()
    }

    /// Takes a SESSION block; the first one counts.
    pub(crate) fn take_session(&mut self, block: SessionBlock) {
        self.block.get_or_insert(block);
        self.extent.begin();
    }

    /// Takes a piece of the schema stream, which starts at `offset` in it.
    pub(crate) fn take_schema(&mut self, offset: u64, piece: &[u8]) -> Result<(), Fault> {
        self.schema.add(offset, piece)
    }

    /// Takes what a collector measured of the host's clocks.
    pub(crate) fn take_clock(&mut self, content: &[u8]) -> Result<(), Fault> {
        self.clock.take_host_clock(content)
    }

    /// Takes the time from when on the pages after it are shown.
    pub(crate) fn take_window(&mut self, content: &[u8]) -> Result<(), Fault> {
        self.extent.take(content)
    }

    /// Takes what the host says about pages that are not here.
    pub(crate) fn take_progress(&mut self, content: &[u8]) -> Result<(), Fault> {
        self.progress.take(content)
    }

    /// Takes the stack of one thread.
    pub(crate) fn take_open_spans(&mut self, content: &[u8]) -> Result<(), Fault> {
        self.open_spans.take(content)
    }

    /// Takes switches of the threads of its process.
    pub(crate) fn take_switches(&mut self, content: &[u8]) -> Result<(), Fault> {
        self.switches.take(content)
    }

    /// Takes what the threads of its process were seen waiting for.
    pub(crate) fn take_waits(&mut self, content: &[u8]) -> Result<(), Fault> {
        self.switches.take_waits(content)
    }

    /// Takes in a part of where the threads of its process ran.
    pub(crate) fn take_samples(&mut self, content: &[u8]) -> Result<(), Fault> {
        self.switches.take_samples(content)
    }

    /// Takes slots of a segment that is not read: what its index lists is not missing.
    pub(crate) fn leave_out(&mut self, slots: &[IndexSlot]) {
        let of_index = |slot: &IndexSlot| IndexSlot {
            reserved: 0,
            ..*slot
        };
        self.left_out.extend(slots.iter().map(of_index));
    }

    /// A known end counts before one that is not, the later before the earlier.
    pub(crate) fn take_ending(&mut self, content: &[u8]) -> Result<(), Fault> {
        let (block, _) = EndingBlock::read_from_prefix(content).map_err(|_| Fault::Value {
            what: "size of an ENDING block",
            found: content.len() as u64,
            expected: EndingBlock::BYTES as u64,
        })?;
        let is_known = |ending: &Option<Ending>| ending.is_some_and(Ending::is_known);
        let new = Ending::of_block(&block);
        if new.is_some() && block.seen_tick != 0 {
            let earlier = Some(self.dead_tick).filter(|tick| *tick != 0);
            self.dead_tick = earlier.map_or(block.seen_tick, |tick| tick.min(block.seen_tick));
        }
        if new.is_some() && (is_known(&new) || !is_known(&self.ending)) {
            self.ending = new;
        }
        Ok(())
    }

    /// Takes counters; the latest count.
    pub(crate) fn take_counters(&mut self, new: Counters) {
        self.extent.take_counters();
        self.clock.take_counters(&new);
        let older = self.counters.as_ref().map(Counters::age);
        if older.is_none_or(|age| new.age() >= age) {
            self.counters = Some(new);
        }
    }

    /// Takes a page and checks its records, which are in `bytes`.
    pub(crate) fn take_page(
        &mut self,
        mut page: Page,
        bytes: &[u8],
        place: &Place,
    ) -> Result<Option<Joined>, Fault> {
        self.extent.take_page(&mut page);
        let key = (page.header.slot, page.number.0, page.ring.0);
        let types = &mut self.types;
        let meet = |id| types.add(id);
        match self.pages.get_mut(&key) {
            Some(CheckedPage {
                page: kept, fault, ..
            }) => {
                let joined = join(kept, page, bytes)?;
                if joined == Joined::Fuller {
                    *fault = kept.check(&kept.load(), meet).map(Box::new);
                }
                Ok(Some(joined))
            }
            None => {
                let fault = page.check(bytes, meet).map(Box::new);
                let place = place.clone();
                self.pages.insert(key, CheckedPage { page, place, fault });
                Ok(None)
            }
        }
    }

    /// The session, but for its clock, and what that is made of.
    pub(crate) fn finish(
        mut self,
        number: usize,
        damage: &mut Vec<Damage>,
    ) -> (Session, ClockParts) {
        let mut faults = Vec::new();
        if self.block.is_none() {
            faults.push(Fault::NoSession(self.uuid));
        }
        let stream = std::mem::take(&mut self.schema).join();
        let mut schema = Schema::read(&stream, &mut faults);
        self.schema_end(&schema, &mut faults);
        damage.extend(faults.into_iter().map(|f| self.first.damage(None, f)));
        let schema_lacks = self.schema_needed.saturating_sub(stream.0.len() as u64);
        let schema_stream = PackedStream::of(&stream.0);
        drop(stream);
        self.types.iter().for_each(|id| schema.cover(id));
        let slots = self.take_slots(damage);
        self.left_out
            .sort_unstable_by_key(|s| (s.slot, s.first_event));
        let (header, attributes) = match self.block {
            Some(block) => (Some(block.header), block.attributes),
            None => (None, Vec::new()),
        };
        let mut session = Session {
            uuid: self.uuid,
            stored_host: self.owner,
            header,
            attributes,
            schema,
            schema_stream,
            schema_lacks,
            clock: SessionClock::new(None, Vec::new()),
            slots,
            counters: self.counters,
            progress: self.progress,
            ending: self.ending,
            dead_tick: self.dead_tick,
            left_out: self.left_out,
            is_shortened: false,
            goes_on: false,
            open_stacks: self.open_spans.finish(),
            switch_blocks: self.switches,
            switched: Arc::default(),
            window: self.extent.window(),
            process: number,
            number,
            clock_of: number,
            has_spans: false,
            reaching: ReachingSpans::default(),
            name: Vec::new(),
        };
        session.finish_name();
        (session, self.clock)
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

    /// Gathers the clock samples of the pages, and sorts the pages into slots. Damage of a page is
    /// reported with its place; its sound part is kept.
    fn take_slots(&mut self, damage: &mut Vec<Damage>) -> Vec<Slot> {
        let mut slots: Vec<Slot> = Vec::new();
        let names = self.open_spans.names();
        for ((slot, number, ring), checked) in std::mem::take(&mut self.pages) {
            let CheckedPage {
                mut page,
                place,
                fault,
            } = checked;
            page.rename(names.get(&ring));
            if let Some(fault) = fault {
                let id = PageId {
                    session: self.uuid,
                    ring: RingId(ring),
                    number: PageNumber(number),
                };
                damage.push(place.damage(Some(id), *fault));
            }
            self.clock.take_page(&page.header);
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
