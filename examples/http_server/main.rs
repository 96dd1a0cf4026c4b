//! An axum server with two layers for `tracing`: `fmt` writes the log, Ringmark records all of it.
//!
//! `http_server ADDRESS` serves until it is ended. Without an address it sends itself 20 requests.
#![forbid(unsafe_code)]

use std::time::Duration;

use axum::{Router, extract::Path, http::Request, routing::get};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower_http::trace::TraceLayer;
use tracing::{Instrument, info, info_span, warn};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::{Layer, fmt, prelude::*};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let session = ringmark::start_from_env();
    let log = fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry()
        .with(log.with_filter(LevelFilter::ERROR))
        .with(session.as_ref().map(|_| ringmark::tracing::layer()))
        .init();
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let server = listener.local_addr()?;
    let span = |request: &Request<_>| info_span!("request", path = request.uri().path());
    let app = Router::new()
        .route("/orders/{id}", get(order))
        .layer(TraceLayer::new_for_http().make_span_with(span));
    let serving = tokio::spawn(async { axum::serve(listener, app).await });
    if address.is_some() {
        return serving.await?;
    }
    for id in 1..=20 {
        let mut client = TcpStream::connect(server).await?;
        let request = format!("GET /orders/{id} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).await?;
        client.read_to_end(&mut Vec::new()).await?;
    }
    Ok(())
}

async fn order(Path(id): Path<u64>) -> String {
    let query = info_span!("query", table = "orders", id);
    // Order 13 stands in a table without an index.
    let takes = Duration::from_millis(if id == 13 { 300 } else { 1 });
    tokio::time::sleep(takes).instrument(query).await;
    match id {
        13 => warn!(id, "slow query"),
        _ => info!(id, "answered"),
    }
    format!("order {id}\n")
}
