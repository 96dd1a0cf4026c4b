//! A program that is in spans: `in_spans hold READY` makes the file READY when it is in them and stays
//! there, `in_spans many READY` likewise with twelve threads, `in_spans churn READY` begins and ends them
//! until it is killed.

use std::sync::{Barrier, LazyLock};
use std::time::Duration;
use std::{env, thread};

use ringmark::{async_span, event, span};

/// Passed when a thread is in spans of `tracing`.
static IN_TRACING: LazyLock<Barrier> = LazyLock::new(|| Barrier::new(2));

const LONG: &str = "/a/path/that/is/too/long/for/the/place/that/an/open/span/has";

fn ready() {
    let path = env::args().nth(2).expect("a file");
    std::fs::write(path, "").expect("a file");
}

fn hold() {
    let _job = span!("nightly", job = "import");
    let entered = thread::Builder::new().name("worker-2".to_owned());
    let entered = entered.spawn(|| {
        let request = async_span!("request", id = 7_u32);
        let _entered = request.enter();
        thread::sleep(Duration::from_secs(600));
    });
    let traced = thread::Builder::new().name("worker-3".to_owned());
    let traced = traced.spawn(|| {
        tracing::subscriber::with_default(ringmark::tracing::recorder(), || {
            let checkout = tracing::info_span!("checkout", order = 7_u64, user = "ann");
            let _entered = checkout.enter();
            tracing::info_span!("paid").in_scope(|| ());
            let stock = tracing::info_span!("stock", item = 3_u64);
            let _inside = stock.enter();
            IN_TRACING.wait();
            thread::sleep(Duration::from_secs(600));
        });
    });
    IN_TRACING.wait();
    let worker = thread::Builder::new().name("worker-1".to_owned());
    let worker = worker.spawn(|| {
        let _request = span!("http.handle", worker = 1_u32, path = LONG);
        event!("accepted");
        drop(span!("db.query", rows = 3_u32));
        let _query = span!("db.query", rows = 4_u32);
        let deep: Vec<_> = (0..70_u32).map(|n| span!("deep", n = n)).collect();
        ready();
        thread::sleep(Duration::from_secs(600));
        drop(deep);
    });
    for thread in [entered, traced, worker] {
        let _ = thread.expect("a thread").join();
    }
}

/// Each thread has more events than are shown, and one span open.
fn many() {
    let all_in = Barrier::new(13);
    thread::scope(|scope| {
        for number in 0..12_u32 {
            let all_in = &all_in;
            scope.spawn(move || {
                for step in 0..5_u32 {
                    event!("step", step = step);
                }
                let _work = span!("work", number = number);
                all_in.wait();
                thread::sleep(Duration::from_secs(600));
            });
        }
        all_in.wait();
        ready();
    });
}

/// What is marked inside a span is later than its begin, so the span is open or recorded.
fn churn() {
    ready();
    for n in 0_u64.. {
        let _outer = span!("outer", n = n);
        event!("in.outer", n = n);
        for m in 0..n % 4 {
            let _inner = span!("inner", n = n, m = m);
            event!("in.inner", n = n, m = m);
        }
    }
}

fn main() {
    ringmark::start_from_env();
    match env::args().nth(1).as_deref() {
        Some("hold") => hold(),
        Some("churn") => churn(),
        Some("many") => many(),
        other => panic!("found {other:?}, expected hold, many or churn"),
    }
}
