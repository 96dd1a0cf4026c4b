//! Promise: what a host does at its worst costs other hosts nothing: not with a certificate of its own, not with
//! connections that say nothing.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ringmark_collector::certs::{self, Validity};
use ringmark_format::Uuid;
use ringmark_format::block::{CONTENT_BYTES_MAX, kind};
use ringmark_format::codec::write::{self, seal_header};
use ringmark_tests::ca::Ca;
use ringmark_tests::collecting::{segments, served_figure};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::scripted_streamer::{ScriptedStreamer, block, page, page_of};
use ringmark_tests::wait::Lateness;
use ringmark_tests::{ReservedPlace, Running, binary, is_long, wait_until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use zerocopy::IntoBytes;

/// Longer than anything takes on a busy machine; a test that waits so long fails.
const LONG: Duration = Duration::from_secs(120);
/// What the honest host sends, and how large each of them is.
const BLOCKS: u64 = 500;
const BLOCK: usize = 64 << 10;
/// What the collector keeps: `--keep-size 80M`.
const KEEP: u64 = 80 << 20;
/// How long silent connections stay, before others take their place.
const RENEWED: Duration = Duration::from_secs(8);

const HONEST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const EVIL: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
const SILENT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 4);

struct Scene {
    ca: Ca,
    collector: Running,
    to: ReservedPlace,
    metrics: ReservedPlace,
    store: PathBuf,
    _fixture: Fixture,
}

impl Scene {
    fn start() -> Self {
        let fixture = Fixture::new("bad-host");
        let ca = Ca::new(fixture.path("ca"));
        let _ = certs::host(&ca.dir, "evil", Validity::days(2)).unwrap();
        let (to, metrics) = (ReservedPlace::new(), ReservedPlace::new());
        let (keys, store) = (ca.dir.join("collector"), fixture.path("store"));
        let mut command = fixture.command(binary::path());
        let listen = format!("tls://{to}");
        command.args([
            "collect",
            "--listen",
            &listen,
            "--metrics",
            &metrics.to_string(),
        ]);
        command.args(["--sync", "cache", "--keep-size", "80M"]);
        command.args(["--segment-size", "1M"]);
        command.arg("--ca").arg(ca.dir.join("ca.pem"));
        command.arg("--cert").arg(keys.join("cert.pem"));
        command.arg("--key").arg(keys.join("key.pem"));
        let collector = Running::start(command.arg("--store").arg(&store)).unwrap();
        wait_until(SOON, "a listener", || {
            std::net::TcpStream::connect(to.address()).ok().map(drop)
        });
        Self {
            ca,
            collector,
            to,
            metrics,
            store,
            _fixture: fixture,
        }
    }

