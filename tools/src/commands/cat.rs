//! `cat`: one line per event, in order of time.

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use ringmark_decoder::{Dump, Filter, JsonWriter, Output, TIMESTAMP_BYTES, TextWriter};

use crate::input::follow;
use crate::input::{rings, trace_files};
use crate::options::event_filter::FilterOptions;
use crate::output::file::DEFAULT_FILE;
use crate::output::{Exit, Failure, Sink, Style, note};

/// Bytes of lines that are gathered before they are written.
const LINES_BYTES: usize = 60 << 10;

/// In the place of a time that is not known.
const UNKNOWN_TIME: &str = "????-??-??T??:??:??.?????????Z";

/// Show events, one per line, in order of time
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Several dumps are read together: their events are merged by time, repeated pages are dropped.

Examples:
  ringmark cat run.rmk --name 'request.*' --where status=500
  ringmark cat -p 812 --follow --level warn
  ringmark cat run.rmk --json | jq .args")]
pub(crate) struct Args {
    /// Dumps to read together; '-' is standard input
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE, conflicts_with = "pid")]
    files: Vec<PathBuf>,
    /// Show what is in the rings of a process now, without disturbing it
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Go on with what is written later, until Ctrl-C
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    filter: FilterOptions,
    #[command(flatten)]
    form: Form,
    /// End after N lines
    #[arg(short = 'n', value_name = "N")]
    lines: Option<u64>,
}

/// How a line looks.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Form {
    /// What stands in front of a line
    #[arg(long, value_enum, default_value_t = Time::Wall)]
    time: Time,
    /// One JSON object per line
    #[arg(long, conflicts_with = "time")]
    json: bool,
}

/// Times as a person wants them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Time {
    /// UTC, RFC 3339
    Wall,
    /// Seconds since the first session began
    Relative,
    /// Seconds since the line before
    Delta,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let filter = self.filter.build()?;
        if self.follow {
            return self.follow_on(&filter);
        }
        let dump = match self.pid {
            Some(pid) => rings::snapshot(pid)?,
            None => trace_files::read_for(&self.files, &filter)?,
        };
        if self.pid.is_some() {
            trace_files::tell_schema(&dump);
        }
        let mut out = if self.form.json {
            Sink::direct()
        } else {
            Sink::paged()
        };
        let mut printer = Printer::new(&filter, self.form, self.lines);
        printer.origin_ns = origin(&dump);
        print(&dump, &mut printer, &mut out)?;
        out.finish()?;
        if printer.events == 0 && !printer.is_done() && !filter.is_empty() {
            note(&self.filter.closest(&dump));
        }
        Ok(self.exit(&dump))
    }

    /// What the dump as a whole is worth, whatever part of it was shown. Pages of living rings that
    /// a recorder has taken already are not missing.
    fn exit(&self, dump: &Dump) -> Exit {
        let found = dump.verify();
        match self.pid {
            Some(_) => Exit::lost_if(found.lost > 0 || !found.damage.is_empty()),
            None => Exit::lost_if(!found.is_clean()),
        }
    }

    fn follow_on(&self, filter: &Filter) -> anyhow::Result<Exit> {
        let mut printer = Printer::new(filter, self.form, self.lines);
        match (self.pid, self.files.as_slice()) {
            (Some(pid), _) => follow::process(pid, &mut printer),
            (None, [path]) => follow::file(path, &mut printer),
            _ => Err(Failure::usage("--follow takes one FILE").into()),
        }
    }
}

/// ns since 1970 at which the first session began.
fn origin(dump: &Dump) -> u64 {
    let starts = dump.sessions.iter().map(|s| s.clock.real_zero_ns);
    starts.filter(|ns| *ns > 0).min().unwrap_or(0)
}

