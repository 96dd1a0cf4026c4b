//! Promise: thousands of TLS connections with the sessions and the schema that hosts have, and a store that stands still
//! for a minute, take no more of a collector of objects than it has; nothing is lost, and all catch up.

use std::collections::VecDeque;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ringmark_collector::certs::{self, Validity};
use ringmark_format::Uuid;
use ringmark_format::block::kind;
use ringmark_format::session::SessionHeader;
use ringmark_format::stream;
use ringmark_tests::ca::{Ca, load};
use ringmark_tests::collecting::served_figure;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::scripted_streamer::{ScriptedStreamer, block, page_of};
use ringmark_tests::{Running, binary, is_long, preload_shim, require_tools, wait_until};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use zerocopy::{FromZeros, IntoBytes};

const LONG: Duration = Duration::from_secs(300);
/// Until all is durable.
const CATCH_UP: Duration = Duration::from_secs(600);
const SESSIONS: usize = 5;
const SCHEMA: usize = 100 << 10;
const PAGE: usize = 16 << 10;
/// Bytes that a host writes in a second.
const RATE: u64 = 25_000;
/// What a collector may take with its default memory, and each connection with five sessions on top of that: 256 MB for
/// 2,000.
const MEMORY: u64 = 146_000_000;
const EACH: u64 = 55_000;
/// What its group may take: page cache of its store leaves it when that is needed.
const GROUP_MAX: u64 = 256_000_000;

/// The name of the store begins so.
const STORE: &str = "fleet-memory-objects";
/// Threads that a collector of objects may have, however many connections there are.
const THREADS: u64 = 16;

/// How much is done.
struct Size {
    hosts: usize,
    before: Duration,
    stall: Duration,
    after: Duration,
}

fn size() -> Size {
    let seconds = Duration::from_secs;
    match is_long() {
        true => Size {
            hosts: 2000,
            before: seconds(20),
            stall: seconds(60),
            after: seconds(10),
        },
        false => Size {
            hosts: 40,
            before: seconds(1),
            stall: seconds(2),
            after: seconds(1),
        },
    }
}

