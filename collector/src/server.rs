//! The collector as a whole: its listeners, its connections, its end.
//!
//! One task for each listener, each connection and the care of the store. At the end every streamer is asked to go with DRAIN, so that nothing that was received is sent again.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ringmark_format::stream::refusal;
use ringmark_reader::stream::{Address, Credentials};
use tokio::sync::{Semaphore, mpsc, watch};

use crate::block_memory::BlockMemory;
use crate::connection_context::ConnectionContext;
use crate::figures::Figures;
use crate::listen::{Accepted, Incoming, Listener, say_and_close};
use crate::messages;
use crate::metrics::MetricsServer;
use crate::peer::Peer;
use crate::store::{Store, StoreError, StoreOptions};

/// Longest wait between two cares of the store: closing and removing old segments.
const TIDY_EVERY_MAX: Duration = Duration::from_secs(10);
/// Shortest such wait, whatever ages are configured.
const TIDY_EVERY_MIN: Duration = Duration::from_millis(100);
/// How often the collector looks whether the store has room.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Least memory for large blocks, in bytes: two of the largest fit.
const MEMORY_MIN: usize = 16 << 20;
/// How long connections may take to say BYE after DRAIN.
const DRAIN_WITHIN: Duration = Duration::from_secs(10);
/// How long the handshake may take with a streamer that is refused for want of room.
const REFUSE_WITHIN: Duration = Duration::from_secs(1);
/// How long to wait after a failed accept: there may be no descriptor left until a connection ends.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// How a collector is configured.
#[derive(Debug, Clone)]
pub struct CollectorOptions {
    /// The addresses at which it listens.
    pub listen: Vec<Address>,
    /// The store, and how it keeps segments.
    pub store: StoreOptions,
    /// Our certificate, and the CA that streamers' certificates must come from, for TLS.
    pub credentials: Option<Credentials>,
    /// The token that streamers without TLS must show; `None`: they need none.
    pub token: Option<String>,
    /// How long a TLS handshake may take.
    pub handshake_within: Duration,
    /// Most connections at a time.
    pub connections: usize,
    /// Memory for large blocks of all connections, in bytes; at least 16 MiB are used.
    pub memory_bytes: usize,
    /// The `HOST:PORT` at which its figures are served.
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
        /// The address.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The runtime did not start.
    #[error("the runtime did not start: {0}")]
    Runtime(#[source] io::Error),
}

/// A collector that listens.
pub struct Collector {
    listeners: Vec<Listener>,
    metrics: Option<MetricsServer>,
    context: Arc<ConnectionContext>,
    drain: watch::Sender<bool>,
    /// One permit for each connection.
    connections: Arc<Semaphore>,
    /// All permits: those that are missing at the end are connections that did not end.
    most: u32,
    tidy_every: Duration,
    notices: mpsc::UnboundedSender<String>,
}

impl Collector {
    /// Opens the store and listens. Notices for the operator are sent to `notices`.
    ///
    /// # Errors
    /// The store cannot be used, or the collector cannot listen at an address.
    pub async fn start(
        options: CollectorOptions,
        notices: mpsc::UnboundedSender<String>,
    ) -> Result<Self, CollectorError> {
        let figures = Arc::new(Figures::default());
        let store = Store::open(options.store.clone(), figures.clone())?;
        store.send_notices_to(notices.clone());
        pass_on_notices(&store, &notices);
        let mut listeners = Vec::new();
        for address in &options.listen {
            let bound = Listener::bind(address, options.credentials.as_ref()).await;
            listeners.push(bound.map_err(listen_at(address))?);
        }
        let metrics = match &options.metrics {
            Some(place) => {
                let bound = MetricsServer::bind(place).await;
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
            context: Arc::new(ConnectionContext {
                store,
                token: options.token.map(String::into_bytes),
                handshake_within: options.handshake_within,
                figures: figures.clone(),
                memory: BlockMemory::new(memory, figures),
                draining,
            }),
            drain,
            connections: Arc::new(Semaphore::new(options.connections)),
            most: options.connections as u32,
            tidy_every: tidy_every(&options.store),
            notices,
        })
    }

    /// The addresses at which it listens, with the ports that the system chose.
    #[must_use]
    pub fn addresses(&self) -> Vec<Address> {
        self.listeners.iter().flat_map(Listener::address).collect()
    }

