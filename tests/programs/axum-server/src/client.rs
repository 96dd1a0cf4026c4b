//! The clients: every connection carries requests one after the other, all connections at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::order::{Failed, Fate, Orders};
use crate::wide;

const CONNECTIONS: usize = 64;

/// Sends all requests; returns how many were answered with their own number.
pub(crate) async fn all(server: SocketAddr, orders: &Arc<Orders>) -> Result<usize, Failed> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut running = JoinSet::new();
    for _ in 0..CONNECTIONS {
        running.spawn(one_after_the_other(
            server,
            Arc::clone(orders),
            Arc::clone(&next),
        ));
    }
    let mut answered = 0;
    while let Some(done) = running.join_next().await {
        answered += done??;
    }
    Ok(answered)
}

async fn one_after_the_other(
    server: SocketAddr,
    orders: Arc<Orders>,
    next: Arc<AtomicUsize>,
) -> Result<usize, Failed> {
    let mut stream = TcpStream::connect(server).await?;
    let mut answered = 0;
    loop {
        let number = next.fetch_add(1, Relaxed);
        let Some(order) = orders.get(number) else {
            return Ok(answered);
        };
        let request = format!("GET /orders/{number} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        if order.fate == Fate::Wide {
            wide::report_as_client(number);
        }
        if order.fate == Fate::Cancelled {
            order.is_waiting.notified().await;
            stream = TcpStream::connect(server).await?;
        } else {
            answered += usize::from(body(&mut stream).await? == number.to_string());
        }
    }
}

/// The body of the next answer.
async fn body(stream: &mut TcpStream) -> Result<String, Failed> {
    let mut answer = Vec::new();
    loop {
        let mut piece = [0; 1024];
        let bytes = stream.read(&mut piece).await?;
        if bytes == 0 {
            return Err("the server hung up".into());
        }
        answer.extend_from_slice(&piece[..bytes]);
        let text = String::from_utf8_lossy(&answer).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.ok_or("no length")?.parse()?;
        if body.len() >= length {
            return Ok(body.to_owned());
        }
    }
}