/// Bounds the memory of a process, and measures it; `None`: this machine does not let a test do that.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    fn of(pid: u32) -> Option<Self> {
        let name = format!("ringmark-test-{}", std::process::id());
        let (old, new) = (
            Path::new("/sys/fs/cgroup/memory"),
            Path::new("/sys/fs/cgroup"),
        );
        let is_old = old.is_dir();
        let group = if is_old { old } else { new }.join(name);
        fs::create_dir(&group).ok()?;
        let made = Self(group);
        let limit = if is_old {
            "memory.limit_in_bytes"
        } else {
            "memory.max"
        };
        fs::write(made.0.join(limit), GROUP_MAX.to_string()).ok()?;
        fs::write(made.0.join("cgroup.procs"), pid.to_string()).ok()?;
        Some(made)
    }

    /// The most that it took so far, in bytes.
    fn peak(&self) -> Option<u64> {
        let names = ["memory.max_usage_in_bytes", "memory.peak"];
        let text = names
            .iter()
            .find_map(|name| fs::read_to_string(self.0.join(name)).ok())?;
        text.trim().parse().ok()
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// A store on a disk: what is in memory like the other files of tests cannot leave it.
struct Store(PathBuf);

impl Store {
    fn new() -> Self {
        let name = format!("{STORE}-{}", std::process::id());
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Collector {
    // Ends before its group does.
    running: Option<Running>,
    group: Option<MemoryGroup>,
    address: SocketAddr,
    metrics: String,
    /// Puts hang while this file is there.
    flag: PathBuf,
    _fixture: Fixture,
    _store: Store,
}

fn free_address() -> SocketAddr {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    free.local_addr().expect("an address")
}

impl Collector {
    fn start(fixture: Fixture, ca: &Ca) -> Self {
        let (address, metrics) = (free_address(), free_address().to_string());
        let flag = fixture.path("flag");
        let store = Store::new();
        let shim = preload_shim::build(&fixture, "hanging_shim");
        let mut command = fixture.command(binary::path());
        let own = ca.dir.join("collector");
        command.args(["collect", "--metrics", &metrics, "--listen"]);
        command.arg(format!("tls://{address}"));
        command.arg("--objects");
        command.arg(format!("file://{}", store.0.display()));
        command.arg("--cert").arg(own.join("cert.pem"));
        command.arg("--key").arg(own.join("key.pem"));
        command.arg("--ca").arg(ca.dir.join("ca.pem"));
        command.env("LD_PRELOAD", shim).env("SHIM_PATH", STORE);
        command.env("SHIM_WHILE", &flag);
        let running = Running::start(&mut command).expect("ringmark");
        let group = MemoryGroup::of(running.id());
        wait_until(LONG, "a listener", || {
            std::net::TcpStream::connect(&metrics).ok().map(drop)
        });
        Self {
            running: Some(running),
            group,
            address,
            metrics,
            flag,
            _fixture: fixture,
            _store: store,
        }
    }

    fn figure(&self, name: &str) -> u64 {
        served_figure(&self.metrics, name)
    }

    /// A number of its status.
    fn status(&self, name: &str) -> u64 {
        let id = self.running.as_ref().expect("it runs").id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
        let line = status.lines().find(|line| line.starts_with(name));
        let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        number.expect("a number")
    }

    /// The most memory of its own that it took so far.
    fn peak(&self) -> u64 {
        self.status("VmHWM:") * 1024
    }
}

/// What all hosts do together.
struct Shared {
    /// When the last page is written.
    end: OnceLock<Instant>,
    durable: AtomicU64,
    connected: AtomicU64,
    /// Handshakes at a time: the test has as many processors as the collector.
    handshakes: Semaphore,
    lags: mpsc::UnboundedSender<Duration>,
}

impl Shared {
    /// With what tells each page's time until it was durable.
    fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Duration>) {
        let (lags, heard) = mpsc::unbounded_channel();
        let made = Self {
            end: OnceLock::new(),
            durable: AtomicU64::new(0),
            connected: AtomicU64::new(0),
            handshakes: Semaphore::new(16),
            lags,
        };
        (Arc::new(made), heard)
    }
}

fn uuid(host: usize, session: usize) -> Uuid {
    Uuid((((host as u128) << 16) | session as u128 | 1 << 100).to_be_bytes())
}

/// A host: it announces its sessions, sends their schema, and then pages as fast as its programs write them.
struct Host {
    number: usize,
    peer: ScriptedStreamer,
    /// Ends of pages that are not durable, and when they were written.
    under_way: VecDeque<(u64, Instant)>,
    shared: Arc<Shared>,
}

impl Host {
    async fn connected(number: usize, to: SocketAddr, ca: &Path, shared: Arc<Shared>) -> Self {
        let name = format!("host-{number}");
        let credentials = load(&ca.join("hosts").join(&name), &ca.join("ca.pem"));
        let turn = shared.handshakes.acquire().await.expect("open");
        let from = Ipv4Addr::new(127, 0, 0, 1);
        let greeted = ScriptedStreamer::greeted_over_tls(to, from, &credentials, &name).await;
        drop(turn);
        let mut made = Self {
            number,
            peer: greeted.expect("welcome"),
            under_way: VecDeque::new(),
            shared,
        };
        for session in 0..SESSIONS {
            made.announce(uuid(number, session)).await;
        }
        made.shared.connected.fetch_add(1, Relaxed);
        made
    }

    async fn announce(&mut self, session: Uuid) {
        let header = SessionHeader {
            session: session.0,
            page_bytes: PAGE as u32,
            ..SessionHeader::new_zeroed()
        };
        let announced = block(kind::SESSION, session, header.as_bytes());
        self.peer.send(&announced).await.expect("sent");
        self.peer
            .hear_of(stream::kind::RESUME)
            .await
            .expect("RESUME");
        let schema = block(kind::SCHEMA, session, &vec![self.number as u8; SCHEMA]);
        self.peer.send(&schema).await.expect("sent");
    }

    /// Writes until it is over, and sends what it wrote until all of it is durable.
    async fn run(mut self) {
        let mut next = [0; SESSIONS];
        let every = Duration::from_secs_f64(PAGE as f64 / RATE as f64);
        // Not all at the same time.
        let mut due = Instant::now() + every.mul_f64(self.number as f64 * 0.618 % 1.0);
        while self.shared.end.get().is_none_or(|end| due <= *end) {
            sleep(due.saturating_duration_since(Instant::now())).await;
            let session = (due.elapsed().as_nanos() as usize + next.len()) % SESSIONS;
            let page = page_of(uuid(self.number, session), next[session], PAGE);
            next[session] += 1;
            self.peer.send(&page).await.expect("sent");
            self.under_way.push_back((self.peer.sent, due));
            self.heed();
            while self.peer.sent - self.peer.durable > 8 * PAGE as u64 {
                self.hear().await;
            }
            due += every;
        }
        self.peer
            .say(&block(stream::kind::BYE, Uuid([0; 16]), &[]))
            .await
            .expect("BYE");
        while !self.under_way.is_empty() {
            self.hear().await;
        }
    }

    async fn hear(&mut self) {
        self.peer.hear_of(stream::kind::ACK).await.expect("ACK");
        self.heed();
    }

    /// Notes what became durable.
    fn heed(&mut self) {
        let durable = self.peer.durable;
        while let Some((_, written)) = self.under_way.front().filter(|(end, _)| *end <= durable) {
            let lag = written.elapsed();
            self.under_way.pop_front();
            self.shared.durable.fetch_add(1, Relaxed);
            let _ = self.shared.lags.send(lag);
        }
    }
}

/// Starts all hosts, and waits until they have sent their schema.
fn connect(
    runtime: &Runtime,
    hosts: usize,
    collector: &Collector,
    ca: &Path,
    shared: &Arc<Shared>,
) -> Vec<JoinHandle<()>> {
    let run = |number| {
        let (ca, shared, to) = (ca.to_owned(), shared.clone(), collector.address);
        runtime.spawn(async move { Host::connected(number, to, &ca, shared).await.run().await })
    };
    let all: Vec<_> = (0..hosts).map(run).collect();
    wait_until(LONG, "all connections", || {
        let failed = all.iter().any(JoinHandle::is_finished);
        assert!(!failed, "a host has ended");
        (shared.connected.load(Relaxed) == hosts as u64).then_some(())
    });
    all
}

/// Lets puts hang for this time.
fn stall(collector: &Collector, time: Duration) {
    fs::write(&collector.flag, "").expect("a file");
    // What is being put may be past its last write.
    let moment = Duration::from_secs(1);
    std::thread::sleep(moment);
    let before = collector.figure("segments_total");
    std::thread::sleep(time - moment);
    let waiting = collector.figure("waiting_bytes");
    println!(
        "stalled: {} KiB, {waiting} bytes wait",
        collector.peak() >> 10
    );
    assert_eq!(
        collector.figure("segments_total"),
        before,
        "a put did not hang"
    );
    assert!(waiting > 0, "nothing waits");
    fs::remove_file(&collector.flag).expect("it is there");
}

/// Has hosts write no more, and waits until all is durable.
fn end(runtime: &Runtime, hosts: Vec<JoinHandle<()>>, collector: &Collector, shared: &Shared) {
    shared.end.set(Instant::now()).expect("once");
    let all = async {
        for host in hosts {
            host.await.expect("all is durable");
        }
    };
    let ended = runtime.block_on(async { timeout(CATCH_UP, all).await });
    let (done, known) = (
        shared.durable.load(Relaxed),
        collector.figure("pages_total"),
    );
    assert!(
        ended.is_ok(),
        "{done} pages are durable after {CATCH_UP:?}, {known} came"
    );
}

fn rate(pages: u64, time: Duration) -> f64 {
    pages as f64 * PAGE as f64 / 1e6 / time.as_secs_f64()
}

#[test]
fn a_store_that_stands_still_takes_no_more_memory_than_there_is() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let size = size();
    let fixture = Fixture::new("fleet-memory");
    let ca = Ca::new(fixture.path("ca"));
    for number in 0..size.hosts {
        let made = certs::host(&ca.dir, &format!("host-{number}"), Validity::days(30));
        let _ = made.expect("a certificate");
    }
    let collector = Collector::start(fixture, &ca);
    let (shared, mut heard) = Shared::new();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build();
    let (runtime, begun) = (runtime.expect("a runtime"), Instant::now());
    let hosts = connect(&runtime, size.hosts, &collector, &ca.dir, &shared);
    let connected = begun.elapsed();
    let threads = collector.status("Threads:");
    assert!(threads <= THREADS, "{threads} threads");
    println!(
        "{} hosts after {connected:?}, {} KiB",
        size.hosts,
        collector.peak() >> 10
    );
    std::thread::sleep(size.before);
    let before = shared.durable.load(Relaxed);
    stall(&collector, size.stall);
    let (stalled, again) = (shared.durable.load(Relaxed), Instant::now());
    std::thread::sleep(size.after);
    end(&runtime, hosts, &collector, &shared);
    let (pages, caught_up) = (shared.durable.load(Relaxed), again.elapsed());
    let mut lags: Vec<Duration> = std::iter::from_fn(|| heard.try_recv().ok()).collect();
    lags.sort_unstable();
    println!(
        "{pages} pages; {:.1} MB/s before the stall, {:.1} MB/s after it for {caught_up:?}; lag p50 {:?}, p99 {:?}",
        rate(before, size.before),
        rate(pages - stalled, caught_up),
        lags[lags.len() / 2],
        lags[lags.len() * 99 / 100],
    );
    let peak = collector.peak();
    let group = collector
        .group
        .as_ref()
        .and_then(MemoryGroup::peak)
        .map(|peak| peak >> 10);
    println!(
        "memory: {} KiB of its own at most; its group: {group:?} KiB",
        peak >> 10
    );
    assert_eq!(lags.len() as u64, pages);
    assert_eq!(collector.figure("pages_total"), pages);
    let most = MEMORY + EACH * size.hosts as u64;
    assert!(peak <= most, "{peak} bytes, expected at most {most}");
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.flag);
        drop(self.running.take());
    }
}
