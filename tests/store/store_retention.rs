//! Promise: a collector begins new segments when they are old or large, removes the oldest beyond what it keeps, and
//! counts them; never one that is written or not acknowledged. Killed at any time, it finds what is there by indexes,
//! and by reading where they say nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use ringmark_collector::Figures;
use ringmark_collector::store::{DirectoryOptions, Now, Retention, Store, StoreOptions, SyncMode};
use ringmark_decoder::Output;
use ringmark_format::Uuid;
use ringmark_format::block::BlockHeader;
use ringmark_reader::Codec;
use ringmark_reader::stream::Address;
use ringmark_tests::collecting::{Collecting, options, segments, served_figure, stream};
use ringmark_tests::delivery::{Delivery, number};
use ringmark_tests::fixture::{Counters, Fixture, SOON};
use ringmark_tests::random::Random;
use ringmark_tests::recording::decode;
use ringmark_tests::scripted_streamer::{ScriptedStreamer, page};
use ringmark_tests::store_contents::{repeated, sealed};
use ringmark_tests::{
    ReservedPlace, Running, binary, is_long, preload_shim, require_tools, wait_until,
};
use rustix::process::Signal;
use zerocopy::FromBytes;

const EMIT: &str = ringmark_tests::program!("emit");
const LONG: Duration = Duration::from_secs(120);
const RING: &str = "mode=discard,ring=4M,page=4K,session=32M";

/// A program that emits, its streamer, and collectors one after the other.
struct Scene {
    fixture: Fixture,
    store: PathBuf,
    socket: PathBuf,
    counters: Counters,
}

impl Scene {
    fn new(label: &str) -> Self {
        let fixture = Fixture::new(label);
        Self {
            store: fixture.path("store"),
            socket: fixture.path("socket"),
            counters: Counters::new(fixture.path("counters")),
            fixture,
        }
    }

    fn program(&self) -> Running {
        let arguments = format!(
            "2 100000000 burst=20 pause=2000 {}",
            self.counters.argument()
        );
        let program = self.fixture.start(EMIT, RING, &arguments);
        let _ = self.fixture.ring_file();
        program
    }

    fn streamer(&self, program: &Running) -> Running {
        let mut command = self.fixture.command(binary::path());
        let to = format!("unix://{}", self.socket.display());
        command.args(["stream", "-p", &program.id().to_string(), "--to", &to]);
        Running::start(&mut command).unwrap()
    }

    fn collector(&self, options: &str) -> Running {
        let mut command = self.fixture.command(binary::path());
        let listen = format!("unix://{}", self.socket.display());
        command.args(["collect", "--sync", "cache", "--listen", &listen]);
        command
            .args(options.split_ascii_whitespace())
            .arg("--store")
            .arg(&self.store);
        let running = Running::start(&mut command).unwrap();
        wait_until(LONG, "a socket", || self.socket.exists().then_some(()));
        running
    }

    /// The events that are left of each thread: the last of them, without a hole.
    fn expect_the_newest(&self) {
        let mut left: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for item in decode(&segments(&self.store)).events() {
            if let Output::Event(event) = item {
                let thread = number(&event, "thread").unwrap();
                left.entry(thread)
                    .or_default()
                    .push(number(&event, "seq").unwrap());
            }
        }
        let ledger = self.counters.ledger(2);
        for (thread, (returned, begun)) in ledger.into_iter().enumerate() {
            let seqs = &left[&(thread as u64)];
            let (first, last) = (seqs[0], *seqs.last().unwrap());
            println!("thread {thread}: {first} to {last} of {begun} are left");
            assert!(seqs.windows(2).all(|pair| pair[1] == pair[0] + 1), "a hole");
            assert!(
                (returned..=begun).contains(&(last + 1)),
                "{last} of {returned} to {begun}"
            );
            assert!(first > 0, "nothing was removed");
        }
    }
}

/// Directories of the store without anything in them.
fn empty_directories(root: &Path) -> Vec<PathBuf> {
    let mut empty = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        let entries: Vec<_> = fs::read_dir(&directory).unwrap().flatten().collect();
        let below = entries.iter().filter(|e| e.file_type().unwrap().is_dir());
        left.extend(below.map(|e| e.path()));
        if entries.is_empty() {
            empty.push(directory);
        }
    }
    empty
}

