//! The collector as a whole: its listeners, its connections, its end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ringmark_format::stream::refusal;
use ringmark_reader::stream::{Address, Credentials};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc, watch};

use crate::block_memory::Memory;
use crate::connection_context::Common;
use crate::figures::Figures;
use crate::listen::{Incoming, Listener, say_and_close};
use crate::messages;
use crate::peer::Peer;
use crate::store::{Store, StoreError, StoreOptions};

/// How often old segments are closed and removed, at least and at most.
const TIDY_EVERY: [Duration; 2] = [Duration::from_secs(10), Duration::from_millis(100)];
/// Room for the largest block, and another one.
const MEMORY_MIN: usize = 16 << 20;
/// How long connections may take to say BYE after DRAIN.
const DRAIN_WITHIN: Duration = Duration::from_secs(10);
/// How long a handshake may take whose end is that there is no room.
const REFUSE_WITHIN: Duration = Duration::from_secs(1);
/// How long to wait where there is no descriptor left: those that are open will be closed some time.
const NO_DESCRIPTORS: Duration = Duration::from_millis(100);

/// What a collector does.
#[derive(Debug, Clone)]
pub struct CollectorOptions {
    /// Where it listens.
    pub listen: Vec<Address>,
    /// Where it stores.
    pub store: StoreOptions,
    /// What proves to streamers who we are, and whom we believe: for TLS.
    pub credentials: Option<Credentials>,
    /// What streamers must show that come without TLS.
    pub token: Option<String>,
    /// How long a TLS handshake may take.
    pub handshake_within: Duration,
    /// Most connections.
    pub connections: usize,
    /// Memory for large blocks of all connections, bytes.
    pub memory_bytes: usize,
    /// Where its figures are served, `HOST:PORT`.
    pub metrics: Option<String>,
}

/// Why a collector did not start.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It cannot listen there.
    #[error("{address}: listen: {source}")]
    Listen {
        /// Where.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The runtime did not start.
    #[error("the runtime did not start: {0}")]
    Runtime(io::Error),
}

/// A collector that listens.
pub struct Collector {
    listeners: Vec<Listener>,
    metrics: Option<tokio::net::TcpListener>,
    common: Arc<Common>,
    drain: watch::Sender<bool>,
    connections: Arc<Semaphore>,
    most: u32,
    tidy_every: Duration,
    notices: mpsc::UnboundedSender<String>,
}

impl Collector {
    /// Opens the store and listens. What people should know comes through `notices`.
    ///
    /// # Errors
    /// The store cannot be used, or an address not be listened at.
    pub async fn start(
        options: CollectorOptions,
        notices: mpsc::UnboundedSender<String>,
    ) -> Result<Self, CollectorError> {
        let figures = Arc::new(Figures::default());
        let store = Store::open(options.store.clone(), figures.clone())?;
        store.tell(notices.clone());
        tell(&store, &notices);
        let mut listeners = Vec::new();
        for address in &options.listen {
            let bound = Listener::bind(address, options.credentials.as_ref()).await;
            listeners.push(bound.map_err(listen_at(address))?);
        }
        let metrics = match &options.metrics {
            Some(place) => {
                let bound = tokio::net::TcpListener::bind(place).await;
                Some(bound.map_err(listen_at(place))?)
            }
            None => None,
        };
        let (drain, draining) = watch::channel(false);
        let memory = options
            .memory_bytes
            .clamp(MEMORY_MIN, Semaphore::MAX_PERMITS);
        Ok(Self {
            listeners,
            metrics,
            common: Arc::new(Common {
                store,
                token: options.token.map(String::into_bytes),
                handshake_within: options.handshake_within,
                figures: figures.clone(),
                memory: Memory::new(memory, figures),
                draining,
            }),
            drain,
            connections: Arc::new(Semaphore::new(options.connections)),
            most: options.connections as u32,
            tidy_every: tidy_every(&options.store),
            notices,
        })
    }

    /// Where it listens, with the ports that the system chose.
    #[must_use]
    pub fn addresses(&self) -> Vec<Address> {
        self.listeners.iter().flat_map(Listener::address).collect()
    }

    /// Where its figures are served.
    #[must_use]
    pub fn metrics_address(&self) -> Option<String> {
        let at = self.metrics.as_ref()?.local_addr().ok()?;
        Some(at.to_string())
    }

    /// Its figures.
    #[must_use]
    pub fn figures(&self) -> Arc<Figures> {
        self.common.figures.clone()
    }