    async fn connect(&self, host: &str, from: Ipv4Addr) -> std::io::Result<ScriptedStreamer> {
        let credentials = self.ca.host(host);
        ScriptedStreamer::greeted_over_tls(self.to.address(), from, &credentials, host).await
    }
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// Descriptors for all connections of this process.
fn raise_limit() {
    let most = getrlimit(Resource::Nofile).maximum;
    let all = Rlimit {
        current: most,
        maximum: most,
    };
    setrlimit(Resource::Nofile, all).unwrap();
}

fn uuid(host: u8, number: usize) -> Uuid {
    let mut uuid = [host; 16];
    uuid[..8].copy_from_slice(&(number as u64).to_le_bytes());
    Uuid(uuid)
}

/// The longest and the 99th percentile of the times in which blocks became durable.
#[derive(Debug)]
struct Delays {
    longest: Duration,
    p99: Duration,
}

/// Connects, and sends blocks one by one, each durable before the next.
async fn connect_and_stream(scene: &Scene, kind: u8, count: u64) -> Delays {
    let mut peer = scene.connect("web-1", HONEST).await.expect("WELCOME");
    let session = uuid(kind, 0);
    peer.announce(session).await.expect("not refused");
    let mut times = Vec::new();
    for number in 0..count {
        let begun = Instant::now();
        peer.send(&page_of(session, number, BLOCK)).await.unwrap();
        timeout(LONG, peer.settle())
            .await
            .expect("in time")
            .unwrap();
        times.push(begun.elapsed());
    }
    times.sort();
    Delays {
        longest: times[times.len() - 1],
        p99: times[times.len() * 99 / 100],
    }
}

/// Connections that say nothing, all renewed again and again.
async fn say_nothing(to: SocketAddr, count: usize, over: Arc<AtomicBool>) {
    while !over.load(Relaxed) {
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind((SILENT, 0).into()).unwrap();
            // One that is not taken at once is not waited for.
            let connected = timeout(Duration::from_millis(100), socket.connect(to)).await;
            all.extend(connected.ok().and_then(Result::ok));
        }
        let renew = Instant::now() + RENEWED;
        while Instant::now() < renew && !over.load(Relaxed) {
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Announces blocks as large as they may be, sends a little of each, and holds the connection; comes
/// again when it is ended.
async fn hold_memory(scene: Arc<Scene>, number: usize, over: Arc<AtomicBool>) {
    while !over.load(Relaxed) {
        if let Ok(mut peer) = scene.connect("evil", EVIL).await {
            let session = uuid(66, number);
            let content = vec![0; CONTENT_BYTES_MAX as usize];
            let mut header = write::header(kind::PAGE, session);
            seal_header(&mut header, &content).unwrap();
            let announced = peer.announce(session).await;
            if announced.is_ok() && peer.say(header.as_bytes()).await.is_ok() {
                let _ = peer.say(&content[..20_000]).await;
                let _ = timeout(RENEWED, peer.end()).await;
            }
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Announces sessions that take as much memory as they may.
async fn hold_sessions(scene: Arc<Scene>, number: usize, over: Arc<AtomicBool>) {
    while !over.load(Relaxed) {
        if let Ok(mut peer) = scene.connect("evil", EVIL).await {
            for n in 0..126 {
                let session = block(kind::SESSION, uuid(67, 1000 * number + n), &[0; 255 << 10]);
                if peer.send(&session).await.is_err() {
                    break;
                }
            }
            let _ = timeout(RENEWED, peer.end()).await;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Fills the store, with blocks of this size.
async fn fill(scene: Arc<Scene>, kind: u8, size: usize, over: Arc<AtomicBool>) {
    for round in 0.. {
        if over.load(Relaxed) {
            return;
        }
        let Ok(mut peer) = scene.connect("evil", EVIL).await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let session = uuid(kind, round);
        let mut pages = 0;
        let mut sent = peer.announce(session).await;
        while sent.is_ok() && pages < (4 << 20) / size as u64 && !over.load(Relaxed) {
            sent = peer.send(&page_of(session, pages, size)).await;
            pages += 1;
        }
        let _ = peer.settle().await;
    }
}

/// Has the host with the certificate of `evil` take all that is kept in the store.
fn take_the_store(scene: &Arc<Scene>, runtime: &Runtime) {
    let over = Arc::new(AtomicBool::new(false));
    let filling = runtime.spawn(fill(scene.clone(), 69, BLOCK, over.clone()));
    wait_until(LONG, "a full store", || {
        (served_figure(scene.metrics.address(), "removed_segments_total") > 3).then_some(())
    });
    over.store(true, Relaxed);
    runtime.block_on(filling).unwrap();
}

fn files_of(store: &Path, host: &str) -> Vec<PathBuf> {
    let of = format!("/{host}/");
    let mut files = segments(store);
    files.retain(|file| file.to_string_lossy().contains(&of));
    files
}

/// What the honest host left before anything bad happened.
async fn leave_something(scene: &Scene) -> Vec<PathBuf> {
    let mut peer = scene.connect("web-1", HONEST).await.unwrap();
    for n in 0..20 {
        let session = uuid(1, n);
        peer.announce(session).await.unwrap();
        peer.send(&page(session, 0)).await.unwrap();
    }
    peer.settle().await.unwrap();
    files_of(&scene.store, "web-1")
}

/// Has the bad host do its worst until `over`.
fn begin_the_worst(
    scene: &Arc<Scene>,
    runtime: &Runtime,
    silent: usize,
    over: &Arc<AtomicBool>,
) -> JoinSet<()> {
    let mut bad = JoinSet::new();
    let _inside = runtime.enter();
    let _ = bad.spawn(say_nothing(scene.to.address(), silent, over.clone()));
    for number in 0..120 {
        let _ = bad.spawn(hold_memory(scene.clone(), number, over.clone()));
    }
    for number in 0..9 {
        let _ = bad.spawn(hold_sessions(scene.clone(), number, over.clone()));
    }
    let _ = bad.spawn(fill(scene.clone(), 68, 8 << 10, over.clone()));
    bad
}

#[test]
fn the_worst_of_one_host_costs_others_nothing() {
    raise_limit();
    let silent = if is_long() { 4300 } else { 500 };
    let scene = Arc::new(Scene::start());
    let (runtime, over) = (runtime(), Arc::new(AtomicBool::new(false)));
    let before = runtime.block_on(leave_something(&scene));
    assert_eq!(before.len(), 20);
    let quiet = runtime.block_on(connect_and_stream(&scene, 2, 50));
    take_the_store(&scene, &runtime);
    let mut bad = begin_the_worst(&scene, &runtime, silent, &over);
    wait_until(LONG, "the bad host is at it", || {
        let figure = |name| served_figure(scene.metrics.address(), name);
        let holds = figure("memory_bytes") > 8 << 20 && figure("session_bytes") > 16 << 20;
        (holds && figure("evicted_total") > 0).then_some(())
    });
    let lateness = Lateness::watch();
    let delays = runtime.block_on(connect_and_stream(&scene, 4, BLOCKS));
    let [late, latest] = lateness.end();
    // It comes anew, with new sessions, and is not refused.
    let anew = Instant::now();
    runtime.block_on(async {
        let mut peer = timeout(LONG, scene.connect("web-1", HONEST)).await;
        let peer = peer.as_mut().expect("in time").as_mut().expect("WELCOME");
        for n in 0..50 {
            peer.announce(uuid(3, n)).await.expect("not refused");
        }
    });
    let anew = anew.elapsed();
    let figures = [
        "unproved",
        "evicted_total",
        "refusals_total",
        "removed_segments_total",
    ];
    let figures = figures.map(|name| (name, served_figure(scene.metrics.address(), name)));
    over.store(true, Relaxed);
    runtime.block_on(async { while bad.join_next().await.is_some() {} });
    println!(
        "{silent} silent, quiet {quiet:?}, beside the worst of one host {delays:?}, a sleep {late:?} late, {latest:?} at most, 50 new sessions after {anew:?}, {figures:?}"
    );
    assert!(before.iter().all(|file| file.exists()), "its segments stay");
    let of_evil = files_of(&scene.store, "evil").into_iter();
    let sizes = of_evil.filter_map(|file| Some(fs::metadata(file).ok()?.len()));
    let taken: u64 = sizes.sum();
    assert!(taken <= KEEP + KEEP / 4, "{taken} bytes");
    // Each step of a block's way waits for a processor as the control does.
    let slack = 3 * quiet.p99 + 20 * late;
    assert!(
        delays.p99 <= Duration::from_millis(500) + slack,
        "{delays:?}, a sleep {late:?} late"
    );
    assert!(
        delays.longest <= Duration::from_secs(2) + slack + 20 * latest,
        "{delays:?}, a sleep {latest:?} late"
    );
    let scene = Arc::into_inner(scene).expect("nothing else uses it");
    drop(scene.collector.kill().unwrap());
}
