//! A program that knows what it made, and in what: `placed KIND ROUNDS` prints it as a line of JSON. For each name it
//! says how many there were in each other name; what is in nothing is in "".
//!
//! No name is in two other names, but in itself: such a span says how deep (`depth`). KIND is spans, tasks, tracing or
//! flows.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::future::Future;
use std::hint::black_box;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;

use ringmark::{InSpan, async_span, counter, event, flow, span};
use tokio::task::{JoinSet, yield_now};
use tracing::{Instrument, info, info_span};
use tracing_subscriber::layer::SubscriberExt;

const THREADS: u64 = 2;

type Made = BTreeMap<&'static str, BTreeMap<&'static str, u64>>;

static MADE: Mutex<Made> = Mutex::new(Made::new());

/// Notes that one of these was made.
fn made(name: &'static str, around: &'static str) {
    let mut all = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    *all.entry(name).or_default().entry(around).or_default() += 1;
}

fn work(steps: u64) {
    (0..steps).for_each(|step| {
        black_box(step);
    });
}

fn again(depth: u64, rest: u64) {
    let _again = span!("placed.again", depth);
    made(
        "placed.again",
        if depth == 0 {
            "placed.outer"
        } else {
            "placed.again"
        },
    );
    work(100);
    if rest > 0 {
        again(depth + 1, rest - 1);
    }
}

fn spans(n: u64) {
    let _outer = span!("placed.outer", n);
    made("placed.outer", "");
    for part in 0..n % 4 {
        let _inner = span!("placed.inner", part);
        made("placed.inner", "placed.outer");
        work(300);
        event!("placed.event", part);
        made("placed.event", "placed.inner");
        let _leaf = span!("placed.leaf");
        made("placed.leaf", "placed.inner");
        work(100);
    }
    again(0, n % 3);
}

/// Asynchronous spans in each other, and one of the thread in the innermost.
async fn task(n: u64) {
    made("placed.task", "");
    work(500);
    for part in 0..1 + n % 3 {
        step(part).in_span(async_span!("placed.step", part)).await;
        yield_now().await;
    }
}

async fn step(part: u64) {
    made("placed.step", "placed.task");
    yield_now().await;
    {
        let _compute = span!("placed.compute", part);
        made("placed.compute", "placed.step");
        work(1000);
    }
    yield_now().await;
}

async fn request(n: u64) {
    made("request", "");
    info_span!("parse", n).in_scope(|| {
        made("parse", "request");
        work(300);
    });
    query(n).instrument(info_span!("query", n)).await;
    info!(n, "answered");
    made("answered", "request");
}

async fn query(n: u64) {
    made("query", "request");
    for _ in 0..n % 3 {
        work(400);
        yield_now().await;
    }
}

fn on_threads<T: Future<Output = ()> + Send + 'static>(rounds: u64, of: impl Fn(u64) -> T) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(THREADS as usize).build();
    runtime.expect("a runtime").block_on(async {
        let mut tasks = JoinSet::new();
        (0..rounds).for_each(|n| drop(tasks.spawn(of(n))));
        tasks.join_all().await
    });
}

/// The same ids in each process that does this.
fn flows(n: u64) {
    counter!("placed.counter", n);
    made("placed.counter", "");
    for step in 0..3_u64 {
        flow!("placed.flow", n, step);
        made("placed.flow", "");
    }
}

fn main() {
    let mut words = std::env::args().skip(1);
    let kind = words.next().expect("a kind");
    let rounds: u64 = words.next().and_then(|n| n.parse().ok()).expect("rounds");
    let _session = ringmark::start_from_env();
    match kind.as_str() {
        "spans" => {
            let threads = (0..THREADS).map(|_| thread::spawn(move || (0..rounds).for_each(spans)));
            let threads: Vec<_> = threads.collect();
            threads
                .into_iter()
                .for_each(|t| t.join().expect("a thread"));
        }
        "tasks" => on_threads(rounds, |n| task(n).in_span(async_span!("placed.task", n))),
        "tracing" => {
            let lines = tracing_subscriber::fmt::layer().with_writer(io::sink);
            let registry = tracing_subscriber::registry().with(lines);
            let registry = registry.with(ringmark::tracing::layer());
            tracing::subscriber::set_global_default(registry).expect("the only one");
            on_threads(rounds, |n| request(n).instrument(info_span!("request", n)));
        }
        "flows" => (0..rounds).for_each(flows),
        other => panic!("{other} is no kind"),
    }
    let all = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let rows = all.iter().map(|(name, places)| {
        let places: Vec<_> = places
            .iter()
            .map(|(around, n)| format!("\"{around}\":{n}"))
            .collect();
        format!("\"{name}\":{{{}}}", places.join(","))
    });
    println!("{{{}}}", rows.collect::<Vec<_>>().join(","));
}
