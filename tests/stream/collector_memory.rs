//! Promise: the host remembers what was acknowledged. A collector that knows nothing gets what no other one has
//! acknowledged, also from a streamer that starts again; small windows and slow acknowledgements are honoured.

use std::collections::{BTreeMap, BTreeSet};

use ringmark_format::attribute::{push, tag};
use ringmark_format::block::kind;
use ringmark_format::progress::{ALL_SENT, GoneRange, Progress, ProgressSlot, cause};
use ringmark_format::stream;
use ringmark_tests::fixture::SOON;
use ringmark_tests::scripted_collector::{Received, ScriptedConnection};
use ringmark_tests::streamed_scene::{StreamedScene, Streaming};
use ringmark_tests::wait_until;
use zerocopy::FromBytes;

const EMIT: &str = ringmark_tests::program!("emit");
/// More than a session of this test has.
const PLENTY: u64 = 64 << 20;

/// Sealed pages, by slot and number.
fn pages(heard: &[Received]) -> BTreeSet<(u32, u64)> {
    heard.iter().filter_map(Received::page).collect()
}

/// The slots that these are of: a thread may pass over one that the helper thread is preparing.
fn slots(pages: &BTreeSet<(u32, u64)>) -> BTreeSet<u32> {
    pages.iter().map(|(slot, _)| *slot).collect()
}

fn schema_bytes(heard: &[Received]) -> usize {
    let schema = heard.iter().filter(|b| b.header.kind == kind::SCHEMA);
    schema.map(|block| block.content.len()).sum()
}

/// A PROGRESS block as it is read.
struct Told {
    head: Progress,
    slots: Vec<ProgressSlot>,
    ranges: Vec<GoneRange>,
}

fn told(heard: &[Received]) -> Vec<Told> {
    let progress = heard.iter().filter(|b| b.header.kind == kind::PROGRESS);
    let read = progress.map(|block| {
        let (head, mut rest) = Progress::read_from_prefix(&block.content).unwrap();
        let mut slots = Vec::new();
        for _ in 0..head.slots {
            let (slot, after) = ProgressSlot::read_from_prefix(rest).unwrap();
            slots.push(slot);
            rest = after;
        }
        let mut ranges = Vec::new();
        for _ in 0..head.ranges {
            let (range, after) = GoneRange::read_from_prefix(rest).unwrap();
            ranges.push(range);
            rest = after;
        }
        assert!(rest.is_empty());
        Told {
            head,
            slots,
            ranges,
        }
    });
    read.collect()
}

/// Hears everything, up to the last counters.
fn hear_out(taking: &mut ScriptedConnection) -> Vec<Received> {
    let mut heard = Vec::new();
    loop {
        let block = taking.hear(SOON).expect("the last PROGRESS");
        let is_last = told(std::slice::from_ref(&block))
            .iter()
            .any(|told| told.head.flags & ALL_SENT != 0);
        heard.push(block);
        if is_last {
            heard.extend(taking.hear_all());
            return heard;
        }
    }
}

/// Acknowledges everything until the streamer says BYE.
fn end(mut taking: ScriptedConnection, streaming: Streaming) -> Vec<String> {
    loop {
        taking.ack(taking.received, PLENTY);
        let block = taking.hear(SOON).expect("BYE");
        if block.header.kind == stream::kind::BYE {
            break;
        }
    }
    drop(taking);
    streaming.thread.join().unwrap().1
}

#[test]
fn what_one_collector_acknowledged_no_other_one_gets() {
    let scene = StreamedScene::new("memory", EMIT, "overwrite,ring=512K");
    let streaming = scene.start(|_| {});
    let mut first = scene.taker.welcome_to(1, PLENTY, &[]);
    first.resume_unknown();
    let heard = hear_out(&mut first);
    let all = pages(&heard);
    let said = told(&heard);
    assert_eq!((said[0].head.epoch, said[0].head.store), (1, [0; 16]));
    // The rings have overwritten what came first, and the streamer says so before their first page.
    let gone: Vec<_> = said.iter().flat_map(|told| &told.ranges).collect();
    for slot in slots(&all) {
        let next = all.range((slot, 0)..).next().unwrap().1;
        let range = gone.iter().find(|range| range.slot == slot).unwrap();
        assert_eq!(
            (range.from, range.to, range.cause),
            (0, next, cause::OVERWRITTEN)
        );
        assert!(next > 0 && range.events > 0);
    }
    let is_page = |block: &Received| block.page().is_some();
    let first_page = heard.iter().position(is_page).unwrap();
    assert!(!told(&heard[..first_page]).last().unwrap().ranges.is_empty());

    let durable = first.received / 2;
    let kept: Vec<_> = heard.iter().filter(|b| b.end <= durable).cloned().collect();
    let kept = pages(&kept);
    assert!(!kept.is_empty() && kept.len() < all.len());
    first.ack(durable, PLENTY);
    wait_until(SOON, "the acknowledgement", || {
        let figures = streaming.figures.lock().unwrap();
        (figures.in_flight + durable <= figures.sent).then_some(())
    });
    drop(first);

    let mut second = scene.taker.welcome_to(2, PLENTY, &[]);
    second.resume_unknown();
    let again = hear_out(&mut second);
    // Up to a batch more: what is acknowledged counts by batches.
    let twice: Vec<_> = pages(&again).intersection(&kept).copied().collect();
    let batch = (256 << 10) / (16 << 10);
    assert!(twice.len() <= batch, "{twice:?}");
    let both: BTreeSet<_> = pages(&again).union(&kept).copied().collect();
    assert_eq!(both, all);
    // Another store has none of the schema.
    assert_eq!(schema_bytes(&again), schema_bytes(&heard));
    let said = told(&again);
    assert_eq!((said[0].head.epoch, said[0].head.store), (2, [1; 16]));
    assert!(said[0].head.schema_acked > 0 && said[0].slots.iter().any(|s| s.start > 0));
    let _ = end(second, streaming);
    expect_nothing_again(&scene);
}

