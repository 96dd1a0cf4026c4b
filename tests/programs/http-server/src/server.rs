//! The server: `TraceLayer` makes a `request` span for each request; its handler waits for all the
//! others, so that its task moves between threads, and says what it does in spans of its own.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http2;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;
use tower::ServiceBuilder;
use tower_http::trace::TraceLayer;
use tracing::{Instrument, Span, info, info_span};

use crate::request::{Failed, NUMBER};

/// Starts the server on a free port; `requests` are answered together, at most `streams` come over
/// one connection.
pub(crate) async fn start(requests: usize, streams: usize) -> Result<SocketAddr, Failed> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let together = Arc::new(Barrier::new(requests));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, together.clone(), streams));
        }
    });
    Ok(address)
}

async fn serve(stream: TcpStream, together: Arc<Barrier>, streams: usize) {
    let answer = move |request| answer(request, together.clone());
    let service = ServiceBuilder::new()
        .layer(TraceLayer::new_for_http().make_span_with(request_span))
        .service_fn(answer);
    let streams = u32::try_from(streams).unwrap_or(u32::MAX);
    let mut server = http2::Builder::new(TokioExecutor::new());
    server.max_concurrent_streams(streams);
    let service = TowerToHyperService::new(service);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        eprintln!("a connection failed: {error}");
    }
}

fn request_span(request: &Request<Incoming>) -> Span {
    info_span!("request", number = number(request))
}

fn number(request: &Request<Incoming>) -> u64 {
    let header = request.headers().get(NUMBER);
    let text = header.and_then(|value| value.to_str().ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)
}

async fn answer(
    request: Request<Incoming>,
    together: Arc<Barrier>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let number = number(&request);
    info!(number, "came");
    together.wait().await;
    info!(number, "all are here");
    work(number).instrument(info_span!("work", number)).await;
    info!(number, "done");
    Ok(Response::new(Full::from(number.to_string())))
}

async fn work(number: u64) {
    info!(number, "begins");
    tokio::task::yield_now().await;
    deeper(number)
        .instrument(info_span!("deeper", number))
        .await;
    info!(number, "ends");
}

async fn deeper(number: u64) {
    tokio::task::yield_now().await;
    info!(number, "deep");
}
