//! Promise: what a collector acknowledged is in its store for good, and each page is there once,
//! wherever connections are cut and whichever side is killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringmark_reader::stream::{Address, StreamOptions};
use ringmark_reader::{Codec, Selection};
use ringmark_tests::collecting::{
    Collecting, segments, stream, stream_options, stream_with, wait_for_listener,
};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture, SOON};
use ringmark_tests::proxy::{Damage, Fault, How, Proxy};
use ringmark_tests::random::Random;
use ringmark_tests::recording::decode;
use ringmark_tests::store_contents::{ended_session, events, expected, repeated};
use ringmark_tests::{Running, binary, is_long, wait_until};

const EMIT: &str = ringmark_tests::program!("emit");
const LONG: Duration = Duration::from_secs(120);

/// A collector and a bad way to it, both new.
struct Trial {
    ring_file: PathBuf,
    collecting: Collecting,
    proxy: Proxy,
    way: PathBuf,
    directory: PathBuf,
}

impl Trial {
    fn new(ring_file: &Path, at: &Path, plan: impl FnMut(u64) -> Fault + Send + 'static) -> Self {
        let _ = fs::remove_dir_all(at);
        fs::create_dir_all(at).unwrap();
        let copy = at.join("copy.ring");
        let _ = fs::copy(ring_file, &copy).unwrap();
        let (socket, way) = (at.join("socket"), at.join("way"));
        let collecting = Collecting::start(&socket, &at.join("store"));
        Self {
            ring_file: copy,
            proxy: Proxy::start(&way, &socket, plan),
            collecting,
            way,
            directory: at.to_owned(),
        }
    }

    /// Streams it; the store then holds these events, each once. Connections, and bytes sent.
    fn expect(self, expected: &[String], codec: Codec) -> (u64, u64) {
        let sent = stream(&self.ring_file, &self.way, codec).sent;
        let stored = self.collecting.stored();
        let found = events(&stored);
        let differs = found.iter().zip(expected).position(|(f, e)| f != e);
        assert_eq!((found.len(), differs), (expected.len(), None));
        let repeated = repeated(&segments(&self.directory.join("store")));
        assert_eq!((repeated, stored.conflicts), (0, 0));
        assert!(stored.damage.is_empty(), "{:?}", stored.damage);
        let connections = self.proxy.connections();
        drop((self.proxy, self.collecting));
        let _ = fs::remove_dir_all(self.directory);
        (connections, sent)
    }
}

