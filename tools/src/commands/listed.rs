//! The sessions of `list`, and what `-v` adds: their rings, where they are streamed to, what their threads did last
//! and have open.

use std::collections::HashMap;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use ringmark_decoder::{Dump, Stamper};
use ringmark_format::session::ProcessId;
use ringmark_reader::find::FoundSession;
use ringmark_reader::{Access, ReaderError, Session, SessionInfo, StreamStatus, find};
use serde_json::json;

use crate::input::rings;
use crate::output::last_words::{self, Show};
use crate::tables::ring_table::{self, RingCounts, RingRow};
use ringmark_console::units::{count, duration, overwritten, size};
use ringmark_console::{Sink, Style, printable};

/// A session, and the number of its process here.
#[derive(Debug)]
pub(super) struct Listed {
    found: FoundSession,
    pub(super) info: SessionInfo,
    /// Its process; `None`: not to be told from a later one of the same pid.
    process: Option<ProcessId>,
    pub(super) pid_here: Option<u32>,
    pub(super) stream: Option<StreamStatus>,
    /// If they are wanted and can be read.
    details: Option<Details>,
}

/// All sessions that can be opened, those that are alive first, and the errors of the others. `interval`: with details,
/// for which events are counted so long.
///
/// # Errors
/// The one process that is asked for has none, or one cannot be opened or read.
pub(super) fn sessions(
    pid: Option<u32>,
    interval: Option<Duration>,
) -> anyhow::Result<(Vec<Listed>, Vec<ReaderError>)> {
    let all = match pid {
        Some(pid) => find::by_pid(pid)?,
        None => find::all(),
    };
    let before = interval.map(|interval| FirstLook::wait(&all, interval));
    let (mut sessions, mut errors) = (Vec::new(), Vec::new());
    for found in all {
        match Session::open_found(&found, Access::Observe) {
            Ok(session) => sessions.push(Listed {
                found,
                pid_here: session.pid_here(),
                info: SessionInfo::of(&session),
                process: session.header().process(),
                stream: StreamStatus::of(&session),
                details: None,
            }),
            Err(error) if pid.is_some() => return Err(error.into()),
            Err(error) if error.is_starting() => {}
            Err(error) => errors.push(error),
        }
    }
    sessions.sort_by_key(|listed| (!listed.info.alive, listed.info.started_real_ns));
    if let Some(before) = before {
        add_details(&mut sessions, &before, pid.is_some())?;
    }
    Ok((sessions, errors))
}

/// The places of the sessions of each process.
pub(super) fn by_process(sessions: &[Listed]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut places = HashMap::new();
    for (number, listed) in sessions.iter().enumerate() {
        let group = match listed.process {
            Some(process) => *places.entry(process).or_insert(groups.len()),
            None => groups.len(),
        };
        match groups.get_mut(group) {
            Some(group) => group.push(number),
            None => groups.push(vec![number]),
        }
    }
    groups
}

impl Listed {
    /// The number of the process here, and the one in its own pid namespace if that differs.
    pub(super) fn pids(&self) -> String {
        let pid = self.info.pid;
        match self.pid_here {
            Some(here) if here == pid => here.to_string(),
            Some(here) => format!("{here} ({pid})"),
            None => format!("? ({pid})"),
        }
    }

    /// The rings of its threads as JSON; null: they are not wanted, or cannot be read.
    pub(super) fn threads_as_json(&self) -> serde_json::Value {
        let rings = self.details.as_ref().map(|details| details.rings.iter());
        rings.map_or_else(Default::default, |rings| {
            rings.map(RingRow::as_json).collect()
        })
    }

