//! Recording: everything that was committed is in the dump, once, whatever the outputs do.

use crate::common;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{Decoded, Dir, Layout, Producer, emit};
use ringmark_format::counters::FINAL;
use ringmark_format::session::{Mode, phase};
use ringmark_reader::{
    Access, Codec, Destination, Dump, Durability, Ended, ReaderError, RecordOptions, Recorder,
    Rotation, Selection, Session,
};

fn recorder(producer: &Producer, dump: Dump) -> Recorder {
    let selection = Selection::Path(producer.path.clone());
    Recorder::new(selection, dump, RecordOptions::default()).unwrap()
}

fn file_dump(dir: &Dir, name: &str) -> Dump {
    Dump::create(&Destination::File(dir.join(name)), Durability::System).unwrap()
}

/// Emits `count` events in slot `index`, over several claims; returns those that were written.
fn write_events(producer: &Producer, index: u32, count: u64) -> BTreeSet<(u64, u64)> {
    let thread = u64::from(index);
    let mut writer = producer.writer(index);
    let mut written = BTreeSet::new();
    for number in 0..count {
        if emit(writer, thread, number) {
            written.insert((thread, number));
        } else {
            std::thread::yield_now();
        }
        if number % 5000 == 4999 {
            writer.seal();
            writer = reclaim(producer, index);
        }
    }
    written
}

/// As a new thread would: takes the slot once it is drained.
fn reclaim(producer: &Producer, index: u32) -> &'static ringmark_ring::Writer {
    let slot = producer.ring.slot(index).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while slot.consumed() < slot.produced() {
        assert!(Instant::now() < deadline, "never drained");
        std::thread::yield_now();
    }
    producer.resume(index)
}

fn record_concurrently(codec: Codec) {
    let dir = Dir::new("concurrent");
    let producer = Producer::new(&dir, "a", Layout::new(Mode::Discard));
    producer.schema(b"16 bytes of text");
    let mut dump = file_dump(&dir, "out.rmk");
    dump.set_codec(codec);
    let mut recorder = recorder(&producer, dump);
    let written = std::thread::scope(|scope| {
        let producer = &producer;
        let threads: Vec<_> = (0..3)
            .map(|i| scope.spawn(move || write_events(producer, i, 40_000)))
            .collect();
        let closer = scope.spawn(move || {
            let written: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
            producer.set_phase(phase::CLOSED);
            written
        });
        let ended = recorder.run(&AtomicBool::new(false)).unwrap();
        assert_eq!(ended, Ended::SessionsEnded);
        closer.join().unwrap()
    });
    let written: BTreeSet<_> = written.into_iter().flatten().collect();
    let decoded = Decoded::of_file(&dir.join("out.rmk"));
    assert_eq!(decoded.events(), written);
    assert_eq!(decoded.orphans, 0);
    assert_eq!(decoded.schema.values().next().unwrap(), b"16 bytes of text");
    let (totals, slots) = decoded.counters.values().next().unwrap();
    assert_eq!(totals.flags, FINAL);
    let events: u64 = slots.iter().map(|s| s.events).sum();
    let lost: u64 = slots.iter().flat_map(|s| s.lost).sum();
    assert_eq!(events, written.len() as u64);
    assert_eq!(events + lost, 3 * 40_000);
    assert!(!producer.path.exists(), "a drained session is removed");
}

#[test]
fn records_while_threads_write_and_slots_change_hands() {
    record_concurrently(Codec::None);
}

#[test]
fn containers_hold_the_same() {
    record_concurrently(Codec::Lz4);
    record_concurrently(Codec::DeltaShuffleLz4);
}

