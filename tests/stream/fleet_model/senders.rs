//! Real connections to a real collector. What a sender sends and when is decided as in the model; the collector, its
//! sockets and its store are those of `ringmark collect`.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ringmark_format::Uuid;
use ringmark_format::block::BlockHeader;
use ringmark_format::stream::{self, Ack, Ping, Pong, Welcome};
use ringmark_tests::collecting::{served_figure, served_number, wait_for_listener};
use ringmark_tests::fixture::Fixture;
use ringmark_tests::process::processor_time;
use ringmark_tests::scripted_streamer::{block, hello, page_of, session};
use ringmark_tests::{ReservedPlace, Running, binary, preload_shim, wait_until};
use tokio::net::UnixStream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{Instant as TokioInstant, sleep_until};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::collector::Arrived;
use super::figures::Figures;
use super::host::{Host, Sent, Stage};
use super::{Fleet, SECOND, micros};

/// How long a collector's rename of an object takes: the time of a put, for the most part.
const PUT: Duration = Duration::from_millis(100);
/// Everything must have come to an end after this.
const LONG: Duration = Duration::from_secs(300);

/// What a run with real connections came to.
pub(super) struct Real {
    pub(super) figures: Figures,
    /// Mean time of a put.
    pub(super) put: Duration,
    /// Bytes of pages that the collector took in a second of a processor.
    pub(super) takes: f64,
}

struct Collector {
    running: Running,
    socket: PathBuf,
    metrics: ReservedPlace,
    /// Puts hang while this file is there.
    flag: PathBuf,
    _fixture: Fixture,
}

impl Collector {
    fn start(of: &Fleet) -> Self {
        let fixture = Fixture::new("fleet-senders");
        let (socket, flag) = (fixture.path("socket"), fixture.path("flag"));
        let metrics = ReservedPlace::new();
        let shim = preload_shim::build(&fixture, "hanging_shim");
        let mut command = fixture.command(binary::path());
        // The time of a put is PUT, and not what the disk of this machine has to do.
        command.args([
            "collect",
            "--sync",
            "cache",
            "--metrics",
            &metrics.to_string(),
            "--listen",
        ]);
        command.arg(format!("unix://{}", socket.display()));
        command.arg("--objects");
        command.arg(format!("file://{}", fixture.path("objects").display()));
        command.arg(format!("--memory={}", of.memory));
        command.arg(format!("--flush={}ms", of.flush.as_millis()));
        command
            .env("LD_PRELOAD", shim)
            .env("SHIM_PATH", "/objects/");
        command.env("SHIM_RENAME", PUT.as_micros().to_string());
        command.env("SHIM_WHILE", &flag);
        let running = Running::start(&mut command).expect("ringmark");
        wait_for_listener(&socket);
        Self {
            running,
            socket,
            metrics,
            flag,
            _fixture: fixture,
        }
    }

    fn figure(&self, name: &str) -> u64 {
        served_figure(self.metrics.address(), name)
    }

    /// Time of all puts.
    fn put_time(&self) -> Duration {
        let seconds = served_number(self.metrics.address(), "sync_duration_seconds_sum");
        Duration::from_secs_f64(seconds)
    }
}

/// What all senders share.
struct Shared {
    of: Fleet,
    begun: Instant,
    is_over: AtomicBool,
    connected: AtomicU64,
    /// Hosts that have not caught up since the stall.
    behind: AtomicU64,
    told: UnboundedSender<Told>,
}

/// What a sender tells.
enum Told {
    /// A page was acknowledged at this time, after this one.
    Lag(u64, u64),
    /// It has caught up.
    CaughtUp(u64),
}

impl Shared {
    fn now(&self) -> u64 {
        micros(self.begun.elapsed())
    }
}

/// A host with its connection.
struct Sender {
    number: u32,
    host: Host,
    stream: UnixStream,
    /// What came and is not a whole message.
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    is_behind: bool,
    /// Its backlog at the end of the stall was noted.
    is_counted: bool,
    shared: Arc<Shared>,
}

impl Sender {
    async fn run(number: u32, socket: PathBuf, shared: Arc<Shared>) {
        let begun = u64::from(number) * 0x9E37_79B9 % shared.of.period();
        let stream = UnixStream::connect(&socket).await.expect("a collector");
        let host = Host::new(begun, &shared.of, shared.begun);
        let mut made = Self {
            number,
            host,
            stream,
            inbox: Vec::new(),
            outbox: hello(&format!("host-{number}")),
            is_behind: false,
            is_counted: false,
            shared,
        };
        made.serve().await;
    }