#[test]
fn cut_at_any_byte() {
    let fixture = Fixture::new("cut");
    let ring_file = ended_session(&fixture, EMIT);
    let expected = expected(&fixture, &ring_file);
    let trial = Trial::new(&ring_file, &fixture.path("trial"), |_| Fault::NONE);
    let (_, size) = trial.expect(&expected, Codec::None);
    assert!(size > 60_000, "{size} bytes");
    let (step, workers) = if is_long() { (1, 16) } else { (997, 2) };
    let cut_from = |worker: u64| {
        let cuts = (worker * step..size).step_by((workers * step) as usize);
        cuts.map(|at| {
            let cut = Fault {
                cut_there: at,
                ..Fault::NONE
            };
            let plan = move |n| if n == 0 { cut } else { Fault::NONE };
            let place = fixture.path(&format!("trial-{worker}"));
            let trial = Trial::new(&ring_file, &place, plan);
            let (connections, _) = trial.expect(&expected, Codec::None);
            assert_eq!(connections, 2, "cut at byte {at}");
        })
        .count()
    };
    let cuts: usize = std::thread::scope(|scope| {
        let cut_from = &cut_from;
        let start = |worker| scope.spawn(move || cut_from(worker));
        let threads: Vec<_> = (0..workers).map(start).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    println!(
        "cut at {cuts} bytes, each time {} events, each once",
        expected.len()
    );
}

/// As when a connection that was given up still delivers: both were told that nothing is there.
#[test]
fn two_streams_of_one_session() {
    let fixture = Fixture::new("two");
    let ring_file = ended_session(&fixture, EMIT);
    let expected = expected(&fixture, &ring_file);
    let slow = Fault {
        delay: Duration::from_millis(5),
        ..Fault::NONE
    };
    let trial = Trial::new(&ring_file, &fixture.path("trial"), move |_| slow);
    let other = fixture.path("other.ring");
    let _ = fs::copy(&ring_file, &other).unwrap();
    let way = trial.way.clone();
    let second = std::thread::spawn(move || stream(&other, &way, Codec::None));
    let _ = stream(&trial.ring_file, &trial.way, Codec::None);
    let _ = second.join().unwrap();
    let repeated = trial.collecting.figure("repeated_pages_total");
    println!("{repeated} pages came twice");
    let _ = trial.expect(&expected, Codec::None);
}

/// Cuts in both directions, one after the other, with delays; compressed and not.
#[test]
fn random_faults() {
    let fixture = Fixture::new("faults");
    let ring_file = ended_session(&fixture, EMIT);
    let expected = expected(&fixture, &ring_file);
    let mut random = Random::seeded();
    let (rounds, mut total) = (if is_long() { 200 } else { 20 }, 0);
    for round in 0..rounds {
        let faults: Vec<_> = (0..random.below(6)).map(|_| fault(&mut random)).collect();
        let plan = move |n: u64| faults.get(n as usize).copied().unwrap_or(Fault::NONE);
        let codec = [Codec::None, Codec::Lz4][round % 2];
        total += Trial::new(&ring_file, &fixture.path("trial"), plan)
            .expect(&expected, codec)
            .0;
    }
    println!("{rounds} rounds, {total} connections, all events each once");
}

fn fault(random: &mut Random) -> Fault {
    let mut bytes = |end| match random.below(3) {
        0 => u64::MAX,
        _ => random.below(end),
    };
    Fault {
        cut_there: bytes(70_000),
        cut_back: bytes(1500),
        delay: Duration::from_micros(random.below(300)),
        at_a_time: [8192, 1000, 61][random.below(3) as usize],
        ..Fault::NONE
    }
}

/// What no transport should do: bytes that are changed, lost, doubled or exchanged. They are refused by
/// their checksum, come again on the next connection, and nothing wrong is stored.
#[test]
fn damaged_bytes() {
    let fixture = Fixture::new("damaged");
    let ring_file = ended_session(&fixture, EMIT);
    let expected = expected(&fixture, &ring_file);
    let mut random = Random::seeded();
    let (rounds, mut again) = (if is_long() { 200 } else { 12 }, 0);
    for round in 0..rounds {
        let damage = Damage {
            at: random.below(60_000),
            bytes: 1 + random.below(500) as usize,
            how: [How::Flip, How::Repeat, How::Swap, How::Lose][round % 4],
        };
        let first = Fault {
            damage: Some(damage),
            ..Fault::NONE
        };
        let plan = move |n| if n == 0 { first } else { Fault::NONE };
        let trial = Trial::new(&ring_file, &fixture.path("trial"), plan);
        let (connections, _) = trial.expect(&expected, [Codec::None, Codec::Lz4][round / 4 % 2]);
        // Padding may be changed, and equal bytes be exchanged, without anybody's harm.
        again += u64::from(connections == 2);
        assert!(connections <= 2, "{damage:?}: {connections} connections");
    }
    println!("{rounds} rounds, {again} times refused and resumed, all events each once");
    assert!(again > 0, "none of {rounds} was noticed");
}

/// Events of threads that never fill a page arrive while these live; sealed pages then take the
/// place of what came of them before.
#[test]
fn open_pages_arrive_too() {
    let fixture = Fixture::new("open");
    let ringmark = "mode=discard,ring=64K,page=4K,keep=always";
    let program = fixture.start(EMIT, ringmark, "2 500 burst=10 pause=10000 hold=600000");
    let ring_file = fixture.ring_file();
    let socket = fixture.path("socket");
    let collecting = Collecting::start(&socket, &fixture.path("store"));
    let options = StreamOptions {
        open_every: Duration::from_millis(20),
        ..stream_options(Selection::Path(ring_file.clone()), Address::Unix(socket))
    };
    let streaming = std::thread::spawn(move || stream_with(options));
    let mut seen = Vec::new();
    wait_until(SOON, "the last event of each thread", || {
        let events = Delivery::of(&collecting.stored()).delivered();
        seen.push(events);
        (events == 1000).then_some(())
    });
    drop(program.kill().unwrap());
    let figures = streaming.join().unwrap();
    let stored = collecting.stored();
    let account = Delivery::of(&stored);
    account.expect_no_errors();
    assert_eq!(
        (account.delivered(), account.lost(), stored.conflicts),
        (1000, 0, 0)
    );
    let segments = segments(&fixture.path("store"));
    assert_eq!(repeated(&segments), 0, "sealed pages, each once");
    seen.dedup();
    println!("{} pages sent; events stored: {seen:?}", figures.pages);
    assert!(
        figures.pages < 1000,
        "only what has changed: {}",
        figures.pages
    );
}

/// The collector and the streamer are killed in turn while the program runs, then the program.
#[test]
fn killed_in_turn() {
    let fixture = Fixture::new("turns");
    let (store, socket) = (fixture.path("store"), fixture.path("socket"));
    let kills = if is_long() { 200 } else { 8 };
    // Built before the program starts, whose rings would be full by then.
    let _ = binary::path();
    let ringmark = "mode=discard,ring=4M,page=4K,session=32M";
    let counters = Counters::new(fixture.path("committed"));
    let arguments = format!("2 100000000 burst=20 pause=2000 {}", counters.argument());
    let program = fixture.start(EMIT, ringmark, &arguments);
    let pid = program.id().to_string();
    counters.wait_for(2);
    let collector = || {
        let mut command = fixture.command(binary::path());
        let listen = format!("unix://{}", socket.display());
        command.args(["collect", "--sync", "cache", "--listen", &listen, "--store"]);
        let running = Running::start(command.arg(&store)).unwrap();
        wait_for_listener(&socket);
        running
    };
    let streamer = || {
        let mut command = fixture.command(binary::path());
        let to = format!("unix://{}", socket.display());
        let often = ["--open-every", "10ms"];
        Running::start(
            command
                .args(["stream", "-p", &pid, "--to", &to])
                .args(often),
        )
        .unwrap()
    };
    let mut running = [collector(), streamer()];
    let mut random = Random::seeded();
    for kill in 0..kills {
        std::thread::sleep(Duration::from_millis(20 + random.below(80)));
        let [first, second] = running;
        running = if kill % 2 == 0 {
            drop(first.kill().unwrap());
            [collector(), second]
        } else {
            drop(second.kill().unwrap());
            [first, streamer()]
        };
    }
    drop(program.kill().unwrap());
    let [collector, streamer] = running;
    let _ = streamer.finish(LONG).expect_code(0);
    drop(collector.kill().unwrap());
    let delivered = expect_each_once(&store, &counters);
    println!("{kills} kills, {delivered} events, each once");
}

/// A store has every event of two threads once; returns how many events.
fn expect_each_once(store: &Path, counters: &Counters) -> u64 {
    let dump = decode(&segments(store));
    assert_eq!((repeated(&segments(store)), dump.conflicts), (0, 0));
    let account = Delivery::of(&dump);
    account.expect_no_errors();
    assert!(account.delivered() > 1000 && account.lost() == 0);
    let ledger = counters.ledger(2);
    let arrived = |thread: &(usize, &(u64, u64))| {
        let rings = account
            .rings
            .values()
            .filter(|ring| ring.thread == Some(thread.0 as u64));
        let delivered: u64 = rings.map(|ring| ring.delivered).sum();
        (thread.1.0..=thread.1.1).contains(&delivered)
    };
    let all = ledger.iter().enumerate().all(|thread| arrived(&thread));
    assert!(
        all,
        "calls returned and begun: {ledger:?}, stored: {:?}",
        account.rings
    );
    account.delivered()
}
