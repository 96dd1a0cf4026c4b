//! A host: pages that its programs write, where they wait, and what of them is sent.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use ringmark_reader::stream::machines::{
    BATCH_BYTES, Backoff, CREDIT_ENOUGH, RateLimit, Share1024, Terms, Waits, is_spill_due,
};

use super::Fleet;
use super::collector::Arrived;

/// Wait after the first failed attempt, as in `ringmark stream`.
const RETRY: Duration = Duration::from_millis(100);
/// How long a page may be under way before it counts as waiting.
const LATE: u64 = 100_000;

/// Bytes of the block that announces its session.
pub(super) const SESSION_BYTES: u64 = 384;

/// Where a host stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits for its next attempt.
    Apart,
    /// It shakes hands with this collector.
    Shaking(usize),
    /// It was welcomed by this one, and waits for credit to announce its session.
    Greeted(usize),
    /// It has announced it, and waits for RESUME.
    Announced(usize),
    /// It streams to this one.
    Streaming(usize),
}

/// A batch that was sent, and when.
#[derive(Debug)]
struct InFlight {
    batch: Arrived,
    at: u64,
}

#[derive(Debug)]
pub(super) struct Host {
    /// When its first page is full.
    pub(super) begun: u64,
    pub(super) stage: Stage,
    /// The how manieth attempt to connect the present one is.
    pub(super) attempt: u64,
    pub(super) backoff: Backoff,
    rate: Option<RateLimit>,
    pub(super) away_since: u64,
    /// When it was welcomed.
    pub(super) since: u64,
    /// A step is planned.
    pub(super) is_planned: bool,
    /// Pages written, those lost included: the number of the next one.
    pub(super) written: u64,
    pub(super) lost: u64,
    /// Pages that are not acknowledged, in order, and how many they are.
    held: VecDeque<Range<u64>>,
    pub(super) waiting: u64,
    /// Pages of them on disk, and pages there that are acknowledged but whose file has others.
    on_disk: u64,
    dead: u64,
    /// Pages of them that were sent.
    sent_pages: u64,
    pub(super) sent: u64,
    pub(super) durable: u64,
    pub(super) credit: u64,
    /// What the collector has read.
    pub(super) read: u64,
    /// It waits until the collector reads.
    pub(super) is_full: bool,
    in_flight: VecDeque<InFlight>,
    /// The page after the last one that is stored.
    pub(super) stored: u64,
    /// The backlog is stored when this page is; `None`: it is.
    pub(super) backlog_to: Option<u64>,
    /// It has pages that waited longer than usual, since the outage.
    pub(super) is_behind: bool,
}

impl Host {
    pub(super) fn new(begun: u64, of: &Fleet, zero: Instant) -> Self {
        let rate = of.max_rate.map(|rate| RateLimit::new_at(Some(rate), zero));
        Self {
            begun,
            stage: Stage::Apart,
            attempt: 0,
            backoff: Backoff::new(RETRY),
            rate,
            away_since: 0,
            since: 0,
            is_planned: false,
            written: 0,
            lost: 0,
            held: VecDeque::new(),
            waiting: 0,
            on_disk: 0,
            dead: 0,
            sent_pages: 0,
            sent: 0,
            durable: 0,
            credit: 0,
            read: 0,
            is_full: false,
            in_flight: VecDeque::new(),
            stored: 0,
            backlog_to: None,
            is_behind: false,
        }
    }

    /// When this page is full.
    pub(super) const fn full_at(&self, page: u64, of: &Fleet) -> u64 {
        self.begun + page * of.period()
    }

    /// Writes what is due by now.
    pub(super) fn write(&mut self, now: u64, of: &Fleet) {
        while self.full_at(self.written, of) <= now {
            let at = self.full_at(self.written, of);
            if self.waiting - self.on_disk >= of.ring {
                self.lost += 1;
            } else {
                match self.held.back_mut().filter(|last| last.end == self.written) {
                    Some(last) => last.end += 1,
                    None => self.held.push_back(self.written..self.written + 1),
                }
                self.waiting += 1;
                self.spill(at, of);
            }
            self.written += 1;
        }
    }

    /// Moves pages to disk, if they must not wait in the ring any longer.
    fn spill(&mut self, now: u64, of: &Fleet) {
        let in_ring = self.waiting - self.on_disk;
        let waits = self.waits(now);
        if !is_spill_due(Share1024::of(in_ring, of.ring), waits) {
            return;
        }
        let room = (of.spill / of.block()).saturating_sub(self.on_disk + self.dead);
        self.on_disk += in_ring.min(room);
    }

    fn waits(&self, now: u64) -> Waits {
        if !matches!(self.stage, Stage::Streaming(_)) {
            let away = now.saturating_sub(self.away_since);
            return Waits::Away(Duration::from_micros(away));
        }
        let is_late = |first: &InFlight| now.saturating_sub(first.at) >= LATE;
        match self.unsent() > 0 || self.in_flight.front().is_some_and(is_late) {
            true => Waits::Slow,
            false => Waits::UnderWay,
        }
    }

    pub(super) const fn unsent(&self) -> u64 {
        self.waiting - self.sent_pages
    }

