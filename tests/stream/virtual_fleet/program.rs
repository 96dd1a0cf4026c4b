//! A traced program: its rings, page by page, and its own list of what it wrote.

use std::collections::{BTreeMap, BTreeSet};

use ringmark_format::Uuid;
use ringmark_format::counters::SlotCounters;
use ringmark_format::session::Mode;
use ringmark_tests::random::Random;

use super::common::function_schema::function_type;
use super::common::random_trace::more_schema;
use super::common::{PageOf, counters, schema, session_content, session_header, slot_counters};

/// The event with a number.
const NUMBERED: u32 = 16;

pub(crate) struct Program {
    pub(crate) session: Uuid,
    pub(crate) overwrites: bool,
    pub(crate) rings: Vec<Ring>,
    pub(crate) has_ended: bool,
    tick: u64,
    next_number: u64,
}

pub(crate) struct Ring {
    slot: u32,
    /// Pages that fit into it.
    pub(crate) capacity: u64,
    /// Sealed pages, all that there ever were.
    pages: Vec<Vec<u8>>,
    open: PageOf,
    /// Events in the open page after which it is sealed.
    seal_after: u64,
    in_open: u64,
    events: u64,
    lost: u64,
    /// Pages before this one were given back by the reader.
    pub(crate) consumed: u64,
    /// The numbers that it wrote, and the page of each.
    pub(crate) numbers: BTreeMap<u64, u64>,
}

impl Program {
    pub(crate) fn new(number: u8, overwrites: bool, random: &mut Random) -> Self {
        let mut made = Self {
            session: Uuid([number; 16]),
            overwrites,
            rings: Vec::new(),
            has_ended: false,
            tick: 1000,
            next_number: u64::from(number) << 32,
        };
        for slot in 0..1 + random.below(3) as u32 {
            let open = made.page(slot, 0, (0, 0));
            made.rings.push(Ring {
                slot,
                capacity: 3 + random.below(10),
                pages: Vec::new(),
                open,
                seal_after: 4,
                in_open: 0,
                events: 0,
                lost: 0,
                consumed: 0,
                numbers: BTreeMap::new(),
            });
            made.call(slot, false);
        }
        made
    }

    fn page(&self, slot: u32, number: u64, (events, lost): (u64, u64)) -> PageOf {
        let mut page = PageOf::new(number, events);
        page.session = self.session;
        (page.header.slot, page.header.tid) = (slot, 70 + slot);
        (page.header.ring_id, page.header.tick_base) = (5 + u64::from(slot), self.tick);
        page.header.lost_before = lost;
        page
    }

    /// A call that lasts as long as its ring: its entry is in the first page. One that overwrites has none.
    fn call(&mut self, slot: u32, is_exit: bool) {
        if !self.overwrites {
            let _ = self.put(slot, function_type(0, is_exit), &[]);
        }
    }

    /// Writes an event; returns whether there was room for it.
    fn put(&mut self, slot: u32, id: u32, payload: &[u64]) -> bool {
        self.tick += 10;
        let at = slot as usize;
        if self.rings[at].in_open >= self.rings[at].seal_after && !self.switch(at) {
            self.rings[at].lost += 1;
            return false;
        }
        let (tick, ring) = (self.tick, &mut self.rings[at]);
        let ticks = (tick - ring.open.header.tick_base) as u32;
        ring.open.event(ticks, id, payload);
        (ring.in_open, ring.events) = (ring.in_open + 1, ring.events + 1);
        true
    }

    /// Seals the open page and opens the next one, if there is room for that.
    fn switch(&mut self, at: usize) -> bool {
        let ring = &self.rings[at];
        let sealed = ring.pages.len() as u64 + 1;
        if !self.overwrites && sealed - ring.consumed >= ring.capacity {
            return false;
        }
        let next = self.page(ring.slot, sealed, (ring.events, ring.lost));
        let ring = &mut self.rings[at];
        let mut page = std::mem::replace(&mut ring.open, next);
        let mut block = Vec::new();
        page.close().write(true, &mut block);
        ring.pages.push(block);
        (ring.in_open, ring.seal_after) = (0, 2 + ring.events % 7);
        true
    }

    /// Writes some numbers into one of its rings.
    pub(crate) fn write(&mut self, random: &mut Random) {
        let slot = random.below(self.rings.len() as u64) as u32;
        for _ in 0..random.below(12) {
            let number = self.next_number;
            self.next_number += 1;
            if self.put(slot, NUMBERED, &[number]) {
                let ring = &mut self.rings[slot as usize];
                let _ = ring.numbers.insert(number, ring.produced());
            }
        }
    }

    /// Ends: the calls that are open return.
    pub(crate) fn end(&mut self) {
        for slot in 0..self.rings.len() as u32 {
            self.call(slot, true);
        }
        self.has_ended = true;
    }

    /// The content of SESSION.
    pub(crate) fn content(&self) -> Vec<u8> {
        let mode = if self.overwrites {
            Mode::Overwrite
        } else {
            Mode::Discard
        };
        let mut header = session_header(mode);
        header.session = self.session.0;
        session_content(header)
    }

    pub(crate) fn schema() -> Vec<u8> {
        [schema(), more_schema()].concat()
    }

    /// The content of COUNTERS.
    pub(crate) fn counters(&self, is_final: bool) -> Vec<u8> {
        let slots = self.rings.iter().map(|ring| {
            let mut of: SlotCounters = slot_counters(ring.events, [0; 8]);
            (of.slot, of.tid, of.ring_id) = (ring.slot, 70 + ring.slot, 5 + u64::from(ring.slot));
            (of.lost[0], of.produced) = (ring.lost, ring.produced());
            of
        });
        counters(&slots.collect::<Vec<_>>(), [0; 8], is_final)
    }

    /// What it wrote, and how many events it lost.
    pub(crate) fn written(&self) -> (BTreeSet<u64>, u64) {
        let numbers = self
            .rings
            .iter()
            .flat_map(|ring| ring.numbers.keys().copied());
        let lost = self.rings.iter().map(|ring| ring.lost).sum();
        (numbers.collect(), lost)
    }
}

impl Ring {
    /// Pages that are sealed.
    pub(crate) fn produced(&self) -> u64 {
        self.pages.len() as u64
    }

    /// The first page that is still there.
    pub(crate) fn oldest(&self, overwrites: bool) -> u64 {
        match overwrites {
            // The open page takes the room of one.
            true => (self.produced() + 1).saturating_sub(self.capacity),
            false => self.consumed,
        }
    }

    /// A sealed page, and the reservations before it and up to its end.
    pub(crate) fn sealed(&self, number: u64) -> &[u8] {
        &self.pages[number as usize]
    }

    /// A copy of the open page; `None`: it has no event.
    pub(crate) fn open(&mut self) -> Option<Vec<u8>> {
        let mut block = Vec::new();
        self.open.write(false, &mut block);
        (self.in_open > 0).then_some(block)
    }

    /// Reservations before a page: what its header says.
    pub(crate) fn first_event(&self, number: u64) -> u64 {
        let at = number as usize;
        match self.pages.get(at) {
            Some(block) => {
                let from = ringmark_format::block::BlockHeader::BYTES + 32;
                u64::from_le_bytes(block[from..from + 8].try_into().expect("8 bytes"))
            }
            None => self.open.header.first_event,
        }
    }
}