    /// The address at which its figures are served.
    #[must_use]
    pub fn metrics_address(&self) -> Option<String> {
        Some(self.metrics.as_ref()?.address()?.to_string())
    }

    /// Its figures, which go on to change.
    #[must_use]
    pub fn figures(&self) -> Arc<Figures> {
        self.context.figures.clone()
    }

    /// Serves until `stop` resolves, then asks every streamer to go and waits for them up to 10 s.
    /// Returns how many connections had not ended by then.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> usize {
        let mut tasks = Vec::new();
        for listener in std::mem::take(&mut self.listeners) {
            tasks.push(tokio::spawn(accept(
                listener,
                self.context.clone(),
                self.connections.clone(),
                self.notices.clone(),
            )));
        }
        // Dropped at the end of this function: then no figures are served any more.
        let (_serving, end) = watch::channel(());
        if let Some(server) = self.metrics.take()
            && let Err(error) = server.serve(self.context.figures.clone(), end)
        {
            let _ = self.notices.send(format!("no figures are served: {error}"));
        }
        tasks.push(tokio::spawn(tidy(
            self.context.clone(),
            self.tidy_every,
            self.notices.clone(),
        )));
        tasks.push(tokio::spawn(look_for_room(
            self.context.clone(),
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

/// How often the store is cared for: as often as the shortest configured age.
fn tidy_every(options: &StoreOptions) -> Duration {
    let ages = [Some(options.segment_age), options.retention.age];
    let shortest = ages.into_iter().flatten();
    shortest
        .fold(TIDY_EVERY_MAX, Duration::min)
        .max(TIDY_EVERY_MIN)
}

fn listen_at(address: &impl ToString) -> impl FnOnce(io::Error) -> CollectorError {
    let address = address.to_string();
    move |source| CollectorError::Listen { address, source }
}

/// Accepts the connections of one listener, and serves each in a task of its own.
async fn accept(
    listener: Listener,
    context: Arc<ConnectionContext>,
    connections: Arc<Semaphore>,
    notices: mpsc::UnboundedSender<String>,
) {
    let mut draining = context.draining.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = draining.changed() => return,
        };
        let Accepted { incoming, from } = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                let _ = notices.send(format!("accept: {error}"));
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        Figures::add(&context.figures.connections_total, 1);
        let Ok(permit) = connections.clone().try_acquire_owned() else {
            Figures::add(&context.figures.refused_total, 1);
            tokio::spawn(refuse(incoming));
            continue;
        };
        let (context, notices) = (context.clone(), notices.clone());
        tokio::spawn(async move {
            let figures = context.figures.clone();
            Figures::add(&figures.connections, 1);
            let end = match incoming.secure(context.handshake_within).await {
                Ok(accepted) => Peer::new(accepted, context).serve().await,
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

/// Tells a streamer that there is no room for it.
async fn refuse(incoming: Incoming) {
    let refused = messages::refused(refusal::BUSY, "too many connections");
    if let Ok(accepted) = incoming.secure(REFUSE_WITHIN).await {
        say_and_close(accepted.bytes, &refused).await;
    }
}

/// Cares for the store, again and again.
async fn tidy(
    context: Arc<ConnectionContext>,
    every: Duration,
    notices: mpsc::UnboundedSender<String>,
) {
    loop {
        tokio::time::sleep(every).await;
        let tidying = context.clone();
        let tidied = tokio::task::spawn_blocking(move || tidying.store.tidy());
        let found = match tidied.await {
            Ok(errors) => errors.iter().map(ToString::to_string).collect(),
            Err(error) => vec![format!("caring for the store was given up: {error}")],
        };
        for notice in found {
            let _ = notices.send(notice);
        }
        pass_on_notices(&context.store, &notices);
    }
}

/// Looks again and again whether the store has room.
async fn look_for_room(context: Arc<ConnectionContext>, notices: mpsc::UnboundedSender<String>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let looking = context.clone();
        let look = move || {
            let calls = &looking.figures.disk_calls;
            calls.count(|| looking.store.look_for_room())
        };
        if let Ok(Some(notice)) = tokio::task::spawn_blocking(look).await {
            let _ = notices.send(notice);
        }
    }
}

fn pass_on_notices(store: &Store, notices: &mpsc::UnboundedSender<String>) {
    for notice in store.take_notices() {
        let _ = notices.send(notice);
    }
}
