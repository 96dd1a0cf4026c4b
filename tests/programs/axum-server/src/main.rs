//! An axum server and its clients in one process, which writes its log with `fmt` and is recorded by
//! Ringmark's layer: `axum-server FATES`, with a letter for each request: `q`uick, `s`low, `c`ancelled
//! by its client, `b`locking, or `w`ide, which reports much; with one of the last its log is to be compared with
//! its trace. Prints how many were answered, then a line for each name of spans that it
//! measured: name, number, and the sums of ns that their durations lie between.
#![forbid(unsafe_code)]

mod client;
mod order;
mod server;
mod times;
mod wide;

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
    let session = ringmark::start_from_env();
    let is_wide = fates.contains(&Fate::Wide);
    if is_wide {
        tracing::dispatcher::set_global_default(wide::registry_with_lines())?;
    } else {
        tracing_subscriber::registry()
            .with(EnvFilter::new("info"))
            .with(fmt::layer().with_writer(std::io::stderr))
            .with(ringmark::tracing::layer())
            .init();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build()?;
    let answered = runtime.block_on(async {
        let orders = Arc::new(fates.into_iter().map(Order::new).collect::<Orders>());
        let server = server::start(Arc::clone(&orders)).await?;
        let answered = client::all(server, &orders).await;
        if let (true, Some(session)) = (is_wide, &session) {
            wide::switch(session).await;
        }
        answered
    })?;
    // All tasks are dropped here, and with them their spans.
    drop(runtime);
    println!("{answered}");
    times::QUERIES.print();
    times::RESIZES.print();
    Ok(())
}
