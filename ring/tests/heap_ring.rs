//! The protocol over heap memory: no file, no other process.
#![cfg(not(loom))]

use crate::heap;

use heap::{COLD_EXTENDS, Copied, HeapRing, Request, Shape, base_at};
use ringmark_format::TypeId;
use ringmark_format::counters::Cause;
use ringmark_format::record::{self, Header};
use ringmark_format::session::Mode;
use ringmark_ring::observe::HEADER_WORDS;
use ringmark_ring::{ClockSample, Writer};

const PAGE_BYTES: u32 = 4096;
const SHAPE: Shape = Shape {
    page_words: PAGE_BYTES as usize / 8,
    pages: 2,
};

struct Heap(HeapRing);

fn heap(mode: Mode) -> Heap {
    Heap(HeapRing::new(mode, SHAPE))
}

impl std::ops::Deref for Heap {
    type Target = HeapRing;

    fn deref(&self) -> &HeapRing {
        &self.0
    }
}

impl Heap {
    fn emit(&self, type_id: u32, payload: &[u64], now: u64) -> Result<(), Cause> {
        let request = Request {
            type_id,
            payload: payload.len() as u64,
            now,
        };
        let (_, mut reservation) = self.reserve(COLD_EXTENDS, request, &base_at)?;
        for (i, word) in payload.iter().enumerate() {
            reservation.set_word(i, *word);
        }
        reservation.commit();
        Ok(())
    }

    /// A page and the number of its records.
    fn page_with_records(&self, number: u64) -> Option<(Copied, u64)> {
        let page = self.copy(number)?;
        let records = page.kept.records.unwrap();
        Some((page, records))
    }
}

#[test]
fn first_event_opens_the_first_page() {
    let heap = heap(Mode::Discard);
    heap.emit(16, &[11, 22], 1000).unwrap();
    heap.emit(17, &[], 1005).unwrap();
    let (page, records) = heap.page_with_records(0).unwrap();
    assert_eq!(records, 2);
    let first = record::unpack(page.words[HEADER_WORDS]);
    let type_id = TypeId(16);
    assert_eq!(
        first,
        Header::Record {
            ticks: 0,
            type_id,
            payload_words: Some(2)
        }
    );
    assert_eq!(&page.words[HEADER_WORDS + 1..HEADER_WORDS + 3], &[11, 22]);
    let second = record::unpack(page.words[HEADER_WORDS + 3]);
    assert_eq!(
        second,
        Header::Record {
            ticks: 5,
            type_id: TypeId(17),
            payload_words: Some(0)
        }
    );
    assert_eq!(heap.slot.produced(), 1);
}

#[test]
fn discard_loses_the_newest_and_counts_it() {
    let heap = heap(Mode::Discard);
    let fit = (PAGE_BYTES as usize / 8 - HEADER_WORDS) / 2;
    let emitted = 2 * fit + 100;
    let written = (0..emitted)
        .filter(|i| heap.emit(16, &[*i as u64], 0).is_ok())
        .count();
    assert_eq!(written, 2 * fit);
    assert_eq!(heap.lost(Cause::RingFull), 100);
    heap.slot.release(1);
    heap.emit(16, &[1], 0).unwrap();
    assert_eq!(heap.slot.produced(), 3);
    let (page, _) = heap.page_with_records(2).unwrap();
    assert_eq!(
        (page.first_event(), page.lost_before()),
        (2 * fit as u64, 100),
        "first_event and lost_before"
    );
}

#[test]
fn a_page_without_memory_is_not_opened_and_keeps_the_one_before_open() {
    for mode in [Mode::Discard, Mode::Overwrite] {
        let heap = heap(mode);
        let (_, geometry) = heap.writer.next_page().unwrap();
        heap.writer.has_first_pages(1, geometry);
        assert_eq!(heap.writer.pages_without_memory(geometry), 1..2);
        let fit = (PAGE_BYTES as usize / 8 - HEADER_WORDS) / 2 - 1;
        (0..fit).for_each(|_| heap.emit(16, &[1], 0).unwrap());
        assert_eq!(heap.emit(16, &[1, 2], 0), Err(Cause::NoMemory));
        assert_eq!(
            heap.emit(16, &[1], 0),
            Ok(()),
            "there is room for a smaller one"
        );
        assert_eq!((heap.slot.produced(), heap.lost(Cause::NoMemory)), (1, 1));
        let (page, _) = heap.writer.next_page().unwrap();
        heap.writer.has_memory_up_to(page, geometry);
        assert!(heap.writer.pages_without_memory(geometry).is_empty());
        (0..=fit).for_each(|_| heap.emit(16, &[1], 0).unwrap());
        heap.slot.release(1);
        heap.emit(16, &[1], 0).unwrap();
        assert_eq!(heap.slot.produced(), 3, "the next round asks no more");
    }
}

