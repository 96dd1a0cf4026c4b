//! The figures as a web page for monitoring, served by a thread of their own: it answers whatever
//! the connections and the store are doing.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::figures::{Figures, HEALTHY_WITHIN, UPLOADS_OVER};

/// How long to wait after a failed accept: there may be no descriptor left until a connection ends.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// How long a request and its answer may take together.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Most clients at a time: monitoring needs a few, and each takes a descriptor.
const CLIENTS_MAX: usize = 64;

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
    let mut clients = Clients::default();
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
        let client = tokio::spawn(async move {
            let page = |request| Ok::<_, Infallible>(page(&request, &figures));
            let answer = service_fn(|request| std::future::ready(page(request)));
            let mut http = http1::Builder::new();
            let served = http
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer);
            let _ = tokio::time::timeout(ANSWER_WITHIN, served).await;
        });
        clients.take(client.abort_handle());
    }
}

/// The clients that are being answered, the oldest first.
#[derive(Default)]
struct Clients(VecDeque<AbortHandle>);

impl Clients {
    /// Takes one more. Where there are too many, the oldest is closed: one that sends half a request and waits keeps
    /// nobody from asking how the collector is.
    fn take(&mut self, client: AbortHandle) {
        self.0.retain(|known| !known.is_finished());
        if self.0.len() >= CLIENTS_MAX
            && let Some(oldest) = self.0.pop_front()
        {
            oldest.abort();
        }
        self.0.push_back(client);
    }
}

/// The answer to a request.
fn page<B>(request: &Request<B>, figures: &Figures) -> Response<String> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let (status, text) = match request.uri().path() {
        _ if !is_read => (StatusCode::METHOD_NOT_ALLOWED, "expected GET\n".to_owned()),
        "/metrics" => (StatusCode::OK, figures.text()),
        "/health" if figures.are_uploads_over() => ready(Some(UPLOADS_OVER)),
        "/health" => health(figures.disk_wait()),
        "/ready" => ready(figures.not_ready()),
        _ => {
            let text = "figures are at /metrics, /health says whether the disk answers, /ready \
                        whether streamers can send\n";
            (StatusCode::NOT_FOUND, text.to_owned())
        }
    };
    let mut response = Response::new(text);
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    let _ = response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Status and text of a collector whose oldest call to the disk has been under way for this time.
fn health(longest: Duration) -> (StatusCode, String) {
    if longest <= HEALTHY_WITHIN {
        return (StatusCode::OK, "fine\n".to_owned());
    }
    let seconds = longest.as_secs();
    let text = format!("a call to the disk has not returned for {seconds} s\n");
    (StatusCode::SERVICE_UNAVAILABLE, text)
}

/// Status and text of a collector that is not ready for this reason.
fn ready(why_not: Option<&str>) -> (StatusCode, String) {
    match why_not {
        None => (StatusCode::OK, "ready\n".to_owned()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn status(method: Method, uri: &str) -> u16 {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        page(&request, &Figures::default()).status().as_u16()
    }

    #[test]
    fn requests_and_their_pages() {
        for there in ["/metrics", "/metrics?a=b", "/health", "/ready"] {
            assert_eq!(status(Method::GET, there), 200, "{there}");
            assert_eq!(status(Method::HEAD, there), 200, "{there}");
        }
        for other in ["/", "/metricsx", "/metrics/x"] {
            assert_eq!(status(Method::GET, other), 404, "{other}");
        }
        assert_eq!(status(Method::POST, "/metrics"), 405);
    }

    #[test]
    fn half_requests_keep_nobody_from_asking() {
        let figures = Arc::new(Figures::default());
        let (end, ending) = watch::channel(());
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let server = MetricsServer { listener: server };
        let place = server.address().unwrap();
        server.serve(figures, ending).unwrap();
        let half = |_| {
            let mut client = TcpStream::connect(place).unwrap();
            client.write_all(b"GET /health HTTP/1.1\r\n").unwrap();
            client
        };
        let held: Vec<_> = (0..CLIENTS_MAX + 16).map(half).collect();
        let mut probe = TcpStream::connect(place).unwrap();
        probe
            .write_all(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        probe.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        drop((held, end));
    }

    #[test]
    fn a_disk_that_does_not_answer_is_no_health() {
        assert_eq!(health(HEALTHY_WITHIN).0, StatusCode::OK);
        let (status, text) = health(Duration::from_secs(21));
        assert!(status == StatusCode::SERVICE_UNAVAILABLE && text.contains("for 21 s"));
    }

    #[test]
    fn a_collector_without_room_or_about_to_end_is_not_ready() {
        let figures = Figures::default();
        assert_eq!(ready(figures.not_ready()).0, StatusCode::OK);
        Figures::set(&figures.full, 1);
        let (status, text) = ready(figures.not_ready());
        assert_eq!(
            (status.as_u16(), text.as_str()),
            (503, "the store has no room\n")
        );
        Figures::set(&figures.draining, 1);
        assert_eq!(figures.not_ready(), Some("it is about to end"));
    }

    #[test]
    fn a_collector_that_puts_nothing_any_more_is_neither_ready_nor_healthy() {
        let figures = Figures::default();
        Figures::set(&figures.uploads_over, 1);
        for uri in ["/ready", "/health"] {
            let request = Request::builder().uri(uri).body(()).unwrap();
            let answer = page(&request, &figures);
            assert_eq!(answer.status().as_u16(), 503, "{uri}");
            assert!(answer.body().contains("restart"), "{}", answer.body());
        }
    }
}
