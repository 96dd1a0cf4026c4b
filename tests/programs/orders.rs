//! A service under load: `orders SEED COUNT` serves COUNT orders at once on four threads, as spans of
//! `tracing`, and as many jobs as native spans. A few are slow; it prints which, as a line of JSON.

use std::env;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ringmark::span;
use ringmark_test_programs::random::Random;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::{Instrument, Span, field::Empty, info, info_span};

/// How long the slow ones take; all others take a small part of it.
const SLOW: Duration = Duration::from_secs(3);
/// Orders and jobs among which one is slow, or cancelled.
const ORDERS_PER_SLOW: u64 = 700;
const ORDERS_PER_CANCELLED: u64 = 40;
const JOBS_PER_SLOW: u64 = 1100;
const AT_ONCE: usize = 256;
const WORKERS: u64 = 4;
/// So few that each thread has a ring of the full size, however loaded the machine is.
const BLOCKING_THREADS_MAX: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Quick,
    Slow,
    /// Its future is dropped while it waits.
    Cancelled,
    /// Part of it runs on a thread for blocking work.
    Blocking,
}

async fn query(rows: u64) {
    for _ in 0..rows % 3 {
        tokio::task::yield_now().await;
    }
    info!(rows, "query done");
}

async fn serve(order: Order, number: u64) {
    query(number)
        .instrument(info_span!("db_query", table = "orders"))
        .await;
    match order {
        Order::Quick => {}
        Order::Slow => sleep(SLOW).await,
        Order::Cancelled => sleep(20 * SLOW).await,
        Order::Blocking => {
            let span = info_span!("resize", number);
            let work = move || span.in_scope(thread::yield_now);
            tokio::task::spawn_blocking(work).await.expect("a thread");
        }
    }
    Span::current().record("status", if order == Order::Slow { 504 } else { 200 });
}

async fn orders(all: Vec<Order>) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = Vec::new();
    for (number, order) in (0_u64..).zip(all) {
        let place = Arc::clone(&room)
            .acquire_owned()
            .await
            .expect("it is never closed");
        let user = format!("user-{}", number % 100);
        let span = info_span!("order", number, user = %user, status = Empty);
        let work = async move {
            let work = serve(order, number).instrument(span);
            if order == Order::Cancelled {
                let _ = timeout(Duration::from_millis(1), work).await;
            } else {
                work.await;
            }
            drop(place);
        };
        tasks.push(tokio::spawn(work));
    }
    for task in tasks {
        task.await.expect("a task that ends");
    }
}

fn job(number: u64, is_slow: bool) {
    let _job = span!("job", number = number, attempts = number % 3);
    let _part = span!("job.part");
    if is_slow {
        thread::sleep(SLOW);
    }
}

fn main() {
    let mut numbers = env::args().skip(1).map(|n| n.parse().expect("a number"));
    let (seed, count): (u64, u64) = (numbers.next().unwrap(), numbers.next().unwrap());
    let mut random = Random::from_seed(seed);
    let _session = ringmark::tracing::init().ok().flatten();
    let kinds = (0..count).map(|_| {
        if random.below(ORDERS_PER_SLOW) == 0 {
            Order::Slow
        } else if random.below(ORDERS_PER_CANCELLED) == 0 {
            Order::Cancelled
        } else if random.below(ORDERS_PER_CANCELLED) == 0 {
            Order::Blocking
        } else {
            Order::Quick
        }
    });
    let kinds: Vec<_> = kinds.collect();
    let slow_jobs: Vec<bool> = (0..count)
        .map(|_| random.below(JOBS_PER_SLOW) == 0)
        .collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS as usize)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(orders(kinds.clone()));
    drop(runtime);
    let slow_jobs = Arc::new(slow_jobs);
    let workers = (0..WORKERS).map(|worker| {
        let slow = Arc::clone(&slow_jobs);
        thread::spawn(move || {
            let mine = (worker..count).step_by(WORKERS as usize);
            mine.for_each(|number| job(number, slow[number as usize]));
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.join().expect("a worker");
    }
    let places = |is_slow: &dyn Fn(usize) -> bool| -> Vec<usize> {
        (0..count as usize).filter(|n| is_slow(*n)).collect()
    };
    let slow_orders = places(&|n| kinds[n] == Order::Slow);
    let cancelled = places(&|n| kinds[n] == Order::Cancelled).len();
    println!(
        "{{\"slow_orders\":{slow_orders:?},\"slow_jobs\":{:?},\"cancelled\":{cancelled}}}",
        places(&|n| slow_jobs[n])
    );
}
