//! Figures of each host, over all its connections.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::host_name::safe;
use crate::mutex::lock;

/// Most hosts with figures of their own: further ones are counted together, under an empty name.
const HOSTS_MAX: usize = 4096;

/// All hosts that were welcomed since the collector started, by name.
#[derive(Debug, Default)]
pub(crate) struct Hosts(Mutex<BTreeMap<String, Arc<Host>>>);

/// Figures of one host.
#[derive(Debug, Default)]
struct Host {
    connections: AtomicU64,
    received_bytes: AtomicU64,
    durable_bytes: AtomicU64,
}

/// A connection of a host; counted until this is dropped.
pub(crate) struct Presence(Arc<Host>);

impl Hosts {
    /// Counts a connection of this host.
    pub(crate) fn welcome(&self, host: &str) -> Presence {
        // The name of its directory in the store has no character that would end the label.
        let mut name = safe(host);
        let mut hosts = lock(&self.0);
        if hosts.len() >= HOSTS_MAX && !hosts.contains_key(&name) {
            name.clear();
        }
        let host = hosts.entry(name).or_default().clone();
        host.connections.fetch_add(1, Relaxed);
        Presence(host)
    }

    /// All of them in Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        type Of = fn(&Host) -> &AtomicU64;
        let figures: [(&str, &str, &str, Of); 3] = [
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
        ];
        let (hosts, mut text) = (lock(&self.0), String::new());
        for (name, kind, help, of) in figures {
            let name = format!("ringmark_collector_host_{name}");
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (host, figures) in hosts.iter() {
                let value = of(figures).load(Relaxed);
                let _ = writeln!(text, "{name}{{host=\"{host}\"}} {value}");
            }
        }
        text
    }
}

impl Presence {
    /// Counts bytes of blocks that were received.
    pub(crate) fn received(&self, bytes: u64) {
        self.0.received_bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts bytes that were acknowledged as durable.
    pub(crate) fn acknowledged(&self, bytes: u64) {
        self.0.durable_bytes.fetch_add(bytes, Relaxed);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_counted_over_its_connections() {
        let hosts = Hosts::default();
        let (first, second) = (hosts.welcome("web-1"), hosts.welcome("web-1"));
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
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn hosts_cannot_take_all_memory_nor_break_the_text() {
        let hosts = Hosts::default();
        for number in 0..HOSTS_MAX + 100 {
            drop(hosts.welcome(&format!("a\"}}\n{number}")));
        }
        let text = hosts.text();
        assert_eq!(text.lines().count(), 3 * (2 + HOSTS_MAX + 1));
        assert!(text.contains("{host=\"a___0\"} 0"));
        assert!(text.contains("{host=\"\"} 0"));
    }
}