/// Prints a dump.
fn print(dump: &Dump, printer: &mut Printer<'_>, out: &mut Sink) -> anyhow::Result<()> {
    let mut writer = Writer::new(printer.form.json);
    let mut lines = Vec::with_capacity(LINES_BYTES + 4096);
    for item in dump.events() {
        printer.line(&mut writer, &item, &mut lines);
        if lines.len() >= LINES_BYTES {
            out.write_all(&lines)?;
            lines.clear();
        }
        if printer.is_done() {
            break;
        }
    }
    Ok(out.write_all(&lines)?)
}

/// Text or JSON.
pub(crate) enum Writer<'d> {
    Text(TextWriter<'d>),
    Json(JsonWriter<'d>),
}

impl<'d> Writer<'d> {
    pub(crate) fn new(json: bool) -> Self {
        if json {
            Self::Json(JsonWriter::new())
        } else {
            Self::Text(TextWriter::new())
        }
    }
}

/// Turns items into lines.
pub(crate) struct Printer<'a> {
    filter: &'a Filter,
    form: Form,
    left: Option<u64>,
    style: Style,
    last_ns: Option<u64>,
    /// What relative times count from.
    pub(crate) origin_ns: u64,
    /// Events shown so far.
    events: u64,
}

impl<'a> Printer<'a> {
    fn new(filter: &'a Filter, form: Form, lines: Option<u64>) -> Self {
        let style = Style::detect();
        Self {
            filter,
            form,
            left: lines,
            style,
            last_ns: None,
            origin_ns: 0,
            events: 0,
        }
    }

    /// Whether as many lines as wanted are out.
    pub(crate) fn is_done(&self) -> bool {
        self.left == Some(0)
    }

    pub(crate) fn is_json(&self) -> bool {
        self.form.json
    }

    /// Sets what relative times count from, once it is known.
    pub(crate) fn learn_origin(&mut self, dump: &Dump) {
        if self.origin_ns == 0 {
            self.origin_ns = origin(dump);
        }
    }

    /// Appends the line of an item that is to be shown.
    pub(crate) fn line<'d>(
        &mut self,
        writer: &mut Writer<'d>,
        item: &Output<'d>,
        out: &mut Vec<u8>,
    ) {
        if self.is_done() || !self.filter.passes_item(item) {
            return;
        }
        self.events += u64::from(matches!(item, Output::Event(_)));
        self.left = self.left.map(|left| left - 1);
        match writer {
            Writer::Json(writer) => writer.write(item, out),
            Writer::Text(writer) => {
                let from = out.len();
                writer.write(item, out);
                self.restamp(item, from, out);
                self.colour(item, from, out);
            }
        }
    }

    /// Puts another time in place of the wall clock's, which every line begins with.
    fn restamp(&mut self, item: &Output<'_>, from: usize, out: &mut Vec<u8>) {
        let (wall_ns, session) = match item {
            Output::Event(event) => (event.wall_ns(), event.session),
            Output::Lost(lost) => (lost.session.clock.wall_ns(lost.t_ns), lost.session),
        };
        let before = match self.form.time {
            Time::Wall if trace_files::has_dates(session) => return,
            Time::Wall => {
                out.splice(from..from + TIMESTAMP_BYTES, UNKNOWN_TIME.bytes());
                return;
            }
            Time::Relative => self.origin_ns,
            Time::Delta => self.last_ns.replace(wall_ns).unwrap_or(wall_ns),
        };
        let sign = if wall_ns < before { '-' } else { ' ' };
        let ns = wall_ns.abs_diff(before);
        let (seconds, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
        let text = format!("{sign}{seconds:>5}.{ns:09}");
        out.splice(from..from + TIMESTAMP_BYTES, text.into_bytes());
    }

    fn colour(&self, item: &Output<'_>, from: usize, out: &mut Vec<u8>) {
        if !self.style.is_on() || !matches!(item, Output::Lost(_)) {
            return;
        }
        out.splice(from..from, self.style.alarm().bytes());
        let end = out.len() - 1;
        out.splice(end..end, self.style.plain().bytes());
    }
}
