//! Promise: a streamer sends no more than it has credit for, in the order that a store needs, releases nothing before
//! it is durable, goes on behind what RESUME says, and does not storm a collector that sends it away.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use ringmark_format::Uuid;
use ringmark_format::block::kind;
use ringmark_format::stream;
use ringmark_reader::stream::{Address, SpillOptions, StreamFigures};
use ringmark_reader::{Access, Selection, Session, StreamStatus};
use ringmark_tests::collecting::{stream_options, stream_with};
use ringmark_tests::fixture::{Counters, Fixture, SOON};
use ringmark_tests::scripted_collector::{Received, ScriptedCollector, ScriptedConnection};
use ringmark_tests::streamed_scene::{StreamedScene, Streaming};
use ringmark_tests::wait_until;

const EMIT: &str = ringmark_tests::program!("emit");
/// More than a session of this test has.
const PLENTY: u64 = 64 << 20;

/// A page for each slot that has any.
type Pages = BTreeMap<u32, u64>;

/// Where the sealed pages end, and what of them was released.
fn positions(ring_file: &Path) -> (Pages, Pages) {
    let session = Session::open(ring_file, Access::Observe).unwrap();
    let ring = session.ring();
    let slots = (0..ring.slots_used()).map(|slot| (slot, ring.slot(slot).unwrap()));
    let used: Vec<_> = slots.filter(|(_, s)| s.produced() > 0).collect();
    // The last page of a thread whose end was not noted is open for ever.
    let sealed = used
        .iter()
        .map(|(slot, s)| (*slot, s.produced() - u64::from(!s.ended())));
    let released = used.iter().map(|(slot, s)| (*slot, s.consumed()));
    (sealed.collect(), released.collect())
}

fn released(ring_file: &Path) -> Pages {
    positions(ring_file).1
}

fn is_none(pages: &Pages) -> bool {
    pages.values().all(|page| *page == 0)
}

/// What follows is the order of a store: all schema before the first page, and every sealed page of a slot behind the
/// one before it, beginning with these. Where each slot stands then.
fn expect_order(heard: &[Received], from: &Pages) -> Pages {
    let mut next = from.clone();
    for (slot, page) in heard.iter().filter_map(Received::page) {
        let next = next.entry(slot).or_default();
        assert_eq!(page, *next, "page of slot {slot}");
        *next += 1;
    }
    let is_schema = |block: &Received| block.header.kind == kind::SCHEMA;
    let last_schema = heard.iter().rposition(is_schema);
    let is_page = |block: &Received| block.header.kind == kind::PAGE;
    if let Some(first) = heard.iter().position(is_page) {
        assert!(last_schema < Some(first), "schema behind its pages");
    }
    next.retain(|_, page| *page > 0);
    next
}

/// Hears until every sealed page has come, and what comes with them.
fn hear_pages(taking: &mut ScriptedConnection, from: &Pages, sealed: &Pages) -> Vec<Received> {
    let left = sealed.values().sum::<u64>() - from.values().sum::<u64>();
    let (mut heard, mut pages) = (Vec::new(), 0);
    while pages < left {
        let block = taking
            .hear(SOON)
            .unwrap_or_else(|| panic!("{pages} of {left} pages"));
        pages += u64::from(block.page().is_some());
        heard.push(block);
    }
    heard.extend(taking.hear_all());
    assert_eq!(&expect_order(&heard, from), sealed);
    heard
}

/// Acknowledges everything; the streamer says BYE when it has nothing more to say, and not before.
fn end(mut taking: ScriptedConnection, streaming: Streaming) -> (StreamFigures, Vec<String>) {
    assert!(!streaming.thread.is_finished(), "it did not wait for ACK");
    wait_until(SOON, "BYE", || {
        taking.ack(taking.received, PLENTY);
        let block = taking.hear(SOON).expect("BYE");
        assert_ne!(block.header.kind, kind::SESSION);
        (block.header.kind == stream::kind::BYE).then_some(())
    });
    drop(taking);
    streaming.thread.join().unwrap()
}

