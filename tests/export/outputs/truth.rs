//! What is true of a trace: how many there are of each name, and in what, is what the program says; how long they
//! took, and how long without what is inside, are sums over the records, made here.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use ringmark_tests::fixture::Fixture;
use serde_json::Value;

use super::{Places, Row, Rows, Shown, lines, place, say};

/// What a program says: for each name how many there were in each other name.
pub(crate) type Said = BTreeMap<String, BTreeMap<String, u64>>;

/// A span or call that has ended.
struct Done {
    name: String,
    took_ns: u64,
    /// In which a thread was in it.
    busy_ns: u64,
    /// In another of its name.
    is_inner: bool,
    /// The call around a call.
    around: Option<String>,
}

/// A span over threads, or a call, that has begun.
struct Begun {
    name: String,
    at_ns: u64,
    busy_ns: u64,
    entered_ns: u64,
}

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A span of a thread, at its end.
    Span,
    New,
    Enter,
    Exit,
    Close,
    /// A call begins.
    Entry,
    /// A call ends.
    Left,
}

/// A record of a span or call, whoever shows it.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) thread: u64,
    /// Of a span over threads.
    pub(crate) span: u64,
    pub(crate) at_ns: u64,
    /// Of a span of a thread.
    pub(crate) took_ns: u64,
    /// Of a span in another of its name.
    pub(crate) depth: u64,
}

/// The records of spans and calls that `cat --json --raw` shows.
pub(crate) fn records(fixture: &Fixture, trace: &Path) -> Vec<Record> {
    let text = say(fixture, "cat --json --raw", trace);
    lines(&text).filter_map(|line| record(&line)).collect()
}

fn record(line: &Value) -> Option<Record> {
    let kind = match line["kind"].as_str().expect("a kind") {
        "span" => Kind::Span,
        "span_new" => Kind::New,
        "span_enter" => Kind::Enter,
        "span_exit" => Kind::Exit,
        "span_close" => Kind::Close,
        "function_entry" => Kind::Entry,
        "function_exit" | "function_unwound" => Kind::Left,
        _ => return None,
    };
    let id = line["span"].as_str().and_then(|id| id.strip_prefix("0x"));
    Some(Record {
        kind,
        name: line["name"].as_str().expect("a name").to_owned(),
        thread: line["tid"].as_u64().expect("a thread"),
        span: id.map_or(0, |id| u64::from_str_radix(id, 16).expect("an id")),
        at_ns: line["t_ns"].as_u64().expect("a time"),
        took_ns: line["dur_ns"].as_u64().unwrap_or(0),
        depth: line["args"]["depth"].as_u64().unwrap_or(0),
    })
}

/// From records to what began and ended.
#[derive(Default)]
struct Replay {
    spans: HashMap<u64, Begun>,
    calls: HashMap<u64, Vec<Begun>>,
    done: Vec<Done>,
}

impl Replay {
    fn take(&mut self, record: &Record) {
        let at_ns = record.at_ns;
        let begun = || Begun {
            name: record.name.clone(),
            at_ns,
            busy_ns: 0,
            entered_ns: at_ns,
        };
        match record.kind {
            Kind::Span => self.done.push(Done {
                name: record.name.clone(),
                took_ns: record.took_ns,
                busy_ns: record.took_ns,
                is_inner: record.depth > 0,
                around: None,
            }),
            Kind::New => drop(self.spans.insert(record.span, begun())),
            Kind::Enter => self.span(record).entered_ns = at_ns,
            Kind::Exit => {
                let span = self.span(record);
                span.busy_ns += at_ns - span.entered_ns;
            }
            Kind::Close => {
                let span = self.spans.remove(&record.span).expect("a span");
                self.done.push(Done {
                    took_ns: at_ns - span.at_ns,
                    busy_ns: span.busy_ns,
                    is_inner: false,
                    around: None,
                    name: span.name,
                });
            }
            Kind::Entry => self.calls.entry(record.thread).or_default().push(begun()),
            Kind::Left => self.left(record),
        }
    }

