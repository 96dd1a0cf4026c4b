//! What is known of the sessions that are observed: the figures of the last look, rates from the look
//! before it, and how they were before that.

use std::collections::HashMap;
use std::time::Instant;

use ringmark_format::Uuid;
use ringmark_format::slot::state;
use ringmark_reader::{Look, RingLook};

use super::history::History;
use super::names::{Coverage, NameRow, Names, Order};
use super::watch::{About, OpenThreadText, SessionTick, Tick};
use crate::tables::filling::Filling;
use ringmark_console::printable;

/// How often something happened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counter {
    /// Since the session's start.
    pub(crate) total: u64,
    /// Since the look before.
    pub(crate) new: u64,
    pub(crate) per_s: f64,
    pub(crate) history: History,
}

impl Counter {
    /// Takes the total after this time; `None`: it is the first one.
    fn take(&mut self, total: u64, seconds: Option<f64>) {
        if let Some(seconds) = seconds {
            self.new = total.saturating_sub(self.total);
            self.per_s = self.new as f64 / seconds.max(1e-3);
            self.history.push(self.per_s);
        }
        self.total = total;
    }
}

/// A ring of a session.
#[derive(Debug, Clone)]
pub(crate) struct RingRow {
    slot: u32,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) thread: String,
    pub(crate) ring_bytes: u64,
    pub(crate) fill_percent: u64,
    pub(crate) window_ns: Option<u64>,
    page_bytes: u32,
    pages: u32,
    /// Mean bytes of an event, with its share of a page's header; 0: no page is full yet.
    event_bytes: f64,
    pub(crate) events: Counter,
    pub(crate) lost: Counter,
    /// Its thread has ended.
    pub(crate) is_over: bool,
}

/// A session.
#[derive(Debug, Clone)]
pub(crate) struct SessionRow {
    pub(crate) about: About,
    pub(crate) rings: Vec<RingRow>,
    pub(crate) ring_bytes: u64,
    pub(crate) fill_percent: u64,
    pub(crate) window_ns: Option<u64>,
    pub(crate) events: Counter,
    pub(crate) lost: Counter,
    pub(crate) open: Vec<OpenThreadText>,
    at: Option<Instant>,
}

/// The open spans of a thread, with its process.
#[derive(Debug, Clone)]
pub(crate) struct OpenRow {
    pub(crate) pid: u32,
    pub(crate) thread: OpenThreadText,
}

impl OpenRow {
    /// How long its outermost span has been open, in ns.
    pub(crate) fn open_ns(&self) -> u64 {
        self.thread.spans.first().map_or(0, |(_, ns)| *ns)
    }
}

/// All sessions.
#[derive(Debug, Default)]
pub(crate) struct Model {
    sessions: HashMap<Uuid, SessionRow>,
    names: Names,
    /// Events a second of all sessions.
    pub(crate) events: History,
    looks: u64,
}

impl Model {
    /// Takes what a look found.
    pub(crate) fn take(&mut self, tick: Tick) {
        let mut there = HashMap::new();
        for session in tick.sessions {
            let uuid = session.about.uuid;
            let known = self.sessions.remove(&uuid);
            let mut row = known.unwrap_or_else(|| SessionRow::new(&session.about));
            self.take_session(&mut row, session);
            there.insert(uuid, row);
        }
        self.sessions = there;
        self.names.keep(|uuid| self.sessions.contains_key(uuid));
        self.looks += 1;
        if self.looks > 1 {
            self.names.note();
            self.events.push(self.events_per_s());
        }
    }

    fn take_session(&mut self, row: &mut SessionRow, tick: SessionTick) {
        let before = row.at.replace(tick.at);
        let seconds = before.map(|at| tick.at.duration_since(at).as_secs_f64());
        row.take(&tick.look, seconds);
        let Some(sample) = tick.sample else { return };
        row.open = sample.open;
        if let Some(sampled) = sample.sampled {
            let (uuid, pid) = (row.about.uuid, row.about.pid);
            self.names.sample(uuid, pid, sampled, sample.over);
        }
    }

    /// The sessions, those with the most events a second first.
    pub(crate) fn sessions(&self) -> Vec<&SessionRow> {
        let mut rows: Vec<_> = self.sessions.values().collect();
        rows.sort_by(|a, b| {
            let by_rate = b.events.per_s.total_cmp(&a.events.per_s);
            by_rate.then((a.about.pid, a.about.uuid.0).cmp(&(b.about.pid, b.about.uuid.0)))
        });
        rows
    }

