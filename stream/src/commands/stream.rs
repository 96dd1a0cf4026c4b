//! `stream`: sends sessions to a collector while the programs run.

use std::io;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use ringmark_console::json::{Head, JsonOption};
use ringmark_console::progress::ProgressLine;
use ringmark_console::signals::Signals;
use ringmark_console::status::{Lines, write_line};
use ringmark_console::units::{
    count, counted, duration, overwritten, parse_duration, parse_size, size,
};
use ringmark_console::{Exit, Failure, descriptors, json, note, printable, signals};
use ringmark_reader::stream::{
    Address, Introduction, Side, SpillOptions, StreamFigures, StreamOptions, Streamer, Upload,
};
use ringmark_reader::{Codec, Selection};

use crate::credentials::CredentialOptions;
use crate::metrics_file::MetricsFile;
use crate::option_source::OptionSource;
use crate::place;

/// How long to wait before a collector is tried again for the first time.
const RETRY: Duration = Duration::from_millis(100);

/// Stream programs to a collector while they run
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "ringmark stream [OPTIONS] --to ADDRESS <-p PID|--all|--service NAME|...>"
)]
#[command(after_help = "\
The program gets a page for new events only when the collector has it for good.
What was under way when a connection broke is sent again, and stored once.

While the collector is away or slow, pages wait in their rings, and with
--spill also on disk. They are sent when it is back, by the next 'ringmark
stream' if this one is killed. Like rings, they do not outlive a power loss.
What neither can hold is counted as lost.

With --on-trigger sessions in overwrite mode stay in their rings. They are sent
when their process ended in any way but status 0, or a snapshot is wanted by
'ringmark trace trigger'. SIGUSR1 to this command sends all of them.

Ctrl-C once sends what is there and ends, twice ends now.

--json prints an object each second, and one at the end.

Examples:
  ringmark stream --all --to unix:///run/ringmark.sock
  ringmark stream --all --on-trigger --to unix:///run/ringmark.sock
  ringmark stream -p 812 --to tcp://127.0.0.1:7117 \\
      --token-file /etc/ringmark.token
  ringmark stream --all --to tls://traces.example:7117 \\
      --ca /etc/ringmark/ca.pem --cert /etc/ringmark/cert.pem \\
      --key /etc/ringmark/key.pem
  ringmark stream --config /etc/ringmark/streamer.toml --check")]
pub(crate) struct Args {
    /// Where the collector listens: tls://HOST:PORT, tcp://HOST:PORT or unix:///PATH
    #[arg(long, value_name = "ADDRESS", required_unless_present = "config")]
    to: Option<Address>,
    #[command(flatten)]
    target: Target,
    /// Read options from FILE: TOML, its keys are the long names of options, '${NAME}' is a variable of
    /// the environment. An option of the command line replaces the file's
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the options, the files that they name, the spill's place and the collector's name, then end
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    credentials: CredentialOptions,
    /// Name of this host in the store; default: the first in the certificate, else the system's
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Let pages wait in DIR while the collector is away or slow
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,
    /// Most bytes that wait in DIR
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_size)]
    spill_max: u64,
    /// Send pages of discard sessions without copying them
    #[arg(long, conflicts_with_all = ["spill", "compress"])]
    zero_copy: bool,
    /// How often to send pages that are not full yet; events of a quiet thread are in the store
    /// after twice this time at most
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    open_every: Duration,
    /// Compress pages with LZ4
    #[arg(long)]
    compress: bool,
    /// Send no more than SIZE per second; pages wait in their rings, and with --spill on disk
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_rate: Option<u64>,
    /// Send sessions in overwrite mode only when something happens
    #[arg(long, conflicts_with = "zero_copy")]
    on_trigger: bool,
    /// Write figures to FILE every 10 s, in Prometheus' text format, as the textfile collector of
    /// node_exporter reads them
    #[arg(long, value_name = "FILE")]
    metrics_file: Option<PathBuf>,
    #[command(flatten)]
    json: JsonOption,
    /// Write to FILE how it went, as one line of JSON
    #[arg(long, value_name = "FILE")]
    status_file: Option<PathBuf>,
}

