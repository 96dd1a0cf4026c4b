//! `store`: looks at a collector's store, and removes what a host sent.

use std::io::Write;
use std::path::{Path, PathBuf};

use ringmark_collector::store::upkeep::{IdleStore, Removed};
use ringmark_collector::store::usage::{Period, Usage};
use ringmark_collector::store::{StoreError, upkeep, usage};
use ringmark_console::extension::{place_parser, store_url};
use ringmark_console::json::{Head, JsonOption, Line, object, ts_ns};
use ringmark_console::units::{count, counted, size};
use ringmark_console::wide::WideOption;
use ringmark_console::{Exit, Failure, Sink, Style, Table, extension, printable};
use ringmark_decoder::Stamper;
use serde_json::{Value, json};

use super::store_hosts::{Hosts, stored_by};

/// Letters of a time to the minute.
const MINUTE: usize = "2026-01-31T12:00".len();

/// Look at a collector's store, and remove what a host sent
#[derive(Debug, clap::Args)]
#[command(after_help = "\
'ls', 'hosts' and 'df' may run while a collector has the store; they read stores
of objects, too. 'rm' needs the store of one collector for itself: end it first,
streamers wait until it is back. 'ringmark verify DIR' checks what is stored.

Examples:
  ringmark store ls /var/lib/ringmark
  ringmark store ls /var/lib/ringmark --json
  ringmark store rm /var/lib/ringmark --host web-1")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    json: JsonOption,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List what is stored by host and service
    #[command(after_help = "\
WRITTEN counts the events that threads wrote from the first to the last page in
closed segments: those that are there, and those that were lost between.
Segments of a store of objects hold several hosts; SEGMENTS counts those that
hold some of this one. With '--by', the time is that of the upload; in the store
of one collector, that of the segment's last block.

Example: ringmark store ls /var/lib/ringmark --by day")]
    Ls(List),
    /// List the hosts of a store, with the silent and lagging ones first
    #[command(after_help = "\
EVENT and HEARD are how long ago the last event was, and the last thing that the
host said. COMPLETE: everything older is here or counted; 'whole': all is.
SEGMENT is the hour in which its last segment came, UTC.

  silent    a program goes on, and nothing was heard of it for --silent
  lagging   something older than --lag may still come
  heard     neither
  over      all its sessions have ended, and all of them is here or counted

Exit code 1: a host is silent or lagging, or events of it are missing. Reads the
whole store, as 'ringmark verify' does.

Example: ringmark store hosts /var/lib/ringmark --silent 10m")]
    Hosts(Hosts),
    /// Show how much each host has stored, and what is free
    #[command(after_help = "Example: ringmark store df /var/lib/ringmark")]
    Df(Sizes),
    /// Remove all that a host sent
    #[command(after_help = "Example: ringmark store rm /var/lib/ringmark --host web-1")]
    Rm(Remove),
    /// List the files that a table of 'ringmark compact' has now, for engines that do not read its
    /// log; needs ringmark-fleet
    #[command(after_help = "Example: ringmark store files /srv/traces --table events")]
    Files(Files),
}

#[derive(Debug, clap::Args)]
struct Files {
    /// Where the tables are: the store, or the place of --into
    #[arg(value_name = "URL")]
    dir: PathBuf,
    /// The table: spans, events or losses
    #[arg(long, value_name = "NAME", default_value = "spans")]
    table: String,
    /// Only files with rows that began at this time or later
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only files with rows that began before this time
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Place {
    /// Directory of the store
    #[arg(value_name = "DIR", value_parser = place_parser())]
    dir: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Sizes {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    wide: WideOption,
}

#[derive(Debug, clap::Args)]
struct List {
    /// The store: a directory, file:///DIR, s3://BUCKET/PREFIX or az://CONTAINER/PREFIX
    #[arg(value_name = "STORE", value_parser = place_parser())]
    place: PathBuf,
    /// Say what came in each day or hour, UTC
    #[arg(long, value_name = "PERIOD")]
    by: Option<By>,
    #[command(flatten)]
    wide: WideOption,
}

/// What one line of `ls` is about.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum By {
    /// A day
    Day,
    /// An hour
    Hour,
}

impl By {
    const fn period(this: Option<Self>) -> Period {
        match this {
            None => Period::All,
            Some(Self::Day) => Period::Day,
            Some(Self::Hour) => Period::Hour,
        }
    }
}

#[derive(Debug, clap::Args)]
struct Remove {
    #[command(flatten)]
    place: Place,
    /// The host, as 'ringmark store ls' shows it
    #[arg(long, value_name = "NAME")]
    host: String,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let json = self.json.is_on();
        match self.action {
            Action::Ls(List { place, by, wide }) => list(&place, By::period(by), json, wide),
            Action::Hosts(hosts) => hosts.run(json),
            Action::Df(Sizes { place, wide }) => show_sizes(&place.dir, json, wide),
            Action::Rm(Remove { place, host }) => remove(&place.dir, &host, json),
            Action::Files(_) => extension::write("store files", None),
        }
    }
}