    /// Number of processes.
    pub(crate) fn processes(&self) -> usize {
        let mut pids: Vec<_> = self.sessions.values().map(|s| s.about.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        pids.len()
    }

    /// The rings of threads that have not ended: first those that lose events, then those with the
    /// most events a second.
    pub(crate) fn rings(&self) -> Vec<&RingRow> {
        let rings = self.sessions.values().flat_map(|session| &session.rings);
        let mut rings: Vec<_> = rings.filter(|ring| !ring.is_over).collect();
        rings.sort_by(|a, b| {
            let key = |ring: &RingRow| (ring.pid, ring.tid);
            let by_lost = b.lost.per_s.total_cmp(&a.lost.per_s);
            let by_rate = b.events.per_s.total_cmp(&a.events.per_s);
            by_lost.then(by_rate).then(key(a).cmp(&key(b)))
        });
        rings
    }

    /// Number of rings whose threads have ended.
    pub(crate) fn rings_over(&self) -> usize {
        let rings = self.sessions.values().flat_map(|session| &session.rings);
        rings.filter(|ring| ring.is_over).count()
    }

    /// Spans, functions and events by name.
    pub(crate) fn names(&self, order: Order) -> Vec<NameRow> {
        self.names.rows(order)
    }

    /// How much of what happened [`Model::names`] is of: in one session, or in all.
    pub(crate) fn coverage(&self, session: Option<Uuid>) -> Coverage {
        let is_meant = |uuid: &Uuid| session.is_none_or(|session| session == *uuid);
        self.names.coverage(is_meant)
    }

    /// Whether there were two looks, so that rates are known.
    pub(crate) const fn has_rates(&self) -> bool {
        self.looks > 1
    }

    /// Threads with open spans, the one whose outermost span has been open longest first.
    pub(crate) fn open(&self) -> Vec<OpenRow> {
        let mut rows = Vec::new();
        for session in self.sessions.values() {
            rows.extend(session.open.iter().map(|thread| OpenRow {
                pid: session.about.pid,
                thread: thread.clone(),
            }));
        }
        rows.sort_by_key(|row| (std::cmp::Reverse(row.open_ns()), row.pid, row.thread.tid));
        rows
    }

    /// Events a second of all sessions.
    pub(crate) fn events_per_s(&self) -> f64 {
        self.sessions.values().map(|s| s.events.per_s).sum()
    }

    /// Events lost since the starts, and lately in a second.
    pub(crate) fn lost(&self) -> (u64, f64) {
        let lost = self.sessions.values().map(|session| &session.lost);
        lost.fold((0, 0.0), |(total, per_s), lost| {
            (u64::saturating_add(total, lost.total), per_s + lost.per_s)
        })
    }
}

impl SessionRow {
    fn new(about: &About) -> Self {
        Self {
            about: about.clone(),
            rings: Vec::new(),
            ring_bytes: 0,
            fill_percent: 0,
            window_ns: None,
            events: Counter::default(),
            lost: Counter::default(),
            open: Vec::new(),
            at: None,
        }
    }

    fn take(&mut self, look: &Look, seconds: Option<f64>) {
        self.events.take(look.events(), seconds);
        self.lost.take(look.lost_in_all(), seconds);
        let before = std::mem::take(&mut self.rings).into_iter();
        let mut before: HashMap<u32, RingRow> = before.map(|row| (row.slot, row)).collect();
        for ring in &look.rings {
            let row = before.remove(&ring.info.slot);
            self.rings
                .push(RingRow::of(row, self.about.pid, ring, seconds));
        }
        let sum = |of: fn(&RingLook) -> u64| look.rings.iter().map(of).fold(0, u64::saturating_add);
        let pages = sum(|ring| ring.info.pages.into());
        self.ring_bytes = sum(ring_bytes);
        let filled = sum(|ring| ring.info.pages_filled.into());
        self.fill_percent = (filled * 100).checked_div(pages).unwrap_or(0);
        self.window_ns = look.rings.iter().filter_map(|ring| ring.window_ns).max();
    }
}

fn ring_bytes(ring: &RingLook) -> u64 {
    u64::from(ring.info.pages) * u64::from(ring.info.page_bytes)
}

/// Mean bytes of an event in the pages that are full.
fn event_bytes(ring: &RingLook) -> f64 {
    let bytes = ring.info.produced * u64::from(ring.info.page_bytes);
    bytes as f64 / ring.events.max(1) as f64
}

impl RingRow {
    /// How fast it fills; `None`: it is not known.
    pub(crate) fn filling(&self) -> Option<Filling> {
        let bytes_per_s = self.events.per_s * self.event_bytes;
        (bytes_per_s > 0.0).then_some(Filling {
            pages: self.pages,
            page_bytes: self.page_bytes,
            bytes_per_s,
        })
    }

    fn of(before: Option<Self>, pid: u32, ring: &RingLook, seconds: Option<f64>) -> Self {
        let (mut events, mut lost) =
            before.map_or_else(Default::default, |row| (row.events, row.lost));
        events.take(ring.events, seconds);
        lost.take(ring.lost(), seconds);
        Self {
            slot: ring.info.slot,
            pid,
            tid: ring.info.tid,
            thread: printable(&ring.info.thread_name),
            ring_bytes: ring_bytes(ring),
            fill_percent: ring.info.fill_percent(),
            window_ns: ring.window_ns,
            page_bytes: ring.info.page_bytes,
            pages: ring.info.pages,
            event_bytes: event_bytes(ring),
            events,
            lost,
            is_over: ring.info.state == state::SEALED,
        }
    }
}
