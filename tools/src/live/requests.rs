//! What keys have done: by a thread of its own, because a process may take its time to answer.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use ringmark_decoder::Stamper;
use ringmark_format::tracer_text::{RequestLine, TracerState, Verb};
use ringmark_reader::{Access, Dump, Durability, Session, SnapshotFigures, find, snapshot};

use super::watch::Target;
use crate::tracing::tracer_session::TracerSession;
use ringmark_console::file::destination;
use ringmark_console::units::{count, counted, size};
use ringmark_console::{printable, text};

/// Function tracers that were switched off from here: process and name.
type Stopped = Arc<Mutex<Vec<(u32, String)>>>;

/// Requests that are under way, and what became of others.
pub(super) struct Requests {
    bell: UnixStream,
    done: (Sender<String>, Receiver<String>),
    under_way: usize,
    stopped: Stopped,
}

impl Requests {
    /// None so far. `bell` is written to when one is done.
    pub(super) fn new(bell: UnixStream) -> Self {
        Self {
            bell,
            done: channel(),
            under_way: 0,
            stopped: Arc::default(),
        }
    }

    /// What became of a request since the last call.
    pub(super) fn answer(&mut self) -> Option<String> {
        let answer = self.done.1.try_recv().ok()?;
        self.under_way -= 1;
        Some(answer)
    }

    /// Switches the function tracers of these processes off, or on again if all are off. Returns what
    /// to say until it is done.
    pub(super) fn switch_tracers(&mut self, pids: Vec<u32>) -> String {
        let stopped = self.stopped.clone();
        self.start("asking the function tracers", move || {
            let told = pids.iter().map(|pid| switch(*pid, &stopped));
            let told = told.map(|told| told.unwrap_or_else(|error| printable(&text(&error))));
            let mut told: Vec<String> = told.collect();
            told.dedup();
            told.join("; ")
        })
    }

    /// Writes a snapshot of these sessions into this directory.
    pub(super) fn snapshot(&mut self, target: Target) -> String {
        self.start("writing a snapshot", move || {
            write_snapshot(target).unwrap_or_else(|error| printable(&text(&error)))
        })
    }

    fn start(&mut self, what: &str, work: impl FnOnce() -> String + Send + 'static) -> String {
        if self.under_way > 0 {
            return "the last request is not done yet".to_owned();
        }
        let (done, bell) = (self.done.0.clone(), self.bell.try_clone());
        let work = move || {
            let _ = done.send(work());
            // Without a bell it is seen at the next look.
            let _ = bell.map(|mut bell| bell.write_all(b"."));
        };
        match thread::Builder::new()
            .name("request".to_owned())
            .spawn(work)
        {
            Ok(_) => {
                self.under_way += 1;
                format!("{what} …")
            }
            Err(error) => format!("{what}: {error}"),
        }
    }
}

/// Switches the function tracers of a process off; if none is on, those on that were switched off from
/// here, or else all. Says what it did.
fn switch(pid: u32, stopped: &Stopped) -> anyhow::Result<String> {
    let Some(session) = TracerSession::of(pid)? else {
        return Ok("no function tracer is loaded".to_owned());
    };
    let status = session.ask(Verb::Status, &[])?;
    let (off, on): (Vec<_>, Vec<_>) = status
        .tracers()
        .filter(|tracer| !tracer.filter.is_empty())
        .partition(|tracer| tracer.state == TracerState::Off.name());
    let mut remembered = stopped.lock().unwrap_or_else(|broken| broken.into_inner());
    let (verb, tracers) = if on.is_empty() {
        let ours = |name: &str| {
            remembered
                .iter()
                .any(|(of, known)| *of == pid && known == name)
        };
        let has_ours = off.iter().any(|tracer| ours(tracer.name));
        let wanted = off.into_iter();
        let wanted = wanted.filter(|tracer| !has_ours || ours(tracer.name));
        (Verb::Start, wanted.collect())
    } else {
        remembered.retain(|(of, _)| *of != pid);
        remembered.extend(on.iter().map(|tracer| (pid, tracer.name.to_owned())));
        (Verb::Stop, on)
    };
    drop(remembered);
    for tracer in &tracers {
        let _ = session.ask(verb, &[RequestLine::Tracer(tracer.name)])?;
    }
    let names: Vec<_> = tracers
        .iter()
        .map(|tracer| printable(tracer.name))
        .collect();
    Ok(match (names.is_empty(), verb) {
        (true, _) => "no function tracer has functions to trace".to_owned(),
        (false, Verb::Stop) => format!("off: {}", names.join(", ")),
        (false, _) => format!("on: {}", names.join(", ")),
    })
}

fn write_snapshot(target: Target) -> anyhow::Result<String> {
    let (places, of) = match target {
        Target::Pid(pid) => (find::by_pid(pid)?, format!("-{pid}")),
        Target::All => (find::all(), String::new()),
    };
    let path = PathBuf::from(format!("top{of}-{}.rmk", moment()));
    let mut dump = Dump::create(&destination(&path)?, Durability::System)?;
    let (mut sum, mut sessions) = (SnapshotFigures::default(), 0);
    for place in &places {
        let Ok(session) = Session::open_found(place, Access::Observe) else {
            continue;
        };
        let figures = snapshot(session, None, &mut dump)?;
        sessions += 1;
        sum.pages += figures.pages;
        sum.lost = sum.lost.saturating_add(figures.lost);
    }
    dump.finish()?;
    Ok(format!(
        "{}: {}, {}, {}, {} lost",
        path.display(),
        counted(sessions, "session"),
        counted(sum.pages, "page"),
        size(dump.bytes()),
        count(sum.lost)
    ))
}

/// Now as a part of a file's name: `2026-11-22T08-45-37`.
fn moment() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ns = since.map_or(0, |since| since.as_nanos() as u64);
    let stamp = String::from_utf8_lossy(Stamper::default().stamp(ns)).replace(':', "-");
    stamp.chars().take("2026-11-22T08-45-37".len()).collect()
}
