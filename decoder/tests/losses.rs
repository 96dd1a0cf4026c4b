//! Losses: where they stand among the events, and when they happened.

use crate::common;

use common::*;
use ringmark_decoder::Output;
use ringmark_format::block::kind;
use ringmark_format::codec::write;
use ringmark_format::progress::{Progress, ProgressSlot};
use ringmark_format::record::TIME_EXTEND;
use ringmark_format::session::Mode;
use zerocopy::{FromZeros, IntoBytes};

#[test]
fn losses_stand_where_they_happened() {
    let mut bytes = start(Mode::Discard);
    PageOf::new(0, 0)
        .event(1, 16, &[0])
        .close()
        .write(true, &mut bytes);
    let mut page = PageOf::new(1, 1);
    page.header.lost_before = 5;
    page.event(1, 16, &[1]).close().write(true, &mut bytes);
    let mut page = PageOf::new(4, 12);
    page.header.lost_before = 5;
    page.event(1, 16, &[2]).close().write(true, &mut bytes);
    let slot = slot_counters(20, [8, 0, 0, 1, 0, 0, 0, 0]);
    let content = counters(&[slot], [0, 2, 0, 0, 3, 0, 0, 0], true);
    write::counters(&mut bytes, SESSION, &content).unwrap();
    let dump = read(&bytes).unwrap();
    let shown: Vec<String> = dump
        .events()
        .map(|item| match item {
            Output::Event(e) => format!("event {}", e.seq),
            Output::Lost(l) => format!("{} {}", l.loss.count, l.loss.why.cause()),
        })
        .collect();
    let (mut events, mut pieces) = (dump.events(), Vec::new());
    while events.each(2, |item| pieces.push(matches!(item, Output::Lost(_)))) > 0 {}
    let is_lost: Vec<_> = shown
        .iter()
        .map(|line| !line.starts_with("event"))
        .collect();
    assert_eq!(pieces, is_lost);
    assert_eq!(
        shown,
        [
            "event 0",
            "5 ring full",
            "event 1",
            "10 not in this trace file",
            "event 12",
            "3 ring full",
            "1 nested",
            "7 not in this trace file",
            "2 no ring",
            "3 no memory",
        ]
    );
    let sum = dump.verify();
    assert_eq!((sum.events, sum.lost, sum.missing), (3, 14, 17));
    assert!(!sum.complete);
    assert!(json(&dump).contains(r#""kind":"lost","name":null"#));
}

/// The event that found the ring full may have read the clock before its page was begun.
#[test]
fn a_loss_is_not_later_than_the_event_after_it() {
    let mut bytes = start(Mode::Discard);
    let mut page = PageOf::new(0, 0);
    page.event(1, 16, &[0]).close().write(true, &mut bytes);
    let mut page = PageOf::new(1, 1);
    page.header.lost_before = 5;
    page.event(0, TIME_EXTEND, &[1500]).event(0, 16, &[1]);
    page.close().write(true, &mut bytes);
    let dump = read(&bytes).unwrap();
    let times: Vec<_> = dump
        .events()
        .map(|item| match item {
            Output::Event(e) => e.t_ns,
            Output::Lost(l) => l.t_ns,
        })
        .collect();
    assert_eq!(times, [1, 500, 500]);
}

/// The dump of a session whose ring begins with page 4 and has a hole after it.
fn begun_late(mode: Mode, is_shortened: bool) -> ringmark_decoder::Dump {
    let mut bytes = start(mode);
    for (page, event) in [(4, 12), (7, 20)] {
        let mut page = PageOf::new(page, event);
        page.event(1, 16, &[0]).close().write(true, &mut bytes);
    }
    let mut builder = ringmark_decoder::DumpBuilder::new();
    builder.read("a store", &bytes[..]).unwrap();
    if is_shortened {
        builder.shorten(SESSION);
    }
    builder.finish()
}

#[test]
fn what_was_removed_from_a_store_is_told_apart_from_what_was_overwritten() {
    for (mode, is_shortened, removed, overwritten, missing) in [
        (Mode::Overwrite, true, 12, 7, 0),
        (Mode::Overwrite, false, 0, 19, 0),
        (Mode::Discard, true, 12, 0, 7),
        (Mode::Discard, false, 0, 0, 19),
    ] {
        let dump = begun_late(mode, is_shortened);
        let sum = dump.verify();
        let found = (sum.removed, sum.overwritten, sum.missing);
        assert_eq!(found, (removed, overwritten, missing), "{mode:?}");
        assert_eq!(sum.is_clean(), missing == 0, "{mode:?}");
        let host = &dump.hosts()[0];
        let found = (host.removed, host.overwritten, host.missing);
        assert_eq!(found, (removed, overwritten, missing), "{mode:?}");
        assert_eq!(host.losses_ns.is_some(), missing > 0, "{mode:?}");
        let first = dump.events().next();
        let is_told = matches!(first, Some(Output::Lost(lost))
            if lost.loss.why.cause() == "removed from the store");
        assert_eq!(is_told, is_shortened);
    }
}

#[test]
fn the_losses_of_a_host_lie_between_two_times() {
    let mut bytes = start(Mode::Discard);
    for (page, event, lost) in [(0, 0, 0), (1, 1, 0), (2, 2, 5), (3, 3, 5)] {
        let mut page = PageOf::new(page, event);
        page.header.lost_before = lost;
        page.event(1, 16, &[0]).close().write(true, &mut bytes);
    }
    let dump = read(&bytes).unwrap();
    let host = &dump.hosts()[0];
    assert_eq!((host.events, host.lost), (4, 5));
    let (from, until) = host.losses_ns.unwrap();
    let (first, last) = (host.first_ns.unwrap(), host.last_ns.unwrap());
    assert!(
        first < from && from <= until && until < last,
        "{first} {from} {until} {last}"
    );
}

/// A session of which no page has come yet is complete up to its start, not up to the start of its clock.
#[test]
fn nothing_of_a_session_was_before_it() {
    let mut bytes = start(Mode::Discard);
    let mut slot = slot_counters(5, [0; 8]);
    slot.produced = 1;
    write::counters(&mut bytes, SESSION, &counters(&[slot], [0; 8], false)).unwrap();
    let said = Progress {
        epoch: 1,
        slots: 1,
        ..Progress::new_zeroed()
    };
    let content = [said.as_bytes(), ProgressSlot::new_zeroed().as_bytes()].concat();
    let header = write::header(kind::PROGRESS, SESSION);
    write::block(&mut bytes, header, &content).unwrap();
    let dump = read(&bytes).unwrap();
    let host = &dump.hosts()[0];
    assert_eq!((host.late, host.complete_ns), (5, Some(REAL_ZERO_NS)));
}
