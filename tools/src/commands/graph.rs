//! `graph`: calls nested in each other, with their durations.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

use ringmark_decoder::{Call, Dump, Ended, Event, Lost, Output, Step, event_text};
use ringmark_format::Uuid;

use crate::call_json::{CallLines, Limits};
use crate::calls::{self, CallOptions};
use crate::output::file::DEFAULT_FILE;
use crate::output::{Exit, Failure, Sink, Style, printable};
use crate::{input, live};

/// Show calls of traced functions, nested, with their durations
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A closing brace carries the duration of its call in microseconds. Events stand between the calls
as comments. With several threads each line says whose it is.

--json prints a line per call where it ends, and those still open last: session, pid, tid, name,
module, depth (calls around it), start_ns (since the session's start), duration_ns and self_ns
(null where an end is not known), and ended: returned, unwound (exception, longjmp, end of thread),
unseen (the end was not recorded) or open.

Of calls that began before --from only the end is seen, of those that end after --to the beginning.

Examples:
  ringmark graph run.rmk --min-us 100
  ringmark graph /var/lib/ringmark --from 2026-01-31T12:00:00Z --to 2026-01-31T12:00:01Z
  ringmark graph -p 812 --depth 3 --tid 813
  ringmark graph run.rmk --json | jq 'select(.self_ns > 1000)'")]
pub(crate) struct Args {
    /// Dumps to read together; '-' is standard input
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE, conflicts_with = "pid")]
    files: Vec<PathBuf>,
    /// Show what is in the rings of a process now, without disturbing it
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    #[command(flatten)]
    calls: CallOptions,
    /// Only calls with fewer than N calls around them
    #[arg(short = 'D', long, value_name = "N")]
    depth: Option<u32>,
    /// Only calls that took at least this long, in microseconds
    #[arg(short = 't', long, value_name = "US")]
    min_us: Option<f64>,
    /// One JSON object per call
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let dump = match self.pid {
            Some(pid) => live::snapshot(pid)?,
            None => input::read_for(&self.files, &self.calls.filter()?)?,
        };
        if !calls::has_functions(&dump) {
            let what = "no function records: start a tracer with 'ringmark trace start -p PID', \
                        or record with 'ringmark run --tracer graph -- CMD'";
            return Err(Failure::unreadable(what).into());
        }
        if self.json {
            self.write_json(&dump)?;
        } else {
            self.write_text(&dump)?;
        }
        let found = dump.verify();
        Ok(Exit::lost_if(found.lost > 0 || !found.damage.is_empty()))
    }

    fn min_ns(&self) -> Option<u64> {
        self.min_us.map(|us| (us * 1000.0) as u64)
    }

    fn write_text(&self, dump: &Dump) -> anyhow::Result<()> {
        let mut graph = Graph::default();
        calls::walk(dump, &self.calls, |item, steps, depth| {
            graph.take(item, steps, depth as u32);
        })?;
        graph.hide(self.depth, self.min_ns());
        let mut out = Sink::paged();
        graph.write(&mut out, Style::detect())?;
        Ok(out.finish()?)
    }

    fn write_json(&self, dump: &Dump) -> anyhow::Result<()> {
        let mut out = Sink::direct();
        let mut lines = CallLines::new(Limits {
            depth: self.depth,
            min_ns: self.min_ns(),
        });
        let mut written = Ok(());
        calls::walk(dump, &self.calls, |item, steps, _| {
            let Output::Event(event) = item else { return };
            for step in steps {
                if written.is_ok() {
                    written = lines.take(event, step, &mut out);
                }
            }
        })?;
        written?;
        lines.finish(&mut out)?;
        Ok(out.finish()?)
    }
}

