//! Promise: while the collector is away or slow, pages wait on disk: nothing is lost as long as
//! they fit, what does not fit is counted, and a killed streamer's pages are sent by the next one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use ringmark_reader::stream::{
    Address, Introduction, SpillOptions, StreamFigures, StreamOptions, Streamer, Upload,
};
use ringmark_reader::{Access, Selection, Session, StreamStatus};
use ringmark_tests::collecting::{segments, wait_for_listener};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture, SOON};
use ringmark_tests::proxy::{Fault, Proxy};
use ringmark_tests::recording::decode;
use ringmark_tests::{Running, binary, is_long, run, wait_until};
use rustix::process::Signal;

const EMIT: &str = ringmark_tests::program!("emit");
/// Rings that outlast a streamer that is not run for a while.
const ROOMY: &str = "mode=discard,ring=8M,page=64K,session=64M";
const LONG: Duration = Duration::from_secs(180);

/// A fixture with a collector's socket and store, and a place to spill.
struct Scene {
    fixture: Fixture,
    socket: PathBuf,
    store: PathBuf,
    spill: PathBuf,
}

impl Scene {
    fn new(label: &str) -> Self {
        let fixture = Fixture::new(label);
        Self {
            socket: fixture.path("socket"),
            store: fixture.path("store"),
            spill: fixture.path("spill"),
            fixture,
        }
    }

    fn collector(&self) -> Running {
        let mut command = self.fixture.command(binary::path());
        let listen = format!("unix://{}", self.socket.display());
        command.args(["collect", "--sync", "cache", "--listen", &listen, "--store"]);
        let running = Running::start(command.arg(&self.store)).unwrap();
        wait_for_listener(&self.socket);
        running
    }

    /// A streamer of all that is here, on a host of this name.
    fn streamer_on(&self, host: &str) -> Running {
        self.streamer(&["--all", "--host", host], "1G")
    }

    /// A streamer of all that is here.
    fn streamer(&self, what: &[&str], spill_max: &str) -> Running {
        let mut command = self.fixture.command(binary::path());
        let to = format!("unix://{}", self.socket.display());
        command.args(["stream", "--to", &to, "--spill-max", spill_max, "--spill"]);
        Running::start(command.arg(&self.spill).args(what)).unwrap()
    }

    fn options(&self, ring_file: &Path, to: &Path) -> StreamOptions {
        StreamOptions {
            selection: Selection::Path(ring_file.to_owned()),
            credentials: None,
            to: Address::Unix(to.to_owned()),
            introduction: Introduction::of_this_host(),
            codec: ringmark_reader::Codec::None,
            retry: Duration::from_millis(10),
            open_every: SOON,
            spill: Some(SpillOptions {
                directory: self.spill.clone(),
                bytes_max: 4 << 30,
            }),
            zero_copy: false,
            upload: Upload::Always,
            bytes_per_second: None,
        }
    }

    fn spilled(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.spill).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    fn spilled_bytes(&self) -> u64 {
        let about = self
            .spilled()
            .into_iter()
            .filter_map(|p| fs::metadata(p).ok());
        about.map(|about| about.len()).sum()
    }

    /// What is stored; nothing waits any more.
    fn account(&self) -> Delivery {
        assert_eq!(self.spilled(), Vec::<PathBuf>::new());
        let dump = decode(&segments(&self.store));
        assert_eq!((dump.conflicts, dump.damage.len()), (0, 0));
        let account = Delivery::of(&dump);
        account.expect_no_errors();
        account
    }
}

/// Streams a ring file to its end; the largest figures on the way.
fn stream(options: StreamOptions) -> StreamFigures {
    let mut streamer = Streamer::new(options).unwrap();
    let mut most = StreamFigures::default();
    let never = std::sync::atomic::AtomicBool::new(false);
    let ended = streamer.run(&never, |streamer| {
        let now = streamer.figures();
        most.spilled = most.spilled.max(now.spilled);
        most.lag = most.lag.max(now.lag);
        streamer
            .take_notices()
            .iter()
            .for_each(|notice| println!("{notice}"));
    });
    ended.unwrap();
    assert_eq!(streamer.figures().spilled, 0, "what is gone is counted");
    StreamFigures {
        spilled: most.spilled,
        lag: most.lag,
        ..streamer.figures()
    }
}

