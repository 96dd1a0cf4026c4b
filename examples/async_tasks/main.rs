//! Tasks that wait and go on in other threads: each has one span, whatever thread polls it.
#![forbid(unsafe_code)]

use std::time::Duration;

use ringmark::{InSpan, async_span, event};
use tokio::task::JoinSet;
use tokio::time::sleep;

fn main() -> std::io::Result<()> {
    let _session = ringmark::start_from_env();
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for id in 1..=10_u64 {
            tasks.spawn(order(id).in_span(async_span!("order", id)));
        }
        tasks.join_all().await
    });
    Ok(())
}

async fn order(id: u64) {
    // The seventh order waits longer than the others.
    let wait = Duration::from_millis(if id == 7 { 300 } else { 1 });
    sleep(wait).in_span(async_span!("payment", id)).await;
    event!("paid", id, stamp = stamp(id));
}

/// Stands for work in the order itself, so that it has a self time to see.
fn stamp(id: u64) -> u64 {
    (0..100_000).fold(id, |stamp, step| {
        std::hint::black_box(stamp).rotate_left(5) ^ step
    })
}
