//! Collectors that are restarted one after the other while hosts write: every event is in the store soon, and little
//! is sent twice.
//!
//! The lag of an event is the time from its own timestamp until the object with its page got its name, which a reader
//! can open from then on: the time of the last change of the file's status.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use ringmark_decoder::{BlockReader, Item};
use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, SEALED, kind};
use ringmark_tests::collecting::{served_figure, wait_for_listener};
use ringmark_tests::fixture::{Counters, Fixture};
use ringmark_tests::proxy::Proxy;
use ringmark_tests::random::Random;
use ringmark_tests::wait::Lateness;
use ringmark_tests::{ReservedPlace, Running, binary, is_long, preload_shim, require_tools};
use rustix::process::Signal;

use super::{COLLECTORS, EMIT, LONG, number, raw, socket, store, told, verified};

/// How long a put takes.
const PUT: Duration = Duration::from_millis(200);
/// What lag may be more than the flush.
const MORE: Duration = Duration::from_secs(5);
/// How long a streamer may look for another collector: three attempts, each after a wait that doubles.
const RECONNECT: Duration = Duration::from_secs(1);
const PAGE_BLOCK: u64 = 4096 + BlockHeader::BYTES as u64;

struct Size {
    hosts: usize,
    flush: Duration,
    /// Between two restarts, at least.
    apart: Duration,
}

fn size() -> Size {
    match is_long() {
        true => Size {
            hosts: 20,
            flush: Duration::from_secs(5),
            apart: Duration::from_secs(12),
        },
        false => Size {
            hosts: 4,
            flush: Duration::from_millis(500),
            apart: Duration::from_millis(800),
        },
    }
}

struct Collector {
    running: Running,
    metrics: ReservedPlace,
}

struct Fleet<'f> {
    fixture: &'f Fixture,
    shim: PathBuf,
    flush: Duration,
    collectors: Vec<Collector>,
}

impl<'f> Fleet<'f> {
    fn start(fixture: &'f Fixture, flush: Duration) -> Self {
        let mut made = Self {
            fixture,
            shim: preload_shim::build(fixture, "hanging_shim"),
            flush,
            collectors: Vec::new(),
        };
        made.collectors = (0..COLLECTORS)
            .map(|number| made.collector(number))
            .collect();
        made
    }

    fn collector(&self, number: usize) -> Collector {
        let metrics = ReservedPlace::new();
        let socket = socket(self.fixture, number);
        let mut command = self.fixture.command(binary::path());
        command
            .env("LD_PRELOAD", &self.shim)
            .env("SHIM_PATH", "/raw/");
        command.env("SHIM_RENAME", PUT.as_micros().to_string());
        command.args([
            "collect",
            "--sync",
            "cache",
            "--metrics",
            &metrics.to_string(),
        ]);
        command.args(["--flush", &format!("{}ms", self.flush.as_millis())]);
        command.args(["--listen", &format!("unix://{}", socket.display())]);
        command.args([
            "--objects",
            &format!("file://{}", store(self.fixture).display()),
        ]);
        let running = Running::start(&mut command).unwrap();
        wait_for_listener(&socket);
        Collector { running, metrics }
    }

    /// Restarts one; returns the bytes that it had received and that were not durable.
    fn restart(&mut self, number: usize, signal: Signal) -> u64 {
        let Collector { running, metrics } = self.collectors.remove(number);
        let under_way = served_figure(metrics.address(), "waiting_bytes");
        running.signal(signal).unwrap();
        let code = if signal == Signal::KILL { 128 + 9 } else { 0 };
        let _ = running.finish(LONG).expect_code(code);
        let again = self.collector(number);
        self.collectors.insert(number, again);
        under_way
    }
}

/// A host with a program that writes steadily, and its streamer.
struct Host {
    name: String,
    counters: Counters,
    program: Running,
    streamer: Running,
    status: PathBuf,
    _fixture: Fixture,
}

/// What became of a host.
struct Ended {
    name: String,
    events: u64,
    pages_sent: u64,
    connections: u64,
}

