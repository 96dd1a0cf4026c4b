//! Promise: a collector bounds what thousands of connections take of it, gives each its share, and a peer that is idle,
//! slow or hostile takes nothing from the others.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, CONTENT_BYTES_MAX, kind};
use ringmark_format::codec::write::{self, seal_header};
use ringmark_format::counters::{CountersHeader, FINAL};
use ringmark_format::stream::{self, Ping};
use ringmark_tests::collecting::wait_for_listener;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::scripted_streamer::{ScriptedStreamer, block, hello, page, session};
use ringmark_tests::{Running, binary, is_long, wait_until};
use tokio::runtime::Runtime;
use tokio::sync::Barrier;
use tokio::time::{sleep, timeout};
use zerocopy::{FromZeros, IntoBytes};

/// Longer than anything takes on a busy machine; a test that waits so long fails.
const LONG: Duration = Duration::from_secs(100);
const MIB: u64 = 1 << 20;

struct Collector {
    running: Running,
    socket: PathBuf,
    _stage: Fixture,
}

impl Collector {
    fn start(options: &[&str]) -> Self {
        let fixture = Fixture::new("limits");
        let socket = fixture.path("socket");
        let listen = format!("unix://{}", socket.display());
        let mut command = fixture.command(binary::path());
        command.args(["collect", "--sync", "cache", "--listen", &listen, "--store"]);
        command.arg(fixture.path("store")).args(options);
        let running = Running::start(&mut command).unwrap();
        wait_for_listener(&socket);
        Self {
            running,
            socket,
            _stage: fixture,
        }
    }

    /// Memory in use: now, and at most so far.
    fn memory(&self) -> (u64, u64) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.running.id())).unwrap();
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
            kib * 1024
        };
        (field("VmRSS:"), field("VmHWM:"))
    }
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

fn uuid(number: usize) -> Uuid {
    let mut uuid = [7; 16];
    uuid[..8].copy_from_slice(
        &(number as u64)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .to_le_bytes(),
    );
    Uuid(uuid)
}

/// Sends pages one batch after the other; counts those that are durable.
async fn streamed(
    socket: &Path,
    number: usize,
    pages: u64,
    all_here: &Barrier,
    durable: &AtomicU64,
) -> io::Result<()> {
    const BATCH: u64 = 4;
    let mut peer = ScriptedStreamer::greeted(socket, &format!("host-{number}")).await?;
    let window = peer.credit;
    peer.announce(uuid(number)).await?;
    peer.settle().await?;
    let _ = all_here.wait().await;
    // Measured from the outside: everybody is connected and idle.
    let _ = all_here.wait().await;
    for first in (0..pages).step_by(BATCH as usize) {
        let batch: Vec<u8> = (first..first + BATCH)
            .flat_map(|n| page(uuid(number), n))
            .collect();
        peer.send(&batch).await?;
        peer.settle().await?;
        durable.store(first + BATCH, Relaxed);
    }
    assert_eq!(peer.credit, peer.durable + window, "credit is given back");
    peer.say(&block(stream::kind::BYE, Uuid([0; 16]), &[]))
        .await?;
    let _ = peer.end().await;
    Ok(())
}