#[test]
fn released_when_it_is_durable_and_not_before() {
    let scene = StreamedScene::new("released", EMIT, "discard,ring=2M");
    let (sealed, before) = positions(&scene.ring_file);
    assert!(is_none(&before));
    let streaming = scene.start(|options| options.retry = Duration::from_millis(1));
    let mut taking = scene.taker.welcome(PLENTY);
    taking.resume(0, &[]);
    let heard = hear_pages(&mut taking, &Pages::new(), &sealed);
    // What is sent and not acknowledged is there to be sent again.
    assert!(is_none(&released(&scene.ring_file)));
    let schema: u64 = heard
        .iter()
        .filter(|block| block.header.kind == kind::SCHEMA)
        .map(|block| block.content.len() as u64)
        .sum();
    assert!(schema > 0);
    expect_status(&scene, &streaming, &mut taking);
    // Some pages of what is durable, at least.
    let half = taking.received / 2;
    let durable = heard.iter().filter(|block| block.end <= half);
    let mut have: Pages = sealed.keys().map(|slot| (*slot, 0)).collect();
    for (slot, page) in durable.filter_map(Received::page) {
        let _ = have.insert(slot, page + 1);
    }
    taking.ack(half, PLENTY);
    let some = wait_until(SOON, "something is released", || {
        Some(released(&scene.ring_file)).filter(|now| !is_none(now))
    });
    assert!(
        some.iter().all(|(slot, page)| *page <= have[slot]),
        "{some:?} {have:?}"
    );
    // Cut off: the next connection goes on behind what is durable, which is more than was said.
    drop(taking);
    let mut taking = scene.taker.welcome(PLENTY);
    let resume: Vec<_> = have.clone().into_iter().collect();
    taking.resume(schema, &resume);
    let again = hear_pages(&mut taking, &have, &sealed);
    assert!(again.iter().all(|block| block.header.kind != kind::SCHEMA));
    wait_until(SOON, "what RESUME says is released", || {
        (released(&scene.ring_file) == have).then_some(())
    });
    let (figures, _) = end(taking, streaming);
    // All of a session that has ended is marked as taken, the page that was open at its end, too.
    let taken = released(&scene.ring_file);
    let is_all = |(slot, page): (&u32, &u64)| (*page..=page + 1).contains(&taken[slot]);
    assert!(sealed.iter().all(is_all), "{taken:?} {sealed:?}");
    assert_eq!((figures.connections, figures.in_flight), (2, 0));
}

/// The collector acknowledges some pages and is gone, while more wait for its socket than that takes: the streamer
/// meets a write that fails before it has heard.
#[test]
fn an_acknowledgement_before_the_end_counts() {
    let scene = StreamedScene::new("last-ack", EMIT, "discard,ring=2M");
    let (sealed, _) = positions(&scene.ring_file);
    let streaming = scene.start(|options| options.retry = Duration::from_millis(1));
    let mut taking = scene.taker.welcome(PLENTY);
    taking.resume(0, &[]);
    let half = sealed.values().sum::<u64>() / 2;
    let pages = std::iter::from_fn(|| taking.hear(SOON)).filter_map(|block| block.page());
    assert_eq!(pages.take(half as usize).count() as u64, half);
    taking.ack(taking.received, PLENTY);
    drop(taking);
    // Another store, which has nothing: what is released was released by what the first one said. That is whole
    // batches.
    let mut taking = scene.taker.welcome_to(1, PLENTY, &[]);
    let released = released(&scene.ring_file);
    assert!(!is_none(&released), "{released:?}");
    taking.resume(0, &[]);
    let _ = hear_pages(&mut taking, &released, &sealed);
    let _ = end(taking, streaming);
}

