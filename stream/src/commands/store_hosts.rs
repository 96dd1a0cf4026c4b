//! `store hosts`: every host of a store, and how it does.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use ringmark_collector::store::usage::{self, Period, Usage};
use ringmark_decoder::{
    DumpBuilder, Filter, HealthLimits, HostHealth, HostState, SessionChoice, store,
};
use serde_json::{Value, json};

use ringmark_console::extension::{self, place_parser, store_url};
use ringmark_console::file;
use ringmark_console::json::{Head, Line, object, ts_ns};
use ringmark_console::units::{count, parse_duration};
use ringmark_console::wide::WideOption;
use ringmark_console::{Exit, Failure, Sink, Style, Table, printable};
use ringmark_console::{host_name, now_ns};

const SECOND: u64 = 1_000_000_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Hosts {
    /// The store: a directory, file:///DIR, s3://BUCKET/PREFIX or az://CONTAINER/PREFIX
    #[arg(value_name = "STORE", value_parser = place_parser())]
    place: PathBuf,
    /// A host that has said nothing for TIME is silent
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_duration)]
    silent: Duration,
    /// A host of which something older than TIME may still come is lagging
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = parse_duration)]
    lag: Duration,
    #[command(flatten)]
    wide: WideOption,
}

/// A host, and the hour of its last segment.
struct Row {
    health: HostHealth,
    segment: Option<String>,
}

impl Hosts {
    pub(crate) fn run(&self, json: bool) -> anyhow::Result<Exit> {
        let now = now_ns();
        let limits = HealthLimits {
            silent_ns: nanos(self.silent),
            lag_ns: nanos(self.lag),
        };
        let rows = rows(&self.place, now, limits)?;
        let mut out = Sink::direct();
        match json {
            true => rows
                .iter()
                .try_for_each(|row| writeln!(out, "{}", Line(as_object(row))))?,
            false => {
                let mut table = table(&rows, now);
                table.fit(self.wide.columns());
                table.write(&mut out, Style::detect())?;
            }
        }
        out.finish()?;
        Ok(Exit::lost_if(rows.iter().any(is_alarm)))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The hosts, those in trouble first.
fn rows(place: &Path, now: u64, limits: HealthLimits) -> anyhow::Result<Vec<Row>> {
    let mut segments: BTreeMap<String, String> = BTreeMap::new();
    for usage in stored_by(place, Period::Hour)? {
        let hour = usage.period.unwrap_or_default();
        let last = segments.entry(usage.host).or_default();
        if hour > *last {
            *last = hour;
        }
    }
    let all = (&Filter::new(), &SessionChoice::default());
    let dump = store::read(DumpBuilder::new(), &[place.to_owned()], all, file::open)?;
    let row = |health: HostHealth| Row {
        segment: segments
            .get(&*String::from_utf8_lossy(&health.figures.host))
            .cloned(),
        health,
    };
    let mut rows: Vec<_> = dump.health(now, limits).into_iter().map(row).collect();
    rows.sort_by_key(|row| row.health.state);
    Ok(rows)
}

/// Whether an operator is to look at a host.
fn is_alarm(row: &Row) -> bool {
    let is_behind = matches!(row.health.state, HostState::Silent | HostState::Lagging);
    is_behind || row.health.figures.missing > 0
}

fn table(rows: &[Row], now: u64) -> Table {
    let columns = [
        "HOST",
        "STATE",
        ">EVENT",
        ">HEARD",
        ">COMPLETE",
        "SEGMENT",
        ">LOST",
        ">MISSING",
    ];
    let is_any = |of: fn(&Row) -> bool| rows.iter().any(of);
    let shown = [
        true,
        true,
        true,
        true,
        true,
        true,
        is_any(|row| row.health.figures.lost > 0),
        is_any(|row| row.health.figures.missing > 0),
    ];
    let pick = |cells: Vec<String>| -> Vec<String> {
        let cells = cells.into_iter().zip(shown);
        cells
            .filter(|(_, is_shown)| *is_shown)
            .map(|(cell, _)| cell)
            .collect()
    };
    let headings = columns.iter().zip(shown).filter(|(_, is_shown)| *is_shown);
    let headings: Vec<_> = headings.map(|(heading, _)| *heading).collect();
    let mut table = Table::new(&headings);
    for Row { health, segment } in rows {
        let figures = &health.figures;
        let age = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| age(now, ns));
        table.row(pick(vec![
            host_name(&figures.host),
            health.state.name().to_owned(),
            age(figures.last_ns),
            age(health.heard_ns),
            figures
                .complete_ns
                .map_or_else(|| "whole".to_owned(), |ns| age(Some(ns))),
            segment.clone().unwrap_or_else(|| "-".to_owned()),
            count(figures.lost),
            count(figures.missing),
        ]));
    }
    table
}

/// What a store has, wherever it is.
pub(super) fn stored_by(place: &Path, period: Period) -> anyhow::Result<Vec<Usage>> {
    let Some(url) = store_url(place) else {
        return Ok(usage::usage(place, period)
            .map_err(|error| Failure::no_target(printable(&error.to_string())))?);
    };
    let source = extension::required(url)?.source(url)?;
    let usage = usage::usage_of_objects(&*source, period);
    usage.with_context(|| format!("{url}: cannot be read"))
}

/// How long ago a moment was, in the largest whole unit.
fn age(now: u64, ns: u64) -> String {
    let seconds = now.saturating_sub(ns) / SECOND;
    match seconds {
        0..100 => format!("{seconds}s"),
        100..6_000 => format!("{}m", seconds / 60),
        6_000..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn as_object(row: &Row) -> Value {
    let Row { health, segment } = row;
    let figures = &health.figures;
    let host = String::from_utf8_lossy(&figures.host).into_owned();
    let head = Head {
        host: Some(host).filter(|host| !host.is_empty()),
        ..Head::default()
    };
    let fields = json!({
        "state": health.state.name(),
        "heard_ts_ns": ts_ns(health.heard_ns),
        "last_ts_ns": ts_ns(figures.last_ns),
        "last_segment": segment,
        "complete_ts_ns": ts_ns(figures.complete_ns),
        "events": figures.events,
        "lost": figures.lost,
        "overwritten": figures.overwritten,
        "missing": figures.missing,
        "removed": figures.removed,
        "late": figures.late,
        "unknown": figures.unknown,
    });
    object("stored_host", &head, fields)
}
