//! An axum server that dies: the path of one category has no end.
//!
//! It sends itself 20 requests, as customers would.
#![forbid(unsafe_code)]

use axum::{Router, extract::Path, http::Request, routing::get};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower_http::trace::TraceLayer;
use tracing::{info, info_span};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::{Layer, fmt, prelude::*};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let session = ringmark::start_from_env();
    let log = fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry()
        .with(log.with_filter(LevelFilter::WARN))
        .with(session.as_ref().map(|_| ringmark::tracing::layer()))
        .init();
    let span = |request: &Request<_>| info_span!("request", path = request.uri().path());
    let app = Router::new()
        .route("/prices/{product}", get(price))
        .layer(TraceLayer::new_for_http().make_span_with(span));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = listener.local_addr()?;
    tokio::spawn(async { axum::serve(listener, app).await });
    for product in 1..=20 {
        let mut client = TcpStream::connect(server).await?;
        let request =
            format!("GET /prices/{product} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).await?;
        client.read_to_end(&mut Vec::new()).await?;
    }
    Ok(())
}

async fn price(Path(product): Path<u64>) -> String {
    let category = category_of(product);
    let _span = info_span!("path", category).entered();
    let path = path(category);
    info!(product, path, "priced");
    format!("{path}: {} cents\n", 100 * product)
}

fn category_of(product: u64) -> u64 {
    if product == 13 { 7 } else { product % 5 }
}

/// The category, after all those that it is in.
fn path(category: u64) -> String {
    match parent(category) {
        Some(above) => format!("{}/{category}", path(above)),
        None => category.to_string(),
    }
}

/// The category that this one is in. By a mistake in the data, 7 is in itself.
fn parent(category: u64) -> Option<u64> {
    match category {
        0 => None,
        7 => Some(7),
        _ => Some(category - 1),
    }
}
