//! Promise: thousands of TLS connections with the sessions and the schema that hosts have, and a store that stands still
//! for a minute, take no more of a collector of objects than it has; nothing is lost, all catch up, and what is written
//! is durable as fast as it is written.

#[path = "fleet_memory/collector.rs"]
mod collector;
#[path = "fleet_memory/host.rs"]
mod host;
#[path = "fleet_memory/phase.rs"]
mod phase;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use collector::{Collector, MemoryGroup};
use host::{Host, RATE, Shared, Stored};
use phase::{Moment, Phase};
use ringmark_collector::certs::{self, Validity};
use ringmark_tests::ca::Ca;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::{is_long, require_tools, wait_until};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(300);
/// Until all is durable.
const CATCH_UP: Duration = Duration::from_secs(600);
/// What a collector may take with its default memory, and each connection with five sessions on top of that: 256 MB for
/// 2,000.
const MEMORY: u64 = 146_000_000;
const EACH: u64 = 55_000;
/// What its group may take: page cache of its store leaves it when that is needed.
const GROUP_MAX: u64 = 256_000_000;
/// Threads that a collector of objects may have, however many connections there are.
const THREADS: u64 = 16;

/// How much is done.
struct Size {
    hosts: usize,
    flush: Duration,
    /// No more is behind than is written in this time, where nothing is wrong.
    usual: Duration,
    /// How long what is durable is counted, before and after the stall.
    steady: Duration,
    stall: Duration,
    /// Part of what is written that is durable in that time at least.
    least: f64,
}

fn size() -> Size {
    let seconds = Duration::from_secs;
    match is_long() {
        true => Size {
            hosts: 2000,
            flush: seconds(5),
            usual: seconds(1),
            steady: seconds(15),
            stall: seconds(60),
            least: 0.9,
        },
        // A segment a second is much of a second.
        false => Size {
            hosts: 40,
            flush: seconds(1),
            usual: seconds(2),
            steady: seconds(3),
            stall: seconds(2),
            least: 0.5,
        },
    }
}

impl Size {
    /// Bytes that all hosts write in a second.
    fn rate(&self) -> u64 {
        self.hosts as u64 * RATE
    }
}

/// A fleet that runs.
struct Fleet {
    size: Size,
    collector: Collector,
    shared: Arc<Shared>,
    runtime: Runtime,
    hosts: Vec<JoinHandle<()>>,
}

impl Fleet {
    fn moment(&self) -> Moment {
        Moment::now(&self.collector, &self.shared)
    }

    /// Starts all hosts, and waits until their schema is durable.
    fn connect(&mut self, ca: &Path) -> Phase {
        let begin = self.moment();
        let (shared, to) = (&self.shared, self.collector.address());
        let run = |number| {
            let (ca, shared) = (ca.to_owned(), shared.clone());
            let host = async move { Host::connected(number, to, &ca, shared).await.run().await };
            self.runtime.spawn(host)
        };
        self.hosts = (0..self.size.hosts).map(run).collect();
        wait_until(LONG, "all schema", || {
            let failed = self.hosts.iter().any(JoinHandle::is_finished);
            assert!(!failed, "a host has ended");
            (shared.ready.load(Relaxed) == self.size.hosts as u64).then_some(())
        });
        begin.to(self.moment())
    }

    /// Waits until no more is behind than a collector in no trouble has under way.
    fn catch_up(&self) -> Phase {
        let begin = self.moment();
        let usual = self.size.rate() * self.size.usual.as_secs();
        wait_until(CATCH_UP, "all to catch up", || {
            (self.shared.behind() <= usual).then_some(())
        });
        begin.to(self.moment())
    }

    /// Lets hosts write what they write.
    fn steady(&self) -> Phase {
        let begin = self.moment();
        std::thread::sleep(self.size.steady);
        begin.to(self.moment())
    }

    /// Lets puts hang for the time of the stall.
    fn stall(&self) {
        let (collector, time) = (&self.collector, self.size.stall);
        fs::write(&collector.flag, "").expect("a file");
        // What is being put may be past its last write.
        let moment = Duration::from_secs(1);
        std::thread::sleep(moment);
        let before = collector.figure("segments_total");
        std::thread::sleep(time - moment);
        let waiting = collector.figure("waiting_bytes");
        println!(
            "stalled for {time:?}: {} KiB, {waiting} bytes wait",
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
    fn end(&mut self) {
        let shared = &self.shared;
        shared.end.set(Instant::now()).expect("once");
        let hosts = std::mem::take(&mut self.hosts);
        let all = async {
            for host in hosts {
                host.await.expect("all is durable");
            }
        };
        let ended = self
            .runtime
            .block_on(async { timeout(CATCH_UP, all).await });
        let (done, known) = (
            shared.durable.load(Relaxed),
            self.collector.figure("pages_total"),
        );
        assert!(
            ended.is_ok(),
            "{done} pages are durable after {CATCH_UP:?}, {known} came"
        );
    }

    /// Checks what memory was taken at most.
    fn check_memory(&self) {
        let (collector, hosts) = (&self.collector, self.size.hosts as u64);
        let peak = collector.peak();
        let group = collector.group.as_ref();
        let of_group = |peak: fn(&MemoryGroup) -> Option<u64>| Some(peak(group?)? >> 10);
        println!(
            "memory: {} KiB of its own at most; its group: {:?} KiB, sockets: {:?} KiB",
            peak >> 10,
            of_group(MemoryGroup::peak),
            of_group(MemoryGroup::sockets)
        );
        let most = MEMORY + EACH * hosts;
        assert!(peak <= most, "{peak} bytes, expected at most {most}");
    }
}

/// Checks that what hosts wrote became durable at the rate at which they wrote it; `stored`: each page, when it did.
fn check_steady(name: &str, phase: &Phase, stored: &[Stored], size: &Size) {
    let within = phase.begin.at..phase.end.at;
    let in_phase = stored.iter().filter(|page| within.contains(&page.at));
    let mut lags: Vec<Duration> = in_phase.map(|page| page.lag).collect();
    lags.sort_unstable();
    let offered = size.rate() as f64 / 1e6;
    println!(
        "{name} the stall, steady: {phase}; {offered:.1} MB/s were offered; lag p50 {:?}, p99 {:?}",
        lags[lags.len() / 2],
        lags[lags.len() * 99 / 100],
    );
    let least = size.least * offered;
    let found = phase.rate();
    assert!(
        found >= least,
        "{name} the stall: {found:.1} MB/s, expected at least {least:.1}"
    );
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
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build();
    let (shared, mut heard) = Shared::new();
    let mut fleet = Fleet {
        collector: Collector::start(fixture, &ca, size.flush),
        size,
        shared,
        runtime: runtime.expect("a runtime"),
        hosts: Vec::new(),
    };
    let connected = fleet.connect(&ca.dir);
    println!("{} hosts connect: {connected}", fleet.size.hosts);
    let threads = fleet.collector.status("Threads:");
    assert!(threads <= THREADS, "{threads} threads");
    println!("catch up: {}", fleet.catch_up());
    let before = fleet.steady();
    fleet.stall();
    println!("catch up after the stall: {}", fleet.catch_up());
    let after = fleet.steady();
    fleet.end();
    let pages = fleet.shared.durable.load(Relaxed);
    let stored: Vec<Stored> = std::iter::from_fn(|| heard.try_recv().ok()).collect();
    check_steady("before", &before, &stored, &fleet.size);
    check_steady("after", &after, &stored, &fleet.size);
    assert_eq!(stored.len() as u64, pages);
    assert_eq!(fleet.collector.figure("pages_total"), pages);
    fleet.check_memory();
}
