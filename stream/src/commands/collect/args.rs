//! The options of `collect`, as the command line has them and as the collector takes them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use ringmark_collector::store::object_sessions::ObjectOptions;
use ringmark_collector::store::objects::ObjectStore;
use ringmark_collector::store::{DirectoryOptions, MinFree, Retention, StoreOptions, SyncMode};
use ringmark_collector::{CollectorOptions, DenyRule, HostLimits};
use ringmark_console::Failure;
use ringmark_console::extension::{local_path, store_url};
use ringmark_console::json::JsonOption;
use ringmark_console::units::{parse_duration, parse_size};
use ringmark_reader::stream::{Address, Side};

use crate::credentials::CredentialOptions;
use crate::log::LogOptions;
use crate::objects;

/// How long a TLS handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(8);

/// When objects are put, where '--flush' does not say it.
const FLUSH: Duration = Duration::from_secs(5);
/// When a segment ends, where '--segment-age' does not say it.
const SEGMENT_AGE: Duration = Duration::from_secs(3600);

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

SIGHUP: the collector reads its file, certificates and token again. It takes
over certificates, --token-file, --deny, --keep-*, --min-free, limits of a host
and the log. Another option that changed, or a mistake, is logged, and
nothing changes. On a terminal without --config, SIGHUP ends the collector.

--json prints an object when it listens, one each second, and one at the end.

Examples:
  ringmark collect --listen unix:///run/ringmark.sock --store /var/lib/ringmark
  ringmark collect --listen tcp://127.0.0.1:7117 --token-file TOKEN \\
      --store traces --keep-size 20G
  ringmark collect --listen tls://0.0.0.0:7117 --store /var/lib/ringmark \\
      --ca /etc/ringmark/ca.pem --cert /etc/ringmark/cert.pem \\
      --key /etc/ringmark/key.pem
  ringmark collect --config /etc/ringmark/collector.toml --check")]
pub(crate) struct Args {
    /// Where to listen: tls://HOST:PORT, tcp://HOST:PORT (port 0: any) or unix:///PATH; may be
    /// given several times
    #[arg(long, value_name = "ADDRESS", required_unless_present = "config")]
    pub(super) listen: Vec<Address>,
    /// Directory of the store: a store, or an empty directory
    #[arg(long, value_name = "DIR", required_unless_present_any = ["config", "objects"])]
    pub(super) store: Option<PathBuf>,
    /// Store objects below file:///DIR, s3://BUCKET/PREFIX or az://CONTAINER/PREFIX instead, which other
    /// collectors may do at the same time
    #[arg(long, value_name = "URL", conflicts_with = "store", value_parser = parse_objects)]
    pub(super) objects: Option<PathBuf>,
    /// With --objects: put what came when the first of it is this old, and acknowledge it then
    /// [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) flush: Option<Duration>,
    /// Read options from FILE: TOML, its keys are the long names of options, '${NAME}' is a variable of
    /// the environment. An option of the command line replaces the file's
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Check the options, the files that they name, the store's place and the addresses, then end
    #[arg(long)]
    pub(super) check: bool,
    /// Refuse HOST, also with a valid certificate, or 'serial:NUMBER', the certificate of this serial
    /// number; may be given several times
    #[arg(long, value_name = "HOST")]
    pub(super) deny: Vec<DenyRule>,
    /// Make DIR a store although it holds other files, which stay
    #[arg(long)]
    pub(super) init: bool,
    /// Let DIR's group read what is stored from now on: modes 0750 and 0640 instead of 0700 and 0600
    #[arg(long)]
    pub(super) group_readable: bool,
    /// When a page counts as stored [default: disk]
    #[arg(long, value_name = "WHEN")]
    pub(super) sync: Option<When>,
    #[command(flatten)]
    pub(super) credentials: CredentialOptions,
    /// Begin a new segment when the last one reaches SIZE
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_size)]
    pub(super) segment_size: u64,
    /// With --store: begin a new segment when the last one is this old [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) segment_age: Option<Duration>,
    /// With --store: remove the oldest segments of the host that has most when all together are larger than SIZE
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(super) keep_size: Option<u64>,
    /// With --store: remove the oldest segments of a host when its own are larger than SIZE
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(super) keep_size_per_host: Option<u64>,
    /// With --store: keep SIZE, or a part such as 5%, of the file system free. The host that has most
    /// gives its oldest segments; while that is not enough, nothing is taken in [default: 0]
    #[arg(long, value_name = "SIZE", value_parser = parse_min_free)]
    pub(super) min_free: Option<MinFree>,
    /// With --store: remove segments whose last event is older than TIME, such as 12h or 7d
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) keep_age: Option<Duration>,
    /// Most connections at a time
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub(super) connections: usize,
    /// Most connections of one host at a time
    #[arg(long, value_name = "N", default_value_t = HostLimits::default().connections)]
    pub(super) connections_per_host: usize,
    /// Take no more than SIZE per second from one host; it waits, and loses nothing that its rings
    /// and spill can hold
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(super) rate_per_host: Option<u64>,
    /// Memory for large blocks on their way in, for all connections together; one host gets a quarter.
    /// With --objects for what streamers may send and what waits to be put, and half as much again for
    /// blocks on their way in
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = parse_size)]
    pub(super) memory: u64,
    /// Serve metrics for Prometheus at http://HOST:PORT/metrics
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) metrics: Option<String>,
    #[command(flatten)]
    pub(super) log: LogOptions,
    #[command(flatten)]
    pub(super) json: JsonOption,
    /// Write to FILE how it went, as one line of JSON
    #[arg(long, value_name = "FILE")]
    pub(super) status_file: Option<PathBuf>,
}