fn failed(error: StoreError) -> Failure {
    Failure::no_target(printable(&error.to_string()))
}

fn list(dir: &Path, period: Period, json: bool, wide: WideOption) -> anyhow::Result<Exit> {
    let mut found = stored_by(dir, period)?;
    found.sort_by(|a, b| a.period.cmp(&b.period));
    if json {
        return print_objects(found.iter().map(stored));
    }
    let when: &[_] = match period {
        Period::All => &["FIRST DAY", "LAST EVENT"],
        Period::Day => &["DAY", "LAST EVENT"],
        Period::Hour => &["HOUR", "LAST EVENT"],
    };
    let of_each = [
        "HOST",
        "SERVICE",
        ">SESSIONS",
        ">SEGMENTS",
        ">SIZE",
        ">WRITTEN",
    ];
    let mut table = Table::new(&[&of_each, when].concat());
    for usage in found {
        table.row(vec![
            printable(&usage.host),
            printable(&usage.service),
            count(usage.sessions),
            count(usage.segments),
            size(usage.bytes),
            count(usage.written),
            usage.period.unwrap_or(usage.first_day),
            usage.last_ns.map_or_else(|| "-".to_owned(), minute),
        ]);
    }
    print(table, wide)
}

/// A wall time, UTC: `2026-01-31 12:00`.
fn minute(ns: u64) -> String {
    let text = String::from_utf8_lossy(&Stamper::default().stamp(ns)[..MINUTE]).into_owned();
    text.replace('T', " ")
}

fn show_sizes(dir: &Path, json: bool, wide: WideOption) -> anyhow::Result<Exit> {
    if let Some(url) = store_url(dir) {
        let text = format!(
            "{url}: found a bucket, expected a directory; 'ringmark store ls' shows what is stored"
        );
        return Err(Failure::no_target(text).into());
    }
    let hosts = usage::by_host(usage::usage(dir, Period::All).map_err(failed)?);
    let all: u64 = hosts.iter().map(|host| host.bytes).sum();
    let free = upkeep::free_bytes(dir)?;
    if json {
        let space = json!({"bytes": all, "free_bytes": free});
        let space = object("store_space", &Head::default(), space);
        return print_objects(hosts.iter().map(stored).chain([space]));
    }
    let mut table = Table::new(&["HOST", ">SEGMENTS", ">SIZE", ">PART"]);
    for host in &hosts {
        let part = host.bytes * 100 / all.max(1);
        table.row(vec![
            printable(&host.host),
            count(host.segments),
            size(host.bytes),
            format!("{part} %"),
        ]);
    }
    table.foot([format!("{} stored, {} free", size(all), size(free))]);
    print(table, wide)
}

/// What is stored of a service, or of a host where that is not named.
fn stored(usage: &Usage) -> Value {
    let head = Head {
        host: Some(usage.host.clone()),
        service: Some(usage.service.clone()).filter(|service| !service.is_empty()),
        ..Head::default()
    };
    let fields = json!({
        "sessions": usage.sessions,
        "segments": usage.segments,
        "bytes": usage.bytes,
        "puts": usage.puts as f64 / 1000.0,
        "written": usage.written,
        "period": usage.period,
        "last_ts_ns": ts_ns(usage.last_ns),
        "first_day": usage.first_day,
        "last_day": usage.last_day,
    });
    object("stored", &head, fields)
}

fn print_objects(objects: impl Iterator<Item = Value>) -> anyhow::Result<Exit> {
    let mut out = Sink::direct();
    for object in objects {
        writeln!(out, "{}", Line(object))?;
    }
    out.finish()?;
    Ok(Exit::FINE)
}

fn print(mut table: Table, wide: WideOption) -> anyhow::Result<Exit> {
    table.fit(wide.columns());
    let mut out = Sink::direct();
    table.write(&mut out, Style::detect())?;
    out.finish()?;
    Ok(Exit::FINE)
}

fn remove(dir: &Path, host: &str, json: bool) -> anyhow::Result<Exit> {
    let store = IdleStore::take(dir).map_err(failed)?;
    let removed = store.remove_host(host).map_err(failed)?;
    if removed.files == 0 {
        let text = format!(
            "{}: found nothing of host {}; 'ringmark store ls' shows the hosts",
            dir.display(),
            printable(host)
        );
        return Err(Failure::no_target(text).into());
    }
    report(removed, json)
}

fn report(Removed { files, bytes }: Removed, json: bool) -> anyhow::Result<Exit> {
    if json {
        let fields = json!({"files": files, "bytes": bytes});
        return print_objects([object("removed_files", &Head::default(), fields)].into_iter());
    }
    let mut out = Sink::direct();
    writeln!(out, "{} removed, {}", counted(files, "file"), size(bytes))?;
    out.finish()?;
    Ok(Exit::FINE)
}
