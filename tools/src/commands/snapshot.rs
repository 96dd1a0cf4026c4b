//! `snapshot`: writes a validated copy of living sessions, without disturbing them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ringmark_format::tracer_text::{AnswerLine, Verb};
use ringmark_reader::record::SessionEnd;
use ringmark_reader::{Access, Dump, Durability, Session, SnapshotFigures, find, snapshot};

use crate::input::notices::SCHEMA_INCOMPLETE;
use crate::output::endings;
use crate::recording::watches::{ThreadOptions, Watches};
use crate::tracing::tracer_session::TracerSession;
use ringmark_console::file::{DEFAULT_FILE, destination};
use ringmark_console::signals::Signals;
use ringmark_console::units::{count, counted, duration, overwritten, parse_duration, size};
use ringmark_console::{Exit, Failure, note, printable};

/// Copy what is in the rings now to a trace file, without disturbing the programs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For sessions in overwrite mode (flight recorder): their rings hold the last
seconds. Sessions of dead processes are copied, too. With --on-trigger the
command can keep what threads did last, too (--sched, --waits, --sample): the
last million switches, and 65,536 waits and samples.

Examples:
  ringmark snapshot -p 812 --last 10s -o incident.rmk
  ringmark snapshot -p 812 --on-trigger -o incident.rmk")]
pub(crate) struct Args {
    /// Only the sessions of this process; default: all sessions
    #[arg(short, long, value_parser = crate::options::process::parse_process)]
    pid: Option<u32>,
    /// Wait until a trigger of the process's function tracer asks for it; see 'ringmark trace trigger'
    #[arg(long, requires = "pid")]
    on_trigger: bool,
    #[command(flatten)]
    threads: ThreadOptions,
    /// Only the last part, such as 10s or 500ms, with what reaches into it, such as open spans
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    last: Option<Duration>,
    /// Trace file to write; one that is there becomes FILE.old
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    output: PathBuf,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        // Held open from here on: a process that ends now leaves its session to us.
        let mut sessions = self.sessions()?;
        let watches = self.watches()?;
        if let Some(pid) = self.pid.filter(|_| self.on_trigger) {
            watches.iter().for_each(|watches| watches.keep(pid));
            match wait_for_trigger(pid, watches.as_ref()) {
                Err(_) if sessions.iter().all(Session::ended) => note(&format!(
                    "pid {pid} has ended, and did not say that a trigger wanted a snapshot"
                )),
                waited => waited?,
            }
            // The process may have started more of them since.
            let known: Vec<_> = sessions.iter().map(Session::uuid).collect();
            let now = self.sessions().unwrap_or_default().into_iter();
            sessions.extend(now.filter(|session| !known.contains(&session.uuid())));
        }
        let to = destination(&self.output)?;
        let mut dump = Dump::create(&to, Durability::System)?;
        let (mut sum, number) = (SnapshotFigures::default(), sessions.len());
        let mut tells = self.pid.is_some();
        let begun = Instant::now();
        // Those of a process are in any one of its sessions.
        let kept = sessions.first().map(Session::uuid);
        let kept = kept.zip(watches.as_ref());
        let kept = kept.map_or_else(Vec::new, |(session, watches)| watches.kept(session));
        for session in sessions {
            let (pid, incomplete) = (session.header().pid, session.ring().schema_incomplete());
            if incomplete {
                note(&format!("pid {pid}: {SCHEMA_INCOMPLETE}"));
            }
            let name = session.name();
            // From one moment on in all of them.
            let last = self.last.map(|last| last.saturating_add(begun.elapsed()));
            let figures = snapshot(session, last, &mut dump)?;
            if let Some(ending) = figures.ending.filter(|ending| !ending.is_clean()) {
                tells = true;
                let end = SessionEnd { name, pid, ending };
                note(&printable(&endings::line(&end)));
            }
            sum.pages += figures.pages;
            sum.pages_skipped = sum.pages_skipped.saturating_add(figures.pages_skipped);
            sum.lost = sum.lost.saturating_add(figures.lost);
            sum.overwritten = sum.overwritten.saturating_add(figures.overwritten);
            sum.took += figures.took;
        }
        kept.iter().try_for_each(|block| dump.add_blocks(block))?;
        dump.finish()?;
        watches.iter().for_each(Watches::tell);
        note(&format!(
            "{}: {}, {}, {}, {} lost, in {}{}",
            self.output.display(),
            counted(number as u64, "session"),
            counted(sum.pages, "page"),
            size(dump.bytes()),
            count(sum.lost),
            duration(sum.took.as_nanos() as u64),
            overwritten(sum.overwritten)
        ));
        if tells {
            endings::read_again(&self.output).tell_last_words(&self.output);
        }
        Ok(Exit::lost_if(sum.lost > 0))
    }

    /// What keeps what threads did, if that is wanted.
    fn watches(&self) -> anyhow::Result<Option<Watches>> {
        let watches = self.threads.watches();
        if watches.is_some() && !self.on_trigger {
            let text = "--sched, --waits, --sample: found no --on-trigger, which they need: what threads did is kept from the command's start on";
            return Err(Failure::usage(text).into());
        }
        Ok(watches)
    }

    fn sessions(&self) -> anyhow::Result<Vec<Session>> {
        let places = match self.pid {
            Some(pid) => find::by_pid(pid)?,
            None => find::all(),
        };
        let mut sessions = Vec::new();
        for place in &places {
            match Session::open_found(place, Access::Observe) {
                Ok(session) => sessions.push(session),
                Err(error) if self.pid.is_some() => return Err(error.into()),
                Err(error) => note(&printable(&error.to_string())),
            }
        }
        if sessions.is_empty() {
            let directories = find::directories();
            let places: Vec<_> = directories
                .iter()
                .map(|d| d.display().to_string())
                .collect();
            for error in find::refused() {
                note(&printable(&error.to_string()));
            }
            return Err(Failure::no_target(format!("no sessions in {}", places.join(", "))).into());
        }
        Ok(sessions)
    }
}

/// How often the process is asked whether a trigger wants a snapshot.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// Waits until a trigger wants a snapshot. `watches` keep what threads do meanwhile.
fn wait_for_trigger(pid: u32, watches: Option<&Watches>) -> anyhow::Result<()> {
    let session = TracerSession::find(pid)?;
    let signals = Signals::watch()?;
    let status = session.ask(Verb::Status, &[])?;
    let wants = |line| matches!(line, AnswerLine::Trigger(t) if t.trigger.ends_with("=snapshot"));
    if !status.lines().any(wants) {
        note(&format!("pid {pid}: no trigger wants a snapshot yet"));
    }
    let mut before = ", since before this command began";
    while signals.received().is_none() {
        let answer = session.ask(Verb::Snapshot, &[])?;
        let wanted = answer.lines().find_map(|line| match line {
            AnswerLine::Snapshot(tracer) => Some(tracer),
            _ => None,
        });
        if let Some(tracer) = wanted {
            let tracer = printable(tracer);
            note(&format!(
                "pid {pid}: a trigger of {tracer} wants a snapshot{before}"
            ));
            return Ok(());
        }
        before = "";
        watches.inspect(|watches| watches.keep_up());
        std::thread::sleep(ASK_EVERY);
    }
    Err(Failure::no_target(format!("pid {pid}: no trigger wanted a snapshot")).into())
}
