//! The collector as a whole: its listeners, its connections, its end.
//!
//! One task for each listener, each connection and the care of the store. At the end every streamer is asked to go with DRAIN, so that nothing that was received is sent again.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ringmark_reader::stream::{Address, ExpiryWarnings};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{Instant, timeout_at};

use crate::block_memory::BlockMemory;
use crate::connection_context::{AdmissionRules, ConnectionContext};
use crate::connection_end::{ConnectionEnd, Departure};
use crate::figures::Figures;
use crate::host_shares::HostShares;
use crate::listen::{Accepted, Listener};
use crate::metrics::MetricsServer;
use crate::notice::{Doing, Notice, Origin};
use crate::options::CollectorOptions;
use crate::peer::{DRAIN_WITHIN, Peer, Served, Visit};
use crate::reason::Reason;
use crate::settings::{CollectorSettings, SharedCredentials};
use crate::storage::Storage;
use crate::store::objects::ObjectStore;
use crate::store::usage::{self, Period};
use crate::store::{StoreError, StoreOptions};
use crate::unproved::{Place, Unproved};

/// Longest wait between two cares of the store: closing and removing old segments.
const TIDY_EVERY_MAX: Duration = Duration::from_secs(10);
/// Shortest such wait, whatever ages are configured and however much comes.
const TIDY_EVERY_MIN: Duration = Duration::from_millis(100);
/// How often the collector looks whether the store has room.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the collector looks when its certificate ends.
const LOOK_AT_EXPIRY_EVERY: Duration = Duration::from_secs(60);
/// Least memory for large blocks, in bytes: two of the largest fit.
const MEMORY_MIN: usize = 16 << 20;
/// For this number of connections that may be there, one more may be there without proof.
const UNPROVED_PART: usize = 4;
/// Least number of connections that may be there without proof.
const UNPROVED_MIN: usize = 64;
/// How long to wait after a failed accept: there may be no descriptor left until a connection ends.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

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
    unproved: Arc<Unproved>,
    settings: CollectorSettings,
    /// All permits: those that are missing at the end are connections that did not end.
    most: u32,
    tidy_every: Duration,
    notices: mpsc::UnboundedSender<Notice>,
}

impl Collector {
    /// Opens the store and listens. Notices for the operator are sent to `notices`.
    ///
    /// # Errors
    /// The store cannot be used, or the collector cannot listen at an address.
    pub async fn start(
        options: CollectorOptions,
        notices: mpsc::UnboundedSender<Notice>,
    ) -> Result<Self, CollectorError> {
        Self::start_in(None, options, notices).await
    }

    /// The same with a place for its objects, of which the store's root is the address; `None`: it is a directory.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_in(
        place: Option<Arc<dyn ObjectStore>>,
        options: CollectorOptions,
        notices: mpsc::UnboundedSender<Notice>,
    ) -> Result<Self, CollectorError> {
        let figures = Arc::new(Figures::default());
        let store = Storage::open(&options, place, figures.clone())?;
        store.send_notices_to(notices.clone());
        pass_on_notices(&store, &notices);
        remember_hosts(&options, &figures);
        let fixed = options.clone();
        let credentials = SharedCredentials::new(options.credentials.clone());
        let mut listeners = Vec::new();
        for address in &options.listen {
            let bound = Listener::bind(address, &credentials).await;
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
        let memory = memory_on_the_way(&options);
        let unproved = (options.connections / UNPROVED_PART).max(UNPROVED_MIN);
        let context = Arc::new(ConnectionContext {
            store,
            admission: watch::Sender::new(AdmissionRules::new(options.token, &options.denied)),
            handshake_within: options.handshake_within,
            figures: figures.clone(),
            memory: BlockMemory::new(memory, figures.clone()),
            connections: Arc::new(Semaphore::new(options.connections)),
            shares: HostShares::new(options.hosts, memory),
            draining,
        });
        Ok(Self {
            listeners,
            metrics,
            unproved: Unproved::new(unproved, figures),
            settings: CollectorSettings::new(context.clone(), credentials, fixed),
            context,
            drain,
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

    /// What changes it while it runs.
    #[must_use]
    pub fn settings(&self) -> CollectorSettings {
        self.settings.clone()
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
                self.unproved.clone(),
                self.notices.clone(),
            )));
        }
        // Dropped at the end of this function: then no figures are served any more.
        let (_serving, end) = watch::channel(());
        if let Some(server) = self.metrics.take()
            && let Err(error) = server.serve(self.context.figures.clone(), end)
        {
            let notice = Notice::error(format!("no figures are served: {error}"));
            let _ = self.notices.send(notice);
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
        tasks.push(tokio::spawn(warn_of_expiry(
            self.settings.clone(),
            self.notices.clone(),
        )));
        stop.await;
        Figures::set(&self.context.figures.draining, 1);
        let _ = self.drain.send(true);
        let connections = &self.context.connections;
        let all_gone = connections.acquire_many(self.most);
        let ended = tokio::time::timeout(DRAIN_WITHIN, all_gone).await.is_ok();
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        let left = self.most as usize - connections.available_permits();
        if ended { 0 } else { left }
    }
}