#[test]
fn overwrite_replaces_the_oldest_page() {
    let heap = heap(Mode::Overwrite);
    let fit = (PAGE_BYTES as usize / 8 - HEADER_WORDS) / 2;
    (0..5 * fit).for_each(|i| heap.emit(16, &[i as u64], 0).unwrap());
    assert!(heap.copy(2).is_none(), "page 2 was overwritten");
    let (page, records) = heap.page_with_records(3).unwrap();
    assert_eq!((page.first_event(), records), (3 * fit as u64, fit as u64));
}

#[test]
fn dropped_reservation_is_a_cancel() {
    let heap = heap(Mode::Discard);
    heap.emit(16, &[1], 0).unwrap();
    drop(heap.writer.reserve(TypeId(16), 3, 0));
    heap.emit(16, &[2], 0).unwrap();
    let (page, records) = heap.page_with_records(0).unwrap();
    assert_eq!(records, 3);
    assert_eq!(
        record::unpack(page.words[HEADER_WORDS + 2]),
        Header::Cancelled(4)
    );
}

#[test]
fn nested_reservation_is_recorded_but_does_not_switch_the_page() {
    let heap = heap(Mode::Overwrite);
    heap.emit(16, &[1], 0).unwrap();
    let outer = heap.writer.reserve(TypeId(20), 1, 0).unwrap();
    let room = PAGE_BYTES as usize / 8 - HEADER_WORDS - 4;
    let fits = (0..room).filter(|_| heap.emit(21, &[9], 0).is_ok()).count();
    assert_eq!(fits, room / 2);
    assert_eq!(heap.lost(Cause::Nested) as usize, room - fits);
    outer.commit();
    assert_eq!(heap.slot.produced(), 1);
    heap.emit(16, &[3], 0).unwrap();
    assert_eq!(heap.slot.produced(), 2);
}

#[test]
fn a_late_event_gets_a_time_extension() {
    let heap = heap(Mode::Discard);
    heap.emit(16, &[1], 10).unwrap();
    heap.emit(16, &[2], 10 + (1 << 33)).unwrap();
    let (page, records) = heap.page_with_records(0).unwrap();
    assert_eq!(records, 2);
    let at = HEADER_WORDS + 2;
    assert_eq!(
        page.words[at] >> 32 & 0xFF_FFFF,
        u64::from(record::TIME_EXTEND)
    );
    assert_eq!(page.words[at + 1], 10 + (1 << 33));
    assert_eq!(page.words[at + 3], 2);
}

#[test]
fn long_records_and_oversize() {
    let heap = heap(Mode::Discard);
    let most = record::payload_words_max(PAGE_BYTES) as usize;
    heap.emit(16, &vec![5; most], 0).unwrap();
    heap.emit(16, &vec![6; 300], 0).unwrap();
    assert_eq!(heap.emit(16, &vec![7; most + 1], 0), Err(Cause::Oversize));
    let (page, _) = heap.page_with_records(1).unwrap();
    assert_eq!(page.words[HEADER_WORDS] >> 56, record::LONG);
    assert_eq!(page.words[HEADER_WORDS + 1], 300);
}

#[test]
fn sealed_slot_takes_the_next_owner() {
    let heap = heap(Mode::Discard);
    heap.emit(16, &[1], 0).unwrap();
    heap.writer.seal();
    assert!(heap.slot.ended());
    assert_eq!(heap.slot.events_sealed(), 1);
    assert!(heap.writer.reserve(TypeId(16), 1, 0).is_none());
    assert!(matches!(
        heap.writer
            .reserve_cold(TypeId(16), 1, 0, &|_| ClockSample::default()),
        Err(Cause::NoRing)
    ));
}

#[test]
fn zeroed_writer_fits_nothing() {
    let writer = Writer::new();
    assert!(writer.reserve(TypeId(16), 0, 0).is_none());
}
