//! Promise: a disk that does not answer, or an output without a reader, stops what needs it and
//! nothing else: other hosts, new connections, figures and the end of the collector go on.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use ringmark_format::Uuid;
use ringmark_tests::collecting::wait_for_listener;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::scripted_streamer::{ScriptedStreamer, page};
use ringmark_tests::{ReservedPlace, binary, is_long, preload_shim, require_tools, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// Longer than anything takes on a busy machine; a test that waits so long fails.
const LONG: Duration = Duration::from_secs(100);

/// After so long without a sign of life the service manager would end the collector.
const WATCHDOG: Duration = Duration::from_secs(2);

struct Collector {
    child: Child,
    socket: PathBuf,
    metrics: ReservedPlace,
    /// Calls for hosts named `hung-…` hang while this file is there.
    flag: PathBuf,
    _fixture: Fixture,
}

impl Collector {
    fn start(with_shim: bool) -> Self {
        Self::start_under(None, with_shim)
    }

    /// Under a service manager that listens there, and watches.
    fn start_under(manager: Option<&Path>, with_shim: bool) -> Self {
        let fixture = Fixture::new("collector-hanging");
        let (socket, flag) = (fixture.path("socket"), fixture.path("flag"));
        let metrics = ReservedPlace::new();
        let mut command = fixture.command(binary::path());
        let listen = format!("unix://{}", socket.display());
        command.args([
            "collect",
            "--metrics",
            &metrics.to_string(),
            "--listen",
            &listen,
            "--store",
        ]);
        command.arg(fixture.path("store"));
        if with_shim {
            let shim = preload_shim::build(&fixture, "hanging_shim");
            command.env("LD_PRELOAD", shim).env("SHIM_PATH", "/hung-");
            command.env("SHIM_WHILE", &flag);
        }
        if let Some(manager) = manager {
            command.env("NOTIFY_SOCKET", manager);
            command.env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string());
        }
        // A pipe without a reader.
        let child = command.stderr(Stdio::piped()).spawn().expect("ringmark");
        wait_for_listener(&socket);
        Self {
            child,
            socket,
            metrics,
            flag,
            _fixture: fixture,
        }
    }

    fn ask(&self, path: &str) -> String {
        let mut asking = TcpStream::connect(self.metrics.address()).expect("a connection");
        asking.set_read_timeout(Some(LONG)).expect("a timeout");
        let request = format!("GET {path} HTTP/1.1\r\n\r\n");
        asking.write_all(request.as_bytes()).expect("asked");
        let mut answer = String::new();
        let _ = asking.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn disk_wait(&self) -> u64 {
        let text = self.ask("/metrics");
        let figure = text
            .lines()
            .find_map(|line| line.strip_prefix("ringmark_collector_disk_wait_seconds "));
        figure
            .and_then(|seconds| seconds.parse().ok())
            .expect("the figure")
    }

    /// SIGTERM, and it ends.
    fn end(mut self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("a signal");
        wait_until(LONG, "the end of the collector", || {
            self.child.try_wait().expect("waited").map(drop)
        });
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}

fn uuid(host: u8) -> Uuid {
    Uuid([host, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, host])
}

async fn connected(socket: &Path, host: &str, number: u8) -> ScriptedStreamer {
    let mut peer = ScriptedStreamer::greeted(socket, host)
        .await
        .expect("WELCOME");
    peer.announce(uuid(number)).await.expect("RESUME");
    peer
}

/// Sends pages one by one, each durable before the next.
async fn streamed(peer: &mut ScriptedStreamer, number: u8, pages: std::ops::Range<u64>) {
    for n in pages {
        peer.send(&page(uuid(number), n)).await.expect("sent");
        timeout(LONG, peer.settle())
            .await
            .expect("in time")
            .expect("stored");
    }
}

/// Sends page after page until calls have hung for long, at least a hundred.
async fn streamed_while_it_hangs(collector: &Collector, peer: &mut ScriptedStreamer) {
    let seconds = if is_long() { 20 } else { 1 };
    let mut next = 1;
    while next <= 100 || collector.disk_wait() < seconds {
        streamed(peer, 200, next..next + 10).await;
        next += 10;
    }
}

/// The files of `hosts` hosts hang.
async fn others_go_on(collector: &Collector, hosts: u8) {
    let mut hung = Vec::new();
    for number in 0..hosts {
        let mut peer = connected(&collector.socket, &format!("hung-{number}"), number).await;
        let _ = streamed(&mut peer, number, 0..1).await;
        hung.push(peer);
    }
    let mut honest = connected(&collector.socket, "honest", 200).await;
    let _ = streamed(&mut honest, 200, 0..1).await;
    fs::write(&collector.flag, "").expect("the flag");
    for (peer, number) in hung.iter_mut().zip(0..) {
        peer.send(&page(uuid(number), 1)).await.expect("sent");
    }
    wait_until(LONG, "a call that hangs", || {
        (collector.disk_wait() >= 1).then_some(())
    });
    // Calls hang for as long as the flag is there: what becomes durable during that time does not wait for them.
    streamed_while_it_hangs(collector, &mut honest).await;
    let mut new = connected(&collector.socket, "new", 201).await;
    streamed(&mut new, 201, 0..20).await;
    // They come again while their files hang, as streamers do that hear nothing.
    let mut waiting = Vec::new();
    for (host, number) in (0..hosts).map(|n| (format!("hung-{n}"), n)) {
        let mut peer = ScriptedStreamer::greeted(&collector.socket, &host)
            .await
            .expect("WELCOME");
        let announced = async move { peer.announce(uuid(number)).await };
        waiting.push(tokio::spawn(announced));
    }
    streamed(&mut new, 201, 20..40).await;
    let _ = connected(&collector.socket, "newer", 202).await;
    assert!(collector.disk_wait() >= 1, "calls still hang");
    for announced in waiting {
        assert!(!announced.is_finished(), "it waits for its session");
        announced.abort();
    }
    fs::remove_file(&collector.flag).expect("the flag goes");
    for peer in &mut hung {
        timeout(LONG, peer.settle())
            .await
            .expect("in time")
            .expect("durable in the end");
    }
    wait_until(LONG, "no call that hangs", || {
        (collector.disk_wait() == 0).then_some(())
    });
}

#[test]
fn a_disk_that_hangs_for_some_hosts_delays_no_other() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let sizes: &[u8] = if is_long() { &[1, 8, 32] } else { &[1, 8] };
    for hosts in sizes {
        let collector = Collector::start(true);
        assert!(collector.ask("/health").starts_with("HTTP/1.1 200 "));
        runtime().block_on(others_go_on(&collector, *hosts));
        assert!(collector.ask("/health").starts_with("HTTP/1.1 200 "));
    }
}

#[test]
fn a_collector_ends_while_its_disk_hangs() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let collector = Collector::start(true);
    let runtime = runtime();
    let mut peer = runtime.block_on(connected(&collector.socket, "hung-0", 0));
    fs::write(&collector.flag, "").expect("the flag");
    let page = page(uuid(0), 0);
    runtime.block_on(peer.send(&page)).expect("sent");
    wait_until(LONG, "a call that hangs", || {
        (collector.disk_wait() >= 1).then_some(())
    });
    collector.end();
}

