//! Promise: an HTTP server on several threads, with 10,000 requests under way at once, is recorded
//! whole: a `request` span for each request, parents right although tasks change threads, and all
//! that h2 says.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::time::Duration;

use ringmark_decoder::{Dump, Event, Output};
use ringmark_format::schema::Shape;
use ringmark_tests::delivery::number;
use ringmark_tests::fixture::{Fixture, stop_recorder};
use ringmark_tests::recording::decode;
use ringmark_tests::{Finished, Running, binary, is_long};
use serde_json::Value;

const RECORDER: &str = ringmark_tests::program!("recorder");
const REQUESTS: u64 = 10_000;
const CONNECTIONS: u64 = 50;
const LONG: Duration = Duration::from_secs(120);
const SERVER: &str = "http_server::server";

/// Spans and events by target.
type Counts = BTreeMap<String, u64>;

#[test]
fn ten_thousand_concurrent_requests() {
    // Everything: about four million records.
    let level = if is_long() { "trace" } else { "debug" };
    let (said, dump) = serve(level);
    assert_eq!(said["answered"].as_u64(), Some(REQUESTS));
    let found = dump.verify();
    assert!(found.damage.is_empty() && found.missing == 0, "{found}");
    println!("{level}: {} records, {} lost", found.events, found.lost);
    assert_eq!(found.events + found.lost, calls(&said["seen"]), "{found}");
    assert_eq!(found.lost, 0, "{found}");
    let trace = Trace::of(&dump);
    trace.expect_counts(&said["seen"]);
    trace.expect_requests();
    trace.expect_parents();
}

fn serve(level: &str) -> (Value, Dump) {
    let fixture = Fixture::new("http");
    let path = fixture.path("a.rmk");
    let recorder = fixture.recorder(RECORDER, &path, None).unwrap();
    let server = run_server(&fixture, level);
    let _ = stop_recorder(recorder, LONG);
    let said = serde_json::from_slice(&server.stdout).expect("a line of JSON");
    (said, decode(&[path]))
}

fn run_server(fixture: &Fixture, level: &str) -> Finished {
    let exe = binary::built("http-server");
    let ringmark = "mode=discard,ring=16M,session=512M";
    let mut command = fixture.program(&text(&exe), ringmark);
    command.args([REQUESTS.to_string(), CONNECTIONS.to_string()]);
    command.env("RINGMARK_FILTER", level);
    let server = Running::start(&mut command).expect("a server that starts");
    server.finish(LONG).expect_code(0)
}

fn text(path: &Path) -> String {
    path.to_str().expect("a path that is text").to_owned()
}

/// Calls of the subscriber that make a record.
fn calls(seen: &Value) -> u64 {
    let numbers = |name: &str| seen[name].as_object().expect("counts by target").values();
    let by_target = numbers("events").chain(numbers("spans"));
    let all = by_target.chain([&seen["closed"], &seen["others"]]);
    all.map(|n| n.as_u64().expect("a count")).sum()
}

/// A span as its first record tells it.
struct Span<'a> {
    name: &'a [u8],
    parent: Option<u64>,
    number: Option<u64>,
}

/// An event of a handler.
struct Inside {
    span: Option<u64>,
    number: Option<u64>,
    tid: u32,
}

#[derive(Default)]
struct Trace<'a> {
    spans: HashMap<u64, Span<'a>>,
    inside: Vec<Inside>,
    span_counts: Counts,
    event_counts: Counts,
    closed: u64,
}

impl<'a> Trace<'a> {
    fn of(dump: &'a Dump) -> Self {
        let mut trace = Self::default();
        for item in dump.events() {
            if let Output::Event(event) = item {
                trace.add(&event);
            }
        }
        trace
    }

    fn add(&mut self, event: &Event<'a>) {
        let target = String::from_utf8_lossy(event.target()).into_owned();
        match event.shape() {
            Some(Shape::SpanNew) => {
                *self.span_counts.entry(target).or_default() += 1;
                let span = Span {
                    name: event.name(),
                    parent: event.parent,
                    number: number(event, "number"),
                };
                let id = event.span.expect("a new span has an id");
                assert!(self.spans.insert(id, span).is_none(), "span {id} twice");
            }
            Some(Shape::SpanClose) => self.closed += 1,
            Some(Shape::Instant) => {
                if target == SERVER {
                    self.inside.push(Inside {
                        span: event.span,
                        number: number(event, "number"),
                        tid: event.tid(),
                    });
                }
                *self.event_counts.entry(target).or_default() += 1;
            }
            _ => {}
        }
    }

    /// What a counter in front of the subscriber saw is here, neither more nor less.
    fn expect_counts(&self, seen: &Value) {
        let counts = |name: &str| -> Counts {
            serde_json::from_value(seen[name].clone()).expect("counts by target")
        };
        assert_eq!(self.span_counts, counts("spans"));
        assert_eq!(self.event_counts, counts("events"));
        let spans: u64 = self.span_counts.values().sum();
        assert_eq!(Some(self.closed), seen["closed"].as_u64());
        assert_eq!(self.closed, spans, "new spans and closed ones");
        let of_h2 = |counts: &Counts| -> u64 {
            let h2 = counts.iter().filter(|(t, _)| t.starts_with("h2::"));
            h2.map(|(_, n)| n).sum()
        };
        // Two connections, client's and server's, and at least the frames of each request.
        assert!(of_h2(&self.span_counts) >= 2 * CONNECTIONS);
        assert!(of_h2(&self.event_counts) >= 6 * REQUESTS);
    }

    /// One `request` span, one `work` span and one `deeper` span for each number.
    fn expect_requests(&self) {
        for name in ["request", "work", "deeper"] {
            let named = self.spans.values().filter(|s| s.name == name.as_bytes());
            let numbers: Vec<_> = named.map(|s| s.number).collect();
            assert_eq!(numbers.len() as u64, REQUESTS, "{name} spans");
            let different: BTreeSet<_> = numbers.into_iter().flatten().collect();
            assert!(different.into_iter().eq(0..REQUESTS), "numbers of {name}");
        }
    }

    /// From every event of a handler the parents lead to the request with the same number, over
    /// spans with the same number; and many requests were handled by several threads.
    fn expect_parents(&self) {
        let mut depths = BTreeMap::<Vec<&[u8]>, u64>::new();
        let mut tids = HashMap::<u64, BTreeSet<u32>>::new();
        for event in &self.inside {
            let number = event.number.expect("every event has its number");
            tids.entry(number).or_default().insert(event.tid);
            *depths.entry(self.chain(event.span, number)).or_default() += 1;
        }
        let expected: [(Vec<&[u8]>, u64); 3] = [
            (vec![b"request"], 3 * REQUESTS),
            (vec![b"work", b"request"], 2 * REQUESTS),
            (vec![b"deeper", b"work", b"request"], REQUESTS),
        ];
        assert_eq!(depths, BTreeMap::from(expected));
        let moved = tids.values().filter(|tids| tids.len() > 1).count();
        println!("{moved} requests changed threads");
        assert!(moved as u64 > REQUESTS / 100, "{moved} requests moved");
    }

    /// Names of the spans around, from the inside out to `request`.
    fn chain(&self, mut span: Option<u64>, number: u64) -> Vec<&'a [u8]> {
        let mut names = Vec::new();
        while let Some(around) = span.and_then(|id| self.spans.get(&id)) {
            assert_eq!(around.number, Some(number), "a parent of request {number}");
            names.push(around.name);
            if around.name == b"request" || names.len() > 3 {
                break;
            }
            span = around.parent;
        }
        names
    }
}