/// Memory for large blocks on their way in. Those of objects have credit, too, which is memory set aside: they need
/// half as much again.
fn memory_on_the_way(options: &CollectorOptions) -> usize {
    let parts = if options.objects.is_some() { 2 } else { 1 };
    let memory = options.memory_bytes / parts;
    memory.clamp(MEMORY_MIN, Semaphore::MAX_PERMITS)
}

/// How often the store is cared for: as often as the shortest configured age.
fn tidy_every(options: &StoreOptions) -> Duration {
    let ages = [Some(options.segment_age), options.retention.age];
    let shortest = ages.into_iter().flatten();
    shortest
        .fold(TIDY_EVERY_MAX, Duration::min)
        .max(TIDY_EVERY_MIN)
}

pub(crate) fn listen_at(address: &impl ToString) -> impl FnOnce(io::Error) -> CollectorError {
    let address = address.to_string();
    move |source| CollectorError::Listen { address, source }
}

/// Accepts the connections of one listener, and serves each in a task of its own.
async fn accept(
    listener: Listener,
    context: Arc<ConnectionContext>,
    unproved: Arc<Unproved>,
    notices: mpsc::UnboundedSender<Notice>,
) {
    let mut draining = context.draining.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = draining.changed() => return,
        };
        match accepted {
            Ok(accepted) => take(accepted, &context, &unproved, &notices),
            Err(error) => {
                let _ = notices.send(Notice::error(format!("accept: {error}")));
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

/// Serves a connection in a task of its own, if there is a place for one that has proved nothing.
fn take(
    accepted: Accepted,
    context: &Arc<ConnectionContext>,
    unproved: &Arc<Unproved>,
    notices: &mpsc::UnboundedSender<Notice>,
) {
    Figures::add(&context.figures.accepted_connections_total, 1);
    let Some(place) = unproved.enter(accepted.address) else {
        let why = "closed at once, since too many connections have not proved their host";
        let _ = notices.send(Notice::of(
            accepted.origin(Doing::Refused(Reason::Connections)),
            why.to_owned(),
        ));
        return;
    };
    let (context, notices) = (context.clone(), notices.clone());
    tokio::spawn(async move {
        let figures = context.figures.clone();
        Figures::add(&figures.connections, 1);
        serve(accepted, context, place, &notices).await;
        Figures::take(&figures.connections, 1);
    });
}

/// Serves a connection to its end. Until it has proved its host it may have to make way.
async fn serve(
    accepted: Accepted,
    context: Arc<ConnectionContext>,
    mut place: Place,
    notices: &mpsc::UnboundedSender<Notice>,
) {
    let origin = accepted.origin(Doing::Came);
    let (figures, within) = (context.figures.clone(), context.handshake_within);
    // Its memory is given back after the greeting.
    let greet = Box::pin(async {
        let secured = accepted.incoming.secure(within);
        Peer::greeted(secured.await?, context).await
    });
    let greeted = tokio::select! {
        greeted = greet => greeted,
        () = place.must_go() => Err(ConnectionEnd::Gone(Departure::MadeWay)),
    };
    drop(place);
    let notice = match greeted {
        Ok(peer) => {
            let origin = origin_of(origin, peer.visit());
            let came = format!("host {} connected", origin.named());
            let _ = notices.send(Notice::of(origin.clone(), came));
            let Served { visit, end } = peer.serve().await;
            ended(origin_of(origin, visit), &end, &figures)
        }
        // One that was never welcomed is worth a line only if it was refused.
        Err(end) if end.reason().is_none() => return,
        Err(end) => ended(origin, &end, &figures),
    };
    let _ = notices.send(notice);
}

/// The origin of a notice about a streamer that was welcomed.
fn origin_of(origin: Origin, visit: Visit) -> Origin {
    let Visit {
        host,
        sessions,
        bytes,
    } = visit;
    Origin {
        host: Some(host),
        sessions,
        bytes,
        ..origin
    }
}

/// The notice about the end of a connection; a refusal is counted.
fn ended(mut origin: Origin, end: &ConnectionEnd, figures: &Figures) -> Notice {
    if let (Some(why), Some(reason)) = (end.why(), end.reason()) {
        figures.refusals.count(reason);
        origin.doing = Doing::Refused(reason);
        origin.session = end.session();
        return Notice::of(origin, why);
    }
    origin.doing = Doing::Went;
    let how = end.departure().map_or("", Departure::text);
    let text = format!(
        "host {} disconnected after {} sessions and {} bytes: {how}",
        origin.named(),
        origin.sessions,
        origin.bytes
    );
    Notice::of(origin, text)
}

/// Cares for the store, again and again.
async fn tidy(
    context: Arc<ConnectionContext>,
    every: Duration,
    notices: mpsc::UnboundedSender<Notice>,
) {
    let mut regular_at = Instant::now() + every;
    loop {
        let _ = timeout_at(regular_at, context.store.too_much()).await;
        let is_time = Instant::now() >= regular_at;
        let tidying = context.clone();
        let tidied = tokio::task::spawn_blocking(move || match is_time {
            true => tidying.store.tidy(),
            false => tidying.store.tidy_what_came(),
        });
        let found = match tidied.await {
            Ok(errors) => errors.iter().map(Notice::error).collect(),
            Err(error) => vec![Notice::error(format!(
                "caring for the store was given up: {error}"
            ))],
        };
        for notice in found {
            let _ = notices.send(notice);
        }
        pass_on_notices(&context.store, &notices);
        if is_time {
            regular_at = Instant::now() + every;
        }
        tokio::time::sleep(TIDY_EVERY_MIN).await;
    }
}

/// Looks again and again whether the store has room.
async fn look_for_room(context: Arc<ConnectionContext>, notices: mpsc::UnboundedSender<Notice>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let looking = context.clone();
        let look = move || {
            let calls = &looking.figures.disk_calls;
            calls.count(|| looking.store.look_for_room())
        };
        if let Ok(Some(notice)) = tokio::task::spawn_blocking(look).await {
            let _ = notices.send(Notice::info(notice));
        }
    }
}

/// Warns again and again, before the certificate ends.
async fn warn_of_expiry(settings: CollectorSettings, notices: mpsc::UnboundedSender<Notice>) {
    let mut warnings = ExpiryWarnings::default();
    loop {
        if let Some(warning) = warnings.due(settings.expiry()) {
            let text = format!("{warning}; renew it, then send SIGHUP");
            let _ = notices.send(Notice::warning(text));
        }
        tokio::time::sleep(LOOK_AT_EXPIRY_EVERY).await;
    }
}

/// Has the figures name the hosts of the store: one that never comes again is then seen to be missing.
/// Where strangers may have chosen their names, none is named.
fn remember_hosts(options: &CollectorOptions, figures: &Figures) {
    let is_open = |address: &Address| matches!(address, Address::Tcp(_));
    if options.objects.is_some() {
        return;
    }
    if options.token.is_none() && options.listen.iter().any(is_open) {
        return;
    }
    // A store that cannot be read says so elsewhere.
    let stored = usage::usage(&options.store.root, Period::All).map(usage::by_host);
    for host in stored.unwrap_or_default() {
        figures
            .hosts
            .remember(&host.host, host.last_ns.unwrap_or(0));
    }
}

fn pass_on_notices(store: &Storage, notices: &mpsc::UnboundedSender<Notice>) {
    for notice in store.take_notices() {
        let _ = notices.send(Notice::warning(notice));
    }
}
