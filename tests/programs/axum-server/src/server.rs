//! The server: a span for each request, and what its handler does in it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tower_http::trace::TraceLayer;
use tracing::field::Empty;
use tracing::{Instrument, Span, info, info_span};

use crate::order::{Failed, Fate, Orders};
use crate::{times, wide};

/// How long the slow ones take; all others take a small part of it.
const SLOW: Duration = Duration::from_secs(3);

/// Starts the server on a free port.
pub(crate) async fn start(orders: Arc<Orders>) -> Result<SocketAddr, Failed> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let app = Router::new()
        .route("/orders/{number}", get(answer))
        .layer(TraceLayer::new_for_http().make_span_with(request_span))
        .with_state(orders);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(address)
}

fn request_span(request: &Request) -> Span {
    let path = request.uri().path();
    info_span!("request", path, number = Empty, status = Empty)
}

async fn answer(
    State(orders): State<Arc<Orders>>,
    Path(number): Path<usize>,
) -> (StatusCode, String) {
    let span = Span::current();
    span.record("number", number);
    let before = Instant::now();
    let least = query(number)
        .instrument(info_span!("query", table = "orders"))
        .await;
    times::QUERIES.add(before, least);
    let Some(order) = orders.get(number) else {
        return (StatusCode::NOT_FOUND, number.to_string());
    };
    let status = match order.fate {
        Fate::Quick => StatusCode::OK,
        Fate::Wide => {
            wide::report(number);
            StatusCode::OK
        }
        Fate::Slow => {
            sleep(SLOW).await;
            info!(number, "too slow");
            StatusCode::GATEWAY_TIMEOUT
        }
        Fate::Cancelled => {
            order.is_waiting.notify_one();
            sleep(100 * SLOW).await;
            StatusCode::OK
        }
        Fate::Blocking => {
            let before = Instant::now();
            let span = info_span!("resize", number);
            let work = move || span.in_scope(resize);
            match tokio::task::spawn_blocking(work).await {
                Ok(least) => {
                    times::RESIZES.add(before, least);
                    StatusCode::OK
                }
                Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
            }
        }
    };
    span.record("status", status.as_u16());
    (status, number.to_string())
}

/// Gives up its thread, so that the task goes on with another one. Returns how long that took.
async fn query(number: usize) -> Duration {
    let begun = Instant::now();
    for _ in 0..number % 3 {
        tokio::task::yield_now().await;
    }
    begun.elapsed()
}

fn resize() -> Duration {
    let begun = Instant::now();
    thread::yield_now();
    begun.elapsed()
}
