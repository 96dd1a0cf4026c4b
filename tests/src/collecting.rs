//! A collector inside the test, and a streamer that sends one ring file to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ringmark_collector::store::{Retention, StoreOptions, Sync};
use ringmark_collector::{Collector, CollectorOptions, Figures};
use ringmark_decoder::Dump;
use ringmark_reader::Codec;
use ringmark_reader::stream::{Address, Introduction, StreamFigures, StreamOptions, Streamer};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::recording::decode;

/// A collector that serves until it is dropped.
#[derive(Debug)]
pub struct Collecting {
    runtime: Option<Runtime>,
    stop: Option<oneshot::Sender<()>>,
    figures: Arc<Figures>,
    root: PathBuf,
}

impl Collecting {
    /// Listens at the unix socket `socket` and stores below `root`.
    ///
    /// # Panics
    /// When it cannot.
    #[must_use]
    pub fn start(socket: &Path, root: &Path) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let (notices, _) = tokio::sync::mpsc::unbounded_channel();
        let collector = runtime.block_on(Collector::start(options(socket, root), notices));
        let collector = collector.expect("a collector");
        let figures = collector.figures();
        let (stop, stopped) = oneshot::channel();
        drop(runtime.spawn(collector.run(async move { drop(stopped.await) })));
        Self {
            runtime: Some(runtime),
            stop: Some(stop),
            figures,
            root: root.to_owned(),
        }
    }

    /// One of its figures.
    ///
    /// # Panics
    /// When there is none of this name.
    #[must_use]
    pub fn figure(&self, name: &str) -> u64 {
        let values = self.figures.values();
        let found = values.iter().find(|(of, _)| *of == name);
        found.expect("a figure of this name").1
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

fn options(socket: &Path, root: &Path) -> CollectorOptions {
    CollectorOptions {
        listen: vec![Address::Unix(socket.to_owned())],
        store: StoreOptions {
            root: root.to_owned(),
            sync: Sync::Cache,
            segment_bytes: 1 << 30,
            segment_age: Duration::from_secs(3600),
            retention: Retention::default(),
            session_bytes: 256 << 20,
        },
        token: None,
        connections: 4096,
        memory_bytes: 64 << 20,
        metrics: None,
    }
}

/// The segments of a store, in the order of their names.
///
/// # Panics
/// When it cannot be read.
#[must_use]
pub fn segments(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory of the store") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|e| e == "rmk") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
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
    let options = StreamOptions {
        selection: ringmark_reader::Selection::Path(ring_file.to_owned()),
        to: Address::Unix(to.to_owned()),
        introduction: Introduction {
            host: host.to_owned(),
            ..Introduction::of_this_host()
        },
        codec,
        retry: Duration::from_millis(1),
        spill: None,
    };
    let mut streamer = Streamer::new(options).expect("a session");
    let streamed = streamer.run(&AtomicBool::new(false), |_| {});
    streamed.expect("everything is durable");
    streamer.figures()
}
