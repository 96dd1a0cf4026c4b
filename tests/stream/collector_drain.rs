//! Promise: a collector that is told to end tells its streamers, makes durable and acknowledges what it received, and
//! ends; they go on with the next one, each event once. Told twice it ends at once.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::page::PageHeader;
use ringmark_format::stream::{self, Ack, Ping, Resume, Welcome};
use ringmark_format::{Uuid, align8};
use ringmark_reader::Codec;
use ringmark_tests::collecting::{self, segments};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::random::Random;
use ringmark_tests::recording::decode;
use ringmark_tests::scripted_streamer::{ScriptedStreamer, block, page};
use ringmark_tests::store_contents::{repeated, sealed};
use ringmark_tests::{Finished, Running, binary, is_long, wait_until};
use rustix::process::Signal;
use tokio::runtime::Runtime;
use tokio::sync::Barrier;
use tokio::time::{sleep, timeout};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

const EMIT: &str = ringmark_tests::program!("emit");
const LONG: Duration = Duration::from_secs(120);
/// Credit for everything.
const MUCH: u64 = 1 << 30;

/// A store, and the socket of the collectors that write to it one after the other.
struct Scene {
    fixture: Fixture,
    socket: PathBuf,
    store: PathBuf,
}

impl Scene {
    fn new(label: &str) -> Self {
        let fixture = Fixture::new(label);
        Self {
            socket: fixture.path("socket"),
            store: fixture.path("store"),
            fixture,
        }
    }

    fn collector(&self) -> Running {
        let mut command = self.fixture.command(binary::path());
        let listen = format!("unix://{}", self.socket.display());
        command.args(["collect", "--listen", &listen, "--store"]);
        let running = Running::start(command.arg(&self.store)).unwrap();
        wait_until(LONG, "a socket", || self.socket.exists().then_some(()));
        running
    }

    /// A streamer of this program.
    fn streamer(&self, fixture: &Fixture, program: &Running) -> Running {
        let _ = fixture.ring_file();
        let mut command = fixture.command(binary::path());
        let to = format!("unix://{}", self.socket.display());
        command.args(["stream", "-p", &program.id().to_string(), "--to", &to]);
        Running::start(&mut command).unwrap()
    }