/// Waits until this number of segments was removed, and counted; then another collector, that keeps all,
/// takes the rest.
fn expect_removed(options: &str, removed: u64) -> Scene {
    let scene = Scene::new("retention");
    let program = scene.program();
    let place = ReservedPlace::new();
    let metrics = place.address();
    let collector = scene.collector(&format!("{options} --metrics {metrics}"));
    let streamer = scene.streamer(&program);
    wait_until(LONG, "segments that were removed", || {
        (served_figure(metrics, "removed_segments_total") >= removed).then_some(())
    });
    let sample =
        || ["segments_total", "removed_segments_total"].map(|name| served_figure(metrics, name));
    // All of it goes on during this.
    let [begun, removed] = wait_until(LONG, "figures that agree with the files", || {
        let (before, left) = (sample(), segments(&scene.store).len() as u64);
        (before == sample() && before[0] - before[1] == left).then_some(before)
    });
    let bytes = served_figure(metrics, "removed_bytes_total");
    println!("{options}: {begun} segments, {removed} of {bytes} bytes removed");
    assert!(bytes > 0);
    drop(collector.kill().unwrap());
    let collector = scene.collector("");
    drop(program.kill().unwrap());
    let _ = streamer.finish(LONG).expect_code(0);
    collector.signal(Signal::TERM).unwrap();
    let _ = collector.finish(LONG).expect_code(0);
    scene
}

#[test]
fn what_is_old_goes() {
    expect_removed("--segment-age 200ms --keep-age 1s", 3).expect_the_newest();
}

#[test]
fn what_is_too_much_goes() {
    let options = "--segment-age 300ms --segment-size 32K --keep-size 128K";
    expect_removed(options, 10).expect_the_newest();
}

fn uuid(n: u8) -> Uuid {
    Uuid([n + 1; 16])
}

/// A session that says nothing for longer than anything is kept goes on in the same segment.
#[test]
fn what_is_written_stays() {
    let fixture = Fixture::new("stays");
    let (socket, store) = (fixture.path("socket"), fixture.path("store"));
    let mut with = options(Address::Unix(socket.clone()), &store);
    with.store.retention = Retention {
        age: Some(Duration::from_millis(50)),
        ..Retention::default()
    };
    let collecting = Collecting::with(with);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    runtime.block_on(async {
        let mut idle = ScriptedStreamer::greeted(&socket, "idle").await.unwrap();
        idle.announce(uuid(0)).await.unwrap();
        idle.send(&page(uuid(0), 0)).await.unwrap();
        idle.settle().await.unwrap();
        // A host that comes and goes: the store looked for it, because what it left is removed.
        for n in 1..=3 {
            let mut guest = ScriptedStreamer::greeted(&socket, "guest").await.unwrap();
            guest.announce(uuid(n)).await.unwrap();
            guest.send(&page(uuid(n), 0)).await.unwrap();
            guest.settle().await.unwrap();
            drop(guest);
            wait_until(LONG, "a segment that is removed", || {
                (collecting.figure("removed_segments_total") >= u64::from(n)).then_some(())
            });
        }
        wait_until(LONG, "no directory without files", || {
            empty_directories(&store).is_empty().then_some(())
        });
        idle.send(&page(uuid(0), 1)).await.unwrap();
        idle.settle().await.unwrap();
        assert_eq!(sealed(&segments(&store)), (2, 2));
    });
}