/// The collector stops for a while, and its connections stay open: what the rings cannot hold is
/// spilled, and sent when it goes on.
#[test]
fn a_collector_that_pauses() {
    let scene = Scene::new("pause");
    let collector = scene.collector();
    let seconds = if is_long() { 60 } else { 2 };
    // Two, or twenty-four, events of somewhat more than 1 KB each millisecond, at most: the rings of the
    // short form hold four seconds, for a streamer that gets no processor.
    let burst = if is_long() { 12 } else { 1 };
    let arguments = format!("2 100000000 bulk=1000 burst={burst} pause=1000");
    let program = scene.fixture.start(EMIT, ROOMY, &arguments);
    let options = scene.options(&scene.fixture.ring_file(), &scene.socket);
    let streaming = thread::spawn(move || stream(options));
    wait_until(SOON, "something in the store", || {
        let stored = segments(&scene.store);
        let is_more = |path: &PathBuf| fs::metadata(path).is_ok_and(|m| m.len() > 100_000);
        stored.iter().any(is_more).then_some(())
    });
    collector.signal(Signal::STOP).unwrap();
    let begun = Instant::now();
    wait_until(LONG, "something waits", || {
        let has_paused = begun.elapsed() >= Duration::from_secs(seconds);
        (has_paused && scene.spilled_bytes() > 2 << 20).then_some(())
    });
    collector.signal(Signal::CONT).unwrap();
    drop(program.kill().unwrap());
    let figures = streaming.join().unwrap();
    drop(collector.kill().unwrap());
    let account = scene.account();
    println!(
        "{seconds} s: {} events, {} bytes waited at most, for {:?}, {} connections",
        account.delivered(),
        figures.spilled,
        figures.lag,
        figures.connections
    );
    assert!(figures.spilled > 1 << 20 && figures.lag > Duration::from_millis(500));
    assert_eq!((account.lost(), figures.lost), (0, 0));
}

/// Without a collector, a streamer that is killed leaves its pages to the next one.
#[test]
fn a_killed_streamer_leaves_its_pages_to_the_next() {
    let scene = Scene::new("killed");
    let rounds = if is_long() { 40 } else { 4 };
    let arguments = "2 100000000 bulk=1000 burst=1 pause=1000";
    let ringmark = ROOMY;
    let program = scene.fixture.start(EMIT, ringmark, arguments);
    let pid = program.id().to_string();
    let ring_file = scene.fixture.ring_file();
    let mut spilled = 0;
    for round in 0..rounds {
        let streamer = scene.streamer(&["-p", &pid], "1G");
        // Some are killed before they have seen anything, some in the middle.
        if round % 2 == 1 {
            wait_until(SOON, "more waits", || {
                (scene.spilled_bytes() > spilled + 100_000).then_some(())
            });
        }
        thread::sleep(Duration::from_millis(10 * (round % 7)));
        drop(streamer.kill().unwrap());
        spilled = spilled.max(scene.spilled_bytes());
    }
    let streamer = scene.streamer(&["-p", &pid], "1G");
    let session = Session::open(&ring_file, Access::Observe).unwrap();
    let status = wait_until(SOON, "what the streamer says", || {
        StreamStatus::of(&session).filter(|status| status.spilled > 0)
    });
    assert!(!status.connected && status.in_flight == 0 && status.lost == 0);
    let mut list = scene.fixture.command(binary::path());
    list.args(["list", "-v", "--interval", "10ms", "-p", &pid]);
    let list = run(&mut list, SOON).unwrap();
    let text = list.expect_code(0).stdout_text();
    println!("{status:?}\n{text}");
    assert!(text.contains("streamed to unix://") && text.contains("no collector"));
    drop(program.kill().unwrap());
    let collector = scene.collector();
    let _ = streamer.finish(LONG).expect_code(0);
    drop(collector.kill().unwrap());
    let account = scene.account();
    println!(
        "{} events, {spilled} bytes waited at most",
        account.delivered()
    );
    assert!(account.delivered() > 1000 && account.lost() == 0 && spilled > 0);
}

