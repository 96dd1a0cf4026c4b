//! Figures of each host, over all its connections.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::clock::now_ns;
use crate::host_name::safe;
use crate::mutex::lock;

const NS_PER_S: u64 = 1_000_000_000;

/// Most hosts with figures of their own. The one that was gone longest makes way for a new one;
/// while all are there, further ones are counted together, under an empty name.
const HOSTS_MAX: usize = 4096;

/// Hosts that were welcomed since the collector started, by name.
#[derive(Debug, Default)]
pub(crate) struct Hosts(Mutex<BTreeMap<String, Arc<Host>>>);

/// Figures of one host.
#[derive(Debug, Default)]
struct Host {
    connections: AtomicU64,
    received_bytes: AtomicU64,
    durable_bytes: AtomicU64,
    pending_bytes: AtomicU64,
    /// When it was heard last, ns since 1970.
    seen_ns: AtomicU64,
    lost_events: AtomicU64,
    overwritten_pages: AtomicU64,
    missing_pages: AtomicU64,
    /// When a loss was counted last, ns since 1970.
    loss_ns: AtomicU64,
    removed_segments: AtomicU64,
    removed_bytes: AtomicU64,
}

/// A figure of a host: its name, kind and meaning, and where it is.
type Figure = (
    &'static str,
    &'static str,
    &'static str,
    fn(&Host) -> &AtomicU64,
);

/// All figures of a host. Those that end in `_seconds` are held in ns.
const FIGURES: [Figure; 11] = [
    (
        "connections",
        "gauge",
        "Connections of the host open now.",
        |h| &h.connections,
    ),
    (
        "received_bytes_total",
        "counter",
        "Bytes of blocks received from the host.",
        |h| &h.received_bytes,
    ),
    (
        "durable_bytes_total",
        "counter",
        "Bytes of blocks from the host acknowledged as durable.",
        |h| &h.durable_bytes,
    ),
    (
        "pending_bytes",
        "gauge",
        "Bytes of blocks that came over the connections open now, and are not acknowledged as durable.",
        |h| &h.pending_bytes,
    ),
    (
        "seen_timestamp_seconds",
        "gauge",
        "When something came from the host last, in seconds since 1970; of one that has not come since the collector started, the latest event in the store; 0: not known.",
        |h| &h.seen_ns,
    ),
    (
        "lost_events_total",
        "counter",
        "Events that programs of the host lost, whatever the cause, as their counters say.",
        |h| &h.lost_events,
    ),
    (
        "overwritten_pages_total",
        "counter",
        "Pages of flight recorders that were overwritten between two pages that came.",
        |h| &h.overwritten_pages,
    ),
    (
        "missing_pages_total",
        "counter",
        "Pages of other sessions that are missing between two pages that came.",
        |h| &h.missing_pages,
    ),
    (
        "loss_timestamp_seconds",
        "gauge",
        "When one of these three grew last, in seconds since 1970; 0: never since the collector started.",
        |h| &h.loss_ns,
    ),
    (
        "removed_segments_total",
        "counter",
        "Segments of the host removed by retention.",
        |h| &h.removed_segments,
    ),
    (
        "removed_bytes_total",
        "counter",
        "Bytes of these segments.",
        |h| &h.removed_bytes,
    ),
];

/// Whether a host has proved its name. Those that have not are counted together, under an empty
/// name: strangers must not choose what monitoring stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    Proved,
    Missing,
}

/// A connection of a host; counted until this is dropped.
pub(crate) struct Presence {
    host: Arc<Host>,
    /// What came over it and is not durable: it comes again over another connection, or never.
    pending_bytes: AtomicU64,
}

/// Where losses of a host are counted.
#[derive(Debug, Clone)]
pub(crate) struct HostLosses(Arc<Host>);

impl Hosts {
    /// Counts a connection of this host.
    pub(crate) fn welcome(&self, host: &str, proof: Proof) -> Presence {
        let mut hosts = lock(&self.0);
        // The name of its directory in the store has no character that would end the label.
        let name = Some(safe(host)).filter(|name| {
            proof == Proof::Proved && (hosts.contains_key(name) || make_room(&mut hosts))
        });
        let host = hosts.entry(name.unwrap_or_default()).or_default().clone();
        host.connections.fetch_add(1, Relaxed);
        host.seen_ns.store(now_ns(), Relaxed);
        Presence {
            host,
            pending_bytes: AtomicU64::new(0),
        }
    }

    /// Names a host that has not come since the collector started. `seen_ns`: its latest event, ns since 1970.
    pub(crate) fn remember(&self, host: &str, seen_ns: u64) {
        let mut hosts = lock(&self.0);
        if hosts.len() < HOSTS_MAX {
            let host = hosts.entry(safe(host)).or_default();
            host.seen_ns.fetch_max(seen_ns, Relaxed);
        }
    }

    /// Counts segments of a host that retention removed, and their bytes.
    pub(crate) fn removed(&self, host: &str, (segments, bytes): (u64, u64)) {
        let hosts = lock(&self.0);
        if let Some(host) = hosts.get(host).or_else(|| hosts.get("")) {
            host.removed_segments.fetch_add(segments, Relaxed);
            host.removed_bytes.fetch_add(bytes, Relaxed);
        }
    }

