//! Promise: a full store costs its streamers time and nothing else. They stay connected, send nothing in vain, and
//! everything is there once after room was made.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ringmark_reader::stream::{Address, SpillOptions, StreamFigures, StreamOptions};
use ringmark_reader::{Access, Selection, Session};
use ringmark_ring::consumer_lease::AllLease;
use ringmark_tests::collecting::{
    segments, served_figure, stream_options, stream_with, wait_for_listener,
};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture, SOON};
use ringmark_tests::recording::decode;
use ringmark_tests::{ReservedPlace, Running, binary, is_long, require_tools, run, wait_until};

const EMIT: &str = ringmark_tests::program!("emit");
const LONG: Duration = Duration::from_secs(300);
/// Events of each of two threads, of somewhat more than 1 KB each.
const EVENTS: u64 = 600;

/// A collector whose store is a small file system of its own.
struct Scene {
    fixture: Fixture,
    collector: Running,
    socket: PathBuf,
    metrics: ReservedPlace,
}

impl Scene {
    fn start(mebibytes: usize) -> Self {
        let fixture = Fixture::new("full-store");
        let socket = fixture.path("socket");
        fs::create_dir(fixture.path("store")).unwrap();
        let metrics = ReservedPlace::new();
        let mount = format!(
            "mount -t tmpfs -o size={mebibytes}m,mode=0700 ringmark-test \"$STORE\"; exec \"$@\""
        );
        let mut command = fixture.command("unshare");
        command.args(["--mount", "sh", "-euc", &mount, "sh"]);
        command.env("STORE", fixture.path("store"));
        let listen = format!("unix://{}", socket.display());
        command
            .arg(binary::path())
            .args(["collect", "--listen", &listen]);
        command.args(["--metrics", &metrics.to_string(), "--store"]);
        command.arg(fixture.path("store"));
        let collector = Running::start(&mut command).unwrap();
        wait_for_listener(&socket);
        Self {
            fixture,
            collector,
            socket,
            metrics,
        }
    }

    /// The store, as the collector sees it.
    fn store(&self) -> PathBuf {
        let root = format!("/proc/{}/root", self.collector.id());
        let store = self.fixture.path("store");
        PathBuf::from(root).join(store.strip_prefix("/").unwrap())
    }

    fn figure(&self, name: &str) -> u64 {
        served_figure(self.metrics.address(), name)
    }

    fn make_room(&self, mebibytes: usize) {
        let mut command = self.fixture.command("nsenter");
        command.arg(format!("--mount=/proc/{}/ns/mnt", self.collector.id()));
        let size = format!("remount,size={mebibytes}m");
        command.args(["mount", "-o", &size]);
        let done = run(command.arg(self.fixture.path("store")), SOON);
        let _ = done.unwrap().expect_code(0);
    }

    /// Sessions of programs that have ended. The rings of every second one were too small, so it
    /// counts events as lost.
    fn sessions(&self, count: usize) -> Vec<PathBuf> {
        for number in 0..count {
            let ring = ["2M", "128K"][number % 2];
            let ringmark = format!("mode=discard,ring={ring},page=16K,session=8M,keep=always");
            let arguments = format!("2 {EVENTS} bulk=1000");
            let program = self.fixture.start(EMIT, &ringmark, &arguments);
            let _ = program.finish(SOON).expect_code(0);
        }
        self.fixture.ring_files()
    }

    fn stream(&self, number: usize, ring_file: PathBuf) -> JoinHandle<StreamFigures> {
        let options = self.options(number, ring_file);
        thread::spawn(move || stream_with(options))
    }

    fn options(&self, number: usize, ring_file: PathBuf) -> StreamOptions {
        let to = Address::Unix(self.socket.clone());
        let mut options = stream_options(Selection::Path(ring_file), to);
        options.introduction.host = format!("host-{number}");
        options.retry = Duration::from_millis(100);
        options
    }
}

/// Each ring's events are there or counted, whatever session they are of.
fn expect_all(store: &Path, sessions: usize) {
    let dump = decode(&segments(store));
    assert_eq!((dump.conflicts, dump.damage.len()), (0, 0));
    let account = Delivery::of(&dump);
    account.expect_no_errors();
    let rings: Vec<u64> = account.rings.values().map(|ring| ring.emitted()).collect();
    assert_eq!(rings, vec![EVENTS; 2 * sessions]);
    println!(
        "{} delivered, {} counted",
        account.delivered(),
        account.lost()
    );
    assert!(account.lost() > 0, "the small rings lost something");
}

