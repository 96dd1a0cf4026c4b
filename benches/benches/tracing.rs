//! P4: what the bridge from `tracing` costs beside native events and a `Registry` with a layer
//! that does nothing.
//!
//! Each subscriber is the global default of a process of its own, as in real programs; windows of
//! all candidates are interleaved, so that one run compares them under the same load.

use std::cell::Cell;
use std::fmt;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use ringmark_benches::{child_argument, finish, percentiles, print_bar};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::SubscriberExt;

const WINDOWS: usize = 300;
const PER_WINDOW: u64 = 500;

/// The process that runs it, its name, what is measured.
type Body = (&'static str, &'static str, fn(u64));

const BODIES: [Body; 15] = [
    ("bridge", "clock", clock),
    ("bridge", "native event", native_event),
    ("bridge", "native span", native_span),
    ("bridge", "event", event),
    ("bridge", "event with message", message),
    ("bridge", "span", span),
    ("layer", "span", span),
    ("empty", "event", event),
    ("empty", "span", span),
    ("clocks", "event", event),
    ("clocks", "span", span),
    ("least", "event", event),
    ("least", "span", span),
    ("registry", "event", event),
    ("registry", "span", span),
];

/// A layer that does nothing.
struct Nothing;

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Nothing {}

/// A subscriber that does nothing: the price of `tracing` itself.
struct Empty;

impl Subscriber for Empty {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A subscriber that does nothing but read the clock: once for an event, when a span is made, and when it is
/// left. What records any of these with its time cannot be faster.
struct Clocks;

impl Subscriber for Clocks {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        read_clock();
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        read_clock();
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {
        read_clock();
    }
}

/// The least that a bridge does: the records that ours makes, with the same two readings of the clock for a
/// span, under fixed types. No call site is looked up, no span is kept, and nothing is known of what is open.
struct Least;

thread_local! {
    /// When the last span was made or left.
    static AT: Cell<u64> = const { Cell::new(0) };
}

/// The last number that it was given.
struct Number(u64);

impl Visit for Number {
    fn record_u64(&mut self, _: &Field, value: u64) {
        self.0 = value;
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

impl Subscriber for Least {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut number = Number(0);
        attributes.record(&mut number);
        AT.set(ringmark::ticks());
        ringmark::event_at!(
            AT.get(),
            "least.new",
            id = 1_u64,
            parent = 0_u64,
            rows = number.0
        );
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut number = Number(0);
        event.record(&mut number);
        ringmark::event!("least.event", value = number.0);
    }

    fn enter(&self, id: &Id) {
        ringmark::event_at!(AT.get(), "least.enter", id = id.into_u64());
    }

    fn exit(&self, id: &Id) {
        AT.set(ringmark::ticks());
        ringmark::event_at!(AT.get(), "least.exit", id = id.into_u64());
    }

    fn try_close(&self, id: Id) -> bool {
        ringmark::event_at!(AT.get(), "least.close", id = id.into_u64());
        true
    }
}

fn read_clock() {
    black_box(ringmark_ring::clock::tsc());
}

fn clock(_: u64) {
    black_box(ringmark::ticks());
}

fn native_event(i: u64) {
    ringmark::event!("cost.native", value = i);
}

fn native_span(i: u64) {
    drop(ringmark::span!("cost.span", value = i));
}

fn event(i: u64) {
    tracing::info!(value = i);
}

fn message(i: u64) {
    tracing::info!(value = i, "request done");
}

fn span(i: u64) {
    let span = tracing::info_span!("query", rows = i);
    drop(span.enter());
}

/// ns per call in one window; the first calls (page faults, registration) are not measured.
fn measure(body: fn(u64)) -> f64 {
    (0..20).for_each(body);
    let start = Instant::now();
    for i in 0..PER_WINDOW {
        body(black_box(i));
    }
    start.elapsed().as_nanos() as f64 / PER_WINDOW as f64
}

/// Measures what the lines of standard input name, as the process of one subscriber.
fn serve(part: &str) {
    match part {
        "bridge" => drop(ringmark::tracing::init()),
        "layer" => {
            let _ = ringmark::start_from_env();
            let all = tracing_subscriber::registry().with(ringmark::tracing::layer());
            tracing::subscriber::set_global_default(all).expect("the first subscriber");
        }
        "empty" => {
            tracing::subscriber::set_global_default(Empty).expect("the first subscriber");
        }
        "least" => {
            let _ = ringmark::start_from_env();
            tracing::subscriber::set_global_default(Least).expect("the first subscriber");
        }
        "clocks" => {
            tracing::subscriber::set_global_default(Clocks).expect("the first subscriber");
        }
        _ => {
            let all = tracing_subscriber::registry().with(Nothing);
            tracing::subscriber::set_global_default(all).expect("the first subscriber");
        }
    }
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let index: usize = line.parse().expect("a number");
        println!("{}", measure(BODIES[index].2));
    }
}

/// A process that measures.
struct Part {
    name: &'static str,
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Part {
    fn start(name: &'static str) -> Self {
        let program = std::env::current_exe().expect("own name");
        let mut child = Command::new(program)
            .arg(name)
            .env("RINGMARK", "keep=never")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let to = child.stdin.take().expect("piped");
        let from = BufReader::new(child.stdout.take().expect("piped"));
        Self {
            name,
            child,
            to,
            from,
        }
    }

    fn ask(&mut self, index: usize) -> f64 {
        writeln!(self.to, "{index}").expect("a live process");
        let mut line = String::new();
        self.from.read_line(&mut line).expect("a live process");
        line.trim().parse().expect("a number")
    }
}

fn main() {
    if let Some(part) = child_argument() {
        return serve(&part);
    }
    let mut parts = ["bridge", "layer", "empty", "clocks", "least", "registry"].map(Part::start);
    let mut windows = vec![Vec::with_capacity(WINDOWS); BODIES.len()];
    for _ in 0..WINDOWS {
        for (index, (part, ..)) in BODIES.iter().enumerate() {
            let part = parts.iter_mut().find(|p| p.name == *part).expect("listed");
            windows[index].push(part.ask(index));
        }
    }
    let mut medians = Vec::new();
    for ((part, name, _), all) in BODIES.iter().zip(windows) {
        let [p10, median, p90] = percentiles(all);
        println!("{part:9} {name:20} p10 {p10:7.2} median {median:7.2} p90 {p90:7.2} ns");
        medians.push((*part, *name, median));
    }
    for mut part in parts {
        drop(part.to);
        let _ = part.child.wait();
    }
    let of = |part, name| {
        let found = medians.iter().find(|(p, n, _)| (*p, *n) == (part, name));
        found.map_or(f64::NAN, |(_, _, median)| *median)
    };
    for name in ["event", "span"] {
        let times = ["clocks", "least"].map(|other| of("bridge", name) / of(other, name));
        let [clocks, least] = times;
        println!(
            "     Subscriber {name} / one that only reads the clock: {clocks:.3}, / the least: {least:.3}"
        );
    }
    let event = of("bridge", "event") / of("bridge", "native event");
    let span = of("bridge", "span") / of("registry", "span");
    print_bar(
        "P4",
        "Subscriber event / native event",
        event,
        1.5,
        event <= 1.5,
    );
    print_bar(
        "P4",
        "Subscriber span / (Registry + no-op Layer)",
        span,
        0.5,
        span <= 0.5,
    );
    finish(event > 1.5 || span > 0.5)
}
