//! `stat`: the rings of a process now, or where trace files come from and what they hold.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use ringmark_console::json::{Head, JsonOption, Line};
use ringmark_console::units::{
    count, counted, duration, over_budget, overwritten, parse_duration, size,
};
use ringmark_console::wide::WideOption;
use ringmark_console::{Exit, Sink, Style, Table, json, policy, printable};
use ringmark_decoder::{Counted, Dump, Filter, Session, Slot, Stamper};
use ringmark_format::attribute::tag;
use ringmark_format::session::{Clock, Mode};
use ringmark_reader::{Access, SessionInfo, StreamStatus, find, kept_policy};
use serde_json::json;

use crate::commands::verify::account;
use crate::input::notices::SCHEMA_INCOMPLETE;
use crate::input::trace_files::Input;
use crate::input::{held_off, rings};
use crate::output::last_words;
use crate::output::last_words::Show;
use crate::tables::session_table::{duration_ns, text};
use crate::tables::{host_table, session_table, summary};

/// Show figures of a process's rings, or of trace files
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ringmark stat -p 812 --interval 5s
  ringmark stat /var/lib/ringmark --host 'web-*'")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// How long to count for the rates of a process
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    interval: Duration,
    #[command(flatten)]
    json: JsonOption,
    #[command(flatten)]
    wide: WideOption,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        match self.input.process()? {
            Some(pid) => self.process(pid),
            None => self.trace_files(),
        }
    }

    fn process(&self, pid: u32) -> anyhow::Result<Exit> {
        let before = rings::snapshot(pid)?;
        let start = Instant::now();
        thread::sleep(self.interval);
        let after = rings::snapshot(pid)?;
        let seconds = start.elapsed().as_secs_f64();
        let columns = self.columns();
        let mut out = match self.json.is_on() {
            true => Sink::direct(),
            false => Sink::paged().within(columns),
        };
        let mut idle = 0;
        for found in find::by_pid(pid)? {
            let session = ringmark_reader::Session::open_found(&found, Access::Observe)?;
            let info = SessionInfo::of(&session);
            let rings = rings(&info, &before, &after, seconds);
            let stream = StreamStatus::of(&session);
            if self.json.is_on() {
                let head = Head::of_info(&info, Some(pid));
                for ring in &rings {
                    let object = ring.json(&head, stream.as_ref());
                    writeln!(out, "{}", Line(object))?;
                }
            } else if columns.is_some() && rings.is_empty() && info.lost_total() == 0 {
                // As that of a function tracer that has recorded nothing yet.
                idle += 1;
            } else {
                write_rings(&mut out, &info, &rings, columns)?;
                match &stream {
                    Some(stream) => write_stream(&mut out, stream)?,
                    None => write_kept(&mut out, &session, &after)?,
                }
            }
        }
        if idle > 0 {
            writeln!(out, "pid {pid}: {} without rings", counted(idle, "session"))?;
        }
        if !self.json.is_on() {
            out.write_all(last_words::text(&after, Show::Threads).as_bytes())?;
        }
        out.finish()?;
        Ok(Exit::FINE)
    }

    fn columns(&self) -> Option<usize> {
        self.wide.columns().filter(|_| !self.json.is_on())
    }

    fn trace_files(&self) -> anyhow::Result<Exit> {
        let dump = self.input.read_for(&Filter::new())?;
        let found = dump.verify();
        let mut out = if self.json.is_on() {
            Sink::direct()
        } else {
            Sink::paged().within(self.columns())
        };
        for session in &dump.sessions {
            if self.json.is_on() {
                writeln!(out, "{}", Line(session_table::as_json(session)))?;
            } else {
                write_session(&mut out, session)?;
            }
        }
        if !self.json.is_on() {
            let columns = self.columns();
            write!(out, "{}", account(&found, columns.is_some()))?;
            writeln!(out)?;
            if let Some(mut table) = host_table::table(&dump) {
                table.fit(columns);
                table.write(&mut out, Style::detect())?;
                writeln!(out)?;
            }
            let figures = dump.figures(Counted::default());
            for mut table in summary::tables(&figures, &[], None) {
                table.fit(columns);
                table.write(&mut out, Style::detect())?;
            }
            out.write_all(last_words::text(&dump, Show::Short).as_bytes())?;
        }
        out.finish()?;
        Ok(Exit::lost_if(!found.is_clean()))
    }
}