/// A flight recorder overwrites pages while its streamer sleeps and no collector is there; the streamer
/// ends, or is killed. What was overwritten is then between pages that wait on disk, and the next streamer
/// says so as the first would have.
#[test]
fn what_was_overwritten_between_spilled_pages_outlives_the_streamer() {
    for signal in [None, Some(Signal::KILL), Some(Signal::TERM)] {
        let scene = Scene::new("hole");
        let counters = Counters::new(scene.fixture.path("counters"));
        let ringmark = "mode=overwrite,ring=64K,page=8K,session=16M,keep=always";
        let arguments = format!("1 100000000 burst=50 pause=1000 {}", counters.argument());
        let program = scene.fixture.start(EMIT, ringmark, &arguments);
        let mut streamer = scene.streamer(&["--all"], "1G");
        let grown = |by: u64| {
            let before = scene.spilled_bytes();
            wait_until(LONG, "more waits", || {
                (scene.spilled_bytes() >= before + by).then_some(())
            });
        };
        grown(64 << 10);
        streamer.signal(Signal::STOP).unwrap();
        // Rings of 64 KiB hold no more than 8192 events.
        counters.wait_for_each(1, counters.read(1)[0] + 20_000);
        streamer.signal(Signal::CONT).unwrap();
        grown(128 << 10);
        if let Some(signal) = signal {
            streamer.signal(signal).unwrap();
            drop(streamer.finish(LONG));
            streamer = scene.streamer(&["--all"], "1G");
        }
        let collector = scene.collector();
        drop(program.kill().unwrap());
        wait_until(LONG, "nothing waits", || {
            scene.spilled().is_empty().then_some(())
        });
        streamer.signal(Signal::INT).unwrap();
        let told = streamer.finish(LONG).expect_code(0).stderr_text();
        drop(collector.kill().unwrap());
        let account = scene.account();
        println!("{signal:?}: {} lost: {told}", account.lost());
        account.expect_ledger(&counters.ledger(1));
        let why: Vec<_> = account
            .rings
            .values()
            .flat_map(|r| r.lost.keys().copied())
            .collect();
        assert_eq!(why, ["overwritten"], "{signal:?}");
    }
}

/// Waits until so many bytes more are in a store.
fn wait_for_more(store: &Path, more: u64) {
    let bytes = || {
        let files = segments(store).into_iter();
        let about = files.filter_map(|path| fs::metadata(path).ok());
        about.map(|about| about.len()).sum::<u64>()
    };
    let before = bytes();
    wait_until(LONG, "more is stored", || {
        (bytes() >= before + more).then_some(())
    });
}

/// A host gets another name while pages wait on disk, twice. The collector knows the session as the old
/// host's: what waits and what follows goes on under another uuid, and nothing is counted twice. A streamer that
/// has only what waits on disk meets the same uuid.
#[test]
fn a_host_that_is_renamed_goes_on_with_what_waits() {
    for mode in ["discard", "overwrite"] {
        let scene = Scene::new(&format!("renamed-{mode}"));
        let counters = Counters::new(scene.fixture.path("counters"));
        let ringmark = format!("mode={mode},ring=2M,page=4K,session=16M");
        let arguments = format!("1 100000000 burst=20 pause=1000 {}", counters.argument());
        let program = scene.fixture.start(EMIT, &ringmark, &arguments);
        let stored = |more: u64| wait_for_more(&scene.store, more);
        let waits = || {
            let before = scene.spilled_bytes();
            wait_until(LONG, "more waits", || {
                (scene.spilled_bytes() > before + (64 << 10)).then_some(())
            });
        };
        let (collector, streamer) = (scene.collector(), scene.streamer_on("old"));
        stored(64 << 10);
        // It acknowledges what it has.
        collector.signal(Signal::TERM).unwrap();
        let _ = collector.finish(LONG).expect_code(0);
        waits();
        drop(streamer.kill().unwrap());
        let (collector, streamer) = (scene.collector(), scene.streamer_on("new"));
        stored(128 << 10);
        collector.signal(Signal::TERM).unwrap();
        let _ = collector.finish(LONG).expect_code(0);
        waits();
        drop(streamer.kill().unwrap());
        drop(program.kill().unwrap());
        let (collector, streamer) = (scene.collector(), scene.streamer_on("new"));
        wait_until(LONG, "nothing waits", || {
            scene.spilled().is_empty().then_some(())
        });
        streamer.signal(Signal::INT).unwrap();
        let told = streamer.finish(LONG).expect_code(0).stderr_text();
        drop(collector.kill().unwrap());
        let dump = decode(&segments(&scene.store));
        let account = Delivery::of(&dump);
        assert_eq!(
            (dump.sessions.len(), dump.conflicts, dump.damage.len()),
            (2, 0, 0)
        );
        let [(returned, begun)] = counters.ledger(1)[..] else {
            panic!("one thread");
        };
        let (delivered, lost) = (account.delivered(), account.lost());
        println!("{mode}: {delivered} delivered, {lost} lost of {begun}: {told}");
        assert!(
            (returned..=begun).contains(&(delivered + lost)) && lost == 0,
            "{mode}: {:?} {:?}",
            account.rings,
            account.elsewhere
        );
        assert!(told.contains("goes on as session"), "{told}");
    }
}