/// What to stream.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct Target {
    /// Stream a process that runs, by its pid
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Stream all sessions, present and future
    #[arg(long)]
    all: bool,
    /// Stream the sessions with this tag of RINGMARK_TAGS, present and future
    #[arg(long, value_name = "KEY=VALUE")]
    tag: Option<String>,
    /// Stream the sessions of this service, or program without a service, present and future; may be
    /// given several times
    #[arg(long, value_name = "NAME")]
    service: Vec<String>,
    /// Stream the sessions of processes in this control group or below it, present and future, such
    /// as /system.slice/shop.service
    #[arg(long, value_name = "PATH")]
    cgroup: Option<String>,
}

impl Target {
    /// Whether it says anything.
    fn is_given(&self) -> bool {
        let others = self.pid.is_some() || self.tag.is_some() || self.cgroup.is_some();
        others || self.all || !self.service.is_empty()
    }

    fn selection(&self) -> Selection {
        match (self.pid, &self.tag, &self.cgroup) {
            (Some(pid), ..) => Selection::Pid(pid),
            (_, Some(tag), _) => Selection::Tag(tag.clone()),
            (_, _, Some(group)) => Selection::Cgroup(group.clone()),
            _ if self.all => Selection::All,
            _ => Selection::Services(self.service.clone()),
        }
    }
}

impl Args {
    /// Runs the command, which is one of the command line `all`.
    pub(crate) fn run(self, all: clap::Command) -> anyhow::Result<Exit> {
        let args = match &self.config {
            Some(_) => OptionSource::new(all, "stream").read()?,
            None => self,
        };
        if args.check {
            let (options, outdated) = args.options()?;
            if let Some(outdated) = outdated {
                return Err(outdated.into());
            }
            args.check_places(&options)?;
            note("the options are valid");
            return Ok(Exit::FINE);
        }
        args.stream()
    }

    /// Where the collector is.
    fn to(&self) -> Result<&Address, Failure> {
        let missing = "expected --to ADDRESS, or 'to' in the file";
        let to = self.to.as_ref().ok_or_else(|| Failure::usage(missing))?;
        if self.zero_copy && matches!(to, Address::Tls(_)) {
            let text =
                format!("{to}: --zero-copy sends pages as they are, expected tcp:// or unix://");
            return Err(Failure::usage(text));
        }
        Ok(to)
    }

    /// Tries what a start would need later: where pages wait and figures are written, and the name of the collector.
    fn check_places(&self, options: &StreamOptions) -> Result<(), Failure> {
        let spill = options.spill.iter().map(|spill| &spill.directory);
        for directory in spill {
            place::check_directory(directory)?;
        }
        for file in self.metrics_file.iter().chain(&self.status_file) {
            place::check_above(file)?;
        }
        let (Address::Tls(at) | Address::Tcp(at)) = &options.to else {
            return Ok(());
        };
        let found = at.to_socket_addrs();
        let failed = |error: io::Error| Failure::usage(format!("{}: {error}", options.to));
        found.map(drop).map_err(failed)
    }

    fn stream(self) -> anyhow::Result<Exit> {
        descriptors::take_all();
        let to = self.to()?.clone();
        let signals = Signals::watch().context("watching signals")?;
        let asked = match self.on_trigger {
            true => signals::upload_requests().context("watching SIGUSR1")?,
            false => Arc::default(),
        };
        let (options, outdated) = self.options()?;
        if let Some(outdated) = outdated {
            note(&outdated.to_string());
        }
        let head = Head::of_host(&options.introduction.host);
        let mut streamer = Streamer::new(options)?;
        let mut display = Display::new();
        let mut lines = Lines::new(self.json.is_on());
        let mut metrics = MetricsFile::new(self.metrics_file.clone())?;
        let ended = streamer.run(&signals.stop, |streamer| {
            if asked.swap(false, Ordering::Relaxed) {
                streamer.upload();
            }
            display.show(streamer);
            lines.show(|| self.status(&head, &streamer.figures()));
            metrics.write_if_due(|| streamer.figures().text());
        });
        display.line.clear();
        display.tell(&mut streamer);
        let figures = streamer.figures();
        metrics.write(&figures.text());
        note(&format!("{to}: {}", summary(&figures)));
        let status = self.status(&head, &figures);
        if self.json.is_on() {
            lines.print(&status);
        }
        let written = write_line(self.status_file.as_deref(), &status);
        ended?;
        written?;
        if let Some(text) = descriptors::left_out(figures.sessions_left_out) {
            note(&text);
        }
        Ok(Exit::lost_if(
            figures.lost > 0 || figures.sessions_left_out > 0 || !figures.removals.is_nothing(),
        ))
    }