    /// One that is started while another one ends.
    fn collector_beside(&self) -> Running {
        wait_until(LONG, "a socket that is gone", || {
            (!self.socket.exists()).then_some(())
        });
        self.collector()
    }
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

fn uuid(number: u8) -> Uuid {
    Uuid([number + 1; 16])
}

/// Sends pages without waiting for anything, then goes when it is asked to: pages sent.
async fn goes_when_asked(
    socket: PathBuf,
    number: u8,
    all_here: Arc<Barrier>,
) -> Result<u64, String> {
    const PAGES: u64 = 200;
    let mut peer = ScriptedStreamer::greeted(&socket, &format!("host-{number}"))
        .await
        .unwrap();
    peer.announce(uuid(number)).await.unwrap();
    let _ = all_here.wait().await;
    for n in 0..PAGES {
        peer.send(&page(uuid(number), n)).await.unwrap();
    }
    let _ = peer.hear_of(stream::kind::DRAIN).await.unwrap();
    peer.say(&block(stream::kind::BYE, Uuid([0; 16]), &[]))
        .await
        .unwrap();
    let _ = peer.end().await;
    match peer.durable == peer.sent {
        true => Ok(PAGES),
        false => Err(format!(
            "host-{number}: {} of {} bytes are acknowledged",
            peer.durable, peer.sent
        )),
    }
}

#[test]
fn what_was_received_is_acknowledged() {
    let count = if is_long() { 200 } else { 20_u8 };
    let scene = Scene::new("drain");
    let collector = scene.collector();
    let all_here = Arc::new(Barrier::new(usize::from(count) + 1));
    let runtime = runtime();
    let start = |n| runtime.spawn(goes_when_asked(scene.socket.clone(), n, all_here.clone()));
    let peers: Vec<_> = (0..count).map(start).collect();
    runtime.block_on(async {
        let _ = timeout(LONG, all_here.wait()).await.expect("all are here");
        sleep(Duration::from_millis(Random::seeded().below(60))).await;
    });
    collector.signal(Signal::TERM).unwrap();
    let (mut pages, mut cut) = (0, Vec::new());
    for peer in peers {
        let ended = runtime.block_on(async { timeout(LONG, peer).await });
        match ended.expect("it ends").unwrap() {
            Ok(sent) => pages += sent,
            Err(what) => cut.push(what),
        }
    }
    let told = collector.finish(LONG).expect_code(0).stderr_text();
    assert!(cut.is_empty(), "{cut:?}; the collector says {told}");
    assert!(!told.contains("had not ended"), "{told}");
    assert!(!scene.socket.exists());
    let (distinct, all) = sealed(&segments(&scene.store));
    println!("{count} streamers, {distinct} pages acknowledged");
    assert_eq!((distinct as u64, all), (pages, distinct));
}

/// Tells it to end until it does.
fn end_at_once(collector: Running) -> Finished {
    let pid = collector.id();
    let ending = std::thread::spawn(move || collector.finish(SOON));
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    while !ending.is_finished() {
        let _ = rustix::process::kill_process(pid, Signal::TERM);
        std::thread::sleep(Duration::from_millis(60));
    }
    ending.join().unwrap()
}

/// A peer that does not leave keeps it for a while, and not at all when it is told again.
#[test]
fn who_does_not_go_is_left() {
    let scene = Scene::new("left");
    let runtime = runtime();
    let rounds: &[bool] = if is_long() { &[true, false] } else { &[true] };
    for is_told_again in rounds {
        let collector = scene.collector();
        let stays = async {
            let mut peer = ScriptedStreamer::greeted(&scene.socket, "stays").await?;
            peer.announce(uuid(1)).await?;
            std::io::Result::Ok(peer)
        };
        let mut peer = runtime.block_on(stays).unwrap();
        collector.signal(Signal::TERM).unwrap();
        let hear = async { timeout(SOON, peer.hear_of(stream::kind::DRAIN)).await };
        let _ = runtime.block_on(hear).expect("it is told").unwrap();
        // It answers PING for as long as it is asked.
        let stays = runtime.spawn(async move { peer.end().await });
        if *is_told_again {
            assert_eq!(end_at_once(collector).code(), 128 + 15);
        } else {
            let told = collector.finish(LONG).expect_code(0).stderr_text();
            assert!(told.contains("1 connection had not ended"), "{told}");
        }
        let _ = runtime.block_on(stays).unwrap();
    }
}

/// Collectors end one after the other while programs run: their streamers go on with the next.
#[test]
fn streamers_go_on_with_the_next() {
    // Built before the programs start, whose rings would be full by then.
    let _ = binary::path();
    let scene = Scene::new("next");
    let rounds = if is_long() { 60 } else { 4 };
    let ringmark = "mode=discard,ring=4M,page=4K,session=32M";
    let arguments = "2 100000000 burst=20 pause=2000";
    let stages = [0; 3].map(|_| Fixture::new("next-program"));
    let programs = stages
        .each_ref()
        .map(|fixture| fixture.start(EMIT, ringmark, arguments));
    let mut collector = scene.collector();
    let streamer = |(fixture, program)| scene.streamer(fixture, program);
    let streamers: Vec<_> = stages.iter().zip(&programs).map(streamer).collect();
    let stored = || {
        let size = |path: &PathBuf| fs::metadata(path).map_or(0, |about| about.len());
        segments(&scene.store).iter().map(size).sum::<u64>()
    };
    for _ in 0..rounds {
        let before = stored();
        wait_until(LONG, "more is stored", || {
            (stored() > before + 50_000).then_some(())
        });
        collector.signal(Signal::TERM).unwrap();
        // The next one waits until this one is gone.
        let next = scene.collector_beside();
        let _ = collector.finish(LONG).expect_code(0);
        collector = next;
    }
    for program in programs {
        drop(program.kill().unwrap());
    }
    let told: Vec<String> = streamers
        .into_iter()
        .map(|streamer| streamer.finish(LONG).expect_code(0).stderr_text())
        .collect();
    let asked: usize = told
        .iter()
        .map(|text| text.matches("asks to come back later").count())
        .sum();
    collector.signal(Signal::TERM).unwrap();
    let _ = collector.finish(LONG).expect_code(0);
    let dump = decode(&segments(&scene.store));
    assert_eq!((repeated(&segments(&scene.store)), dump.conflicts), (0, 0));
    let account = Delivery::of(&dump);
    account.expect_no_errors();
    println!(
        "{rounds} ends, streamers asked {asked} times, {} events",
        account.delivered()
    );
    assert!(account.delivered() > 1000 && account.lost() == 0 && asked > 0);
}

/// A collector that says what a test wants.
struct Scripted {
    stream: UnixStream,
    /// Bytes of blocks that it took.
    taken: u64,
}

impl Scripted {
    /// Greets the next streamer.
    fn welcome(listener: &UnixListener, credit: u64) -> Self {
        let stream = listener.accept().unwrap().0;
        let mut scripted = Self { stream, taken: 0 };
        assert_eq!(scripted.hear().0.kind, stream::kind::HELLO);
        let welcome = Welcome {
            version_major: stream::STREAM_MAJOR,
            version_minor: stream::STREAM_MINOR,
            credit,
            ..Welcome::new_zeroed()
        };
        scripted.say(stream::kind::WELCOME, Uuid([0; 16]), welcome.as_bytes());
        scripted
    }