/// What people are told while nothing is acknowledged.
fn expect_status(scene: &StreamedScene, streaming: &Streaming, taking: &mut ScriptedConnection) {
    let session = Session::open(&scene.ring_file, Access::Observe).unwrap();
    let status = wait_until(SOON, "what the streamer says", || {
        let _ = taking.hear_all();
        StreamStatus::of(&session).filter(|status| status.in_flight > 0 && status.lag_ms > 0)
    });
    let figures = wait_until(SOON, "all that is under way", || {
        let _ = taking.hear_all();
        let figures = streaming.figures.lock().unwrap().clone();
        (figures.in_flight == taking.received).then_some(figures)
    });
    println!("{status:?}\n{figures:?}");
    assert!(status.connected && status.in_flight <= taking.received);
    assert!(figures.lag > Duration::ZERO);
    let slots = 0..session.ring().slots_used();
    let lost: u64 = slots
        .map(|slot| session.ring().slot(slot).unwrap().lost_in_all())
        .sum();
    assert!(lost > 0);
    assert_eq!((status.lost, figures.lost), (lost, lost));
}

/// A collector that has taken in what was sent, and does not say that it is durable: with a spill a ring that fills
/// is emptied at once, not only when this has lasted.
#[test]
fn what_is_under_way_leaves_a_ring_that_fills() {
    /// Events of about 1 KB that are let through at a time: four fifths of the ring.
    const STEP: u64 = 800;
    const STEPS: u64 = 5;
    /// Pages of the ring's 64 that may be under way. They may stay: a program that is slow at writing has a part
    /// of its step emptied before the step ends, and the other part is no longer too much.
    const UNDER_WAY: u64 = 40;
    let fixture = Fixture::new("under-way");
    let taker = ScriptedCollector::at(&fixture.path("socket"));
    let counters = Counters::new(fixture.path("counters"));
    // One more: a program that has ended leaves its pages where they are.
    let arguments = format!(
        "1 {} bulk=1000 gate=1 {}",
        STEP * STEPS + 1,
        counters.argument()
    );
    let program = fixture.start(EMIT, "mode=discard,ring=1M,page=16K,session=8M", &arguments);
    let ring_file = fixture.ring_file();
    let to = Address::Unix(fixture.path("socket"));
    let mut options = stream_options(Selection::Path(ring_file.clone()), to);
    options.spill = Some(SpillOptions {
        directory: fixture.path("spill"),
        bytes_max: 64 << 20,
    });
    let streaming = thread::spawn(move || stream_with(options));
    let mut taking = taker.welcome(PLENTY);
    taking.resume(0, &[]);
    let held = || {
        let (sealed, released) = positions(&ring_file);
        sealed.values().sum::<u64>() - released.values().sum::<u64>()
    };
    let mut waits = Vec::new();
    for step in 1..=STEPS {
        counters.allow(STEP * step);
        while counters.read(1)[0] < STEP * step {
            taking.let_it_hear();
        }
        let mut rounds = 0;
        while held() >= UNDER_WAY {
            taking.let_it_hear();
            rounds += 1;
        }
        waits.push(rounds);
        // What was sent becomes durable before the next step.
        taking.ack(taking.received, PLENTY);
    }
    println!("emptied after so many answers: {waits:?}");
    // After 100 ms it would be emptied, too: that are ten rounds, or fewer on a machine that lets none of them be.
    let fewest = waits.iter().min().unwrap();
    assert!(*fewest <= 4, "{waits:?}");
    counters.go();
    let _ = program.finish(SOON).expect_code(0);
    wait_until(SOON, "BYE", || {
        taking.ack(taking.received, PLENTY);
        let block = taking.hear(SOON).expect("BYE");
        (block.header.kind == stream::kind::BYE).then_some(())
    });
    drop(taking);
    assert_eq!(streaming.join().unwrap().lost, 0);
}