#[test]
fn many_connections_within_bounds_and_each_with_its_share() {
    const PAGES: u64 = 200;
    let count = if is_long() { 2000 } else { 100 };
    let collector = Collector::start(&["--memory", "16M"]);
    let (before, _) = collector.memory();
    let all_here = Arc::new(Barrier::new(count + 1));
    let durable: Arc<Vec<AtomicU64>> = Arc::new((0..count).map(|_| AtomicU64::new(0)).collect());
    let runtime = runtime();
    let tasks: Vec<_> = (0..count)
        .map(|number| {
            let (all_here, durable) = (all_here.clone(), durable.clone());
            let socket = collector.socket.clone();
            runtime.spawn(async move {
                streamed(&socket, number, PAGES, &all_here, &durable[number]).await
            })
        })
        .collect();
    let idle = runtime.block_on(async {
        timeout(LONG, all_here.wait())
            .await
            .expect("all are connected");
        let idle = collector.memory().0;
        let _ = all_here.wait().await;
        idle
    });
    let begun = Instant::now();
    let shares = wait_until(LONG, "the first to be done", || {
        let shares: Vec<u64> = durable.iter().map(|n| n.load(Relaxed)).collect();
        shares.contains(&PAGES).then_some(shares)
    });
    let first = begun.elapsed();
    for task in tasks {
        let ended = runtime.block_on(async { timeout(LONG, task).await });
        ended.expect("it ends").unwrap().unwrap();
    }
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    let (_, peak) = collector.memory();
    let each = idle.saturating_sub(before) / count as u64;
    println!(
        "{count} connections: {} KiB before, {} KiB idle ({each} bytes each), {} KiB at most; when the \
         first was done after {first:?} the others had {least} to {most} of {PAGES} pages, all after {:?}",
        before >> 10,
        idle >> 10,
        peak >> 10,
        begun.elapsed(),
    );
    // 16 KiB of buffer, a session of 1 KiB, tasks, an open file.
    assert!(each <= 48 << 10, "{each} bytes for an idle connection");
    let most_memory = before + count as u64 * (64 << 10) + 32 * MIB;
    assert!(
        peak <= most_memory,
        "{peak} bytes, expected at most {most_memory}"
    );
    assert!(
        *least >= PAGES / 10,
        "one had {least} pages when another one had {most}"
    );
}

/// Sends bytes and waits for the end; returns the collector's reason.
async fn ended(peer: &mut ScriptedStreamer, bytes: &[u8]) -> io::Result<String> {
    // The collector may close before all of it is sent.
    let _ = peer.say(bytes).await;
    Ok(peer.end().await)
}

/// The header of a block that is as long as blocks may be, and nothing behind it.
fn huge(kind: u16, session: Uuid) -> Vec<u8> {
    let content = vec![0; CONTENT_BYTES_MAX as usize];
    let mut header: BlockHeader = write::header(kind, session);
    seal_header(&mut header, &content).unwrap();
    header.as_bytes().to_vec()
}

const HUGE: &str = "huge lengths";
const DIFFERS: &str = "another SESSION of the same uuid";
const HOSTILE: [&str; 14] = [
    DIFFERS,
    "silent",
    "silent later",
    "a byte every 3 s",
    "half a HELLO",
    "a byte every 3 s later",
    "never reads",
    HUGE,
    "garbage",
    "floods of PING",
    "pages before SESSION",
    "SESSION again and again",
    "sessions without end",
    "schema without end",
];

/// Behaves badly until the collector ends the connection; returns its reason.
async fn misbehave(socket: &Path, how: &str, number: usize) -> io::Result<String> {
    let host = format!("hostile-{number}");
    if how == "silent" {
        return Ok(ScriptedStreamer::connect(socket).await?.end().await);
    }
    if how == "half a HELLO" {
        let mut peer = ScriptedStreamer::connect(socket).await?;
        return ended(&mut peer, &hello(&host)[..50]).await;
    }
    if how == "a byte every 3 s" {
        let mut peer = ScriptedStreamer::connect(socket).await?;
        return Ok(drip(&mut peer, &hello(&host)).await);
    }
    let mut peer = ScriptedStreamer::greeted(socket, &host).await?;
    let own = uuid(1_000_000 + number);
    match how {
        DIFFERS => {
            peer.announce(own).await?;
            let mut second = ScriptedStreamer::greeted(socket, &host).await?;
            ended(&mut second, &block(kind::SESSION, own, &[1; 320])).await
        }
        "silent later" => {
            peer.answers = false;
            Ok(peer.end().await)
        }
        "a byte every 3 s later" => Ok(drip(&mut peer, &page(own, 0)).await),
        HUGE => {
            peer.announce(own).await?;
            // What it says would be taken for the block's content.
            peer.answers = false;
            ended(&mut peer, &huge(kind::PAGE, own)).await
        }
        "garbage" => ended(&mut peer, &[0xA5; 5000]).await,
        "floods of PING" => {
            let ping = block(
                stream::kind::PING,
                Uuid([0; 16]),
                Ping::new_zeroed().as_bytes(),
            );
            ended(&mut peer, &ping.repeat(1000)).await
        }
        "pages before SESSION" => ended(&mut peer, &page(own, 0)).await,
        "SESSION again and again" => ended(&mut peer, &session(own).repeat(1000)).await,
        _ => send_without_end(&mut peer, how, number).await,
    }
}