    fn span(&mut self, record: &Record) -> &mut Begun {
        self.spans.get_mut(&record.span).expect("a span")
    }

    fn left(&mut self, record: &Record) {
        let open = self.calls.entry(record.thread).or_default();
        let call = open.pop().expect("a call");
        assert_eq!(call.name, record.name, "calls are nested");
        let took_ns = record.at_ns - call.at_ns;
        let done = Done {
            took_ns,
            busy_ns: took_ns,
            is_inner: open.iter().any(|around| around.name == call.name),
            around: open.last().map(|around| around.name.clone()),
            name: call.name,
        };
        self.done.push(done);
    }
}

/// The truth of a trace.
#[derive(Default)]
pub(crate) struct Truth {
    pub(crate) rows: Rows,
    /// Names of what the program made that is no span.
    pub(crate) events: Vec<String>,
    pub(crate) places: Places,
}

impl Truth {
    /// Without what the program says of places, those of calls are those of the records.
    pub(crate) fn of(records: &[Record], said: Option<&Said>) -> Self {
        let mut replay = Replay::default();
        records.iter().for_each(|record| replay.take(record));
        let mut truth = Self::default();
        for done in &replay.done {
            truth.add(done, said);
        }
        let rows = &mut truth.rows;
        for done in &replay.done {
            if let Some(around) = around(done, said)
                && let Some(row) = rows.get_mut(&around)
            {
                row.own_ns -= done.busy_ns;
            }
        }
        if let Some(said) = said {
            let all = said.iter();
            let all = all.flat_map(|(name, places)| {
                let pair = move |around: &String| (name.clone(), around.clone());
                places.iter().map(move |(around, n)| (pair(around), *n))
            });
            let (spans, events): (Places, Places) =
                all.partition(|((name, _), _)| truth.rows.contains_key(name));
            assert_eq!(truth.places, spans, "what the program says");
            truth.events = events.into_keys().map(|(name, _)| name).collect();
        }
        truth
    }

    fn add(&mut self, done: &Done, said: Option<&Said>) {
        let row = self.rows.entry(done.name.clone()).or_default();
        row.count += 1;
        row.own_ns += done.busy_ns;
        if !done.is_inner {
            row.total_ns += done.took_ns;
        }
        let around = around(done, said).unwrap_or_default();
        place(&mut self.places, &done.name, &around, 1);
    }

    /// Panics if this is not so.
    pub(crate) fn compare(&self, output: &str, shown: &Shown) {
        let counts: BTreeMap<_, _> = self
            .rows
            .iter()
            .map(|(n, r)| (n.clone(), r.count))
            .collect();
        if let Some(found) = &shown.counts {
            assert_eq!(*found, counts, "{output}: counts");
        }
        if let Some(found) = &shown.places {
            assert_eq!(*found, self.places, "{output}: what is in what");
        }
        let times = [
            (
                "total",
                &shown.totals,
                (|row| row.total_ns) as fn(&Row) -> u64,
            ),
            ("self", &shown.owns, |row| row.own_ns),
        ];
        for (what, found, figure) in times {
            let Some(found) = found else { continue };
            for (name, row) in &self.rows {
                let (found, expected) = (found.get(name).copied(), figure(row));
                // A time of day has whole ns: each end of a record may be one off.
                let slack = if shown.is_rounded { expected / 150 } else { 0 } + 2 * row.count;
                let is_near = found.unwrap_or(0).abs_diff(expected) <= slack;
                assert!(
                    is_near,
                    "{output}: {what} of {name} is {found:?}, not {expected}"
                );
            }
        }
    }
}

/// The name that a span or call is in.
fn around(done: &Done, said: Option<&Said>) -> Option<String> {
    let Some(said) = said else {
        return done.around.clone();
    };
    let places = said.get(&done.name)?;
    if done.is_inner {
        return Some(done.name.clone());
    }
    let mut others = places.keys().filter(|around| **around != done.name);
    let around = others.next().filter(|around| !around.is_empty());
    assert_eq!(others.next(), None, "{} is in two names", done.name);
    around.cloned()
}