#[test]
fn a_full_store_is_waited_for() {
    if !require_tools(&["unshare", "mount", "nsenter"]) {
        return;
    }
    let (count, size, wait) = match is_long() {
        true => (50, 12, Duration::from_secs(120)),
        false => (6, 2, Duration::from_secs(4)),
    };
    let scene = Scene::start(size);
    // Programs that start remove what is not awaited.
    let mut private = fs::DirBuilder::new();
    private
        .mode(0o700)
        .create(scene.fixture.sessions())
        .unwrap();
    let lease = AllLease::take(&scene.fixture.sessions()).unwrap();
    let mut files = scene.sessions(count);
    drop(lease);
    let late = files.split_off(count / 2);
    let mut streaming = Vec::new();
    for file in files {
        streaming.push(scene.stream(streaming.len(), file));
    }
    wait_until(LONG, "a full store", || {
        (scene.figure("full") == 1).then_some(())
    });
    // These come to a store that is full.
    for file in late {
        streaming.push(scene.stream(streaming.len(), file));
    }
    // A small session of the first may have been stored before, and hear of it late.
    let waiting = |streaming: &[JoinHandle<_>]| {
        let ended = streaming.iter().filter(|s| s.is_finished()).count();
        streaming.len() - ended
    };
    wait_until(LONG, "a connection of each that waits", || {
        (scene.figure("connections") == waiting(&streaming) as u64).then_some(())
    });
    thread::sleep(wait);
    assert_eq!(scene.figure("full"), 1);
    let still = waiting(&streaming);
    assert!(still > count / 2, "room was found: {still} of {count} wait");
    scene.make_room(4 * count);
    let ended: Vec<_> = streaming.into_iter().map(|s| s.join().unwrap()).collect();
    let sent: u64 = ended.iter().map(|figures| figures.sent).sum();
    let connections: u64 = ended.iter().map(|figures| figures.connections).sum();
    let store = scene.store();
    let files = segments(&store).into_iter();
    let stored: u64 = files.map(|file| fs::metadata(file).unwrap().len()).sum();
    println!(
        "{count} streamers waited {wait:?}: {connections} connections, {sent} bytes sent, {stored} stored"
    );
    assert_eq!(connections, count as u64, "none came again");
    assert!(sent * 10 <= stored * 11, "{sent} sent for {stored} stored");
    expect_all(&store, count);
    drop(scene.collector.kill().unwrap());
}

/// Pages of a session's fullest ring that were written and not released.
fn held(ring_file: &Path) -> u64 {
    let session = Session::open(ring_file, Access::Observe).unwrap();
    let ring = session.ring();
    let slots = (0..ring.slots_used()).filter_map(|number| ring.slot(number));
    let held = slots.map(|slot| slot.produced() - slot.consumed());
    held.max().unwrap()
}

#[test]
fn a_spill_takes_what_a_full_store_does_not() {
    /// Events of about 1 KB that are let through at a time, less than a third of the ring.
    const STEP: u64 = 250;
    const STEPS: u64 = 12;
    if !require_tools(&["unshare", "mount", "nsenter"]) {
        return;
    }
    let scene = Scene::start(2);
    let counters = Counters::new(scene.fixture.path("counters"));
    let events = STEP * STEPS;
    let arguments = format!("1 {events} bulk=1000 gate=1 {}", counters.argument());
    let ringmark = "mode=discard,ring=1M,page=16K,session=8M";
    let program = scene.fixture.start(EMIT, ringmark, &arguments);
    let ring_file = scene.fixture.ring_file();
    let mut options = scene.options(0, ring_file.clone());
    options.spill = Some(SpillOptions {
        directory: scene.fixture.path("spill"),
        bytes_max: 64 << 20,
    });
    let streaming = thread::spawn(move || stream_with(options));
    for step in 1..STEPS {
        counters.allow(STEP * step);
        counters.wait_for_each(1, STEP * step);
        // A ring that is half full is left to a collector that is slow.
        wait_until(SOON, "room in the ring", || {
            (held(&ring_file) <= 40).then_some(())
        });
    }
    assert_eq!(scene.figure("full"), 1);
    let spilled = fs::read_dir(scene.fixture.path("spill")).unwrap().count();
    assert!(spilled > 0, "pages wait on disk");
    scene.make_room(64);
    counters.go();
    let _ = program.finish(SOON).expect_code(0);
    let figures = streaming.join().unwrap();
    assert_eq!((figures.lost, figures.connections), (0, 1));
    let dump = decode(&segments(&scene.store()));
    let account = Delivery::of(&dump);
    account.expect_no_errors();
    assert_eq!((account.delivered(), account.lost()), (events, 0));
    drop(scene.collector.kill().unwrap());
}