#[test]
fn a_dead_session_is_read_to_its_last_event() {
    let dir = Dir::new("dead");
    let producer = Producer::new(&dir, "a", Layout::new(Mode::Discard).dead());
    let writer = producer.writer(0);
    (0..1000).for_each(|n| assert!(emit(writer, 0, n)));
    let ended = recorder(&producer, file_dump(&dir, "out.rmk")).run(&AtomicBool::new(false));
    assert_eq!(ended.unwrap(), Ended::SessionsEnded);
    let decoded = Decoded::of_file(&dir.join("out.rmk"));
    assert_eq!(decoded.events(), (0..1000).map(|n| (0, n)).collect());
    assert!(!producer.path.exists());
}

#[test]
fn stopping_takes_the_open_page_and_leaves_the_session() {
    let dir = Dir::new("stop");
    let producer = Producer::new(&dir, "a", Layout::new(Mode::Discard));
    let writer = producer.writer(0);
    (0..500).for_each(|n| assert!(emit(writer, 0, n)));
    let ended = recorder(&producer, file_dump(&dir, "1.rmk")).run(&AtomicBool::new(true));
    assert_eq!(ended.unwrap(), Ended::Stopped);
    (500..900).for_each(|n| assert!(emit(writer, 0, n)));
    recorder(&producer, file_dump(&dir, "2.rmk"))
        .run(&AtomicBool::new(true))
        .unwrap();
    assert!(producer.path.exists());
    let mut both = Decoded::default();
    for name in ["1.rmk", "2.rmk"] {
        both.add(&std::fs::read(dir.join(name)).unwrap());
    }
    assert_eq!(both.events(), (0..900).map(|n| (0, n)).collect());
}

#[test]
fn a_second_recorder_is_told_who_holds_the_session() {
    let dir = Dir::new("second");
    let producer = Producer::new(&dir, "a", Layout::new(Mode::Discard));
    let first = Session::open(&producer.path, Access::Consume).unwrap();
    let second = Session::open(&producer.path, Access::Consume);
    let own = std::process::id();
    assert!(matches!(second, Err(ReaderError::Busy { holder: Some(pid), .. }) if pid == own));
    Session::open(&producer.path, Access::Observe).unwrap();
    drop(first);
    Session::open(&producer.path, Access::Consume).unwrap();
}

#[test]
fn a_recorder_that_was_killed_loses_nothing() {
    let dir = Dir::new("killed");
    let producer = Producer::new(&dir, "a", Layout::new(Mode::Discard));
    let writer = producer.writer(0);
    let mut dumps = Vec::new();
    let mut number = 0;
    for round in 0..5 {
        let name = format!("{round}.rmk");
        let mut killed = recorder(&producer, file_dump(&dir, &name));
        for _ in 0..20 {
            (number..number + 60).for_each(|n| assert!(emit(writer, 0, n)));
            number += 60;
            killed.step().unwrap();
        }
        drop(killed); // No finish: as after SIGKILL.
        dumps.push(name);
    }
    let mut all = Decoded::default();
    recorder(&producer, file_dump(&dir, "last.rmk"))
        .run(&AtomicBool::new(true))
        .unwrap();
    dumps.push("last.rmk".to_owned());
    for name in dumps {
        let bytes = std::fs::read(dir.join(&name)).unwrap();
        assert_eq!(all.add(&bytes), bytes.len());
    }
    assert_eq!(all.events(), (0..number).map(|n| (0, n)).collect());
}

#[test]
fn every_rotated_file_decodes_alone() {
    let dir = Dir::new("rotate");
    let producer = Producer::new(&dir, "a", Layout::new(Mode::Discard));
    producer.schema(b"16 bytes of text");
    let mut dump = file_dump(&dir, "out.rmk");
    dump.set_rotation(Some(Rotation {
        bytes: 20_000,
        keep: 3,
    }));
    let writer = producer.writer(0);
    let mut recorder = recorder(&producer, dump);
    for n in 0..20_000 {
        assert!(emit(writer, 0, n));
        if n % 100 == 0 {
            recorder.step().unwrap();
        }
    }
    recorder.finish().unwrap();
    assert!(recorder.progress().files > 10);
    assert!(!dir.join("out.rmk.3").exists());
    let mut newest = 20_000;
    for name in ["out.rmk", "out.rmk.1", "out.rmk.2"] {
        let size = std::fs::metadata(dir.join(name)).unwrap().len();
        assert!(size <= 20_000, "{name}: {size}");
        let decoded = Decoded::of_file(&dir.join(name));
        assert_eq!((decoded.orphans, decoded.counters.len()), (0, 1));
        assert_eq!(decoded.schema.values().next().unwrap(), b"16 bytes of text");
        let events = decoded.events();
        let (first, last) = (events.first().unwrap().1, events.last().unwrap().1);
        assert_eq!((last + 1, events.len() as u64), (newest, last - first + 1));
        newest = first;
    }
}

