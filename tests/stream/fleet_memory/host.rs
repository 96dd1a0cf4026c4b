//! The hosts: each has a connection over TLS, sessions with schema, and pages as fast as its programs write them.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ringmark_format::Uuid;
use ringmark_format::block::kind;
use ringmark_format::session::SessionHeader;
use ringmark_format::stream;
use ringmark_tests::ca::load;
use ringmark_tests::scripted_streamer::{ScriptedStreamer, block, page_of};
use tokio::sync::{Semaphore, mpsc};
use zerocopy::{FromZeros, IntoBytes};

const SESSIONS: usize = 5;
const SCHEMA: usize = 100 << 10;
pub(super) const PAGE: usize = 16 << 10;
/// Bytes that a host writes in a second.
pub(super) const RATE: u64 = 25_000;
/// Most bytes that a host has under way: it has no more memory for them.
const UNDER_WAY: u64 = 8 * PAGE as u64;

/// A page that is durable.
pub(super) struct Stored {
    pub(super) at: Instant,
    /// Since it was written.
    pub(super) lag: Duration,
}

/// What all hosts do together.
pub(super) struct Shared {
    begun: Instant,
    /// When the last page is written.
    pub(super) end: OnceLock<Instant>,
    pub(super) durable: AtomicU64,
    /// Hosts that write.
    writing: AtomicU64,
    /// Times at which they began, in microseconds since `begun`, together.
    began: AtomicU64,
    /// Hosts whose schema is durable.
    pub(super) ready: AtomicU64,
    /// Handshakes at a time: the test has as many processors as the collector.
    handshakes: Semaphore,
    stored: mpsc::UnboundedSender<Stored>,
}

impl Shared {
    /// With what tells of each page that it is durable.
    pub(super) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Stored>) {
        let (stored, heard) = mpsc::unbounded_channel();
        let made = Self {
            begun: Instant::now(),
            end: OnceLock::new(),
            durable: AtomicU64::new(0),
            writing: AtomicU64::new(0),
            began: AtomicU64::new(0),
            ready: AtomicU64::new(0),
            handshakes: Semaphore::new(16),
            stored,
        };
        (Arc::new(made), heard)
    }

    /// Bytes that were written and are not durable.
    pub(super) fn behind(&self) -> u64 {
        let now = self.begun.elapsed().as_micros() as u64;
        let (writing, began) = (self.writing.load(Relaxed), self.began.load(Relaxed));
        let written = (writing * now).saturating_sub(began) * RATE / 1_000_000;
        written.saturating_sub(self.durable.load(Relaxed) * PAGE as u64)
    }

    fn note_begin(&self) {
        let now = self.begun.elapsed().as_micros() as u64;
        self.began.fetch_add(now, Relaxed);
        self.writing.fetch_add(1, Relaxed);
    }
}

fn uuid(host: usize, session: usize) -> Uuid {
    Uuid((((host as u128) << 16) | session as u128 | 1 << 100).to_be_bytes())
}

/// A host: it announces its sessions, sends their schema, and then pages as fast as its programs write them.
pub(super) struct Host {
    number: usize,
    peer: ScriptedStreamer,
    /// The end of its schema, until that is durable.
    schema: Option<u64>,
    /// Ends of pages that are not durable, and when they were written.
    under_way: VecDeque<(u64, Instant)>,
    shared: Arc<Shared>,
}

impl Host {
    pub(super) async fn connected(
        number: usize,
        to: SocketAddr,
        ca: &Path,
        shared: Arc<Shared>,
    ) -> Self {
        let name = format!("host-{number}");
        let credentials = load(&ca.join("hosts").join(&name), &ca.join("ca.pem"));
        let turn = shared.handshakes.acquire().await.expect("open");
        let from = Ipv4Addr::new(127, 0, 0, 1);
        let greeted = ScriptedStreamer::greeted_over_tls(to, from, &credentials, &name).await;
        drop(turn);
        let mut made = Self {
            number,
            peer: greeted.expect("welcome"),
            schema: None,
            under_way: VecDeque::new(),
            shared,
        };
        for session in 0..SESSIONS {
            made.announce(uuid(number, session)).await;
        }
        made.schema = Some(made.peer.sent);
        made.heed();
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
    pub(super) async fn run(mut self) {
        let mut next = [0; SESSIONS];
        let every = Duration::from_secs_f64(PAGE as f64 / RATE as f64);
        // Not all at the same time.
        let mut due = Instant::now() + every.mul_f64(self.number as f64 * 0.618 % 1.0);
        self.shared.note_begin();
        while self.shared.end.get().is_none_or(|end| due <= *end) {
            while self.peer.hear_by(due).await.expect("it says more") {
                self.heed();
            }
            let session = (due.elapsed().as_nanos() as usize + next.len()) % SESSIONS;
            let page = page_of(uuid(self.number, session), next[session], PAGE);
            next[session] += 1;
            self.peer.send(&page).await.expect("sent");
            self.under_way.push_back((self.peer.sent, due));
            self.heed();
            while self.peer.sent - self.peer.durable > UNDER_WAY {
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
        if self.schema.take_if(|end| *end <= durable).is_some() {
            self.shared.ready.fetch_add(1, Relaxed);
        }
        let at = Instant::now();
        while let Some((_, written)) = self.under_way.front().filter(|(end, _)| *end <= durable) {
            let lag = at.saturating_duration_since(*written);
            self.under_way.pop_front();
            self.shared.durable.fetch_add(1, Relaxed);
            let _ = self.shared.stored.send(Stored { at, lag });
        }
    }
}