/// Sends more and more, until the collector ends the connection.
async fn send_without_end(
    peer: &mut ScriptedStreamer,
    how: &str,
    number: usize,
) -> io::Result<String> {
    match how {
        "never reads" => {
            // SESSION after SESSION: answers that are never read.
            let mut n = 0;
            loop {
                n += 1;
                let sessions = session(uuid(10_000_000 * number + n));
                if timeout(LONG, peer.say(&sessions))
                    .await
                    .expect("it is ended")
                    .is_err()
                {
                    return Ok("ended".to_owned());
                }
            }
        }
        "sessions without end" => loop {
            let new = block(
                kind::SESSION,
                uuid(rand_number(number)),
                &vec![1; 200 << 10],
            );
            if let Err(error) = announced(peer, &new).await {
                return Ok(error.to_string());
            }
        },
        "schema without end" => {
            let own = uuid(1_000_000 + number);
            peer.announce(own).await?;
            let mut at = 0;
            loop {
                let mut piece = Vec::new();
                write::schema(&mut piece, own, at, &vec![3; 1 << 20]).unwrap();
                at += 1 << 20;
                if let Err(error) = peer.send(&piece).await {
                    return Ok(error.to_string());
                }
            }
        }
        _ => unreachable!("{how}"),
    }
}

/// Another number at each call.
fn rand_number(seed: usize) -> usize {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    100_000_000 * (seed + 1) + NEXT.fetch_add(1, Relaxed) as usize
}

async fn announced(peer: &mut ScriptedStreamer, session: &[u8]) -> io::Result<()> {
    peer.send(session).await?;
    peer.hear_of(stream::kind::RESUME).await.map(drop)
}

/// One byte every 3 s: a block of them takes longer than the test waits.
async fn drip(peer: &mut ScriptedStreamer, bytes: &[u8]) -> String {
    for byte in bytes {
        if peer.say(&[*byte]).await.is_err() {
            break;
        }
        sleep(Duration::from_secs(3)).await;
    }
    peer.end().await
}

/// Blocks that need the memory of all, sent after 500 small ones.
const BIG: usize = 64;

/// Behaves well: sends small blocks, then large ones; when each kind was stored, after `begun`.
async fn behave(socket: &Path, begun: Instant) -> io::Result<(Duration, Duration)> {
    sleep(Duration::from_millis(300)).await;
    let own = uuid(0);
    let mut peer = ScriptedStreamer::greeted(socket, "good").await?;
    peer.announce(own).await?;
    for n in 0..500 {
        peer.send(&page(own, n)).await?;
    }
    peer.settle().await?;
    let small = begun.elapsed();
    for n in 0..BIG as u64 {
        let first = 500 + n * 16;
        let blocks: Vec<u8> = (first..first + 16).flat_map(|n| page(own, n)).collect();
        let mut container = Vec::new();
        write::container(&mut container, own, 0, &blocks).unwrap();
        peer.send(&container).await?;
    }
    peer.settle().await?;
    Ok((small, begun.elapsed()))
}