    fn say(&mut self, kind: u16, session: Uuid, content: &[u8]) {
        self.stream
            .write_all(&block(kind, session, content))
            .unwrap();
    }

    /// What it took is durable.
    fn acknowledge(&mut self) {
        let (durable, credit) = (self.taken, MUCH);
        let ack = Ack { durable, credit };
        self.say(stream::kind::ACK, Uuid([0; 16]), ack.as_bytes());
    }

    fn hear(&mut self) -> (BlockHeader, Vec<u8>) {
        let mut header = [0; BlockHeader::BYTES];
        self.stream.read_exact(&mut header).unwrap();
        let (header, _) = BlockHeader::read_from_prefix(&header).unwrap();
        let mut content = vec![0; align8(header.stored_bytes as usize)];
        self.stream.read_exact(&mut content).unwrap();
        if header.kind < stream::kind::HELLO {
            self.taken += (BlockHeader::BYTES + content.len()) as u64;
        }
        (header, content)
    }

    /// Hears until BYE or `most` pages, and says of each session that nothing of it is there: the
    /// first and the last page of each slot.
    fn take(&mut self, most: usize, acknowledges: bool) -> BTreeMap<u32, (u64, u64)> {
        let (mut pages, mut count) = (BTreeMap::new(), 0);
        while count < most {
            let (header, content) = self.hear();
            match header.kind {
                kind::SESSION => {
                    let (session, nothing) = (Uuid(header.session), Resume::new_zeroed());
                    self.say(stream::kind::RESUME, session, nothing.as_bytes());
                }
                kind::PAGE => {
                    let (page, _) = PageHeader::read_from_prefix(&content).unwrap();
                    let number = header.page_number;
                    pages.entry(page.slot).or_insert((number, number)).1 = number;
                    count += 1;
                }
                stream::kind::BYE => break,
                _ => {}
            }
            if acknowledges {
                self.acknowledge();
            }
        }
        pages
    }
}

/// A streamer that is asked to go says BYE and nothing more, and waits for what was acknowledged.
#[test]
fn a_streamer_waits_for_the_last_word() {
    let fixture = Fixture::new("last-word");
    let ringmark = "mode=discard,ring=16M,page=4K,session=64M,keep=always";
    let program = fixture.start(EMIT, ringmark, "1 100000");
    let _ = program.finish(SOON).expect_code(0);
    let (ring_file, socket) = (fixture.ring_file(), fixture.path("socket"));
    let listener = UnixListener::bind(&socket).unwrap();
    let streaming =
        std::thread::spawn(move || collecting::stream(&ring_file, &socket, Codec::None));
    // Enough for one batch, not for all.
    let mut first = Scripted::welcome(&listener, (2 << 20) + 4096);
    let mut taken = first.take(1, false);
    first.say(stream::kind::DRAIN, Uuid([0; 16]), &[]);
    for (slot, (from, to)) in first.take(usize::MAX, false) {
        taken.entry(slot).or_insert((from, to)).1 = to;
    }
    let ping = Ping {
        number: 1,
        real_ns: 0,
    };
    first.say(stream::kind::PING, Uuid([0; 16]), ping.as_bytes());
    let (answer, _) = first.hear();
    assert_eq!(answer.kind, stream::kind::PONG, "nothing behind BYE");
    first.acknowledge();
    drop(first);
    let mut second = Scripted::welcome(&listener, MUCH);
    let again = second.take(usize::MAX, true);
    drop(second);
    let figures = streaming.join().unwrap();
    println!("{taken:?}, then {again:?}; {figures:?}");
    assert_eq!(figures.connections, 2);
    for (slot, (_, last)) in &taken {
        assert_eq!(again[slot].0, last + 1, "slot {slot}");
    }
}
