//! A trace of several slots from random steps: events, lives of spans, finished spans, calls, losses,
//! pages that are gone.

use super::function_schema::{self, function_type, function_types};
use super::*;
use ringmark_format::attribute::tag;
use ringmark_format::codec::write;
use ringmark_format::counters::SlotCounters;
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;

/// What every event of the trace says, and no other byte of it does.
pub const SECRET: u64 = 0x5ec2_e75e_c2e7_0000;
/// Type of a finished span.
pub const DONE: u32 = 24;

/// Types 20 to 23: the life of a span; [`DONE`]; functions 0 and 1.
pub fn more_schema() -> Vec<u8> {
    let [span_id, parent, duration] =
        [semantic::SPAN_ID, semantic::PARENT_ID, semantic::DURATION].map(u32::to_le_bytes);
    let of = |name, at, semantic| FieldOf {
        extra: semantic,
        ..field(name, Kind::U64, at)
    };
    let id: [(u16, &[u8]); 1] = [(tag::SEMANTIC, &span_id)];
    let around: [(u16, &[u8]); 1] = [(tag::SEMANTIC, &parent)];
    let took: [(u16, &[u8]); 1] = [(tag::SEMANTIC, &duration)];
    let part =
        |number, name, shape| event_entry(number, name, Level::Info, shape, &[of("id", 0, &id)]);
    let new = [of("id", 0, &id), of("parent", 8, &around)];
    let done = [of("duration", 0, &took)];
    [
        event_entry(20, "new", Level::Info, Shape::SpanNew, &new),
        part(21, "enter", Shape::SpanEnter),
        part(22, "exit", Shape::SpanExit),
        part(23, "close", Shape::SpanClose),
        event_entry(DONE, "done", Level::Info, Shape::Span, &done),
        function_schema::function(0, "outer"),
        function_schema::function(1, "inner"),
        function_types(0, 2, 1, 0),
    ]
    .concat()
}

/// A COUNTERS block of a random trace with three slots, as of a tick. Each slot counts what its page at that
/// time holds. `headers`: those of all pages.
pub fn counters_at(session: Uuid, headers: &[PageHeader], tick: u64) -> Vec<u8> {
    let slots = (0..3).map(|slot| {
        let mut of_slot = headers.iter().filter(|header| header.slot == slot);
        let next = of_slot.find(|header| header.tick_base > tick);
        let mut counters = slot_counters(next.map_or(u64::MAX, |next| next.first_event), [0; 8]);
        counters.slot = slot;
        counters
    });
    let slots: Vec<_> = slots.collect();
    let mut content = counters(&slots, [0; 8], false);
    content[..16].copy_from_slice([tick, MONO_ZERO_NS + tick - 1000].as_bytes());
    let mut block = Vec::new();
    write::counters(&mut block, session, &content).unwrap();
    block
}

/// A record in the making: slot, ticks since the record before, kind, number.
pub type Step = (u8, u16, u8, u8);

/// The trace in the making.
pub struct RandomTrace {
    out: Vec<u8>,
    pages: Vec<PageOf>,
    counters: Vec<SlotCounters>,
    number: Vec<u64>,
    /// By id: open spans, and the slot whose thread is in it.
    spans: [Option<Option<usize>>; 8],
    /// Bits by which ticks are further apart: then pages hold few events, and clock samples count.
    scale: u32,
}

impl RandomTrace {
    pub fn new(mode: Mode, slots: u32, scale: u32) -> Self {
        let mut out = start(mode);
        let at = schema().len() as u64;
        write::schema(&mut out, SESSION, at, &more_schema()).unwrap();
        let counters = (0..slots).map(|slot| {
            let mut of = slot_counters(0, [0; 8]);
            (of.slot, of.tid, of.ring_id) = (slot, 70 + slot, 5 + u64::from(slot));
            of
        });
        let mut all = Self {
            out,
            pages: Vec::new(),
            counters: counters.collect(),
            number: vec![0; slots as usize],
            spans: [None; 8],
            scale,
        };
        let pages = (0..slots as usize).map(|slot| all.page(slot, 1000));
        all.pages = pages.collect();
        all
    }