    fn uuid(&self) -> Uuid {
        Uuid((u128::from(self.number) | 1 << 100).to_be_bytes())
    }

    async fn serve(&mut self) {
        let end = TokioInstant::now() + LONG;
        loop {
            assert!(
                TokioInstant::now() < end,
                "host {}: it does not end",
                self.number
            );
            let wake = self.act();
            if self.shared.is_over.load(Relaxed) && self.host.waiting == 0 {
                return;
            }
            let is_out = self.outbox.is_empty();
            tokio::select! {
                read = self.stream.readable() => {
                    read.expect("a connection");
                    match self.stream.try_read_buf(&mut self.inbox) {
                        Ok(0) => panic!("host {}: the collector has closed", self.number),
                        Ok(_) => self.hear(),
                        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
                    }
                }
                writable = self.stream.writable(), if !is_out => {
                    writable.expect("a connection");
                    if let Ok(written) = self.stream.try_write(&self.outbox) {
                        self.outbox.drain(..written);
                    }
                }
                () = sleep_until(wake), if is_out => {}
            }
        }
    }

    /// Writes what is due and sends what may be sent; returns when to look again.
    fn act(&mut self) -> TokioInstant {
        let shared = self.shared.clone();
        let (now, of) = (shared.now(), &shared.of);
        if !shared.is_over.load(Relaxed) {
            self.host.write(now, of);
        }
        if !self.is_counted && now >= of.back_at() {
            self.is_counted = true;
            self.host.backlog_to = self.host.last_held();
            self.is_behind = true;
        }
        let next = self.host.full_at(self.host.written, of).saturating_sub(now);
        let mut wait = next.max(1000);
        if let Some((_, _)) = self.host.announce() {
            self.outbox.extend(session(self.uuid()));
        }
        while self.outbox.is_empty() && matches!(self.host.stage, Stage::Streaming(_)) {
            // The socket says when it is full.
            self.host.read = self.host.sent;
            match self.host.batch(now, Instant::now(), of) {
                Sent::Batch(batch) => self.put_out(&batch),
                Sent::TooFast => {
                    wait = wait.min(SECOND / 100);
                    break;
                }
                Sent::All | Sent::NoCredit => break,
            }
        }
        TokioInstant::now() + Duration::from_micros(wait)
    }

    fn put_out(&mut self, batch: &Arrived) {
        let (uuid, size) = (self.uuid(), self.shared.of.page as usize);
        for page in batch.pages.clone() {
            self.outbox.extend(page_of(uuid, page, size));
        }
    }

    /// Acts on whole messages.
    fn hear(&mut self) {
        while let Ok((header, rest)) = BlockHeader::read_from_prefix(&self.inbox) {
            let whole = header.whole_bytes();
            if self.inbox.len() < whole {
                return;
            }
            let content = rest[..header.stored_bytes as usize].to_vec();
            self.inbox.drain(..whole);
            self.take(header.kind, &content);
        }
    }

    fn take(&mut self, kind: u16, content: &[u8]) {
        let (shared, now) = (self.shared.clone(), self.shared.now());
        match kind {
            stream::kind::WELCOME => {
                let (welcome, _) = Welcome::read_from_prefix(content).expect("WELCOME");
                self.host.greeted(0, now, welcome.credit);
            }
            stream::kind::RESUME => {
                self.host.stage = Stage::Streaming(0);
                shared.connected.fetch_add(1, Relaxed);
            }
            stream::kind::ACK => {
                let (ack, _) = Ack::read_from_prefix(content).expect("ACK");
                let (host, of) = (&mut self.host, &shared.of);
                let begun = host.begun;
                host.acknowledged((ack.durable, ack.credit), now, of, |pages| {
                    for page in pages.clone() {
                        let _ = shared
                            .told
                            .send(Told::Lag(now, now - (begun + page * of.period())));
                    }
                });
                self.note_caught_up(now);
            }
            stream::kind::PING => {
                let (ping, _) = Ping::read_from_prefix(content).expect("PING");
                let pong = Pong {
                    number: ping.number,
                    ping_real_ns: ping.real_ns,
                    ..Pong::new_zeroed()
                };
                let pong = block(stream::kind::PONG, Uuid([0; 16]), pong.as_bytes());
                self.outbox.extend(pong);
            }
            stream::kind::REFUSED => panic!("{}", String::from_utf8_lossy(content)),
            _ => {}
        }
    }