    fn status(&self, head: &Head, figures: &StreamFigures) -> serde_json::Value {
        let until = figures.certificate_until;
        let until_ns = until.map(|seconds| seconds.saturating_mul(1_000_000_000));
        let fields = serde_json::json!({
            "to": self.to.as_ref().map(ToString::to_string),
            "connected": figures.connected,
            "connections": figures.connections,
            "sessions_open": figures.sessions_open,
            "sessions_done": figures.sessions_done,
            "sessions_refused": figures.sessions_refused,
            "sessions_left_out": figures.sessions_left_out,
            "pages": figures.pages,
            "pages_skipped": figures.pages_skipped,
            "sent": figures.sent,
            "in_flight": figures.in_flight,
            "spilled": figures.spilled,
            "lag_ms": figures.lag.as_millis() as u64,
            "lost": figures.lost,
            "overwritten": figures.overwritten,
            "uploads": figures.uploads,
            "certificate_until_ts_ns": json::ts_ns(until_ns),
        });
        json::object("stream", head, fields)
    }

    /// The options of the streamer, and what is wrong with its certificate at this moment.
    fn options(&self) -> anyhow::Result<(StreamOptions, Option<Failure>)> {
        let to = self.to()?;
        if !self.target.is_given() {
            let text = "expected one of --all, --pid, --service, --tag and --cgroup, or one of these in the file";
            return Err(Failure::usage(text).into());
        }
        let mut introduction = Introduction::of_this_host();
        let loaded = self
            .credentials
            .load(std::slice::from_ref(to), Side::Streamer)?;
        introduction.token = loaded.token;
        let certified = loaded.credentials.as_ref().and_then(|c| c.hosts().first());
        if let Some(host) = self.host.as_ref().or(certified) {
            introduction.host.clone_from(host);
        }
        let options = StreamOptions {
            selection: self.target.selection(),
            to: to.clone(),
            credentials: loaded.credentials,
            introduction,
            retry: RETRY,
            open_every: self.open_every,
            spill: self.spill.clone().map(|directory| SpillOptions {
                directory,
                bytes_max: self.spill_max,
            }),
            zero_copy: self.zero_copy,
            upload: match self.on_trigger {
                true => Upload::OnTrigger,
                false => Upload::Always,
            },
            bytes_per_second: self.max_rate,
            codec: if self.compress {
                Codec::Lz4
            } else {
                Codec::None
            },
        };
        Ok((options, loaded.outdated))
    }
}

fn summary(figures: &StreamFigures) -> String {
    format!(
        "{} done, {}, {} sent, {} lost{}",
        counted(figures.sessions_done as u64, "session"),
        counted(figures.pages, "page"),
        size(figures.sent),
        count(figures.lost),
        overwritten(figures.overwritten)
    )
}

/// The progress of a stream on the terminal, and its notices.
struct Display {
    line: ProgressLine,
}

impl Display {
    fn new() -> Self {
        Self {
            line: ProgressLine::new(true),
        }
    }

    fn show(&mut self, streamer: &mut Streamer) {
        self.tell(streamer);
        if self.line.due().is_none() {
            return;
        }
        let f = streamer.figures();
        let state = if f.connected {
            "connected"
        } else {
            "no collector"
        };
        self.line.show(&format!(
            "{state}, {}, {} sent, {} under way, {} spilled, {} behind, {} lost{}",
            counted(f.sessions_open as u64, "session"),
            size(f.sent),
            size(f.in_flight),
            size(f.spilled),
            duration(f.lag.as_nanos() as u64),
            count(f.lost),
            overwritten(f.overwritten)
        ));
    }

    fn tell(&mut self, streamer: &mut Streamer) {
        for notice in streamer.take_notices() {
            self.line.clear();
            note(&printable(&notice));
        }
    }
}