impl Host {
    fn start(number: usize, way: &Path) -> Self {
        let fixture = Fixture::new("rolling-host");
        let (name, status) = (format!("host-{number}"), fixture.path("status"));
        let counters = Counters::new(fixture.path("committed"));
        let ringmark = "mode=discard,ring=4M,page=4K,session=32M";
        let arguments = format!("1 100000000 burst=10 pause=10000 {}", counters.argument());
        let program = fixture.start(EMIT, ringmark, &arguments);
        let _ = fixture.ring_file();
        let mut command = fixture.command(binary::path());
        command.args(["stream", "-p", &program.id().to_string(), "--host", &name]);
        command.args([
            "--to",
            &format!("unix://{}", way.display()),
            "--status-file",
        ]);
        let streamer = Running::start(command.arg(&status)).unwrap();
        Self {
            name,
            counters,
            program,
            streamer,
            status,
            _fixture: fixture,
        }
    }

    /// Its program was told to stop.
    fn end(self) -> Ended {
        let _ = self.program.finish(LONG).expect_code(0);
        let said = self.streamer.finish(LONG).expect_code(0).stderr_text();
        let status = fs::read_to_string(&self.status).unwrap();
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        assert_eq!(number(&status, "lost"), 0, "{said}");
        let (returned, begun) = self.counters.ledger(1)[0];
        assert_eq!(returned, begun, "it ended by itself");
        Ended {
            name: self.name,
            events: returned,
            pages_sent: number(&status, "pages"),
            connections: number(&status, "connections"),
        }
    }
}

type PageName = (String, u64, u64);

/// The pages of a store.
#[derive(Default)]
struct Pages {
    /// When a reader could see it, in ns since 1970; whether that copy is sealed.
    visible: HashMap<PageName, (u64, bool)>,
    copies: u64,
}

impl Pages {
    fn of(fixture: &Fixture) -> Self {
        let changed = |path: PathBuf| {
            let about = fs::metadata(&path).unwrap();
            let at = about.ctime() * 1_000_000_000 + about.ctime_nsec();
            (at as u64, path)
        };
        let mut objects: Vec<_> = raw(fixture).into_iter().map(changed).collect();
        objects.sort();
        let mut pages = Self::default();
        for (at, path) in objects {
            pages.take(at, &path);
        }
        pages
    }

    fn take(&mut self, at: u64, path: &Path) {
        let mut reader = BlockReader::new("a segment", File::open(path).unwrap());
        while let Some(item) = reader.next_item() {
            let Item::Block(block) = item else {
                panic!("{}: damaged", path.display())
            };
            let header = &block.header;
            if header.kind != kind::PAGE {
                continue;
            }
            self.copies += 1;
            let name = (
                Uuid(header.session).to_string(),
                header.ring_id,
                header.page_number,
            );
            let found = self.visible.entry(name).or_insert((at, false));
            // An open copy may have fewer events.
            if !found.1 {
                *found = (at, header.flags & SEALED != 0);
            }
        }
    }

    fn distinct(&self) -> u64 {
        self.visible.len() as u64
    }
}

/// The events of a host: their numbers, and how long each took to be visible; both in ascending order.
fn events(fixture: &Fixture, host: &str, pages: &Pages) -> (Vec<u64>, Vec<Duration>) {
    let words = ["export", "--format", "csv", "-o", "-", "--host", host];
    let scanned = told(fixture, &words, &store(fixture), &[0]);
    let mut lines = scanned.lines();
    let names: Vec<_> = lines.next().unwrap().split(',').collect();
    let place = |name| names.iter().position(|found| *found == name).unwrap();
    let [ts, session, ring, page] = ["ts_ns", "session", "ring", "page"].map(place);
    let event = |line: &str| {
        let cells: Vec<_> = line.split(',').collect();
        let number = |place: usize| cells[place].parse::<u64>().unwrap();
        let name = (cells[session].to_owned(), number(ring), number(page));
        let (_, seq) = line.split_once("\"\"seq\"\":").unwrap();
        let seq = seq.trim_end_matches(['}', '"']).parse::<u64>().unwrap();
        let lag = pages.visible[&name].0.saturating_sub(number(ts));
        (seq, Duration::from_nanos(lag))
    };
    let (mut numbers, mut lags): (Vec<_>, Vec<_>) = lines.map(event).unzip();
    numbers.sort_unstable();
    lags.sort_unstable();
    (numbers, lags)
}