/// The ring file is gone when the streamer comes: what was spilled is sent all the same.
#[test]
fn pages_outlive_their_ring_file() {
    let scene = Scene::new("outlive");
    let ringmark = "mode=discard,ring=256K,page=4K,session=16M";
    let program = scene
        .fixture
        .start(EMIT, ringmark, "1 20000 burst=50 pause=1000 hold=600000");
    let streamer = scene.streamer(&["--all"], "1G");
    wait_until(SOON, "something waits", || {
        (scene.spilled_bytes() > 100_000).then_some(())
    });
    drop((streamer.kill().unwrap(), program.kill().unwrap()));
    let waits = Delivery::of(&decode(&scene.spilled()));
    fs::remove_file(scene.fixture.ring_file()).unwrap();
    let streamer = scene.streamer(&["--all"], "1G");
    let collector = scene.collector();
    wait_until(SOON, "nothing waits", || {
        scene.spilled().is_empty().then_some(())
    });
    streamer.signal(Signal::INT).unwrap();
    let _ = streamer.finish(SOON).expect_code(0);
    drop(collector.kill().unwrap());
    let account = scene.account();
    println!("{} events of a session that is gone", account.delivered());
    assert_eq!(account.delivered(), waits.delivered());
    assert!(account.delivered() > 0);
}

/// Two sessions' pages are left, the end of a file torn off by the kill. The next streamer sends each to its own
/// session; until then no other streamer may use the directory.
#[test]
fn sessions_are_left_to_the_next_and_not_mixed_up() {
    let scene = Scene::new("left");
    let ringmark = "mode=discard,ring=1M,page=4K,session=16M,keep=always";
    for events in [3000, 2500] {
        let arguments = format!("0 {events} bulk=200");
        let program = scene.fixture.start(EMIT, ringmark, &arguments);
        let _ = program.finish(SOON).expect_code(0);
    }
    let streamer = scene.streamer(&["--all"], "1G");
    wait_until(SOON, "most of both waits", || {
        (scene.spilled_bytes() > 1_000_000).then_some(())
    });
    let second = scene.streamer(&["--all"], "1G").finish(SOON);
    let told = second.expect_code(4).stderr_text();
    assert!(told.contains("does another stream use it?"), "{told}");
    drop(streamer.kill().unwrap());
    let waits = Delivery::of(&decode(&scene.spilled()));
    waits.expect_no_errors();
    let mut torn = scene.spilled();
    torn.sort();
    assert!(torn.len() >= 2, "{torn:?}");
    for path in torn {
        let block = fs::read(&path).unwrap();
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(&block[..300]).unwrap();
    }
    let collector = scene.collector();
    // One of them is left without its ring file, the other one has it still.
    let files = scene.fixture.ring_files();
    fs::remove_file(&files[0]).unwrap();
    let figures = stream(scene.options(&files[1], &scene.socket));
    drop(collector.kill().unwrap());
    let account = scene.account();
    let stored = decode(&segments(&scene.store));
    println!(
        "{} events, {} waited",
        account.delivered(),
        waits.delivered()
    );
    assert_eq!((stored.sessions.len(), figures.lost), (2, 0));
    assert!(waits.delivered() > 3000 && account.delivered() >= waits.delivered());
}

