//! An axum server and its clients in one process, which writes its log with `fmt` and is recorded by
//! Ringmark's layer: `axum-server FATES`, with a letter for each request: `q`uick, `s`low, `c`ancelled
//! by its client, or `b`locking. Prints how many were answered, then a line for each name of spans that it
//! measured: name, number, and the sums of ns that their durations lie between.
#![forbid(unsafe_code)]

mod client;
mod order;
mod server;
mod times;

use std::sync::Arc;

use order::{Failed, Fate, Order, Orders};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, fmt};

/// So few that each thread has a ring of the full size, however loaded the machine is.
const BLOCKING_THREADS_MAX: usize = 16;

fn main() -> Result<(), Failed> {
    let fates = std::env::args().nth(1).unwrap_or_default();
    let fates: Option<Vec<Fate>> = fates.chars().map(Fate::of).collect();
    let fates = fates.filter(|fates| !fates.is_empty());
    let fates = fates.ok_or("usage: axum-server FATES, letters q, s, c and b")?;
    let _session = ringmark::start_from_env();
    tracing_subscriber::registry()
        .with(EnvFilter::new("info"))
        .with(fmt::layer().with_writer(std::io::stderr))
        .with(ringmark::tracing::layer())
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build()?;
    let answered = runtime.block_on(async {
        let orders = Arc::new(fates.into_iter().map(Order::new).collect::<Orders>());
        let server = server::start(Arc::clone(&orders)).await?;
        client::all(server, &orders).await
    })?;
    // All tasks are dropped here, and with them their spans.
    drop(runtime);
    println!("{answered}");
    times::QUERIES.print();
    times::RESIZES.print();
    Ok(())
}
