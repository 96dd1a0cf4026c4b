//! The figures as a web page for monitoring, served by a thread of their own: it answers whatever
//! the connections and the store are doing.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::figures::Figures;

/// How long to wait after a failed accept: there may be no descriptor left until a connection ends.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// How long a request and its answer may take together.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Longest call to the disk of a collector that is healthy.
const HEALTHY_WITHIN: Duration = Duration::from_secs(10);

/// A place at which figures are asked for.
#[derive(Debug)]
pub(crate) struct MetricsServer {
    listener: std::net::TcpListener,
}

impl MetricsServer {
    /// Listens at `HOST:PORT`.
    ///
    /// # Errors
    /// Those of `bind`.
    pub(crate) async fn bind(place: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(place).await?.into_std()?;
        Ok(Self { listener })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Answers until the sender of `end` is gone.
    ///
    /// # Errors
    /// There is no thread or runtime for it.
    pub(crate) fn serve(self, figures: Arc<Figures>, end: watch::Receiver<()>) -> io::Result<()> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build()?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(self.listener)?
        };
        let serve = move || runtime.block_on(answer_all(listener, figures, end));
        let thread = thread::Builder::new().name("metrics".to_owned());
        thread.spawn(serve).map(drop)
    }
}

async fn answer_all(listener: TcpListener, figures: Arc<Figures>, mut end: watch::Receiver<()>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = end.changed() => return,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let figures = figures.clone();
        tokio::spawn(async move {
            let _ = tokio::time::timeout(ANSWER_WITHIN, answer(stream, &figures)).await;
        });
    }
}

async fn answer(mut stream: TcpStream, figures: &Figures) -> io::Result<()> {
    let mut request = [0; 1024];
    let read = stream.read(&mut request).await?;
    let (status, text) = page(&request[..read], figures);
    let length = text.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}

/// Status and text for a request.
fn page(request: &[u8], figures: &Figures) -> (&'static str, String) {
    let asks_for = |path: &[u8]| {
        let rest = request
            .strip_prefix(b"GET ")
            .and_then(|rest| rest.strip_prefix(path));
        rest.is_some_and(|rest| matches!(rest.first(), Some(b' ' | b'?')))
    };
    if asks_for(b"/metrics") {
        return ("200 OK", figures.text());
    }
    if asks_for(b"/health") {
        return health(figures.disk_calls.longest());
    }
    let text = "the figures are at /metrics, and /health says whether the disk answers\n";
    ("404 Not Found", text.to_owned())
}

/// Status and text of a collector whose oldest call to the disk has been under way for this time.
fn health(longest: Duration) -> (&'static str, String) {
    match longest <= HEALTHY_WITHIN {
        true => ("200 OK", "fine\n".to_owned()),
        false => (
            "503 Service Unavailable",
            format!(
                "a call to the disk has not returned for {} s\n",
                longest.as_secs()
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_their_pages() {
        let figures = Figures::default();
        let status = |request: &[u8]| page(request, &figures).0;
        assert_eq!(status(b"GET /metrics HTTP/1.1\r\n"), "200 OK");
        assert_eq!(status(b"GET /metrics?a=b HTTP/1.1\r\n"), "200 OK");
        assert_eq!(status(b"GET /health HTTP/1.1\r\n"), "200 OK");
        for other in [
            &b""[..],
            b"GET",
            b"GET /",
            b"GET /metricsx HTTP",
            b"POST /metrics HTTP",
        ] {
            assert_eq!(status(other), "404 Not Found");
        }
    }

    #[test]
    fn a_disk_that_does_not_answer_is_no_health() {
        assert_eq!(health(HEALTHY_WITHIN).0, "200 OK");
        let (status, text) = health(Duration::from_secs(21));
        assert!(
            status.starts_with("503") && text.contains("for 21 s"),
            "{text}"
        );
    }
}
