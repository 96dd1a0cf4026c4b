//! A collector inside the test, and a streamer that sends one ring file to it.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use ringmark_collector::store::{DirectoryOptions, Retention, StoreOptions, SyncMode};
use ringmark_collector::{Collector, CollectorOptions, Doing, Figures, HostLimits, Notice};
use ringmark_decoder::Dump;
use ringmark_decoder::store::dumps_below;
use ringmark_reader::stream::{
    Address, Introduction, StreamFigures, StreamOptions, Streamer, Upload,
};
use ringmark_reader::{Codec, Selection};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

use crate::fixture::SOON;
use crate::recording::decode;
use crate::wait_until;

/// A collector that serves until it is dropped.
#[derive(Debug)]
pub struct Collecting {
    runtime: Option<Runtime>,
    stop: Option<oneshot::Sender<()>>,
    figures: Arc<Figures>,
    addresses: Vec<Address>,
    metrics: Option<String>,
    notices: mpsc::UnboundedReceiver<Notice>,
    root: PathBuf,
}

impl Collecting {
    /// Listens at the unix socket `socket` and stores below `root`.
    ///
    /// # Panics
    /// When it cannot.
    #[must_use]
    pub fn start(socket: &Path, root: &Path) -> Self {
        Self::with(options(Address::Unix(socket.to_owned()), root))
    }

    /// As the options say.
    ///
    /// # Panics
    /// When it cannot.
    #[must_use]
    pub fn with(options: CollectorOptions) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let (notices, heard) = mpsc::unbounded_channel();
        let root = options.store.root.clone();
        let collector = runtime.block_on(Collector::start(options, notices));
        let collector = collector.expect("a collector");
        let (figures, addresses) = (collector.figures(), collector.addresses());
        let metrics = collector.metrics_address();
        let (stop, stopped) = oneshot::channel();
        drop(runtime.spawn(collector.run(async move { drop(stopped.await) })));
        Self {
            runtime: Some(runtime),
            stop: Some(stop),
            figures,
            addresses,
            metrics,
            notices: heard,
            root,
        }
    }

    /// Where it listens, `HOST:PORT`.
    ///
    /// # Panics
    /// When it listens at a unix socket.
    #[must_use]
    pub fn place(&self) -> String {
        match &self.addresses[0] {
            Address::Tcp(place) | Address::Tls(place) => place.clone(),
            Address::Unix(path) => panic!("{}: a unix socket", path.display()),
        }
    }

    /// What it answers to a request for its figures.
    ///
    /// # Panics
    /// When it serves none.
    #[must_use]
    pub fn served_figures(&self) -> String {
        let place = self.metrics.as_ref().expect("a place to ask at");
        let mut asking = TcpStream::connect(place).expect("a connection");
        let request = asking.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
        let mut answer = String::new();
        let answered = request.and_then(|()| asking.read_to_string(&mut answer));
        assert!(
            answered.is_ok() && answer.starts_with("HTTP/1.1 200 OK\r\n"),
            "{answered:?}: {answer}"
        );
        answer
    }

    /// The next thing that it tells people, apart from hosts that come and go.
    ///
    /// # Panics
    /// When nothing comes.
    pub fn notice(&mut self) -> String {
        let notices = &mut self.notices;
        wait_until(SOON, "a notice", || {
            let notice = notices.try_recv().ok()?;
            let doing = notice.origin.as_ref().map(|origin| origin.doing);
            let is_visit = matches!(doing, Some(Doing::Came | Doing::Went));
            (!is_visit).then(|| notice.to_string())
        })
    }

    /// One of its figures.
    ///
    /// # Panics
    /// When there is none of this name.
    #[must_use]
    pub fn figure(&self, name: &str) -> u64 {
        let values = self.figures.values();
        let found = values.iter().find(|(of, _)| *of == name);
        found.expect("a figure of this name").1 as u64
    }

    /// All that is stored.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    pub fn stored(&self) -> Dump {
        decode(&segments(&self.root))
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

/// Options of a collector that listens there and stores below `root`.
#[must_use]
pub fn options(listen: Address, root: &Path) -> CollectorOptions {
    CollectorOptions {
        listen: vec![listen],
        store: StoreOptions {
            root: root.to_owned(),
            sync: SyncMode::Cache,
            segment_bytes: 1 << 30,
            segment_age: Duration::from_secs(3600),
            retention: Retention::default(),
            session_bytes: 256 << 20,
            directory: DirectoryOptions::default(),
        },
        objects: None,
        credentials: None,
        token: None,
        denied: Vec::new(),
        handshake_within: Duration::from_secs(8),
        connections: 4096,
        hosts: HostLimits::default(),
        memory_bytes: 64 << 20,
        metrics: None,
    }
}