/// A ring of a process, with figures from two looks at it.
struct RingRow {
    tid: u32,
    thread: String,
    pages: u32,
    page_bytes: u32,
    filled: u32,
    fill_percent: u64,
    lost: u64,
    events_per_s: f64,
    window_s: Option<f64>,
}

fn rings(info: &SessionInfo, before: &Dump, after: &Dump, seconds: f64) -> Vec<RingRow> {
    let row = |ring: &ringmark_reader::info::RingInfo| {
        let slot = find_slot(after, info, ring.slot);
        let clock = find_session(after, info).map(|session| &session.clock);
        let covered_ns = slot
            .zip(clock)
            .and_then(|(slot, clock)| slot.covered_ns(clock));
        let (new, old) = (
            slot.map_or(0, Slot::reservations),
            find_slot(before, info, ring.slot).map_or(0, Slot::reservations),
        );
        RingRow {
            tid: ring.tid,
            thread: ring.thread_name.clone(),
            pages: ring.pages,
            page_bytes: ring.page_bytes,
            filled: ring.pages_filled,
            fill_percent: ring.fill_percent(),
            lost: ring.lost.iter().fold(0, |sum, n| sum.saturating_add(*n)),
            events_per_s: new.saturating_sub(old) as f64 / seconds,
            window_s: covered_ns.map(|ns| ns as f64 / 1e9),
        }
    };
    info.rings.iter().map(row).collect()
}

fn find_session<'a>(dump: &'a Dump, info: &SessionInfo) -> Option<&'a Session> {
    dump.sessions.iter().find(|s| s.uuid == info.uuid)
}

fn find_slot<'a>(dump: &'a Dump, info: &SessionInfo, index: u32) -> Option<&'a Slot> {
    find_session(dump, info)?
        .slots
        .iter()
        .find(|s| s.index.0 == index)
}

fn write_rings(
    out: &mut Sink,
    info: &SessionInfo,
    rings: &[RingRow],
    columns: Option<usize>,
) -> anyhow::Result<()> {
    let started = Stamper::default().stamp(info.started_real_ns).to_vec();
    writeln!(
        out,
        "{} [{}] {} mode, clock {}, since {}",
        printable(&info.name),
        info.pid,
        info.mode.name(),
        info.clock.name(),
        String::from_utf8_lossy(&started)
    )?;
    let mut table = Table::new(&[
        ">TID",
        "THREAD",
        ">RING",
        ">FILL",
        ">EVENTS/S",
        ">LOST",
        ">WINDOW",
    ]);
    for ring in rings {
        table.row(vec![
            ring.tid.to_string(),
            printable(&ring.thread),
            size(u64::from(ring.pages) * u64::from(ring.page_bytes)),
            format!("{} %", ring.fill_percent),
            count(ring.events_per_s as u64),
            count(ring.lost),
            ring.window_s
                .map_or("-".to_owned(), |s| format!("{s:.3} s")),
        ]);
    }
    table.fit(columns);
    table.write(out, Style::detect())?;
    if info.schema_incomplete {
        writeln!(out, "{SCHEMA_INCOMPLETE}")?;
    }
    Ok(())
}

/// The policy that a session keeps without a streamer: all types are off that it has off.
fn write_kept(
    out: &mut Sink,
    session: &ringmark_reader::Session,
    dump: &Dump,
) -> anyhow::Result<()> {
    let Some(policy) = kept_policy() else {
        return Ok(());
    };
    let (all, off) = held_off::of_session(&policy, session, dump, |_| true);
    if all > 0 && off == all {
        let (serial, until) = (policy.serial, policy::moment(policy.until_s));
        let types = counted(off as u64, "event type");
        writeln!(
            out,
            "policy {serial} until {until}: {types} off, without a streamer"
        )?;
    }
    Ok(())
}