    /// Whether these pages follow what is stored: those between them were lost.
    pub(super) fn is_next(&self, pages: &Range<u64>) -> bool {
        let is_held = |page: u64| self.held.iter().any(|range| range.contains(&page));
        pages.start <= self.stored || !is_held(self.stored) && !is_held(pages.start - 1)
    }

    /// Begins to send on a new connection.
    pub(super) fn greeted(&mut self, at: usize, now: u64, credit: u64) {
        self.stage = Stage::Greeted(at);
        self.since = now;
        self.is_planned = false;
        self.credit = credit;
    }

    /// SESSION, if there is credit for it and it was not sent.
    pub(super) fn announce(&mut self) -> Option<(usize, Arrived)> {
        let Stage::Greeted(at) = self.stage else {
            return None;
        };
        if self.credit < SESSION_BYTES {
            return None;
        }
        self.stage = Stage::Announced(at);
        self.sent = SESSION_BYTES;
        let session = Arrived {
            end: SESSION_BYTES,
            bytes: SESSION_BYTES,
            pages: 0..0,
        };
        Some((at, session))
    }

    /// Whether no page waits that was full by then.
    pub(super) fn has_sent_to(&self, then: u64, of: &Fleet) -> bool {
        let first = self.held.front();
        first.is_none_or(|first| self.full_at(first.start, of) > then)
    }

    /// The first page that is not acknowledged, or not written.
    pub(super) fn first_held(&self) -> u64 {
        self.held.front().map_or(self.written, |first| first.start)
    }

    /// The last page that is not acknowledged.
    pub(super) fn last_held(&self) -> Option<u64> {
        self.held.back().map(|last| last.end - 1)
    }

    /// The connection is lost: what is not acknowledged is sent again.
    pub(super) fn hang_up(&mut self, now: u64) {
        self.stage = Stage::Apart;
        self.away_since = now;
        self.in_flight.clear();
        self.sent_pages = 0;
        (self.sent, self.durable, self.credit, self.read) = (0, 0, 0, 0);
    }

    /// The next batch, if it may be sent now.
    pub(super) fn batch(&mut self, now: u64, at: Instant, of: &Fleet) -> Sent {
        if self.unsent() == 0 {
            return Sent::All;
        }
        let sent = self.sent;
        if self
            .rate
            .as_mut()
            .is_some_and(|rate| !rate.allows_at(sent, at))
        {
            return Sent::TooFast;
        }
        self.is_full = self.sent - self.read >= of.socket;
        let room = match self.is_full {
            true => 0,
            false => self.credit.saturating_sub(self.sent),
        };
        let terms = Terms::read(&[]);
        if !terms.has_room(room, CREDIT_ENOUGH, self.sent != self.durable) {
            return Sent::NoCredit;
        }
        let most = BATCH_BYTES.min(room) / of.block();
        let mut pages = self.next_pages();
        pages.end = pages.end.min(pages.start + most);
        if pages.is_empty() {
            return Sent::NoCredit;
        }
        let bytes = (pages.end - pages.start) * of.block();
        self.sent += bytes;
        self.sent_pages += pages.end - pages.start;
        let batch = Arrived {
            end: self.sent,
            bytes,
            pages,
        };
        self.in_flight.push_back(InFlight {
            batch: batch.clone(),
            at: now,
        });
        Sent::Batch(batch)
    }

    /// The pages after those that were sent, up to the next that is lost.
    fn next_pages(&self) -> Range<u64> {
        let mut before = self.sent_pages;
        for range in &self.held {
            let pages = range.end - range.start;
            if before < pages {
                return range.start + before..range.end;
            }
            before -= pages;
        }
        0..0
    }

    /// ACK came. `each` is told of the pages that are acknowledged.
    pub(super) fn acknowledged(
        &mut self,
        (durable, credit): (u64, u64),
        now: u64,
        of: &Fleet,
        mut each: impl FnMut(&Range<u64>),
    ) {
        (self.durable, self.credit) = (durable.max(self.durable), credit.max(self.credit));
        let mut pages = 0;
        while let Some(first) = self
            .in_flight
            .front()
            .filter(|first| first.batch.end <= durable)
        {
            let acknowledged = &first.batch.pages;
            each(acknowledged);
            pages += acknowledged.end - acknowledged.start;
            self.in_flight.pop_front();
        }
        if pages == 0 {
            return;
        }
        self.backoff
            .progressed(Duration::from_micros(now - self.since));
        self.release(pages, of);
    }

    /// The first pages are acknowledged.
    fn release(&mut self, pages: u64, of: &Fleet) {
        self.waiting -= pages;
        self.sent_pages -= pages;
        let from_disk = pages.min(self.on_disk);
        self.on_disk -= from_disk;
        self.dead += from_disk;
        let file = (of.spill / 16).min(64 << 20) / of.block();
        while file > 0 && self.dead >= file {
            self.dead -= file;
        }
        if self.on_disk == 0 {
            self.dead = 0;
        }
        let mut left = pages;
        while left > 0 {
            let first = self.held.front_mut().expect("what was sent is held");
            let taken = left.min(first.end - first.start);
            first.start += taken;
            left -= taken;
            if first.is_empty() {
                self.held.pop_front();
            }
        }
    }
}

/// What became of an attempt to send.
pub(super) enum Sent {
    Batch(Arrived),
    All,
    NoCredit,
    TooFast,
}
