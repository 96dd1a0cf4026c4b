//! Overwrite mode over loom's atomics: a copy that an observer keeps is one page, whole.
#![cfg(loom)]

use crate::models;

use loom::thread;
use models::*;
use ringmark_format::session::Mode;
use ringmark_format::{PageNumber, TypeId, record};
use ringmark_ring::observe::{self, HEADER_WORDS as HEADER};
use ringmark_ring::{ClockSample, PageCopy, PageRead};

const NEVER_COPIED: u64 = 0xDEAD;

fn open(model: &Model, number: u64) -> Option<([u64; PAGE_WORDS], PageCopy)> {
    let mut copy = [NEVER_COPIED; PAGE_WORDS];
    match observe::copy_open(model.page(number), PageNumber(number), &mut copy) {
        PageRead::Copied(kept) => Some((copy, kept)),
        PageRead::NotThere => None,
    }
}

fn sealed(model: &Model, number: u64) -> Option<([u64; PAGE_WORDS], PageCopy)> {
    let mut copy = [NEVER_COPIED; PAGE_WORDS];
    match observe::copy_sealed(model.page(number), PageNumber(number), &mut copy) {
        PageRead::Copied(kept) => Some((copy, kept)),
        PageRead::NotThere => None,
    }
}

/// A writer, and in another thread an observer. The writer is the model's first thread: loom
/// runs it first and then offers the observer every value that it may still see, old ones, too.
fn with_observer(writer: fn(&Model), filled: u64, observer: fn(&Model)) {
    let model = Model::new(Mode::Overwrite);
    model.fill(filled);
    let observed = model.clone();
    let thread = thread::spawn(move || observer(&observed));
    writer(&model);
    thread.join().unwrap();
}

/// Page 0 is copied record by record while its place becomes page 2.
fn old_page_record_by_record() {
    with_observer(
        |m| m.emit(4).unwrap(),
        4,
        |m| {
            if let Some((copy, kept)) = open(m, 0) {
                check_sealed(&copy, kept, 0);
            }
        },
    );
}

/// Page 0 is copied as it is while its place becomes page 2.
fn old_page_at_once() {
    with_observer(
        |m| m.emit(4).unwrap(),
        4,
        |m| {
            if let Some((copy, kept)) = sealed(m, 0) {
                check_sealed(&copy, kept, 0);
            }
        },
    );
}

/// Page 2 is copied while it comes to be in the place of page 0.
fn new_page() {
    with_observer(
        |m| (4..6).for_each(|i| m.emit(i).unwrap()),
        4,
        |m| {
            if let Some((copy, kept)) = open(m, 2) {
                check_copy(&copy, kept, 2);
            }
        },
    );
}

/// A record that was committed before one that a copy shows is in that copy, too.
fn no_hole_before_a_record() {
    with_observer(
        |m| (4..6).for_each(|i| m.emit(i).unwrap()),
        4,
        |m| {
            let Some((copy, kept)) = open(m, 2) else {
                return;
            };
            let is_busy = |at| matches!(record::unpack(copy[at]), record::Header::Busy(_));
            let second = HEADER + 2;
            if kept.words > second && copy[second] != 0 && !is_busy(second) {
                assert!(!is_busy(HEADER), "{VIOLATED}: a hole before a record");
            }
        },
    );
}

/// Page 2 comes and goes: its place becomes page 4 while it is copied.
fn short_lived_page() {
    with_observer(
        |m| (5..9).for_each(|i| m.emit(i).unwrap()),
        5,
        |m| {
            if let Some((copy, kept)) = open(m, 2) {
                check_copy(&copy, kept, 2);
            }
        },
    );
}

/// As [`new_page`]; the second record is a signal handler's, inside the first.
fn nested_record() {
    let nested = |m: &Model| {
        let base = |tick| ClockSample { tick, mono_ns: 0 };
        let outer = m.writer.reserve_cold(TypeId(20), 1, 40, &base);
        let mut outer = outer.unwrap();
        m.emit(5).unwrap();
        outer.set_word(0, 104);
        outer.commit();
    };
    with_observer(nested, 4, |m| {
        if let Some((copy, kept)) = open(m, 2) {
            check_copy(&copy, kept, 2);
        }
    });
}

/// A record after a time extension is there with it or not at all.
fn extended_record() {
    const LATE: u64 = 1 << 40;
    let late = |m: &Model| {
        let base = |_| ClockSample::default();
        m.emit_at(4, LATE, &base).unwrap();
    };
    with_observer(late, 4, |m| {
        let Some((copy, kept)) = open(m, 2) else {
            return;
        };
        let records = &copy[HEADER..];
        let busy = record::pack_span(record::BUSY, 4);
        if kept.words == HEADER || records[0] == busy {
            return;
        }
        let extension = record::pack(0, TypeId(record::TIME_EXTEND), 1);
        let event = record::pack(0, TypeId(20), 1);
        let expected = [extension, LATE, event, 104];
        assert_eq!(records[..4], expected, "{VIOLATED}: extended record");
    });
}

/// A reader that sees *produced* cover page 3 finds all of page 2.
fn produced_covers_the_page_before() {
    with_observer(
        |m| (5..7).for_each(|i| m.emit(i).unwrap()),
        5,
        |m| {
            if m.slot.produced() < 4 {
                return;
            }
            let (copy, kept) = sealed(m, 2).expect("no writer switches page 2");
            check_sealed(&copy, kept, 2);
        },
    );
}

#[test]
fn an_old_page_is_kept_whole_or_not_at_all() {
    holds_within_bound("old page, record by record", old_page_record_by_record);
    holds_within_bound("old page, at once", old_page_at_once);
}

#[test]
fn a_new_page_is_never_seen_over_the_old_one() {
    holds("new page", new_page);
}

#[test]
fn what_was_committed_before_is_there_too() {
    holds("no hole", no_hole_before_a_record);
}

#[test]
fn a_page_that_comes_and_goes_is_kept_whole_or_not_at_all() {
    holds_within_bound("short-lived page", short_lived_page);
}

#[test]
fn a_nested_record_is_whole() {
    holds("nested record", nested_record);
}

#[test]
fn an_extended_record_is_whole() {
    holds("extended record", extended_record);
}

#[test]
fn produced_covers_whole_pages() {
    holds("produced", produced_covers_the_page_before);
}

#[test]
fn weakened_w1_is_caught() {
    caught("W1", old_page_record_by_record);
    caught("W1", old_page_at_once);
}

#[test]
fn weakened_r4_is_caught() {
    caught("R4", old_page_record_by_record);
    caught("R4", old_page_at_once);
}

#[test]
fn weakened_w2_is_caught() {
    caught("W2", new_page);
}

#[test]
fn weakened_r1_is_caught() {
    caught("R1", new_page);
}

#[test]
fn weakened_w3_is_caught() {
    caught("W3", new_page);
    caught("W3", nested_record);
    caught("W3", extended_record);
}

#[test]
fn weakened_r2_is_caught() {
    caught("R2", new_page);
    caught("R2", nested_record);
    caught("R2", extended_record);
}

#[test]
fn weakened_w4_is_caught() {
    // The fence W1 of the same page switch stands between a page's last record and `produced`, too: one
    // of the two is enough here, and both together are not there for nothing.
    let name = "produced, after the fence alone";
    holds_without("W4", name, produced_covers_the_page_before);
    caught("W1+W4", produced_covers_the_page_before);
}

#[test]
fn weakened_r3_is_caught() {
    caught("R3", produced_covers_the_page_before);
}