    fn note_caught_up(&mut self, now: u64) {
        let of = &self.shared.of;
        let usual = micros(of.flush) + 2 * SECOND;
        let backlog = self.host.backlog_to.map_or(0, |last| last + 1);
        let is_stored = self.host.has_sent_to(now.saturating_sub(usual), of);
        if self.is_behind && is_stored && self.host.first_held() >= backlog {
            self.is_behind = false;
            self.shared.behind.fetch_sub(1, Relaxed);
            let _ = self.shared.told.send(Told::CaughtUp(now));
        }
    }
}

/// Counts of a collector at a moment.
#[derive(Clone, Copy)]
struct Counts {
    puts: u64,
    pages: u64,
    put_time: Duration,
    /// Time of processors.
    busy: Duration,
}

impl Collector {
    fn counts(&self) -> Counts {
        Counts {
            puts: self.figure("segments_total"),
            pages: self.figure("pages_total"),
            put_time: self.put_time(),
            busy: processor_time(self.running.id()),
        }
    }
}

impl Collector {
    /// What happens in the second half of the time before the store stands still: also the time of a put, and the
    /// bytes taken in a second of a processor.
    fn steady(&self, shared: &Shared, figures: &mut Figures) -> (Duration, f64) {
        let of = &shared.of;
        sleep_to(shared, of.gone_at() / 2);
        assert_eq!(
            shared.connected.load(Relaxed),
            of.hosts as u64,
            "all are connected by then"
        );
        let before = self.counts();
        sleep_to(shared, of.gone_at());
        let after = self.counts();
        figures.steady.puts = after.puts - before.puts;
        figures.steady.pages = after.pages - before.pages;
        let puts = u32::try_from(figures.steady.puts.max(1)).expect("a number of puts");
        let put = (after.put_time - before.put_time) / puts;
        let bytes = (figures.steady.pages * of.block()) as f64;
        let busy = (after.busy - before.busy).max(Duration::from_millis(10));
        let takes = bytes / busy.as_secs_f64();
        (put, takes)
    }

    /// Lets the store stand still for its time.
    fn stand_still(&self, shared: &Shared, figures: &mut Figures) {
        fs::write(&self.flag, "").expect("a file");
        sleep_to(shared, shared.of.back_at());
        figures.waiting_at_return = self.figure("waiting_bytes");
        fs::remove_file(&self.flag).expect("it is there");
    }
}

impl Figures {
    fn hear(&mut self, told: Told, of: &Fleet) {
        match told {
            Told::Lag(at, lag) if of.is_steady(at) => {
                self.steady.lags.push(lag as f64 / SECOND as f64);
            }
            Told::Lag(..) => {}
            Told::CaughtUp(at) => {
                let since = at.saturating_sub(of.back_at());
                self.caught_up.push(since as f64 / SECOND as f64);
            }
        }
    }
}

impl Real {
    /// Runs a fleet with real connections: the store hangs as it says.
    pub(super) fn run(of: &Fleet) -> Self {
        let collector = Collector::start(of);
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let (told, mut heard) = unbounded_channel();
        let shared = Arc::new(Shared {
            of: of.clone(),
            begun: Instant::now(),
            is_over: AtomicBool::new(false),
            connected: AtomicU64::new(0),
            behind: AtomicU64::new(of.hosts as u64),
            told,
        });
        let run = |number| {
            runtime.spawn(Sender::run(
                number,
                collector.socket.clone(),
                shared.clone(),
            ))
        };
        let all: Vec<_> = (0..of.hosts as u32).map(run).collect();
        let mut figures = Figures::default();
        let (put, takes) = collector.steady(&shared, &mut figures);
        collector.stand_still(&shared, &mut figures);
        wait_until(LONG, "all to catch up", || {
            let failed = all.iter().any(|task| task.is_finished());
            assert!(!failed, "a host has ended");
            (shared.behind.load(Relaxed) == 0).then_some(())
        });
        shared.is_over.store(true, Relaxed);
        for task in all {
            runtime.block_on(task).expect("all is durable");
        }
        while let Ok(told) = heard.try_recv() {
            figures.hear(told, of);
        }
        Self {
            figures,
            put,
            takes,
        }
    }
}

fn sleep_to(shared: &Shared, time: u64) {
    let wait = time.saturating_sub(shared.now());
    std::thread::sleep(Duration::from_micros(wait));
}
