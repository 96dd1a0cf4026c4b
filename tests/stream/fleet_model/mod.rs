//! A model of many hosts and some collectors in virtual time: who connects when, who may send, what is put and
//! acknowledged. Pages are counted and not there, so that 100,000 hosts take a minute.
//!
//! What a collector gives, puts and acknowledges, and whom it lets in, is decided by its own code; so is when a host
//! tries again, begins a batch, sends more slowly or moves pages to disk. The network, the processors and the store
//! are numbers in [`Fleet`].

mod agreement;
mod collector;
mod figures;
mod host;
mod outage;
mod senders;
mod serving;
mod world;

use std::time::Duration;

/// A second, in the microseconds of virtual time.
const SECOND: u64 = 1_000_000;

/// What is away for some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Away {
    /// The store: each put fails at once, and collectors and connections stay.
    Store,
    /// The store: each put hangs until it is back.
    HangingStore,
    /// All collectors: they are killed, and nothing listens until they are back.
    Collectors,
}

/// A fleet, and what happens to it.
#[derive(Debug, Clone)]
struct Fleet {
    hosts: usize,
    collectors: usize,
    /// Bytes of pages that a host writes in a second.
    rate: u64,
    /// Bytes of a page.
    page: u64,
    /// Pages of a host's ring.
    ring: u64,
    /// `--spill-max`.
    spill: u64,
    /// `--max-rate`.
    max_rate: Option<u64>,
    /// `--flush`.
    flush: Duration,
    /// `--memory`.
    memory: u64,
    /// `--connections`.
    connections: usize,
    /// All hosts come from one address, as through a proxy.
    is_proxied: bool,
    /// Time of a processor for a handshake; a collector has one processor.
    handshake: Duration,
    /// Bytes that a collector takes in a second of a processor.
    takes: u64,
    /// Time of a put, for any size and for each byte.
    put: Duration,
    put_bytes_per_second: u64,
    /// Bytes between two machines, on their way or in the memory of sockets.
    socket: u64,
    /// Waits between attempts differ, as those of streamers do.
    has_noise: bool,
    /// Time from one machine to the other.
    latency: Duration,
    what: Away,
    /// Seconds within which all hosts connect at first.
    connect: u64,
    /// Seconds before it is away, and for which it is.
    before: u64,
    away: u64,
    /// Seconds for which programs write after that, at least.
    after: u64,
}

impl Fleet {
    /// Hosts of 25 kB/s, with the defaults of the product, and a store that takes 0.2 s for a put.
    fn new(hosts: usize, collectors: usize, what: Away) -> Self {
        Self {
            hosts,
            collectors,
            rate: 25_000,
            page: 16 << 10,
            ring: 64,
            spill: 1 << 30,
            max_rate: None,
            flush: Duration::from_secs(5),
            memory: 64 << 20,
            connections: 4096,
            is_proxied: false,
            handshake: Duration::from_millis(1),
            takes: 500_000_000,
            put: Duration::from_millis(150),
            put_bytes_per_second: 160_000_000,
            socket: 512 << 10,
            has_noise: true,
            latency: Duration::from_micros(500),
            what,
            connect: 10,
            before: 20,
            away: 600,
            after: 20,
        }
    }

    /// Time between two pages of a host.
    const fn period(&self) -> u64 {
        self.page * SECOND / self.rate
    }

    /// Bytes of a page on its way.
    const fn block(&self) -> u64 {
        self.page + 64
    }

    /// Bytes that a collector puts in a second, at most: one segment after the other.
    fn puts(&self) -> f64 {
        let segment = self.memory as f64 / 8.0;
        segment / (self.put.as_secs_f64() + segment / self.put_bytes_per_second as f64)
    }

    /// Whether this is in the second half of the time before something is away.
    const fn is_steady(&self, now: u64) -> bool {
        now >= self.gone_at() / 2 && now < self.gone_at()
    }

    const fn gone_at(&self) -> u64 {
        self.before * SECOND
    }

    const fn back_at(&self) -> u64 {
        (self.before + self.away) * SECOND
    }
}

fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}