#[test]
fn the_largest_size_is_kept_and_nothing_unwritten_is_released() {
    let dir = Dir::new("max");
    let producer = Producer::new(&dir, "a", Layout::new(Mode::Discard));
    let mut dump = file_dump(&dir, "out.rmk");
    dump.set_bytes_max(Some(10_000));
    let writer = producer.writer(0);
    (0..800).for_each(|n| assert!(emit(writer, 0, n)));
    let mut recorder = recorder(&producer, dump);
    let ended = recorder.run(&AtomicBool::new(false)).unwrap();
    assert_eq!(ended, Ended::DumpFull);
    assert_eq!(recorder.take_notices().len(), 1);
    assert!(std::fs::metadata(dir.join("out.rmk")).unwrap().len() <= 10_000);
    Decoded::of_file(&dir.join("out.rmk"));
    drop(recorder);
    recorder_of_rest(&dir, &producer);
}

fn recorder_of_rest(dir: &Dir, producer: &Producer) {
    let mut rest = recorder(producer, file_dump(dir, "rest.rmk"));
    rest.run(&AtomicBool::new(true)).unwrap();
    let mut all = Decoded::default();
    for name in ["out.rmk", "rest.rmk"] {
        all.add(&std::fs::read(dir.join(name)).unwrap());
    }
    assert_eq!(all.events(), (0..800).map(|n| (0, n)).collect());
}

#[test]
fn a_shortened_ring_file_is_an_error_not_a_crash() {
    let dir = Dir::new("cut");
    let producer = Producer::new(&dir, "a", Layout::new(Mode::Discard));
    let mut recorder = recorder(&producer, file_dump(&dir, "out.rmk"));
    recorder.step().unwrap();
    common::cut(&producer.path, 4096);
    recorder.step().unwrap();
    let notices = recorder.take_notices();
    assert!(notices[0].contains("truncated"), "{notices:?}");
    Decoded::of_file(&dir.join("out.rmk"));
}

#[test]
fn all_follows_sessions_that_appear_later() {
    let dir = Dir::new("later");
    // The only test of this file that looks into a directory.
    // SAFETY: no other thread of this test binary reads the environment at this time or depends
    // on this variable.
    unsafe { std::env::set_var("RINGMARK_DIR", &dir.0) };
    let mut recorder = Recorder::new(
        Selection::Tag("run=one".into()),
        file_dump(&dir, "out.rmk"),
        RecordOptions::default(),
    )
    .unwrap();
    recorder.step().unwrap();
    let producers: Vec<_> = (0..3)
        .map(|i| Producer::new(&dir, &format!("p{i}"), Layout::new(Mode::Discard).dead()))
        .collect();
    for (i, producer) in producers.iter().enumerate() {
        let writer = producer.writer(0);
        (0..300).for_each(|n| assert!(emit(writer, i as u64, n)));
    }
    let stop = AtomicBool::new(false);
    let ended = recorder.run_with(&stop, |r| {
        stop.store(r.progress().sessions_done == 3, Ordering::Relaxed);
    });
    assert_eq!(ended.unwrap(), Ended::Stopped);
    let decoded = Decoded::of_file(&dir.join("out.rmk"));
    assert_eq!(decoded.events().len(), 900);
    assert_eq!(decoded.sessions.len(), 3);
}