fn write_stream(out: &mut Sink, stream: &StreamStatus) -> anyhow::Result<()> {
    let state = if stream.connected {
        "connected"
    } else {
        "no collector"
    };
    writeln!(
        out,
        "streamed to {}: {state}, {} under way, {} spilled, {} behind, {} lost{}{}",
        printable(&stream.to),
        size(stream.in_flight),
        size(stream.spilled),
        duration(stream.lag_ms.saturating_mul(1_000_000)),
        count(stream.lost),
        overwritten(stream.overwritten),
        over_budget(stream.over_budget)
    )?;
    if let Some(text) = policy::state(&stream.policy) {
        writeln!(out, "{text}")?;
    }
    Ok(())
}

impl RingRow {
    fn json(&self, head: &Head, stream: Option<&StreamStatus>) -> serde_json::Value {
        let stream = stream.map(|stream| {
            json!({
                "to": stream.to,
                "connected": stream.connected,
                "in_flight": stream.in_flight,
                "spilled": stream.spilled,
                "lag_ms": stream.lag_ms,
                "lost": stream.lost,
                "overwritten": stream.overwritten,
                "over_budget": stream.over_budget,
                "policy_serial": stream.policy.serial,
                "policy_until_ts_ns": json::ts_ns(stream.policy.until_s.map(policy::ns)),
                "policy_refused": stream.policy.refused,
            })
        });
        let fields = json!({
            "stream": stream,
            "tid": self.tid,
            "thread": self.thread,
            "ring_bytes": u64::from(self.pages) * u64::from(self.page_bytes),
            "pages": self.pages,
            "pages_filled": self.filled,
            "events_per_s": self.events_per_s,
            "lost": self.lost,
            "window_s": self.window_s,
        });
        json::object("ring", head, fields)
    }
}

/// Facts about a session, as name and text.
fn facts(session: &Session) -> Vec<(&'static str, String)> {
    let mut facts = vec![("session", session.uuid.to_string())];
    let mut add = |name, text: Option<String>| facts.extend(text.map(|text| (name, text)));
    for (name, tag) in [
        ("process", tag::PROCESS_NAME),
        ("service", tag::SERVICE_NAME),
        ("version", tag::SERVICE_VERSION),
        ("kernel", tag::KERNEL),
        ("container", tag::CONTAINER_ID),
        ("executable", tag::EXECUTABLE),
        ("command line", tag::COMMAND_LINE),
        ("notice", tag::NOTICE),
    ] {
        add(name, text(session, tag));
    }
    let host = (!session.host().is_empty()).then(|| ringmark_console::host_name(session.host()));
    add("host", host);
    if let Some(header) = session.header {
        add("pid", Some(header.pid.to_string()));
        add(
            "mode",
            Mode::from_u32(header.mode).map(|m| m.name().to_owned()),
        );
        add(
            "clock",
            Clock::from_u32(header.clock).map(|c| c.name().to_owned()),
        );
        let incomplete = session.schema_incomplete();
        add("schema", incomplete.then(|| "incomplete".to_owned()));
        let stamp = |ns| String::from_utf8_lossy(Stamper::default().stamp(ns)).into_owned();
        add("start", Some(stamp(header.real_zero_ns)));
        // Its process may have begun its first session earlier: the clock counts from there.
        let clock = &session.clock;
        let at = |mono_ns: u64| stamp(clock.wall_ns(mono_ns.saturating_sub(clock.mono_zero_ns)));
        add("shown from", session.window.map(at));
        let end = duration_ns(session);
        add("end", end.map(|ns| at(header.mono_zero_ns + ns)));
        add("duration", end.map(duration));
    }
    facts
}

fn write_session(out: &mut Sink, session: &Session) -> anyhow::Result<()> {
    for (name, text) in facts(session) {
        writeln!(out, "{name:<12} {text}")?;
    }
    Ok(writeln!(out)?)
}
