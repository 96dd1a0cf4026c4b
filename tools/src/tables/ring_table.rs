//! The rings of a living session: as rows of `list -v` and as JSON.

use std::collections::HashMap;

use ringmark_decoder::{Dump, Session, Slot};
use ringmark_format::Uuid;
use ringmark_reader::SessionInfo;
use ringmark_reader::info::RingInfo;
use serde_json::json;

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
        RingRow {
            tid: ring.tid,
            thread: ring.thread_name.clone(),
            pages: ring.pages,
            page_bytes: ring.page_bytes,
            filled: ring.pages_filled,
            fill_percent: ring.fill_percent(),
            lost: ring.lost.iter().fold(0, |sum, n| sum.saturating_add(*n)),
            events_per_s: new.saturating_sub(old.unwrap_or(0)) as f64 / seconds,
            window_s: covered_ns.map(|ns| ns as f64 / 1e9),
            wait_ns: ring.wait_ns,
        }
    };
    info.rings.iter().map(row).collect()
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
        ]);
    }
    table
}

impl RingRow {
    fn bytes(&self) -> u64 {
        u64::from(self.pages) * u64::from(self.page_bytes)
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
            "ring_wait_ns": self.wait_ns,
        })
    }
}
