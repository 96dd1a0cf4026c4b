//! A ring over plain memory with its writer: no file, no other process. What the tests share that
//! run the real writer and read its pages as an observer does.
#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::mem::offset_of;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use ringmark_format::counters::Cause;
use ringmark_format::page::PageHeader;
use ringmark_format::record::{self, Header};
use ringmark_format::session::Mode;
use ringmark_format::slot::state;
use ringmark_format::{PageNumber, RingId, TypeId};
use ringmark_ring::observe::{self, HEADER_WORDS};
use ringmark_ring::slot::SLOT_WORDS;
use ringmark_ring::span_stack::{FRAME_WORDS, OVER};
use ringmark_ring::sync::AtomicU64;
use ringmark_ring::writer::{Ring, offsets};
use ringmark_ring::{
    ClockSample, PageCopy, PageRead, Reservation, SlotGeometry, SlotView, SpanStack, Writer,
};

/// Ring id of the claim.
const RING_ID: u64 = 7;
/// Number of the clock: any but 0, which stands for no ring. The tests bring their own ticks.
const CLOCK: u32 = 4;

/// How large a ring is. A page may be smaller than the format allows: the writer does not mind, and
/// a few records fill it.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Words of a page, header included.
    pub page_words: usize,
    /// Pages of the ring.
    pub pages: usize,
}

/// A stack of open spans lies as in a file.
#[repr(align(4096))]
struct AlignedStack(SpanStack);

/// A claimed slot with an attached writer. Its memory is never freed.
pub struct HeapRing {
    pub writer: &'static Writer,
    pub slot: SlotView<'static>,
    pub pages: &'static [AtomicU64],
    pub stack: &'static SpanStack,
    shape: Shape,
    words: &'static [AtomicU64],
    place: *mut Writer,
}

impl HeapRing {
    /// A ring in which nothing was recorded.
    pub fn new(mode: Mode, shape: Shape) -> Self {
        let count = shape.pages * shape.page_words + SLOT_WORDS + 1;
        let words: Box<[AtomicU64]> = (0..count).map(|_| AtomicU64::new(0)).collect();
        let place = Box::into_raw(Box::new(Writer::new()));
        let stack = Box::leak(Box::new(AlignedStack(std::array::from_fn(|_| {
            AtomicU64::new(0)
        }))));
        Self::in_memory(mode, shape, Box::leak(words), &stack.0, place)
    }

    /// The same memory as a new ring in which nothing was recorded, for tests of very many rings.
    /// The caller keeps nothing of the one before.
    pub fn renewed(self, mode: Mode) -> Self {
        self.words.iter().for_each(|word| word.store(0, Relaxed));
        // SAFETY: from `Box::into_raw`, never freed; every use of the writer before is over.
        unsafe { self.place.write(Writer::new()) };
        self.stack.iter().for_each(|word| word.store(0, Relaxed));
        Self::in_memory(mode, self.shape, self.words, self.stack, self.place)
    }

    fn in_memory(
        mode: Mode,
        shape: Shape,
        words: &'static [AtomicU64],
        stack: &'static SpanStack,
        place: *mut Writer,
    ) -> Self {
        let (pages, rest) = words.split_at(shape.pages * shape.page_words);
        let slot = SlotView::new(rest, &rest[SLOT_WORDS]).unwrap();
        let geometry = SlotGeometry {
            pages_offset: 0,
            page_bytes: shape.page_words as u32 * 8,
            pages: shape.pages as u32,
        };
        assert!(slot.claim(state::FREE));
        slot.set_geometry(geometry);
        slot.set_owner(RingId(RING_ID), 42, *b"main\0\0\0\0\0\0\0\0\0\0\0\0");
        slot.publish_state(state::ACTIVE);
        // SAFETY: from `Box::into_raw`, never freed.
        let writer: &'static Writer = unsafe { &*place };
        let ring = Ring {
            pages,
            geometry,
            stack: Some(stack),
            slot,
            slot_index: 0,
            mode,
            ring_id: RING_ID,
            tid: 42,
            thread_name: slot.thread_name(),
        };
        // SAFETY: the only user of this writer.
        unsafe { writer.attach(ring, CLOCK) };
        Self {
            writer,
            slot,
            pages,
            stack,
            shape,
            words,
            place,
        }
    }

    /// Reserves on the first of `ways` that takes the request; the last one is [`Way::Cold`].
    pub fn reserve(
        &self,
        ways: &[Way],
        request: Request,
        base: &dyn Fn(u64) -> ClockSample,
    ) -> Result<(Way, Reservation<'static>), Cause> {
        let Request {
            type_id,
            payload,
            now,
        } = request;
        let type_id = TypeId(type_id);
        for way in ways {
            let reserved = match way {
                Way::Straight => self.writer.reserve(type_id, payload, now),
                Way::Extended => self.writer.reserve_extended(type_id, payload, now),
                Way::Cold => Some(self.writer.reserve_cold(type_id, payload, now, base)?),
            };
            if let Some(reservation) = reserved {
                return Ok((*way, reservation));
            }
        }
        panic!("{ways:?} does not end with the way that takes every request");
    }

    /// Reservations under way.
    pub fn under_way(&self) -> u64 {
        let count = |offset: usize| {
            let word = self.place.wrapping_byte_add(offset).cast::<AtomicU64>();
            // SAFETY: the writer's offsets are those of its words, and it is never freed.
            unsafe { &*word }.load(Relaxed)
        };
        count(offsets::BEGUN) - count(offsets::ENDED)
    }