    fn page(&self, slot: usize, tick: u64) -> PageOf {
        let counters = &self.counters[slot];
        let mut page = PageOf::new(self.number[slot], counters.events);
        (page.header.slot, page.header.tid) = (counters.slot, counters.tid);
        (page.header.ring_id, page.header.tick_base) = (counters.ring_id, tick);
        page.header.lost_before = counters.lost[0];
        page.header.mono_base_ns = self.mono_ns(tick);
        page
    }

    /// The sample of the clock at a tick; 0: none.
    fn mono_ns(&self, tick: u64) -> u64 {
        if self.scale == 0 {
            return 0;
        }
        // The clock runs 3 % fast, and not evenly.
        let ticks = tick - 1000;
        MONO_ZERO_NS + ticks + ticks / 33 + ticks % 7919
    }

    /// Ends the page of a slot; it is there unless `is_gone`.
    fn switch(&mut self, slot: usize, tick: u64, is_gone: bool) {
        self.number[slot] += 1;
        let next = self.page(slot, tick);
        let mut page = std::mem::replace(&mut self.pages[slot], next);
        if !is_gone {
            page.close().write(true, &mut self.out);
        }
    }

    /// Takes a step in the life of a span, if it is one that a span can take: new, enter, exit, close.
    fn live(&mut self, slot: usize, kind: u8, id: u64) -> bool {
        let span = &mut self.spans[id as usize];
        let next = match (kind, *span) {
            (2, None) => Some(None),
            (3, Some(None)) => Some(Some(slot)),
            (4, Some(Some(of))) if of == slot => Some(None),
            (5, Some(None)) => None,
            _ => return false,
        };
        *span = next;
        true
    }

    fn step(&mut self, tick: u64, slot: usize, mut kind: u8, n: u64) {
        if (2..=5).contains(&kind) && !self.live(slot, kind, 1 + n % 5) {
            kind = 13;
        }
        if self.pages[slot].left() < 64 || tick - self.pages[slot].header.tick_base > 1 << 20 {
            self.switch(slot, tick, n == 7);
        }
        let page = &mut self.pages[slot];
        let ticks = (tick - page.header.tick_base) as u32;
        let id = 1 + n % 5;
        match kind {
            0 => page.event(ticks, function_type(n as u32 % 2, false), &[SECRET]),
            1 => page.event(ticks, function_type(n as u32 % 2, true), &[]),
            2 => page.event(ticks, 20, &[id, 100 + id]),
            3..=5 => page.event(ticks, 18 + u32::from(kind), &[id]),
            6 => page.event(ticks, DONE, &[((n * 97) << self.scale).min(tick - 1000)]),
            7 => page.span(ringmark_format::record::CANCELLED, 2),
            8 => {
                self.counters[slot].lost[0] += 1 + n;
                return self.switch(slot, tick, false);
            }
            9 => return self.switch(slot, tick, n == 7),
            _ => page.event(ticks, 16, &[SECRET | n]),
        };
        self.counters[slot].events += 1;
    }

    pub fn finish(mut self, steps: &[Step], is_final: bool) -> Vec<u8> {
        let mut tick = 1000;
        for (slot, ticks, kind, n) in steps {
            tick += u64::from(*ticks) << self.scale;
            self.step(tick, usize::from(*slot), *kind, u64::from(*n));
        }
        for page in &mut self.pages {
            page.write(false, &mut self.out);
        }
        self.counters[0].lost[0] += 3;
        let mut content = counters(&self.counters, [0, 2, 0, 0, 0, 0, 0, 0], is_final);
        let sample = [tick, self.mono_ns(tick)];
        content[..16].copy_from_slice(sample.as_bytes());
        write::counters(&mut self.out, SESSION, &content).unwrap();
        self.out
    }
}