#[test]
fn hostile_peers_take_nothing_from_the_others() {
    let each = if is_long() { 20 } else { 2 };
    let collector = Collector::start(&["--memory", "16M"]);
    let before = collector.memory().0;
    let runtime = runtime();
    let begun = Instant::now();
    let mut hostile = Vec::new();
    // Enough of those to take all memory for large blocks twice.
    let many = |how: &&str| if *how == HUGE { 8 } else { each };
    for (number, how) in HOSTILE
        .iter()
        .flat_map(|how| vec![*how; many(how)])
        .enumerate()
    {
        let socket = collector.socket.clone();
        hostile.push((
            how,
            runtime.spawn(async move {
                let said = timeout(LONG, misbehave(&socket, how, number)).await;
                (
                    said.map(|said| said.unwrap_or_else(|e| e.to_string())),
                    begun.elapsed(),
                )
            }),
        ));
    }
    let socket = collector.socket.clone();
    let well = runtime.spawn(async move { behave(&socket, begun).await });
    let well = runtime.block_on(async { timeout(LONG, well).await });
    let (small, large) = well.expect("it is served").unwrap().unwrap();
    println!("served: 500 pages after {small:?}, {BIG} containers after {large:?}");
    let mut told = Vec::new();
    for (how, task) in hostile {
        let (said, after) = runtime.block_on(task).unwrap();
        let said = said.unwrap_or_else(|_| panic!("{how}: not ended after {LONG:?}"));
        println!("{how}: ended after {after:?}: {said}");
        told.push((how, said));
    }
    let is_told =
        |(how, said): &(&str, String)| *how != DIFFERS || said.contains("SESSION differs");
    assert!(told.iter().all(is_told), "{told:?}");
    let gave_way = |(how, said): &(&str, String)| *how == HUGE && said.contains("others wait");
    assert!(told.iter().any(gave_way), "no slow peer gave way");
    let (_, peak) = collector.memory();
    println!("{} KiB before, {} KiB at most", before >> 10, peak >> 10);
    // Of each host that sends sessions or schema without end an eighth of 256 MiB is kept.
    let kept = (2 * each as u64 * 32).min(256);
    assert!(peak - before < (88 + kept) * MIB, "{} KiB", peak >> 10);
}

/// Sessions that have ended take nothing of a connection, however many there were.
#[test]
fn sessions_that_ended_are_forgotten() {
    const SESSIONS: usize = 5000;
    /// With so many bytes each, no more than 2,000 fit into what one host may take.
    const BYTES: usize = 16 << 10;
    let collector = Collector::start(&[]);
    let last = CountersHeader {
        flags: FINAL,
        ..CountersHeader::new_zeroed()
    };
    runtime().block_on(async {
        let greeting = ScriptedStreamer::greeted(&collector.socket, "short");
        let mut peer = greeting.await.unwrap();
        for number in 0..SESSIONS {
            let (own, last) = (uuid(number), last.as_bytes());
            let new = block(kind::SESSION, own, &vec![1; BYTES]);
            let announced = announced(&mut peer, &new).await;
            announced.unwrap_or_else(|error| panic!("session {number}: {error}"));
            peer.send(&block(kind::COUNTERS, own, last)).await.unwrap();
            if number % 500 == 0 {
                peer.settle().await.unwrap();
            }
        }
        peer.settle().await.unwrap();
    });
}

#[test]
fn no_more_connections_than_it_may_have() {
    let collector = Collector::start(&["--connections", "3"]);
    let runtime = runtime();
    let mut peers = Vec::new();
    let mut refused = 0;
    for number in 0..6 {
        let host = format!("host-{number}");
        let greeting = ScriptedStreamer::greeted(&collector.socket, &host);
        match runtime.block_on(async { timeout(LONG, greeting).await.expect("an answer") }) {
            Ok(peer) => peers.push(peer),
            Err(_) => refused += 1,
        }
    }
    println!("{} welcomed, {refused} refused", peers.len());
    // The connection that checked whether it listens may still be counted.
    assert!((2..=3).contains(&peers.len()), "{} welcomed", peers.len());
}