    /// Frames of the stack of open spans that are not free, and spans beyond them.
    pub fn frames_in_use(&self) -> (usize, u64) {
        let frames = self.stack.chunks_exact(FRAME_WORDS).skip(1);
        let heads = frames.map(|words| words[0].load(Relaxed));
        let in_use = heads.filter(|head| *head > u64::from(u32::MAX)).count();
        (in_use, self.stack[OVER].load(Relaxed))
    }

    /// The words of the page with this number, or of the one that has its place.
    pub fn page(&self, number: u64) -> &'static [AtomicU64] {
        let words = self.shape.page_words;
        let first = number as usize % self.shape.pages * words;
        &self.pages[first..first + words]
    }

    /// Numbers of the pages that are there, if none is being switched.
    pub fn live(&self) -> Range<u64> {
        let produced = self.slot.produced();
        produced.saturating_sub(self.shape.pages as u64)..produced
    }

    /// A copy of a page that may still be written to; `None`: it is not there.
    pub fn copy(&self, number: u64) -> Option<Copied> {
        self.copy_with(observe::copy_open, number)
    }

    /// A copy of a sealed page, as a consumer makes it; `None`: it is not there.
    pub fn copy_sealed(&self, number: u64) -> Option<Copied> {
        self.copy_with(observe::copy_sealed, number)
    }

    /// No page of these tests is damaged.
    fn copy_with(
        &self,
        copy: fn(&[AtomicU64], PageNumber, &mut [u64]) -> PageRead,
        number: u64,
    ) -> Option<Copied> {
        let mut words = vec![0; self.shape.page_words];
        match copy(self.page(number), PageNumber(number), &mut words) {
            PageRead::NotThere => None,
            PageRead::Copied(kept) => {
                assert!(!kept.damaged, "page {number} is damaged");
                Some(Copied { words, kept })
            }
        }
    }

    pub fn lost(&self, cause: Cause) -> u64 {
        self.slot.lost()[cause as usize]
    }
}

/// A way to reserve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Way {
    Straight,
    Extended,
    Cold,
}

/// The ways of an event, in their order.
pub const ALL_WAYS: &[Way] = &[Way::Straight, Way::Extended, Way::Cold];
/// Without the short way in an old page: the cold one then extends the time.
pub const COLD_EXTENDS: &[Way] = &[Way::Straight, Way::Cold];

/// What an event reserves.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub type_id: u32,
    /// Payload in words.
    pub payload: u64,
    /// Its tick.
    pub now: u64,
}

/// A page counts from the event that opens it.
pub fn base_at(tick: u64) -> ClockSample {
    ClockSample { tick, mono_ns: 0 }
}

/// Payload word `index` of an event: no other word of a test is equal to it.
pub fn word(event: u32, index: u64) -> u64 {
    u64::from(event) << 32 | index | 1 << 63
}

/// A copied page.
pub struct Copied {
    pub words: Vec<u64>,
    pub kept: PageCopy,
}

impl Copied {
    pub fn first_event(&self) -> u64 {
        self.words[offset_of!(PageHeader, first_event) / 8]
    }

    pub fn lost_before(&self) -> u64 {
        self.words[offset_of!(PageHeader, lost_before) / 8]
    }

    pub fn tick_base(&self) -> u64 {
        self.words[offset_of!(PageHeader, tick_base) / 8]
    }

    /// Its records, as an observer finds them.
    pub fn records(&self) -> Records<'_> {
        Records {
            page: self,
            at: HEADER_WORDS,
        }
    }

    /// Whether nothing fits after its records.
    pub fn is_closed(&self) -> bool {
        let mut records = self.records();
        records.by_ref().for_each(drop);
        records.is_at_end()
    }
}

/// A record of a copied page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FoundRecord<'c> {
    /// Reserved, and neither committed nor cancelled.
    Open,
    Cancelled,
    Committed(Event<'c>),
}

/// A committed record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event<'c> {
    pub type_id: u32,
    /// Absolute, whether it was extended or counts from the page.
    pub tick: u64,
    pub payload: &'c [u64],
}

/// Walks the records of a copied page.
pub struct Records<'c> {
    page: &'c Copied,
    at: usize,
}

impl Records<'_> {
    /// Whether the walk has ended at a PAD or at the end of the page.
    pub fn is_at_end(&self) -> bool {
        let next = self.page.words.get(self.at);
        next.is_none_or(|word| record::unpack(*word) == Header::Pad)
    }
}

impl<'c> Iterator for Records<'c> {
    type Item = FoundRecord<'c>;

    fn next(&mut self) -> Option<FoundRecord<'c>> {
        let words = &self.page.words[..self.page.kept.words];
        let mut base = self.page.tick_base();
        loop {
            let (found, length) = match record::unpack(*words.get(self.at)?) {
                Header::Pad => return None,
                Header::Busy(length) => (FoundRecord::Open, length),
                Header::Cancelled(length) => (FoundRecord::Cancelled, length),
                Header::Record { type_id, .. } if type_id.0 == record::TIME_EXTEND => {
                    base = words[self.at + 1];
                    self.at += 2;
                    continue;
                }
                Header::Record {
                    ticks,
                    type_id,
                    payload_words: Some(payload),
                } => {
                    let event = Event {
                        type_id: type_id.0,
                        tick: base + u64::from(ticks),
                        payload: &words[self.at + 1..][..payload as usize],
                    };
                    (FoundRecord::Committed(event), 1 + payload)
                }
                other => panic!("{other:?} at word {}", self.at),
            };
            self.at += length as usize;
            return Some(found);
        }
    }
}