    /// Writes what `-v` adds, if that is wanted.
    pub(super) fn write_details(
        &self,
        out: &mut Sink,
        columns: Option<usize>,
    ) -> anyhow::Result<()> {
        let Some(details) = &self.details else {
            return Ok(());
        };
        let (pids, info) = (self.pids(), &self.info);
        let started = Stamper::default().stamp(info.started_real_ns).to_vec();
        writeln!(
            out,
            "{pids}: {}, {} mode, clock {}, since {}",
            printable(&info.name),
            info.mode.name(),
            info.clock.name(),
            String::from_utf8_lossy(&started)
        )?;
        if !details.rings.is_empty() {
            let mut table = ring_table::table(&details.rings);
            table.fit(columns);
            table.write(out, Style::detect())?;
        }
        if let Some(line) = ring_table::history(&details.rings) {
            writeln!(out, "{pids}: {line}")?;
        }
        let ending = self.info.ending.map(|ending| ending.to_string());
        let stream = self.stream.iter().map(stream_line);
        for line in stream.chain(ending) {
            writeln!(out, "{pids}: {line}")?;
        }
        if !details.last_words.is_empty() {
            write!(out, "{pids}: {}", details.last_words)?;
        }
        Ok(())
    }
}

/// What a session does now.
#[derive(Debug)]
struct Details {
    rings: Vec<RingRow>,
    /// What the threads of its process did last and have open; of the last session of a process only.
    last_words: String,
}

/// What was counted before.
#[derive(Debug)]
struct FirstLook {
    counts: RingCounts,
    at: Instant,
}

impl FirstLook {
    /// Counts the events of sessions, and waits if one of them is alive.
    fn wait(all: &[FoundSession], interval: Duration) -> Self {
        let mut counts = RingCounts::default();
        let mut is_alive = false;
        // What cannot be read now is told by the second look.
        for session in all.iter().filter_map(|found| open(found).ok()) {
            is_alive |= SessionInfo::of(&session).alive;
            if let Ok(dump) = rings::of_sessions([session]) {
                counts.add(&dump);
            }
        }
        let at = Instant::now();
        if is_alive {
            thread::sleep(interval);
        }
        Self { counts, at }
    }
}

/// Adds what sessions do. `is_of_one`: one process is asked for, so all its threads are shown.
///
/// # Errors
/// The one process that is asked for cannot be read.
fn add_details(listed: &mut [Listed], before: &FirstLook, is_of_one: bool) -> anyhow::Result<()> {
    for places in by_process(listed) {
        let dump = match read(listed, &places) {
            Ok(dump) => dump,
            Err(error) if is_of_one => return Err(error),
            Err(_) => Dump::default(),
        };
        let elapsed = before.at.elapsed().max(Duration::from_millis(1));
        let show = match is_of_one {
            true => Show::Threads,
            false => Show::Short,
        };
        let mut words = last_words::text(&dump, show);
        for place in places.iter().rev() {
            let session = &mut listed[*place];
            let counts = (&before.counts, elapsed.as_secs_f64());
            session.details = Some(Details {
                rings: ring_table::rows(&session.info, &dump, counts),
                last_words: std::mem::take(&mut words),
            });
        }
    }
    Ok(())
}

/// The sessions of a process.
fn read(listed: &[Listed], places: &[usize]) -> anyhow::Result<Dump> {
    let sessions = places.iter().map(|place| open(&listed[*place].found));
    rings::of_sessions(sessions.collect::<anyhow::Result<Vec<_>>>()?)
}

fn open(found: &FoundSession) -> anyhow::Result<Session> {
    Ok(Session::open_found(found, Access::Observe)?)
}

/// The line about where a session is streamed to.
fn stream_line(stream: &StreamStatus) -> String {
    let state = if stream.connected {
        "connected"
    } else {
        "no collector"
    };
    format!(
        "streamed to {}: {state}, {} under way, {} spilled, {} behind, {} lost{}",
        printable(&stream.to),
        size(stream.in_flight),
        size(stream.spilled),
        duration(stream.lag_ms.saturating_mul(1_000_000)),
        count(stream.lost),
        overwritten(stream.overwritten)
    )
}

/// The same as JSON.
pub(super) fn stream_as_json(stream: &StreamStatus) -> serde_json::Value {
    json!({
        "to": stream.to,
        "connected": stream.connected,
        "in_flight": stream.in_flight,
        "spilled": stream.spilled,
        "lag_ms": stream.lag_ms,
        "lost": stream.lost,
        "overwritten": stream.overwritten,
    })
}