/// A streamer that starts again knows it, too: the file next to the ring file says so.
fn expect_nothing_again(scene: &StreamedScene) {
    assert!(scene.ring_file.with_extension("acked").is_file());
    let streaming = scene.start(|_| {});
    let mut third = scene.taker.welcome_to(3, PLENTY, &[]);
    third.resume_unknown();
    let heard = hear_out(&mut third);
    assert_eq!(pages(&heard), BTreeSet::new());
    assert_eq!(told(&heard)[0].head.epoch, 3);
    let _ = end(third, streaming);
}

#[test]
fn a_collector_whose_store_has_damage_gets_pages_again() {
    let scene = StreamedScene::new("again", EMIT, "overwrite,ring=512K");
    let streaming = scene.start(|_| {});
    let mut taking = scene.taker.welcome_to(1, PLENTY, &[]);
    taking.resume_unknown();
    let all = pages(&hear_out(&mut taking));
    let _ = end(taking, streaming);
    let streaming = scene.start(|_| {});
    let mut taking = scene.taker.welcome_to(1, PLENTY, &[]);
    let third = |slot| (slot, all.range((slot, 0)..).nth(2).unwrap().1);
    let wanted: BTreeMap<_, _> = slots(&all).into_iter().map(third).collect();
    let asked: Vec<_> = wanted.clone().into_iter().collect();
    taking.resume_again(0, &asked);
    let heard = pages(&hear_out(&mut taking));
    let expected = all.iter().filter(|(slot, page)| *page >= wanted[slot]);
    assert_eq!(heard, expected.copied().collect());
    let _ = end(taking, streaming);
}

#[test]
fn a_small_window_is_enough() {
    let scene = StreamedScene::new("window", EMIT, "overwrite,ring=512K");
    let window: u64 = 72 << 10;
    let mut attributes = Vec::new();
    push(&mut attributes, tag::WINDOW, &window.to_le_bytes());
    let streaming = scene.start(|_| {});
    let mut taking = scene.taker.welcome_to(1, window, &attributes);
    taking.resume_unknown();
    let mut heard: Vec<Received> = Vec::new();
    let is_bye = |block: &Received| block.header.kind == stream::kind::BYE;
    loop {
        heard.extend(taking.hear_all());
        if heard.last().is_some_and(is_bye) {
            break;
        }
        taking.ack(taking.received, taking.received + window);
    }
    drop(taking);
    let _ = streaming.thread.join().unwrap();
    let last = told(&heard).pop().unwrap();
    assert_eq!(last.head.flags, ALL_SENT);
    assert!(pages(&heard).len() > 50, "{} pages", pages(&heard).len());
}

/// A collector of objects acknowledges when a segment is put: until then its credit is all that there is to use.
#[test]
fn what_credit_allows_is_sent_before_anything_is_acknowledged() {
    let scene = StreamedScene::new("credit", EMIT, "discard,ring=2M");
    let streaming = scene.start(|_| {});
    let credit: u64 = 1280 << 10;
    let mut taking = scene.taker.welcome_to(1, credit, &[]);
    taking.resume_unknown();
    while taking.received < credit / 2 {
        let _ = taking.hear(SOON).expect("more, without an acknowledgement");
    }
    let _ = end(taking, streaming);
}

#[test]
fn pages_are_copied_for_a_collector_that_acknowledges_late() {
    let scene = StreamedScene::new("late", EMIT, "discard,ring=2M");
    let mut attributes = Vec::new();
    push(&mut attributes, tag::ACK_WITHIN, &5000_u32.to_le_bytes());
    let streaming = scene.start(|options| options.zero_copy = true);
    let mut taking = scene.taker.welcome_to(1, PLENTY, &attributes);
    taking.resume_unknown();
    assert!(pages(&hear_out(&mut taking)).len() > 50);
    let notices = end(taking, streaming);
    let why = "within 5000 ms, --zero-copy expects at most 100: pages are copied";
    assert!(
        notices.iter().any(|notice| notice.contains(why)),
        "{notices:?}"
    );
}