/// By nearest rank, of what is sorted.
fn quantile(of: &[Duration], percent: usize) -> Duration {
    of[(of.len() * percent).div_ceil(100) - 1]
}

/// Restarts all collectors one by one while hosts write; returns the bytes that were under way at those moments.
fn restart_all(fleet: &mut Fleet, apart: Duration, signal: Signal) -> u64 {
    let mut random = Random::seeded();
    let flush = fleet.flush.as_millis() as u64;
    let mut under_way = 0;
    for number in 0..COLLECTORS {
        sleep(apart + Duration::from_millis(random.below(flush)));
        under_way += fleet.restart(number, signal);
    }
    sleep(apart);
    under_way
}

fn restarted_with(signal: Signal) {
    if !require_tools(&["gcc"]) {
        return;
    }
    let size = size();
    let fixture = Fixture::new("rolling");
    let mut fleet = Fleet::start(&fixture, size.flush);
    let sockets: Vec<_> = (0..COLLECTORS).map(|n| socket(&fixture, n)).collect();
    let way = fixture.path("way");
    let proxy = Proxy::in_turn(&way, &sockets);
    let hosts: Vec<_> = (0..size.hosts)
        .map(|number| Host::start(number, &way))
        .collect();
    let lateness = Lateness::watch();
    let under_way = restart_all(&mut fleet, size.apart, signal);
    hosts.iter().for_each(|host| host.counters.stop());
    let ended: Vec<_> = hosts.into_iter().map(Host::end).collect();
    drop(proxy);
    let [late, _] = lateness.end();

    let all = verified(&fixture, &store(&fixture), &[0]);
    for none in ["lost", "missing", "late", "unknown", "conflicts", "damaged"] {
        assert_eq!(number(&all, none), 0, "{none}: {all}");
    }
    assert_eq!(all["complete"], true, "{all}");
    let pages = Pages::of(&fixture);
    let mut slowest = Duration::ZERO;
    for host in &ended {
        let (numbers, lags) = events(&fixture, &host.name, &pages);
        assert!(numbers.into_iter().eq(0..host.events), "{}", host.name);
        let [p50, p99, most] = [50, 99, 100].map(|percent| quantile(&lags, percent));
        println!(
            "{}: {} events, {} connections; lag p50 {p50:?}, p99 {p99:?}, at most {most:?}",
            host.name, host.events, host.connections
        );
        slowest = slowest.max(p99);
    }
    let sent = ended.iter().map(|host| host.pages_sent).sum::<u64>();
    let connections = ended.iter().map(|host| host.connections).sum::<u64>();
    let again = (sent - pages.distinct()) * PAGE_BLOCK;
    let twice = (pages.copies - pages.distinct()) * PAGE_BLOCK;
    println!("{under_way} bytes under way, {again} sent again, {twice} twice in the store");
    assert!(connections > size.hosts as u64, "none had to go elsewhere");
    // One that is told to end acknowledges what it has.
    let (most, reconnect) = match signal == Signal::KILL {
        true => (2 * under_way, RECONNECT),
        false => (0, Duration::ZERO),
    };
    assert!(again <= most && twice <= most, "at most {most} bytes");
    // Each step of a page's way waits for a processor as the control does.
    let bound = size.flush + reconnect + MORE + 20 * late;
    assert!(
        slowest <= bound,
        "{slowest:?}, expected at most {bound:?}, {late:?} late"
    );
}

#[test]
fn told_to_end() {
    restarted_with(Signal::TERM);
}

#[test]
fn killed() {
    restarted_with(Signal::KILL);
}