#[test]
fn no_more_than_there_is_credit_for() {
    let scene = StreamedScene::new("credit", EMIT, "discard,ring=2M");
    let streaming = scene.start(|options| options.retry = Duration::from_millis(1));
    let mut taking = scene.taker.welcome(0);
    // What is too much is found by the one who hears it.
    assert!(taking.hear_all().is_empty());
    // Enough for SESSION and not for pages.
    taking.ack(0, 4096);
    taking.resume(0, &[]);
    let few = taking.hear_all();
    assert!(few.iter().all(|block| block.page().is_none()));
    let mut heard = taking.hear_all();
    let mut credits = 0;
    while heard
        .last()
        .is_none_or(|last| last.header.kind != kind::COUNTERS)
    {
        credits += 1;
        assert!(credits < 200, "it does not go on");
        taking.ack(taking.received, taking.received + (9 << 18));
        heard.extend(taking.hear_all());
    }
    println!("{} bytes with {credits} credits", taking.received);
    let _ = end(taking, streaming);
}

/// What is lost is told while the program lives, not when it ends.
#[test]
fn losses_are_told_now_and_then() {
    let fixture = Fixture::new("told");
    let ringmark = "mode=discard,ring=64K,page=4K,session=4M";
    let program = fixture.start(EMIT, ringmark, "1 1000 bulk=1000 hold=600000");
    let ring_file = fixture.ring_file();
    let scene = StreamedScene {
        taker: ScriptedCollector::at(&fixture.path("socket")),
        ring_file,
        fixture,
    };
    let streaming = scene.start(|options| options.retry = Duration::from_millis(1));
    let mut taking = scene.taker.welcome(PLENTY);
    taking.resume(0, &[]);
    loop {
        let block = taking.hear(SOON).expect("COUNTERS");
        if block.header.kind == kind::COUNTERS {
            break;
        }
    }
    drop(program.kill().unwrap());
    let _ = end(taking, streaming);
}

/// Who is asked to leave closes and comes back; who hears what cannot be does the same, and believes none of it.
#[test]
fn told_to_leave_or_told_nonsense() {
    let scene = StreamedScene::new("leave", EMIT, "discard,ring=2M");
    let streaming = scene.start(|options| options.retry = Duration::from_millis(1));
    let mut taking = scene.taker.welcome(PLENTY);
    taking.resume(0, &[]);
    taking.say(stream::kind::DRAIN, Uuid([0; 16]), &[]);
    taking.expect_closed();
    let mut taking = scene.taker.welcome(PLENTY);
    taking.resume(0, &[]);
    let (sealed, _) = positions(&scene.ring_file);
    let _ = hear_pages(&mut taking, &Pages::new(), &sealed);
    // Less may have come than was sent.
    taking.ack(1 << 40, 1 << 41);
    taking.expect_closed();
    assert!(is_none(&released(&scene.ring_file)));
    let mut taking = scene.taker.welcome(PLENTY);
    taking.resume(0, &[]);
    let _ = hear_pages(&mut taking, &Pages::new(), &sealed);
    let (figures, _) = end(taking, streaming);
    assert_eq!(figures.connections, 3);
}

/// Each wait is twice the one before, and at least half of what it should be.
#[test]
fn a_collector_that_refuses_is_not_stormed() {
    let scene = StreamedScene::new("refuses", EMIT, "discard,ring=2M");
    // A refusal for now is waited for ten times as long.
    let streaming = scene.start(|options| options.retry = Duration::from_millis(4));
    let mut least = Duration::ZERO;
    let begun = Instant::now();
    for refusals in 0..5 {
        scene.taker.accept().refuse("not now");
        least += Duration::from_millis(20 << refusals);
    }
    let mut taking = scene.taker.welcome(PLENTY);
    let waited = begun.elapsed();
    taking.resume(0, &[]);
    let notices = end(taking, streaming).1;
    println!("{waited:?} for 5 refusals, at least {least:?}: {notices:?}");
    assert!(waited >= least, "{waited:?}, expected at least {least:?}");
    // Told once, and not each time.
    let told = notices.iter().filter(|text| text.contains("not now"));
    assert_eq!(told.count(), 1);
}
