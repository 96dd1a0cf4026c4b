//! Pages with arbitrary contents: copying one ends, stays inside it, and says what is damaged.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ringmark_format::page::{BUSY, PAGE_BYTES_MIN};
use ringmark_format::{PageNumber, TypeId, record};
use ringmark_ring::PageRead;
use ringmark_ring::observe::{self, HEADER_WORDS};

const PAGE_WORDS: usize = PAGE_BYTES_MIN as usize / 8;
const NEVER_COPIED: u64 = 0xDEAD_DEAD_DEAD_DEAD;

/// Xorshift with a fixed seed: the same pages in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A length: mostly plausible, sometimes at a limit, sometimes nonsense.
    fn length(&mut self) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => PAGE_WORDS as u64 - 1 + self.below(3),
            2 => u64::from(u32::MAX) - self.below(2),
            3 => u64::MAX - self.below(4),
            _ => self.below(20),
        }
    }

    /// A header word of any kind.
    fn header(&mut self) -> u64 {
        let (ticks, length) = (self.next() as u32, self.length());
        match self.below(10) {
            0 => 0,
            1 => record::pack_span(record::PAD, length),
            2 => record::pack_span(record::BUSY, length),
            3 => record::pack_span(record::CANCELLED, length),
            4 => record::pack(ticks, TypeId(record::TIME_EXTEND), length % 3),
            5 => record::pack(ticks, TypeId(16), record::LONG),
            6 => record::pack(ticks, TypeId(self.below(1 << 24) as u32), length % 256),
            7 => self.next(),
            _ => record::pack(ticks, TypeId(16), self.below(5)),
        }
    }

    fn page(&mut self, number: u64, words: usize) -> Vec<AtomicU64> {
        let mut page: Vec<u64> = (0..words)
            .map(|_| match self.below(3) {
                0 => self.length(),
                _ => self.header(),
            })
            .collect();
        if let Some(generation) = page.first_mut() {
            *generation = number.wrapping_add(1);
        }
        page.into_iter().map(AtomicU64::new).collect()
    }
}

/// What the records of a page say, by a slower walk: words up to its end, records, damaged.
fn naive_walk(page: &[u64]) -> (usize, u64, bool) {
    let (mut at, mut records) = (HEADER_WORDS, 0);
    while at < page.len() {
        let word = page[at];
        let (kind, low, length) = (word >> 32 & 0xFF_FFFF, word & 0xFFFF_FFFF, word >> 56);
        if word == 0 {
            return (at, records, false);
        }
        let words = match u32::try_from(kind).unwrap() {
            record::PAD => return (at + 1, records, false),
            record::BUSY | record::CANCELLED => u128::from(low),
            _ if length != record::LONG => 1 + u128::from(length),
            _ if at + 1 == page.len() => return (at, records, true),
            _ => 2 + u128::from(page[at + 1]),
        };
        if words == 0 || words > (page.len() - at) as u128 {
            return (at, records, true);
        }
        records += u64::from(kind != u64::from(record::TIME_EXTEND));
        at += words as usize;
    }
    (at, records, false)
}

fn check_open(page: &[AtomicU64], number: u64) {
    let mut copy = vec![NEVER_COPIED; page.len()];
    let read = observe::copy_open(page, PageNumber(number), &mut copy);
    let PageRead::Copied(kept) = read else {
        panic!("the generation is right, and no writer switches the page");
    };
    let words: Vec<u64> = page.iter().map(|w| w.load(Relaxed)).collect();
    let (end, records, damaged) = naive_walk(&words);
    assert_eq!((kept.words, kept.damaged), (end, damaged));
    assert_eq!(kept.records, Some(records));
    let untouched = copy[kept.words..].iter().all(|w| *w == NEVER_COPIED);
    assert!(untouched, "something was copied from after the end");
    // The copy reads as what the page reads as.
    assert_eq!(naive_walk(&copy[..kept.words]).0, kept.words);
}

#[test]
fn any_page_is_copied_to_its_end_and_no_further() {
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    let pages = if cfg!(miri) { 20 } else { 20_000 };
    for number in 0..pages {
        check_open(&random.page(number, PAGE_WORDS), number);
    }
}

#[test]
fn every_short_page_is_copied_to_its_end_and_no_further() {
    let mut random = Random(77);
    for round in 0..if cfg!(miri) { 2 } else { 20_000 } {
        for area in 0..6 {
            check_open(&random.page(round, HEADER_WORDS + area), round);
        }
    }
}

#[test]
fn a_sealed_page_is_copied_as_it_is() {
    let mut random = Random(99);
    let page = random.page(5, PAGE_WORDS);
    let mut copy = vec![NEVER_COPIED; PAGE_WORDS];
    let PageRead::Copied(kept) = observe::copy_sealed(&page, PageNumber(5), &mut copy) else {
        panic!("the generation is right");
    };
    assert_eq!(
        (kept.words, kept.records, kept.damaged),
        (PAGE_WORDS, None, false)
    );
    assert!(page.iter().zip(&copy).all(|(a, b)| a.load(Relaxed) == *b));
}

#[test]
fn a_page_that_is_not_there_is_not_copied() {
    let mut random = Random(3);
    let at_most = u64::MAX;
    for (generation, asked) in [
        (0, 0),
        (BUSY, 0),
        (2, 0),
        (1, 1),
        (BUSY, at_most - 2),
        (5, at_most),
    ] {
        let page = random.page(u64::wrapping_sub(generation, 1), PAGE_WORDS);
        let mut copy = vec![NEVER_COPIED; PAGE_WORDS];
        let number = PageNumber(asked);
        assert_eq!(
            observe::copy_open(&page, number, &mut copy),
            PageRead::NotThere
        );
        assert_eq!(
            observe::copy_sealed(&page, number, &mut copy),
            PageRead::NotThere
        );
    }
}

#[test]
fn pages_that_are_being_turned_or_were_never_used_have_no_number() {
    let mut random = Random(4);
    for generation in [0, BUSY] {
        let number = u64::wrapping_sub(generation, 1);
        let page = random.page(number, PAGE_WORDS);
        let mut copy = vec![NEVER_COPIED; PAGE_WORDS];
        let read = observe::copy_open(&page, PageNumber(number), &mut copy);
        assert_eq!(read, PageRead::NotThere, "generation {generation:#x}");
    }
}

#[test]
fn sizes_that_do_not_match_are_refused() {
    let mut random = Random(8);
    for words in [0, 1, HEADER_WORDS - 1] {
        let page = random.page(0, words);
        let mut copy = vec![0; words];
        let read = observe::copy_open(&page, PageNumber(0), &mut copy);
        assert_eq!(read, PageRead::NotThere, "{words} words");
    }
    let page = random.page(0, PAGE_WORDS);
    let mut copy = vec![0; PAGE_WORDS - 1];
    assert_eq!(
        observe::copy_open(&page, PageNumber(0), &mut copy),
        PageRead::NotThere
    );
    assert_eq!(
        observe::copy_sealed(&page, PageNumber(0), &mut copy),
        PageRead::NotThere
    );
}
