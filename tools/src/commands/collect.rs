//! `collect`: takes the streams of many hosts into a store.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::ValueEnum;
use ringmark_collector::store::{DirectoryOptions, MinFree, Retention, StoreOptions, SyncMode};
use ringmark_collector::{Collector, CollectorOptions, Figures, HostLimits, Notice};
use ringmark_reader::stream::Address;

use crate::options::credentials::CredentialOptions;
use crate::output::json::{Head, NewJsonOption};
use crate::output::printer::Printer;
use crate::output::repeats::Repeats;
use crate::output::service::Service;
use crate::output::status::{self, Lines, write_line};
use crate::output::units::{counted, parse_duration, parse_size};
use crate::output::{Exit, Failure, json, note, printable};
use crate::recording::descriptors;
use crate::recording::signals::Signals;

/// How long a TLS handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(8);

/// Collect the streams of many hosts in a store
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The store has a directory for each day, service and host. It holds trace files,
named by session, which all commands read: 'ringmark cat STORE'. What was
acknowledged to a streamer is there for good.

Ctrl-C or SIGTERM once: the streamers are notified, what was received is
acknowledged, and the collector ends after 10 s at most. Streamers then go to
the next collector. Twice: it ends now, and what was not acknowledged is sent
again.

--json prints an object when it listens, one each second, and one at the end.

Examples:
  ringmark collect --listen unix:///run/ringmark.sock --store /var/lib/ringmark
  ringmark collect --listen tcp://127.0.0.1:7117 --token-file TOKEN \\
      --store traces --keep-size 20G
  ringmark collect --listen tls://0.0.0.0:7117 --store /var/lib/ringmark \\
      --ca /etc/ringmark/ca.pem --cert /etc/ringmark/cert.pem \\
      --key /etc/ringmark/key.pem")]
pub(crate) struct Args {
    /// Where to listen: tls://HOST:PORT, tcp://HOST:PORT (port 0: any) or unix:///PATH; may be
    /// given several times
    #[arg(long, value_name = "ADDRESS", required = true)]
    listen: Vec<Address>,
    /// Directory of the store: a store, or an empty directory
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
    /// Make DIR a store although it holds other files, which stay
    #[arg(long)]
    init: bool,
    /// Let DIR's group read what is stored from now on: modes 0750 and 0640 instead of 0700 and 0600
    #[arg(long)]
    group_readable: bool,
    /// When a page counts as stored
    #[arg(long, value_name = "WHEN", default_value = "disk")]
    sync: When,
    #[command(flatten)]
    credentials: CredentialOptions,
    /// Begin a new segment when the last one reaches SIZE
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_size)]
    segment_size: u64,
    /// Begin a new segment when the last one is this old
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_duration)]
    segment_age: Duration,
    /// Remove the oldest segments of the host that has most when all together are larger than SIZE
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    keep_size: Option<u64>,
    /// Remove the oldest segments of a host when its own are larger than SIZE
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    keep_size_per_host: Option<u64>,
    /// Keep SIZE, or a part such as 5%, of the file system free. The host that has most gives its
    /// oldest segments; while that is not enough, nothing is taken in
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = parse_min_free)]
    min_free: MinFree,
    /// Remove segments whose last event is older than TIME, such as 12h or 7d
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    keep_age: Option<Duration>,
    /// Most connections at a time
    #[arg(long, value_name = "N", default_value_t = 4096)]
    connections: usize,
    /// Most connections of one host at a time
    #[arg(long, value_name = "N", default_value_t = HostLimits::default().connections)]
    connections_per_host: usize,
    /// Take no more than SIZE per second from one host; it waits, and loses nothing that its rings
    /// and spill can hold
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    rate_per_host: Option<u64>,
    /// Memory for large blocks on their way in, for all connections together; one host gets a quarter
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = parse_size)]
    memory: u64,
    /// Memory for what is known of sessions: their schema, and what is stored of them; one host gets
    /// an eighth
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_size)]
    session_memory: u64,
    /// Serve metrics for Prometheus at http://HOST:PORT/metrics
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
    #[command(flatten)]
    json: NewJsonOption,
    /// Write to FILE how it went, as one line of JSON
    #[arg(long, value_name = "FILE")]
    status_file: Option<PathBuf>,
}

/// Most threads that wait for the disk at the same time. Where some hang, as many are left as
/// connections usually need.
const DISK_CALLS_MAX: usize = 128;
/// How long the end waits for calls to the disk.
const DISK_WITHIN: Duration = Duration::from_secs(1);
/// How long the end waits until everything is printed.
const PRINT_WITHIN: Duration = Duration::from_secs(1);
/// How often a signal is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// When data counts as durable.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum When {
    /// When the disk has it: it outlives a power loss
    Disk,
    /// When the kernel has it: it outlives the collector
    Cache,
}

