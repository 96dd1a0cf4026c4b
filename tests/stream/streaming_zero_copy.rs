//! Promise: pages that are sent without being copied arrive as they were sealed, however long the
//! peer does not read and whatever the program writes at that time: none is released before it is
//! durable elsewhere.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use ringmark_reader::Selection;
use ringmark_reader::stream::{Address, SpillOptions, StreamFigures, StreamOptions, Streamer};
use ringmark_tests::collecting::{Collecting, stream_options};
use ringmark_tests::delivery::{Delivery, expect_whole};
use ringmark_tests::fixture::{Counters, Fixture, SOON};
use ringmark_tests::proxy::{Fault, Proxy};
use ringmark_tests::random::Random;
use ringmark_tests::{is_long, wait_until};

const EMIT: &str = ringmark_tests::program!("emit");
const LONG: Duration = Duration::from_secs(120);

fn stream(
    ring_file: &Path,
    to: Address,
    spill: Option<SpillOptions>,
) -> (StreamFigures, Vec<String>) {
    let options = StreamOptions {
        zero_copy: true,
        spill,
        ..stream_options(Selection::Path(ring_file.to_owned()), to)
    };
    let mut streamer = Streamer::new(options).unwrap();
    let mut notices = Vec::new();
    let ended = streamer.run(&AtomicBool::new(false), |s| {
        notices.extend(s.take_notices())
    });
    ended.unwrap();
    (streamer.figures(), notices)
}

/// Passes TCP connections on to a unix socket; while it is paused it does not read.
struct Relay {
    to: Address,
    paused: Arc<AtomicBool>,
}

impl Relay {
    fn start(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = format!("tcp://{}", listener.local_addr().unwrap());
        let paused = Arc::new(AtomicBool::new(false));
        let waits = paused.clone();
        // Lives as long as the test's process: it only waits.
        drop(thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                let far = UnixStream::connect(&socket).unwrap();
                let back = (far.try_clone().unwrap(), near.try_clone().unwrap());
                let (there, never) = (waits.clone(), Arc::new(AtomicBool::new(false)));
                drop(thread::spawn(move || copy(near, far, &there)));
                drop(thread::spawn(move || copy(back.0, back.1, &never)));
            }
        }));
        Self {
            to: to.parse().unwrap(),
            paused,
        }
    }
}

/// Both ends of a connection through the relay.
trait End: Read + Write {
    fn close(&self);
}

impl End for TcpStream {
    fn close(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl End for UnixStream {
    fn close(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

fn copy(mut from: impl End, mut to: impl End, paused: &AtomicBool) {
    let mut buffer = [0; 16 << 10];
    loop {
        while paused.load(Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) if to.write_all(&buffer[..read]).is_ok() => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    from.close();
    to.close();
}

/// What came of a peer that did not read while the program wrote its rings over and over.
struct Trapped {
    refused: u64,
    ledger: Vec<(u64, u64)>,
    collecting: Collecting,
    notices: Vec<String>,
}

fn trap(fixture: &Fixture, mode: &str, spill: Option<SpillOptions>) -> Trapped {
    let socket = fixture.path("socket");
    let collecting = Collecting::start(&socket, &fixture.path("store"));
    let relay = Relay::start(socket);
    let counters = Counters::new(fixture.path("counters"));
    let arguments = format!(
        "2 100000000 bulk=1000 burst=20 pause=500 {}",
        counters.argument()
    );
    let ringmark = format!("mode={mode},ring=1M,page=64K,session=16M,keep=always");
    let program = fixture.start(EMIT, &ringmark, &arguments);
    let (ring_file, to) = (fixture.ring_file(), relay.to.clone());
    let streaming = thread::spawn(move || stream(&ring_file, to, spill));
    let rounds = if is_long() { 50 } else { 3 };
    for _ in 0..rounds {
        let before = collecting.figure("pages_total");
        wait_until(SOON, "pages arrive", || {
            (collecting.figure("pages_total") > before + 4).then_some(())
        });
        relay.paused.store(true, Relaxed);
        let then = counters.read(2);
        // Several times what its ring holds.
        wait_until(LONG, "each thread writes", || {
            let now = counters.read(2);
            now.iter()
                .zip(&then)
                .all(|(now, then)| *now > then + 4000)
                .then_some(())
        });
        relay.paused.store(false, Relaxed);
    }
    drop(program.kill().unwrap());
    let (figures, notices) = streaming.join().unwrap();
    println!(
        "{} connections, {} bytes: {notices:?}",
        figures.connections, figures.sent
    );
    Trapped {
        refused: collecting.figure("refusals_total"),
        ledger: counters.ledger(2),
        collecting,
        notices,
    }
}

#[test]
fn what_is_under_way_is_not_overwritten() {
    let fixture = Fixture::new("trap");
    let trapped = trap(&fixture, "discard", None);
    assert_eq!(trapped.refused, 0, "{:?}", trapped.notices);
    let stored = trapped.collecting.stored();
    let account = Delivery::of(&stored);
    account.expect_no_errors();
    account.expect_ledger(&trapped.ledger);
    println!(
        "{} events whole, {} lost",
        expect_whole(&stored),
        account.lost()
    );
    assert!(account.delivered() > 1000 && account.lost() > 1000);
}

/// Pages that may be overwritten before they are durable go as copies: those of a flight recorder, and those that a
/// spill has.
#[test]
fn what_may_be_overwritten_is_copied() {
    let fixture = Fixture::new("copied");
    let spill = SpillOptions {
        directory: fixture.path("spill"),
        bytes_max: 1 << 30,
    };
    for (mode, spill) in [("overwrite", None), ("discard", Some(spill))] {
        let fixture = Fixture::new(mode);
        let trapped = trap(&fixture, mode, spill);
        assert_eq!(trapped.refused, 0, "{mode}: {:?}", trapped.notices);
        let stored = trapped.collecting.stored();
        let account = Delivery::of(&stored);
        account.expect_no_errors();
        account.expect_ledger(&trapped.ledger);
        assert!(expect_whole(&stored) > 1000);
    }
}

/// Connections that are cut: every event once, and whole.
#[test]
fn cut_connections() {
    let fixture = Fixture::new("cuts");
    let ringmark = "mode=discard,ring=256K,page=4K,session=16M,keep=always";
    let program = fixture.start(EMIT, ringmark, "2 3000 bulk=20");
    let _ = program.finish(SOON).expect_code(0);
    let ring_file = fixture.ring_file();
    let mut random = Random::seeded();
    let rounds = if is_long() { 100 } else { 10 };
    for _ in 0..rounds {
        let trial = fixture.path("trial");
        fs::create_dir(&trial).unwrap();
        let (copy, socket, way) = (trial.join("copy"), trial.join("socket"), trial.join("way"));
        let _ = fs::copy(&ring_file, &copy).unwrap();
        let collecting = Collecting::start(&socket, &trial.join("store"));
        let cuts: Vec<_> = (0..4).map(|_| random.below(250_000)).collect();
        let proxy = Proxy::start(&way, &socket, move |n| Fault {
            cut_there: cuts.get(n as usize).copied().unwrap_or(u64::MAX),
            ..Fault::NONE
        });
        let (figures, _) = stream(&copy, Address::Unix(way), None);
        let stored = collecting.stored();
        assert_eq!((expect_whole(&stored), stored.conflicts), (6000, 0));
        Delivery::of(&stored).expect_exact(2, 3000);
        println!("{} connections", figures.connections);
        drop((proxy, collecting));
        fs::remove_dir_all(&trial).unwrap();
    }
}