/// What a line says.
enum What<'d> {
    /// A call begins; the line at which it ends, once that is known.
    Begin(&'d [u8], Option<usize>),
    /// A call without an end on record.
    Passed(&'d [u8]),
    /// A call ends; whether its beginning is shown.
    End(Call<'d>, bool),
    /// A whole call.
    Whole(Call<'d>),
    Event(Event<'d>),
    Lost(Lost<'d>),
}

struct Line<'d> {
    tid: u32,
    depth: u32,
    hidden: bool,
    what: What<'d>,
}

/// Lines in order of time.
#[derive(Default)]
struct Graph<'d> {
    lines: Vec<Line<'d>>,
    /// Lines of calls that have begun and not ended, by thread.
    open: HashMap<(Uuid, u64), Vec<usize>>,
}

impl<'d> Graph<'d> {
    fn take(&mut self, item: &Output<'d>, steps: &[Step<'d>], depth: u32) {
        match item {
            Output::Lost(lost) => {
                let tid = lost.page.map_or(0, |page| page.header.tid);
                self.push(tid, 0, What::Lost(*lost));
            }
            Output::Event(event) if event.ty.function.is_none() => {
                self.push(event.tid(), depth, What::Event(*event));
            }
            Output::Event(event) => steps.iter().for_each(|step| self.step(event, step)),
        }
    }

    fn push(&mut self, tid: u32, depth: u32, what: What<'d>) -> usize {
        self.lines.push(Line {
            tid,
            depth,
            hidden: false,
            what,
        });
        self.lines.len() - 1
    }

    fn step(&mut self, event: &Event<'d>, step: &Step<'d>) {
        let key = (event.session.uuid, event.ring().0);
        let tid = event.tid();
        match *step {
            Step::Entered {
                function,
                depth,
                loose: true,
                ..
            } => drop(self.push(tid, depth, What::Passed(&function.name))),
            Step::Entered {
                function, depth, ..
            } => {
                let line = self.push(tid, depth, What::Begin(&function.name, None));
                self.open.entry(key).or_default().push(line);
            }
            Step::Left(call) => {
                let begun = call.entered_ns.and(self.open.get_mut(&key));
                let begun = begun.and_then(Vec::pop);
                let end = self.push(tid, call.depth, What::End(call, begun.is_some()));
                if let Some(What::Begin(_, ends)) = begun.map(|line| &mut self.lines[line].what) {
                    *ends = Some(end);
                }
            }
            Step::Whole(call) => drop(self.push(tid, call.depth, What::Whole(call))),
        }
    }

    /// Hides calls that are too deep or too short.
    fn hide(&mut self, depth: Option<u32>, min_ns: Option<u64>) {
        let short = |call: &Call<'_>| {
            let ns = call.duration_ns();
            min_ns.is_some_and(|min| ns.is_some_and(|ns| ns < min))
        };
        for at in 0..self.lines.len() {
            let line = &self.lines[at];
            let mut hidden = depth.is_some_and(|depth| line.depth >= depth);
            match line.what {
                What::Begin(_, Some(end)) => {
                    hidden |= matches!(&self.lines[end].what, What::End(call, _) if short(call));
                }
                What::End(ref call, _) | What::Whole(ref call) => hidden |= short(call),
                What::Passed(_) => hidden |= min_ns.is_some(),
                _ => {}
            }
            self.lines[at].hidden = hidden;
        }
    }

    fn write(&self, out: &mut impl Write, style: Style) -> std::io::Result<()> {
        let first = self.lines.first().map(|line| line.tid);
        let several = self.lines.iter().any(|line| Some(line.tid) != first);
        let (heading, plain) = (style.heading(), style.plain());
        let thread = if several { "     TID |" } else { "" };
        writeln!(out, "{heading}  Time(us) |{thread} Function Graph{plain}")?;
        let thread = if several { "---------+" } else { "" };
        writeln!(out, "-----------+{thread}---------------")?;
        for line in self.lines.iter().filter(|line| !line.hidden) {
            let thread = if several {
                format!(" {:>7} |", line.tid)
            } else {
                String::new()
            };
            let (time, text) = line.text();
            let alarm = if matches!(line.what, What::Lost(_)) {
                (style.alarm(), style.plain())
            } else {
                ("", "")
            };
            let indent = 2 * line.depth.min(100) as usize;
            let (on, off) = alarm;
            writeln!(out, "{time:>10} |{thread} {:indent$}{on}{text}{off}", "")?;
        }
        Ok(())
    }
}

/// `name()`, if the name does not say its parameters itself.
fn called(name: &[u8]) -> String {
    let name = printable(&String::from_utf8_lossy(name));
    if name.ends_with(')') {
        name
    } else {
        name + "()"
    }
}

impl Line<'_> {
    /// What stands in the columns of time and calls.
    fn text(&self) -> (String, String) {
        match &self.what {
            What::Begin(name, _) => (String::new(), format!("{} {{", called(name))),
            What::Passed(name) => (String::new(), format!("{};", called(name))),
            What::End(call, begun) => (microseconds(call), end(call, *begun)),
            What::Whole(call) => (
                microseconds(call),
                format!("{};", called(&call.function.name)),
            ),
            What::Event(event) => (String::new(), comment(event)),
            What::Lost(lost) => {
                let (count, cause) = (lost.loss.count, lost.loss.why.cause());
                (String::new(), format!("/* LOST {count} events: {cause} */"))
            }
        }
    }
}

fn microseconds(call: &Call<'_>) -> String {
    let ns = call.duration_ns();
    ns.map_or_else(String::new, |ns| format!("{}.{:03}", ns / 1000, ns % 1000))
}

fn end(call: &Call<'_>, begun: bool) -> String {
    let how = match call.ended {
        Ended::Returned => "",
        Ended::Unwound => "unwound",
        Ended::Unseen => "its exit was not recorded",
    };
    let name = called(&call.function.name);
    match (begun, how) {
        (true, "") => "}".to_owned(),
        (true, how) => format!("}} /* {how} */"),
        (false, "") => format!("}} /* {name} */"),
        (false, how) => format!("}} /* {name} {how} */"),
    }
}

/// `/* name key=value … */`.
fn comment(event: &Event<'_>) -> String {
    let mut line = Vec::new();
    event_text(event, &mut line);
    let text = String::from_utf8_lossy(&line).replace("*/", "* /");
    format!("/* {} */", text.trim())
}