/// Sessions that come back just when what they left is old: what they add is added to a file that is there.
#[test]
fn sessions_that_come_back() {
    let fixture = Fixture::new("back");
    let options = StoreOptions {
        root: fixture.path("store"),
        sync: SyncMode::Cache,
        segment_bytes: 1 << 20,
        segment_age: Duration::from_secs(3600),
        retention: Retention {
            bytes: Some(0),
            ..Retention::default()
        },
        session_bytes: 1 << 20,
        directory: DirectoryOptions::default(),
    };
    let store = Store::open(options, Arc::new(Figures::default())).unwrap();
    let (over, rounds) = (
        AtomicBool::new(false),
        if is_long() { 50_000 } else { 2000 },
    );
    std::thread::scope(|scope| {
        let tidying = scope.spawn(|| {
            while !over.load(Relaxed) {
                assert!(store.tidy(Now::read()).is_empty());
            }
        });
        for n in 0..rounds {
            let block = page(uuid(0), n);
            let (header, _) = BlockHeader::read_from_prefix(&block).unwrap();
            let session = store.session(uuid(0), "here", &[0; 320]).unwrap();
            let mut session = session.lock().unwrap();
            assert!(
                session
                    .add(&header, &block[BlockHeader::BYTES..], &block)
                    .unwrap()
            );
            let path = session.current().unwrap();
            assert!(path.exists(), "round {n}: {} is gone", path.display());
        }
        over.store(true, Relaxed);
        tidying.join().unwrap();
    });
}

/// Spoils an index in one of the ways in which one can be wrong.
fn spoil(index: &Path, how: u64, other: &[u8]) {
    let mut bytes = fs::read(index).unwrap_or_default();
    let at = (how as usize / 5) % bytes.len().max(1);
    match how % 5 {
        0 => bytes = other.to_vec(),
        1 => bytes.clear(),
        2 => bytes.truncate(at),
        3 => bytes
            .iter_mut()
            .skip(at)
            .take(1)
            .for_each(|byte| *byte ^= 0x20),
        _ => return drop(fs::remove_file(index)),
    }
    fs::write(index, bytes).unwrap();
}

/// Collectors are killed while a program runs, and indexes spoiled before the next one comes.
#[test]
fn killed_with_indexes_that_are_wrong() {
    let scene = Scene::new("spoiled");
    let rounds = if is_long() { 100 } else { 6 };
    let options = "--segment-age 100ms --segment-size 24K";
    let program = scene.program();
    let mut collector = scene.collector(options);
    let streamer = scene.streamer(&program);
    let (mut random, mut spoiled) = (Random::seeded(), 0);
    for _ in 0..rounds {
        let before = segments(&scene.store).len();
        wait_until(LONG, "more segments", || {
            (segments(&scene.store).len() > before + 3).then_some(())
        });
        std::thread::sleep(Duration::from_millis(random.below(150)));
        drop(collector.kill().unwrap());
        let indexes: Vec<_> = segments(&scene.store)
            .iter()
            .map(|path| path.with_extension("idx"))
            .collect();
        let other = indexes
            .iter()
            .find_map(|path| fs::read(path).ok())
            .unwrap_or_default();
        for index in indexes.iter().filter(|path| path.exists()) {
            if random.below(3) == 0 {
                spoil(index, random.below(1000), &other);
                spoiled += 1;
            }
        }
        collector = scene.collector(options);
    }
    drop(program.kill().unwrap());
    let _ = streamer.finish(LONG).expect_code(0);
    collector.signal(Signal::TERM).unwrap();
    let _ = collector.finish(SOON).expect_code(0);
    let dump = decode(&segments(&scene.store));
    assert_eq!((repeated(&segments(&scene.store)), dump.conflicts), (0, 0));
    let account = Delivery::of(&dump);
    account.expect_ledger(&scene.counters.ledger(2));
    println!(
        "{rounds} kills, {spoiled} indexes spoiled, {} events",
        account.delivered()
    );
    assert!(account.lost() == 0 && spoiled > 0);
}

/// How often a thread of a collector wakes up until it has looked after its store some times.
const LOOKS: u64 = 50;

