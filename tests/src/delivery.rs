//! What a dump delivers of each thread and what it counts as lost, in order.
//!
//! The programs number the events of each thread: field `thread` says whose it is, `seq` counts
//! from 0. So every event says how many there were before it, and so do the losses.

use std::collections::BTreeMap;

use ringmark_decoder::{Dump, Event, Lost, Output, Value, Why};
use ringmark_format::Uuid;

/// Deliveries and losses of one ring, which one thread wrote.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Ring {
    /// The thread, as its events say.
    pub thread: Option<u64>,
    /// Events that are there.
    pub delivered: u64,
    /// Events that are not there, by cause.
    pub lost: BTreeMap<&'static str, u64>,
    /// What does not fit: an event that is there twice, in the wrong place, or not counted as lost.
    pub errors: Vec<String>,
    /// Number that the next event must have.
    next: u64,
}

impl Ring {
    /// Events accounted for: there, or counted as lost.
    #[must_use]
    pub fn emitted(&self) -> u64 {
        self.next
    }

    /// Events lost, all causes.
    #[must_use]
    pub fn lost_in_all(&self) -> u64 {
        self.lost.values().sum()
    }

    fn take_event(&mut self, thread: u64, seq: u64) {
        self.delivered += 1;
        let same = *self.thread.get_or_insert(thread) == thread;
        if (!same || seq != self.next) && self.errors.len() < 10 {
            let (expected, whose) = (self.next, self.thread);
            self.errors.push(format!(
                "event {seq} of thread {thread}, expected {expected} of {whose:?}; lost so far {:?}",
                self.lost
            ));
        }
        self.next = seq + 1;
    }

    fn take_loss(&mut self, lost: &Lost<'_>) {
        if lost.loss.why == Why::Missing {
            let count = lost.loss.count;
            self.errors
                .push(format!("{count} events were written and are not here"));
        }
        self.next += lost.loss.count;
        *self.lost.entry(lost.loss.why.cause()).or_default() += lost.loss.count;
    }
}

/// The books of every ring of a dump whose threads each kept theirs to the end.
#[derive(Debug, Default)]
pub struct Delivery {
    /// By session and slot.
    pub rings: BTreeMap<(Uuid, u32), Ring>,
    /// Losses that belong to no ring, by cause.
    pub elsewhere: BTreeMap<&'static str, u64>,
}

/// An unsigned field of an event.
#[must_use]
pub fn number(event: &Event<'_>, field: &str) -> Option<u64> {
    let mut args = event.args();
    let (_, value) = args.find(|(f, _)| f.name == field.as_bytes())?;
    match value {
        Value::U64(number) => Some(number),
        _ => None,
    }
}

/// That the payload of each event of `emit` is the one that its number asks for: none is torn.
/// Returns the number of events.
///
/// # Panics
/// When one is.
pub fn expect_whole(dump: &Dump) -> u64 {
    let events = dump.events().filter_map(|item| match item {
        Output::Event(event) => Some(event),
        Output::Lost(_) => None,
    });
    events.inspect(expect_whole_event).count() as u64
}

fn expect_whole_event(event: &Event<'_>) {
    let seq = number(event, "seq").expect("a number");
    let bulk = event.args().find(|(field, _)| field.name == b"bulk");
    let right = |(n, byte): (usize, &u8)| *byte == (seq as usize + n) as u8;
    let whole = match bulk {
        Some((_, Value::Bytes(bytes))) => !bytes.is_empty() && bytes.iter().enumerate().all(right),
        _ => number(event, "check") == Some(!seq),
    };
    assert!(whole, "event {seq} is torn");
}

impl Delivery {
    /// Goes over a dump. Events without `thread` and `seq` are errors.
    #[must_use]
    pub fn of(dump: &Dump) -> Self {
        let mut account = Self::default();
        for item in dump.events() {
            match item {
                Output::Event(event) => account.take_event(&event),
                Output::Lost(lost) => account.take_loss(&lost),
            }
        }
        account
    }

    fn take_event(&mut self, event: &Event<'_>) {
        let key = (event.session.uuid, event.slot().0);
        let ring = self.rings.entry(key).or_default();
        match (number(event, "thread"), number(event, "seq")) {
            (Some(thread), Some(seq)) => ring.take_event(thread, seq),
            _ => ring.errors.push("an event without thread and seq".into()),
        }
    }

    fn take_loss(&mut self, lost: &Lost<'_>) {
        match lost.page {
            Some(page) => {
                let key = (lost.session.uuid, page.header.slot);
                self.rings.entry(key).or_default().take_loss(lost);
            }
            None => {
                *self.elsewhere.entry(lost.loss.why.cause()).or_default() += lost.loss.count;
            }
        }
    }

    /// Events that are there, all rings.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.rings.values().map(|r| r.delivered).sum()
    }

    /// Events that are not there, all rings and none.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let in_rings: u64 = self.rings.values().map(Ring::lost_in_all).sum();
        in_rings + self.elsewhere.values().sum::<u64>()
    }

    /// That there are `threads` rings, one for each thread number, each with `events` accounted
    /// for in their place.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub fn expect_exact(&self, threads: u64, events: u64) {
        self.expect_no_errors();
        assert!(self.elsewhere.is_empty(), "{:?}", self.elsewhere);
        let mut seen: Vec<_> = self.rings.values().map(|r| r.thread).collect();
        seen.sort_unstable();
        let expected: Vec<_> = (0..threads).map(Some).collect();
        assert_eq!(seen, expected, "threads that have rings");
        for (place, ring) in &self.rings {
            let (lost, delivered) = (&ring.lost, ring.delivered);
            assert_eq!(
                ring.emitted(),
                events,
                "{place:?}: delivered {delivered}, lost {lost:?}, emitted {events}"
            );
        }
    }

    /// That each thread has exactly the events whose calls had returned, there or counted as lost;
    /// and where one more call had begun, that one's too or not.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub fn expect_ledger(&self, ledger: &[(u64, u64)]) {
        self.expect_no_errors();
        assert_eq!(self.rings.len(), ledger.len());
        for ring in self.rings.values() {
            let (found, lost) = (ring.emitted(), &ring.lost);
            let thread = ring.thread.expect("a thread");
            let (returned, begun) = ledger[thread as usize];
            assert!(
                (returned..=begun).contains(&found),
                "thread {thread}: begun {begun}, returned {returned}, found {found}, lost {lost:?}"
            );
        }
    }

    /// That every event stands where its number says.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub fn expect_no_errors(&self) {
        for (place, ring) in &self.rings {
            assert!(ring.errors.is_empty(), "{place:?}: {:#?}", ring.errors);
        }
    }
}