/// What fits neither in the spill nor in the rings is counted: every event is there or lost.
#[test]
fn a_full_spill_is_counted() {
    for mode in ["discard", "overwrite"] {
        let scene = Scene::new(mode);
        let counters = Counters::new(scene.fixture.path("counters"));
        let ringmark = format!("mode={mode},ring=256K,page=4K,session=16M,keep=always");
        let arguments = format!(
            "2 100000000 bulk=200 burst=20 pause=1000 {}",
            counters.argument()
        );
        let program = scene.fixture.start(EMIT, &ringmark, &arguments);
        let pid = program.id().to_string();
        let _ = scene.fixture.ring_file();
        let streamer = scene.streamer(&["-p", &pid], "2M");
        let full = (2 << 20) - (64 << 10);
        wait_until(LONG, "a full spill", || {
            (scene.spilled_bytes() > full).then_some(())
        });
        let more = if is_long() { 200_000 } else { 4000 };
        let then = counters.read(2);
        wait_until(LONG, "rings that are full, too", || {
            let now = counters.read(2);
            let all = now.iter().zip(&then).all(|(now, then)| *now > then + more);
            all.then_some(())
        });
        drop(program.kill().unwrap());
        let waited = scene.spilled_bytes();
        let collector = scene.collector();
        let done = streamer.finish(LONG);
        drop(collector.kill().unwrap());
        let account = scene.account();
        println!(
            "{mode}: {} events, {} lost, {waited} bytes waited: {}",
            account.delivered(),
            account.lost(),
            done.stderr_text()
        );
        assert!(waited <= 2 << 20 && done.stderr_text().contains("the spill is full"));
        account.expect_ledger(&counters.ledger(2));
        assert!(account.lost() > 0 && account.delivered() > 4000);
    }
}

/// A connection falls silent and stays open: it is given up, and what was under way goes over the
/// next one. Until then the rings are still emptied.
fn expect_given_up(label: &str, fault: Fault) {
    let scene = Scene::new(label);
    let collector = scene.collector();
    let way = scene.fixture.path("way");
    let plan = move |n| if n == 0 { fault } else { Fault::NONE };
    let proxy = Proxy::start(&way, &scene.socket, plan);
    let arguments = "2 100000000 bulk=1000 burst=1 pause=1000 for=3000";
    let ringmark = ROOMY;
    let program = scene.fixture.start(EMIT, ringmark, arguments);
    let figures = stream(scene.options(&scene.fixture.ring_file(), &way));
    let _ = program.finish(LONG).expect_code(0);
    drop((collector.kill().unwrap(), proxy));
    let account = scene.account();
    println!(
        "{} events, {} connections, {} bytes waited at most, for {:?}",
        account.delivered(),
        figures.connections,
        figures.spilled,
        figures.lag
    );
    assert_eq!((account.lost(), figures.connections), (0, 2));
    assert!(account.delivered() > 1000);
}

/// The collector notices.
#[test]
fn a_silent_connection_is_given_up() {
    expect_given_up(
        "silent",
        Fault {
            cut_there: 300_000,
            silent: true,
            ..Fault::NONE
        },
    );
}

/// The streamer notices: it is heard, and hears nothing.
#[test]
fn a_collector_that_is_not_heard_is_given_up() {
    expect_given_up(
        "unheard",
        Fault {
            cut_back: 300,
            silent: true,
            ..Fault::NONE
        },
    );
}

/// What waits on disk stays there until it is durable: its connection is cut again and again.
#[test]
fn cut_while_the_spill_is_sent() {
    let scene = Scene::new("cut");
    let ringmark = "mode=discard,ring=8M,page=16K,session=64M,keep=always";
    let program = scene.fixture.start(EMIT, ringmark, "0 3500 bulk=1000");
    let _ = program.finish(SOON).expect_code(0);
    let way = scene.fixture.path("way");
    let mut options = scene.options(&scene.fixture.ring_file(), &way);
    if let Some(spill) = &mut options.spill {
        // Files of 256 KiB: one is removed while the next is sent.
        spill.bytes_max = 4 << 20;
    }
    let streaming = thread::spawn(move || stream(options));
    wait_until(SOON, "some of it waits", || {
        (scene.spilled_bytes() > 1 << 20).then_some(())
    });
    let collector = scene.collector();
    let plan = |n| Fault {
        cut_there: if n < 8 {
            300_000 + n * 250_000
        } else {
            u64::MAX
        },
        ..Fault::NONE
    };
    let proxy = Proxy::start(&way, &scene.socket, plan);
    let figures = streaming.join().unwrap();
    drop((collector.kill().unwrap(), proxy));
    let account = scene.account();
    println!(
        "{} connections, {} bytes",
        figures.connections, figures.sent
    );
    assert!(figures.connections > 3);
    account.expect_exact(1, 3500);
}