/// A figure of a collector as it is served at `HOST:PORT`; of one with labels the sum.
///
/// # Panics
/// When it is not.
#[must_use]
pub fn served_figure(place: impl ToSocketAddrs, name: &str) -> u64 {
    served_number(place, name) as u64
}

/// The same, with its fraction.
///
/// # Panics
/// When it is not.
#[must_use]
pub fn served_number(place: impl ToSocketAddrs, name: &str) -> f64 {
    let answer = served_page(place);
    let start = format!("ringmark_collector_{name}");
    let of_it = answer.lines().filter_map(|text| text.strip_prefix(&start));
    let of_it: Vec<_> = of_it.filter(|rest| rest.starts_with([' ', '{'])).collect();
    assert!(!of_it.is_empty(), "{name}: {answer}");
    let values = of_it
        .iter()
        .map(|rest| rest.rsplit(' ').next().unwrap_or_default());
    let values = values.map(|value| value.parse::<f64>().expect("a number"));
    values.sum()
}

/// The page of figures that a collector serves at `HOST:PORT`.
///
/// # Panics
/// When it serves none.
#[must_use]
pub fn served_page(place: impl ToSocketAddrs) -> String {
    // Its place for figures may be there a moment after its socket.
    let mut asking = wait_until(SOON, "figures", || TcpStream::connect(&place).ok());
    let request = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";
    asking.write_all(request).expect("a request");
    let mut answer = String::new();
    let _ = asking.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Waits until a process listens at a unix socket: its name is there a moment before that.
///
/// # Panics
/// When none does.
pub fn wait_for_listener(socket: &Path) {
    wait_until(SOON, "a listener", || {
        std::os::unix::net::UnixStream::connect(socket)
            .ok()
            .map(drop)
    });
}

/// The segments of a store, in the order of their names.
///
/// # Panics
/// When it cannot be read.
#[must_use]
pub fn segments(root: &Path) -> Vec<PathBuf> {
    dumps_below(root).expect("a store")
}

/// Options of a streamer.
#[must_use]
pub fn stream_options(selection: Selection, to: Address) -> StreamOptions {
    StreamOptions {
        selection,
        to,
        credentials: None,
        introduction: Introduction::of_this_host(),
        codec: Codec::None,
        retry: Duration::from_millis(1),
        open_every: SOON,
        spill: None,
        zero_copy: false,
        upload: Upload::Always,
        bytes_per_second: None,
    }
}

/// Streams one ring file to its end, whatever becomes of the connections; the file stays.
///
/// # Panics
/// When it cannot be opened, or not all of it becomes durable.
pub fn stream(ring_file: &Path, to: &Path, codec: Codec) -> StreamFigures {
    stream_as("here", ring_file, to, codec)
}

/// The same from a host of this name.
///
/// # Panics
/// As [`stream`].
pub fn stream_as(host: &str, ring_file: &Path, to: &Path, codec: Codec) -> StreamFigures {
    let (selection, to) = (ring_file.to_owned(), Address::Unix(to.to_owned()));
    let mut options = stream_options(Selection::Path(selection), to);
    options.introduction.host = host.to_owned();
    options.codec = codec;
    stream_with(options)
}

/// Streams to the end, whatever becomes of the connections.
///
/// # Panics
/// When the sessions cannot be opened, or not all of them become durable.
pub fn stream_with(options: StreamOptions) -> StreamFigures {
    let mut streamer = Streamer::new(options).expect("a session");
    let streamed = streamer.run(&AtomicBool::new(false), |_| {});
    streamed.expect("everything is durable");
    streamer.figures()
}

/// The first thing that a streamer tells people which has no session to stream.
///
/// # Panics
/// When it says nothing.
#[must_use]
pub fn first_notice(to: Address, change: impl FnOnce(&mut StreamOptions)) -> String {
    let mut options = stream_options(Selection::Tag("there=none".to_owned()), to);
    options.retry = Duration::from_secs(3600);
    change(&mut options);
    let mut streamer = Streamer::new(options).expect("a streamer");
    let (stop, mut told) = (AtomicBool::new(false), Vec::new());
    let streamed = streamer.run(&stop, |streamer| {
        let is_warning = |notice: &String| notice.starts_with("the certificate ");
        told.extend(
            streamer
                .take_notices()
                .into_iter()
                .filter(|n| !is_warning(n)),
        );
        stop.store(!told.is_empty(), Relaxed);
    });
    streamed.expect("nothing that could not become durable");
    told.swap_remove(0)
}