    /// Serves until `stop` resolves; then asks every streamer to go, and waits for them a while.
    /// Returns how many connections had not ended by then.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> usize {
        let mut tasks = Vec::new();
        for listener in std::mem::take(&mut self.listeners) {
            tasks.push(tokio::spawn(accept(
                listener,
                self.common.clone(),
                self.connections.clone(),
                self.notices.clone(),
            )));
        }
        if let Some(listener) = self.metrics.take() {
            tasks.push(tokio::spawn(serve_figures(
                listener,
                self.common.figures.clone(),
            )));
        }
        tasks.push(tokio::spawn(tidy(
            self.common.clone(),
            self.tidy_every,
            self.notices.clone(),
        )));
        stop.await;
        let _ = self.drain.send(true);
        let all_gone = self.connections.acquire_many(self.most);
        let ended = tokio::time::timeout(DRAIN_WITHIN, all_gone).await.is_ok();
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        let left = self.most as usize - self.connections.available_permits();
        if ended { 0 } else { left }
    }
}

/// Often enough for what is to be closed or removed at some age.
fn tidy_every(options: &StoreOptions) -> Duration {
    let ages = [Some(options.segment_age), options.retention.age];
    let [most, least] = TIDY_EVERY;
    let shortest = ages.into_iter().flatten().fold(most, Duration::min);
    shortest.max(least)
}

fn listen_at(address: &impl ToString) -> impl FnOnce(io::Error) -> CollectorError {
    let address = address.to_string();
    move |source| CollectorError::Listen { address, source }
}

async fn accept(
    listener: Listener,
    common: Arc<Common>,
    connections: Arc<Semaphore>,
    notices: mpsc::UnboundedSender<String>,
) {
    let mut draining = common.draining.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = draining.changed() => return,
        };
        let (incoming, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                let _ = notices.send(format!("accept: {error}"));
                tokio::time::sleep(NO_DESCRIPTORS).await;
                continue;
            }
        };
        Figures::add(&common.figures.connections_total, 1);
        let Ok(permit) = connections.clone().try_acquire_owned() else {
            Figures::add(&common.figures.refused_total, 1);
            tokio::spawn(refuse(incoming));
            continue;
        };
        let (common, notices) = (common.clone(), notices.clone());
        tokio::spawn(async move {
            let figures = common.figures.clone();
            Figures::add(&figures.connections, 1);
            let end = match incoming.secure(common.handshake_within).await {
                Ok(line) => Peer::new(line, common).serve().await,
                Err(end) => end,
            };
            if let Some(why) = end.why() {
                Figures::add(&figures.refused_total, 1);
                let _ = notices.send(format!("{from}: {why}"));
            }
            Figures::take(&figures.connections, 1);
            drop(permit);
        });
    }
}

async fn refuse(incoming: Incoming) {
    let refused = messages::refused(refusal::BUSY, "too many connections");
    if let Ok(line) = incoming.secure(REFUSE_WITHIN).await {
        say_and_close(line.bytes, &refused).await;
    }
}

async fn tidy(common: Arc<Common>, every: Duration, notices: mpsc::UnboundedSender<String>) {
    loop {
        tokio::time::sleep(every).await;
        let tidying = common.clone();
        let tidied = tokio::task::spawn_blocking(move || tidying.store.tidy());
        for error in tidied.await.unwrap_or_default() {
            let _ = notices.send(error.to_string());
        }
        tell(&common.store, &notices);
    }
}

fn tell(store: &Store, notices: &mpsc::UnboundedSender<String>) {
    for notice in store.take_notices() {
        let _ = notices.send(notice);
    }
}

/// Answers every request with the figures, as text.
async fn serve_figures(listener: tokio::net::TcpListener, figures: Arc<Figures>) {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            tokio::time::sleep(NO_DESCRIPTORS).await;
            continue;
        };
        let figures = figures.clone();
        tokio::spawn(async move {
            let answer = async {
                let mut request = [0; 1024];
                let read = stream.read(&mut request).await?;
                let (status, text) = match request[..read].starts_with(b"GET /metrics") {
                    true => ("200 OK", figures.text()),
                    false => ("404 Not Found", "the figures are at /metrics\n".to_owned()),
                };
                let length = text.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\n\
                     Content-Length: {length}\r\nConnection: close\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).await?;
                stream.write_all(text.as_bytes()).await?;
                stream.shutdown().await
            };
            let _ = tokio::time::timeout(Duration::from_secs(5), answer).await;
        });
    }
}
