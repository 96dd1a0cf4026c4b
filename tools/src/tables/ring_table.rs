//! The rings of a living session: as rows of `list -v` and as JSON.

use std::collections::HashMap;

use ringmark_decoder::{Dump, Session, Slot};
use ringmark_format::Uuid;
use ringmark_reader::SessionInfo;
use ringmark_reader::info::RingInfo;
use serde_json::json;

use super::filling::{self, Filling, lasting};
use ringmark_console::units::{count, size};
use ringmark_console::{Table, printable};

/// How many events were begun in each ring, at one moment.
#[derive(Debug, Default)]
pub(crate) struct RingCounts(HashMap<(Uuid, u32), u64>);

impl RingCounts {
    /// Adds the rings of these sessions.
    pub(crate) fn add(&mut self, dump: &Dump) {
        for session in &dump.sessions {
            let slots = session.slots.iter();
            let counts = slots.map(|slot| ((session.uuid, slot.index.0), slot.reservations()));
            self.0.extend(counts);
        }
    }
}

/// A ring, with figures from two looks at it.
#[derive(Debug)]
pub(crate) struct RingRow {
    tid: u32,
    thread: String,
    pages: u32,
    page_bytes: u32,
    filled: u32,
    fill_percent: u64,
    lost: u64,
    events_per_s: f64,
    /// Bytes that records take.
    bytes_per_s: f64,
    window_s: Option<f64>,
    wait_ns: u64,
}

/// The rings of a session that `dump` has; `before` was counted that many seconds earlier.
pub(crate) fn rows(
    info: &SessionInfo,
    dump: &Dump,
    (before, seconds): (&RingCounts, f64),
) -> Vec<RingRow> {
    let session = dump.sessions.iter().find(|s| s.uuid == info.uuid);
    let row = |ring: &RingInfo| {
        let slot = session.and_then(|session| slot_of(session, ring.slot));
        let covered_ns = slot
            .zip(session)
            .and_then(|(slot, session)| slot.covered_ns(&session.clock));
        let new = slot.map_or(0, Slot::reservations);
        let old = before.0.get(&(info.uuid, ring.slot)).copied();
        let events_per_s = new.saturating_sub(old.unwrap_or(0)) as f64 / seconds;
        RingRow {
            tid: ring.tid,
            thread: ring.thread_name.clone(),
            pages: ring.pages,
            page_bytes: ring.page_bytes,
            filled: ring.pages_filled,
            fill_percent: ring.fill_percent(),
            lost: ring.lost.iter().fold(0, |sum, n| sum.saturating_add(*n)),
            events_per_s,
            bytes_per_s: events_per_s * slot.map_or(0.0, event_bytes),
            window_s: covered_ns.map(|ns| ns as f64 / 1e9),
            wait_ns: ring.wait_ns,
        }
    };
    info.rings.iter().map(row).collect()
}

/// Mean bytes of an event in the pages that are here, with their share of the page's header.
fn event_bytes(slot: &Slot) -> f64 {
    let summaries = || slot.pages.iter().map(|page| page.summary);
    let bytes: u64 = summaries().map(|summary| u64::from(summary.end)).sum();
    let events: u64 = summaries().map(|summary| summary.reservations()).sum();
    bytes as f64 / events.max(1) as f64
}

/// A line about how long the rings last, and the settings with which each lasts a minute; `None`: no events come.
pub(crate) fn history(rings: &[RingRow]) -> Option<String> {
    let filling = || rings.iter().filter_map(RingRow::filling);
    filling().next()?;
    Some(match filling::for_a_minute(filling()) {
        Some(short) => short.settings(rings.len()),
        None => "at this rate each ring lasts a minute or longer".to_owned(),
    })
}

fn slot_of(session: &Session, index: u32) -> Option<&Slot> {
    session.slots.iter().find(|slot| slot.index.0 == index)
}

/// The rings as a table.
pub(crate) fn table(rings: &[RingRow]) -> Table {
    let mut table = Table::new(&[
        ">TID",
        "THREAD",
        ">RING",
        ">FILL",
        ">EVENTS/S",
        ">LOST",
        ">WINDOW",
        ">LASTS",
    ]);
    for ring in rings {
        table.row(vec![
            ring.tid.to_string(),
            printable(&ring.thread),
            size(ring.bytes()),
            format!("{} %", ring.fill_percent),
            count(ring.events_per_s as u64),
            count(ring.lost),
            ring.window_s
                .map_or("-".to_owned(), |s| format!("{s:.3} s")),
            ring.lasts_s().map_or("-".to_owned(), lasting),
        ]);
    }
    table
}

impl RingRow {
    fn bytes(&self) -> u64 {
        u64::from(self.pages) * u64::from(self.page_bytes)
    }

    /// How fast it fills; `None`: nothing is written.
    fn filling(&self) -> Option<Filling> {
        (self.bytes_per_s > 0.0).then_some(Filling {
            pages: self.pages,
            page_bytes: self.page_bytes,
            bytes_per_s: self.bytes_per_s,
        })
    }

    /// How long what is written now stays at the present rate, in seconds; `None`: nothing is written.
    fn lasts_s(&self) -> Option<f64> {
        self.filling().map(|filling| filling.lasts_s())
    }

    /// The ring as an item of `threads`.
    pub(crate) fn as_json(&self) -> serde_json::Value {
        json!({
            "tid": self.tid,
            "thread": self.thread,
            "ring_bytes": self.bytes(),
            "pages": self.pages,
            "pages_filled": self.filled,
            "events_per_s": self.events_per_s,
            "lost": self.lost,
            "window_s": self.window_s,
            "lasts_s": self.lasts_s(),
            "ring_wait_ns": self.wait_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring of four pages of 64 KiB.
    fn ring(bytes_per_s: f64) -> RingRow {
        RingRow {
            tid: 1,
            thread: "worker".to_owned(),
            pages: 4,
            page_bytes: 64 << 10,
            filled: 4,
            fill_percent: 100,
            lost: 0,
            events_per_s: bytes_per_s / 16.0,
            bytes_per_s,
            window_s: None,
            wait_ns: 0,
        }
    }

    #[test]
    fn a_minute_of_the_busiest_ring_is_said() {
        let page = f64::from(64_u32 << 10);
        let line = history(&[ring(page), ring(2.0 * page), ring(0.0)]);
        // 120 pages and one more; three rings of that size in the first half.
        let expected =
            "at this rate the busiest ring lasts 1.50 s; for 60 s: RINGMARK=ring=8M,session=64M";
        assert_eq!(line.as_deref(), Some(expected));
        assert_eq!(ring(page).lasts_s(), Some(3.0));
        assert_eq!(history(&[ring(0.0)]), None);
        let quiet = history(&[ring(page / 100.0)]);
        assert_eq!(
            quiet.as_deref(),
            Some("at this rate each ring lasts a minute or longer")
        );
    }
}