/// A wall clock that is set wrong for a while, and back: everything in the store seems old.
#[test]
fn a_clock_that_jumps_removes_nothing() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let scene = Scene::new("jump");
    let collector = scene.collector("");
    for _ in 0..3 {
        let ringmark = "mode=discard,ring=64K,page=4K,keep=always";
        let program = scene.fixture.start(EMIT, ringmark, "2 200");
        let _ = program.finish(SOON).expect_code(0);
    }
    for ring_file in scene.fixture.ring_files() {
        let _ = stream(&ring_file, &scene.socket, Codec::None);
    }
    collector.signal(Signal::TERM).unwrap();
    let _ = collector.finish(LONG).expect_code(0);
    let stored = segments(&scene.store);
    assert_eq!(stored.len(), 3);

    let (ahead, said) = (scene.fixture.path("ahead"), scene.fixture.path("said"));
    fs::write(&ahead, "").unwrap();
    let collector = with_clock_ahead(&scene, &ahead, &said);
    // It has looked at the store.
    let index = stored[0].with_extension("idx");
    let _ = fs::remove_file(&index);
    let tidied = || {
        let said = fs::read_to_string(&said).unwrap_or_default();
        said.contains("listening at").then_some(())
    };
    wait_until(LONG, "a collector", tidied);
    collector.wait_for_sleeps(LOOKS);
    fs::write(&ahead, "691200").unwrap();
    let told = || {
        fs::read_to_string(&said)
            .unwrap_or_default()
            .contains("clock")
    };
    wait_until(LONG, "it sees that", || {
        (told() || segments(&scene.store).len() < 3).then_some(())
    });
    collector.wait_for_sleeps(LOOKS);
    assert_eq!(segments(&scene.store), stored, "8 days ahead");
    fs::write(&ahead, "").unwrap();
    collector.wait_for_sleeps(LOOKS);
    assert_eq!(segments(&scene.store), stored, "right again");
    let said = fs::read_to_string(&said).unwrap();
    assert_eq!(said.matches("clock").count(), 1, "{said}");
    drop(collector.kill().unwrap());
}

/// A collector whose clock is ahead by the seconds in a file; its messages go to `said`.
fn with_clock_ahead(scene: &Scene, ahead: &Path, said: &Path) -> Running {
    let mut command = scene.fixture.command("sh");
    command.args(["-c", "f=$1; shift; exec \"$@\" 2>$f", "sh"]);
    command.arg(said).arg(binary::path());
    let listen = format!("unix://{}", scene.socket.display());
    let options = "--sync cache --segment-age 100ms --keep-age 168h";
    command.args(["collect", "--listen", &listen]);
    command.args(options.split_ascii_whitespace());
    command.arg("--store").arg(&scene.store);
    let shim = preload_shim::build(&scene.fixture, "clock_shim");
    command.env("LD_PRELOAD", shim).env("SHIM_CLOCK", ahead);
    Running::start(&mut command).unwrap()
}

/// A backup that was restored has the times of the copy; what is older by its events goes first.
#[test]
fn what_is_old_is_told_by_its_events() {
    let scene = Scene::new("restored");
    let collector = scene.collector("");
    for _ in 0..2 {
        let ringmark = "mode=discard,ring=64K,page=4K,keep=always";
        let program = scene.fixture.start(EMIT, ringmark, "2 200");
        let _ = program.finish(SOON).expect_code(0);
        for ring_file in scene.fixture.ring_files() {
            let _ = stream(&ring_file, &scene.socket, Codec::None);
            fs::remove_file(ring_file).unwrap();
        }
    }
    collector.signal(Signal::TERM).unwrap();
    let _ = collector.finish(LONG).expect_code(0);
    let mut stored = segments(&scene.store);
    let first = |path: &PathBuf| decode(std::slice::from_ref(path)).verify().first_ns;
    stored.sort_by_key(first);
    assert_eq!(stored.len(), 2);
    let now = std::time::SystemTime::now();
    for (path, days) in stored.iter().zip([1, 30]) {
        let file = fs::File::options().append(true).open(path).unwrap();
        let then = now - Duration::from_secs(days * 86400);
        file.set_modified(then).unwrap();
    }
    let size = fs::metadata(&stored[1]).unwrap().len() + 100;
    let collector = scene.collector(&format!("--segment-age 100ms --keep-size {size}"));
    wait_until(LONG, "one is removed", || {
        (segments(&scene.store).len() < 2).then_some(())
    });
    assert_eq!(segments(&scene.store), stored[1..]);
    drop(collector.kill().unwrap());
}
