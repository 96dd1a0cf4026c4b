//! What takes the most time: the spans, functions and events of each name, with their rates.

use std::collections::HashMap;
use std::time::Duration;

use ringmark_decoder::{Sampled, SampledKind, SampledName};
use ringmark_format::Uuid;

use super::history::History;
use ringmark_console::printable;

/// What rows of names are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Order {
    /// Time of their own
    #[default]
    #[value(name = "self")]
    Own,
    /// Time with what is inside
    Total,
    /// How many a second
    Count,
    /// How long one takes on average
    Mean,
    /// How long the longest one took
    Max,
    /// The alphabet
    Name,
}

impl Order {
    const ALL: [Self; 6] = [
        Self::Own,
        Self::Total,
        Self::Count,
        Self::Mean,
        Self::Max,
        Self::Name,
    ];

    /// As it is written.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Own => "self",
            Self::Total => "total",
            Self::Count => "count",
            Self::Mean => "mean",
            Self::Max => "max",
            Self::Name => "name",
        }
    }

    /// The order after this one.
    pub(crate) fn next(self) -> Self {
        let at = Self::ALL.iter().position(|order| *order == self);
        Self::ALL[at.map_or(0, |at| at + 1) % Self::ALL.len()]
    }

    fn figure(self, row: &NameRow) -> f64 {
        match self {
            Self::Own => row.own.or(row.total).unwrap_or(-1.0),
            Self::Total => row.total.unwrap_or(-1.0),
            Self::Count | Self::Name => row.per_s,
            Self::Mean => row.mean_ns.unwrap_or(-1.0),
            Self::Max => row.max_ns.map_or(-1.0, |ns| ns as f64),
        }
    }
}

/// A name of a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    pid: u32,
    kind: SampledKind,
    target: Vec<u8>,
    name: Vec<u8>,
}

/// The spans, calls or events of one name in a process.
#[derive(Debug, Clone)]
pub(crate) struct NameRow {
    pub(crate) pid: u32,
    pub(crate) kind: SampledKind,
    pub(crate) name: String,
    pub(crate) target: String,
    /// How many a second.
    pub(crate) per_s: f64,
    /// Time of their own, as a part of the time that passed: more than 1 in several threads.
    pub(crate) own: Option<f64>,
    /// Time in them, likewise.
    pub(crate) total: Option<f64>,
    pub(crate) mean_ns: Option<f64>,
    pub(crate) max_ns: Option<u64>,
    pub(crate) history: History,
}

/// Sums of one name over the sessions of its process, each for a second.
#[derive(Debug, Clone, Copy, Default)]
struct Rates {
    count: f64,
    timed: f64,
    total_ns: f64,
    own_ns: Option<f64>,
    max_ns: u64,
}

impl Rates {
    fn add(&mut self, name: &SampledName, seconds: f64) {
        self.count += name.count / seconds;
        self.timed += name.timed / seconds;
        self.total_ns += name.total_ns / seconds;
        if let Some(own_ns) = name.self_ns() {
            self.own_ns = Some(self.own_ns.unwrap_or(0.0) + own_ns / seconds);
        }
        self.max_ns = self.max_ns.max(name.max_ns);
    }
}

/// How much of what happened was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Coverage {
    pub(crate) events: u64,
    pub(crate) looked_at: u64,
}

impl Coverage {
    /// In percent, rounded down unless it is all; `None`: all.
    pub(crate) fn percent(self) -> Option<f64> {
        let part = self.looked_at as f64 / self.events.max(1) as f64;
        (self.looked_at < self.events).then_some(100.0 * part)
    }
}

/// The last sample of each session, and the history of each name.
#[derive(Debug, Default)]
pub(crate) struct Names {
    samples: HashMap<Uuid, (u32, Sampled, f64)>,
    histories: HashMap<Key, History>,
}

impl Names {
    /// Takes a new sample of a session of process `pid`, over this time.
    pub(crate) fn sample(&mut self, session: Uuid, pid: u32, sampled: Sampled, over: Duration) {
        let seconds = over.as_secs_f64().max(1e-3);
        self.samples.insert(session, (pid, sampled, seconds));
    }

    /// Forgets all sessions but these.
    pub(crate) fn keep(&mut self, is_there: impl Fn(&Uuid) -> bool) {
        self.samples.retain(|session, _| is_there(session));
    }

    /// Notes the present rates as the latest values of the histories.
    pub(crate) fn note(&mut self) {
        let rates = self.rates();
        for (key, history) in &mut self.histories {
            let rate = rates.get(key).map_or(0.0, |rates| rates.count);
            history.push(rate);
        }
        for (key, rates) in rates {
            self.histories.entry(key).or_insert_with(|| {
                let mut history = History::default();
                history.push(rates.count);
                history
            });
        }
        self.histories.retain(|_, history| !history.is_flat());
    }

    fn rates(&self) -> HashMap<Key, Rates> {
        let mut rates: HashMap<Key, Rates> = HashMap::new();
        for (pid, sampled, seconds) in self.samples.values() {
            for name in &sampled.names {
                let key = Key {
                    pid: *pid,
                    kind: name.kind,
                    target: name.target.clone(),
                    name: name.name.clone(),
                };
                rates.entry(key).or_default().add(name, *seconds);
            }
        }
        rates
    }

    /// How much of what happened in sessions the present rates are of.
    pub(crate) fn coverage(&self, is_meant: impl Fn(&Uuid) -> bool) -> Coverage {
        let mut all = Coverage::default();
        let samples = self.samples.iter().filter(|(session, _)| is_meant(session));
        for (_, (_, sampled, _)) in samples {
            all.events = all.events.saturating_add(sampled.events);
            all.looked_at = all.looked_at.saturating_add(sampled.looked_at);
        }
        all
    }

    /// The names that were met last, in this order.
    pub(crate) fn rows(&self, order: Order) -> Vec<NameRow> {
        let row = |(key, rates): (Key, Rates)| NameRow {
            pid: key.pid,
            kind: key.kind,
            name: printable(&String::from_utf8_lossy(&key.name)),
            target: printable(&String::from_utf8_lossy(&key.target)),
            per_s: rates.count,
            own: rates.own_ns.map(|ns| ns / 1e9),
            total: (rates.timed > 0.0).then_some(rates.total_ns / 1e9),
            mean_ns: (rates.timed > 0.0).then_some(rates.total_ns / rates.timed),
            max_ns: (rates.timed > 0.0).then_some(rates.max_ns),
            history: self.histories.get(&key).cloned().unwrap_or_default(),
        };
        let mut rows: Vec<_> = self.rates().into_iter().map(row).collect();
        rows.sort_by(|a, b| {
            let by_figure = order.figure(b).total_cmp(&order.figure(a));
            let by_count = b.per_s.total_cmp(&a.per_s);
            let by_name = (&a.name, &a.target, a.pid).cmp(&(&b.name, &b.target, b.pid));
            match order {
                Order::Name => by_name,
                _ => by_figure.then(by_count).then(by_name),
            }
        });
        rows
    }
}