/// What must stay free, as in `5%`, `10G` or `0`.
fn parse_min_free(text: &str) -> Result<MinFree, String> {
    let wrong =
        || format!("found {text:?}, expected a size such as 10G, or a percentage such as 5%");
    match text.strip_suffix('%') {
        Some(percent) => match percent.parse() {
            Ok(percent @ 0..=90) => Ok(MinFree::Percent(percent)),
            _ => Err(wrong()),
        },
        None if text == "0" => Ok(MinFree::default()),
        None => parse_size(text).map(MinFree::Bytes).map_err(|_| wrong()),
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        descriptors::take_all();
        let signals = Signals::watch().context("watching signals")?;
        let report = Report {
            store: self.store.display().to_string(),
            json: self.json,
            status_file: self.status_file.clone(),
        };
        let options = self.options()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(DISK_CALLS_MAX)
            .enable_all()
            .build()
            .context("starting the runtime")?;
        let served = runtime.block_on(serve(options, signals, &report));
        // A call to a disk that hangs is not waited for: what it writes was not acknowledged.
        runtime.shutdown_timeout(DISK_WITHIN);
        served.map(|()| Exit::FINE)
    }

    fn options(self) -> anyhow::Result<CollectorOptions> {
        let loaded = self.credentials.load(&self.listen)?;
        Ok(CollectorOptions {
            credentials: loaded.credentials,
            token: loaded.token,
            handshake_within: HANDSHAKE_WITHIN,
            listen: self.listen,
            store: StoreOptions {
                root: self.store,
                sync: match self.sync {
                    When::Disk => SyncMode::Disk,
                    When::Cache => SyncMode::Cache,
                },
                segment_bytes: self.segment_size,
                segment_age: self.segment_age,
                retention: Retention {
                    bytes: self.keep_size,
                    host_bytes: self.keep_size_per_host,
                    min_free: self.min_free,
                    age: self.keep_age,
                },
                session_bytes: self.session_memory,
                directory: DirectoryOptions {
                    init: self.init,
                    group_readable: self.group_readable,
                },
            },
            connections: self.connections,
            hosts: HostLimits {
                connections: self.connections_per_host,
                bytes_per_second: self.rate_per_host,
            },
            memory_bytes: usize::try_from(self.memory).unwrap_or(usize::MAX),
            metrics: self.metrics,
        })
    }
}

/// What the collector says of itself in JSON, and where.
struct Report {
    store: String,
    json: NewJsonOption,
    status_file: Option<PathBuf>,
}

impl Report {
    fn status(&self, state: &str, addresses: &[Address], figures: &Figures) -> serde_json::Value {
        let addresses = addresses.iter().map(Address::to_string);
        let mut fields = serde_json::json!({
            "state": state,
            "store": self.store,
            "listening": addresses.collect::<Vec<_>>(),
        });
        if let serde_json::Value::Object(fields) = &mut fields {
            let figures = figures.values().into_iter();
            fields.extend(figures.map(|(name, value)| (name.to_owned(), value.into())));
        }
        json::object("collector", &Head::default(), fields)
    }
}

/// What it prints, on a thread of its own: it goes on also without a reader.
struct Told {
    printer: Printer,
    repeats: Repeats,
}

impl Told {
    fn start() -> anyhow::Result<Self> {
        Ok(Self {
            printer: Printer::start().context("a thread that prints")?,
            repeats: Repeats::default(),
        })
    }

    fn note(&mut self, text: String) {
        self.printer.print(move || note(&text));
    }

    fn status(&mut self, status: serde_json::Value) {
        self.printer.print(move || _ = status::print(&status));
    }

    /// A notice of the collector, unless it came before.
    fn notice(&mut self, notice: &Notice) {
        for text in self.repeats.filter(notice, Instant::now()) {
            self.note(printable(&text));
        }
    }

    fn end(mut self) {
        if let Some(text) = self.repeats.rest() {
            self.note(text);
        }
        self.printer.end_within(PRINT_WITHIN);
    }
}

async fn serve(options: CollectorOptions, signals: Signals, report: &Report) -> anyhow::Result<()> {
    let (notices, mut received) = tokio::sync::mpsc::unbounded_channel();
    let collector = Collector::start(options, notices)
        .await
        .map_err(|error| Failure::usage(error.to_string()))?;
    let mut told = Told::start()?;
    let addresses = collector.addresses();
    for address in &addresses {
        told.note(format!("listening at {address}"));
    }
    if let Some(address) = collector.metrics_address() {
        told.note(format!("figures at http://{address}/metrics"));
    }
    let figures = collector.figures();
    let mut service = Service::started();
    service.ready();
    let mut lines = Lines::new(report.json.is_on());
    if report.json.is_on() {
        told.status(report.status("listening", &addresses, &figures));
    }
    let left = collector
        .run(async {
            while !signals.stop.load(Ordering::Relaxed) {
                let _ = tokio::time::timeout(LOOK_EVERY, async {
                    while let Some(notice) = received.recv().await {
                        told.notice(&notice);
                    }
                })
                .await;
                service.alive(figures.disk_wait());
                if lines.is_due() {
                    told.status(report.status("listening", &addresses, &figures));
                }
            }
            service.stopping();
        })
        .await;
    // The last notices come from connections that end now.
    while let Ok(notice) = received.try_recv() {
        told.notice(&notice);
    }
    if left > 0 {
        told.note(format!(
            "{} had not ended in time; what was not acknowledged is sent again",
            counted(left as u64, "connection")
        ));
    }
    let status = report.status("ended", &addresses, &figures);
    if report.json.is_on() {
        told.status(status.clone());
    }
    told.end();
    write_line(report.status_file.as_deref(), &status)
}