/// When data counts as durable.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum When {
    /// When the disk has it: it outlives a power loss
    Disk,
    /// When the kernel has it: it outlives the collector
    Cache,
}

impl From<When> for SyncMode {
    fn from(when: When) -> Self {
        match when {
            When::Disk => Self::Disk,
            When::Cache => Self::Cache,
        }
    }
}

/// The directory of `file:///DIR`, or an address that needs an extension as it is.
pub(super) fn parse_objects(text: &str) -> Result<PathBuf, String> {
    if store_url(Path::new(text)).is_some() {
        return Ok(PathBuf::from(text));
    }
    let path = local_path(PathBuf::from(text));
    let wrong = || {
        format!("found {text:?}, expected file:///DIR, s3://BUCKET/PREFIX or az://CONTAINER/PREFIX")
    };
    match path.as_os_str() == text {
        true => Err(wrong()),
        false => Ok(path),
    }
}

/// What must stay free, as in `5%`, `10G` or `0`.
pub(super) fn parse_min_free(text: &str) -> Result<MinFree, String> {
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
    /// Where objects are, if that is no directory.
    ///
    /// # Errors
    /// It needs a command that is not there, or cannot be used.
    pub(super) fn place(&self) -> Result<Option<Arc<dyn ObjectStore>>, Failure> {
        let Some(url) = self.objects.as_deref().and_then(store_url) else {
            return Ok(None);
        };
        objects::place(url).map(Some)
    }

    /// The directory of the store, or of the objects.
    pub(super) fn store(&self) -> Result<&PathBuf, Failure> {
        let missing = || {
            Failure::usage(
                "expected --store DIR or --objects URL, or 'store' or 'objects' in the file",
            )
        };
        self.objects
            .as_ref()
            .or(self.store.as_ref())
            .ok_or_else(missing)
    }

    /// The options of the collector. Reads the files that they name.
    ///
    /// # Errors
    /// An option is missing, or a file cannot be used.
    pub(super) fn collector_options(&self) -> anyhow::Result<CollectorOptions> {
        let store = self.store_options()?;
        if self.listen.is_empty() {
            let text = "expected --listen ADDRESS, or 'listen' in the file";
            return Err(Failure::usage(text).into());
        }
        let loaded = self.credentials.load(&self.listen, Side::Collector)?;
        Ok(CollectorOptions {
            credentials: loaded.credentials,
            token: loaded.token,
            denied: self.deny.clone(),
            handshake_within: HANDSHAKE_WITHIN,
            listen: self.listen.clone(),
            store,
            objects: self.objects.as_ref().map(|_| ObjectOptions {
                flush: self.flush.unwrap_or(FLUSH),
                memory_bytes: self.memory,
            }),
            connections: self.connections,
            hosts: HostLimits {
                connections: self.connections_per_host,
                bytes_per_second: self.rate_per_host,
            },
            memory_bytes: usize::try_from(self.memory).unwrap_or(usize::MAX),
            metrics: self.metrics.clone(),
        })
    }

    fn store_options(&self) -> Result<StoreOptions, Failure> {
        self.check_kind_of_store()?;
        Ok(StoreOptions {
            root: self.store()?.clone(),
            sync: self.sync.map_or_else(SyncMode::default, SyncMode::from),
            segment_bytes: self.segment_size,
            segment_age: self.segment_age.unwrap_or(SEGMENT_AGE),
            retention: Retention {
                bytes: self.keep_size,
                host_bytes: self.keep_size_per_host,
                min_free: self.min_free.unwrap_or_default(),
                age: self.keep_age,
            },
            session_bytes: StoreOptions::SESSION_BYTES,
            directory: DirectoryOptions {
                init: self.init,
                group_readable: self.group_readable,
            },
        })
    }
}
