//! The clients: every connection carries its share of the requests, all at once.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::request::{Failed, NUMBER};

/// Sends all requests; returns how many were answered with their own number.
pub(crate) async fn all(
    server: SocketAddr,
    requests: usize,
    connections: usize,
) -> Result<usize, Failed> {
    let mut running = JoinSet::new();
    for first in 0..connections {
        let numbers: Vec<_> = (first..requests).step_by(connections).collect();
        running.spawn(one_connection(server, numbers));
    }
    let mut answered = 0;
    while let Some(done) = running.join_next().await {
        answered += done??;
    }
    Ok(answered)
}

async fn one_connection(server: SocketAddr, numbers: Vec<usize>) -> Result<usize, Failed> {
    let stream = TcpStream::connect(server).await?;
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_max_send_streams(numbers.len());
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let mut running = JoinSet::new();
    for number in numbers {
        running.spawn(one_request(sender.clone(), number));
    }
    drop(sender);
    let mut answered = 0;
    while let Some(done) = running.join_next().await {
        answered += usize::from(done??);
    }
    connection.await??;
    Ok(answered)
}

async fn one_request(mut sender: SendRequest<Empty<Bytes>>, number: usize) -> Result<bool, Failed> {
    let request = Request::get("http://localhost/")
        .header(NUMBER, number)
        .body(Empty::new())?;
    let response = sender.send_request(request).await?;
    let body = response.into_body().collect().await?.to_bytes();
    Ok(*body == *number.to_string().as_bytes())
}