    /// All of them in Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        let (hosts, mut text) = (lock(&self.0), String::new());
        for (name, kind, help, of) in FIGURES {
            let name = format!("ringmark_collector_host_{name}");
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (host, figures) in hosts.iter() {
                let mut value = of(figures).load(Relaxed);
                if name.ends_with("_seconds") {
                    value /= NS_PER_S;
                }
                let _ = writeln!(text, "{name}{{host=\"{host}\"}} {value}");
            }
        }
        text
    }
}

/// Makes room for a new host; returns whether there is any.
fn make_room(hosts: &mut BTreeMap<String, Arc<Host>>) -> bool {
    if hosts.len() < HOSTS_MAX {
        return true;
    }
    let is_gone = |host: &Host| host.connections.load(Relaxed) == 0;
    let gone = hosts.iter().filter(|(_, host)| is_gone(host));
    let longest = gone.min_by_key(|(_, host)| host.seen_ns.load(Relaxed));
    let name = longest.map(|(name, _)| name.clone());
    name.is_some_and(|name| hosts.remove(&name).is_some())
}

impl HostLosses {
    /// Counts events that programs lost.
    pub(crate) fn lost(&self, events: u64) {
        self.add(&self.0.lost_events, events);
    }

    /// Counts pages that were overwritten before they were sent.
    pub(crate) fn overwritten(&self, pages: u64) {
        self.add(&self.0.overwritten_pages, pages);
    }

    /// Counts pages that did not come.
    pub(crate) fn missing(&self, pages: u64) {
        self.add(&self.0.missing_pages, pages);
    }

    fn add(&self, figure: &AtomicU64, n: u64) {
        figure.fetch_add(n, Relaxed);
        self.0.loss_ns.store(now_ns(), Relaxed);
    }
}

impl Presence {
    /// Where losses of the host are counted.
    pub(crate) fn losses(&self) -> HostLosses {
        HostLosses(self.host.clone())
    }

    /// Counts bytes of blocks that were received.
    pub(crate) fn received(&self, bytes: u64) {
        self.host.received_bytes.fetch_add(bytes, Relaxed);
        self.host.seen_ns.store(now_ns(), Relaxed);
        self.host.pending_bytes.fetch_add(bytes, Relaxed);
        self.pending_bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts bytes that were acknowledged as durable.
    pub(crate) fn acknowledged(&self, bytes: u64) {
        self.host.durable_bytes.fetch_add(bytes, Relaxed);
        self.host.pending_bytes.fetch_sub(bytes, Relaxed);
        self.pending_bytes.fetch_sub(bytes, Relaxed);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.host.connections.fetch_sub(1, Relaxed);
        let left = *self.pending_bytes.get_mut();
        self.host.pending_bytes.fetch_sub(left, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_counted_over_its_connections() {
        let hosts = Hosts::default();
        let welcome = || hosts.welcome("web-1", Proof::Proved);
        let (first, second) = (welcome(), welcome());
        first.received(5);
        second.received(6);
        second.acknowledged(4);
        drop(first);
        let text = hosts.text();
        for line in [
            "# TYPE ringmark_collector_host_connections gauge",
            "ringmark_collector_host_connections{host=\"web-1\"} 1",
            "ringmark_collector_host_received_bytes_total{host=\"web-1\"} 11",
            "ringmark_collector_host_durable_bytes_total{host=\"web-1\"} 4",
            "ringmark_collector_host_pending_bytes{host=\"web-1\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let seen = text.lines().find_map(|line| {
            line.strip_prefix("ringmark_collector_host_seen_timestamp_seconds{host=\"web-1\"} ")
        });
        let seen: u64 = seen.unwrap().parse().unwrap();
        assert!(now_ns() / NS_PER_S - seen < 100, "{text}");
    }

    #[test]
    fn a_host_that_never_comes_is_named() {
        let hosts = Hosts::default();
        for seen_ns in [0, 7, 5] {
            hosts.remember("web-1", seen_ns * NS_PER_S);
        }
        let text = hosts.text();
        assert!(text.contains("connections{host=\"web-1\"} 0\n"), "{text}");
        assert!(
            text.contains("seen_timestamp_seconds{host=\"web-1\"} 7\n"),
            "{text}"
        );
        let _here = hosts.welcome("web-1", Proof::Proved);
        assert!(hosts.text().contains("connections{host=\"web-1\"} 1\n"));
    }

    #[test]
    fn strangers_choose_no_names() {
        let hosts = Hosts::default();
        let _first = hosts.welcome("a\"}}\n1", Proof::Missing);
        let _second = hosts.welcome("web-1", Proof::Missing);
        let text = hosts.text();
        assert!(text.contains("connections{host=\"\"} 2\n"), "{text}");
        assert!(!text.contains("web-1"));
    }

    #[test]
    fn hosts_cannot_take_all_memory_and_the_one_gone_longest_makes_way() {
        let hosts = Hosts::default();
        let welcome = |number: usize| hosts.welcome(&format!("a\"}}\n{number}"), Proof::Proved);
        drop(welcome(0));
        let there: Vec<_> = (1..HOSTS_MAX).map(welcome).collect();
        let _new = welcome(HOSTS_MAX);
        let _one_more = welcome(HOSTS_MAX + 1);
        let text = hosts.text();
        assert_eq!(text.lines().count(), FIGURES.len() * (2 + HOSTS_MAX + 1));
        assert!(!text.contains("{host=\"a___0\"}"));
        assert!(text.contains(&format!("{{host=\"a___{HOSTS_MAX}\"}} 1")));
        assert!(text.contains("{host=\"\"} 1"));
        drop(there);
    }
}