/// What the service manager hears next; `None`: nothing within this time.
fn heard(manager: &UnixDatagram, within: Duration) -> Option<String> {
    let mut said = [0; 256];
    manager.set_read_timeout(Some(within)).expect("a timeout");
    let bytes = manager.recv(&mut said).ok()?;
    Some(String::from_utf8_lossy(&said[..bytes]).into_owned())
}

fn wait_to_hear(manager: &UnixDatagram, expected: &str) {
    wait_until(LONG, expected, || {
        let said = heard(manager, Duration::from_millis(10))?;
        said.contains(expected).then_some(())
    });
}

#[test]
fn the_watchdog_fires_when_the_disk_hangs() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("manager");
    let manager = UnixDatagram::bind(fixture.path("notify")).expect("a socket");
    let collector = Collector::start_under(Some(&fixture.path("notify")), true);
    wait_to_hear(&manager, "READY=1");
    wait_to_hear(&manager, "WATCHDOG=1");
    let runtime = runtime();
    let mut peer = runtime.block_on(connected(&collector.socket, "hung-0", 0));
    fs::write(&collector.flag, "").expect("the flag");
    let page = page(uuid(0), 0);
    runtime.block_on(peer.send(&page)).expect("sent");
    wait_until(LONG, "a call that hangs", || {
        (collector.disk_wait() >= 2).then_some(())
    });
    while heard(&manager, Duration::from_millis(10)).is_some() {}
    let before = collector.disk_wait();
    wait_until(LONG, "a time in which it would have been heard", || {
        (collector.disk_wait() > before + 2 * WATCHDOG.as_secs()).then_some(())
    });
    let said = heard(&manager, Duration::from_millis(1));
    assert_eq!(said, None, "no sign of life");
    fs::remove_file(&collector.flag).expect("the flag goes");
    wait_to_hear(&manager, "WATCHDOG=1");
    collector.end();
    wait_to_hear(&manager, "STOPPING=1");
}

#[test]
fn an_output_without_a_reader_holds_nothing_up() {
    let collector = Collector::start(false);
    // Each is a notice of its own: more than any pipe takes.
    for n in 0..2000_u32 {
        let mut stranger = UnixStream::connect(&collector.socket).expect("a connection");
        let mut said = [0; 64];
        said[..4].copy_from_slice(&n.wrapping_mul(0x9E37_79B9).to_le_bytes());
        // It may have been refused by now.
        let _ = stranger.write_all(&said);
    }
    let runtime = runtime();
    runtime.block_on(async {
        let mut honest = connected(&collector.socket, "honest", 1).await;
        streamed(&mut honest, 1, 0..20).await;
    });
    let page = collector.ask("/metrics");
    let refusals = page
        .lines()
        .filter(|line| line.starts_with("ringmark_collector_refusals_total{"));
    let counts = refusals.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    assert_eq!(counts.sum::<u64>(), 2000, "{page}");
    collector.end();
}
