//! The lines of `cat`: events as text or JSON, under the time that a person asked for.

use clap::ValueEnum;
use ringmark_decoder::{
    Dump, Filter, JsonWriter, OldJsonWriter, Output, Session, TIMESTAMP_BYTES, TextWriter,
};

use super::Style;
use super::json::{JsonOption, JsonVersion};

/// Stands where the time of an event is not known.
const UNKNOWN_TIME: &str = "????-??-??T??:??:??.?????????Z";

/// The options that say how a line looks.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Form {
    /// Time that each line begins with
    #[arg(long, value_enum, default_value_t = Time::Wall, conflicts_with = "json")]
    time: Time,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

/// Times that a line can begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Time {
    /// UTC, RFC 3339
    Wall,
    /// Seconds since the first session began
    Relative,
    /// Seconds since the line before
    Delta,
}

/// The decoder's writer of one of the forms. It borrows what it writes.
pub(crate) enum Writer<'d> {
    Text(TextWriter<'d>),
    Json(JsonWriter<'d>),
    OldJson(OldJsonWriter<'d>),
}

/// Turns events and losses into lines, as many as are wanted.
pub(crate) struct Printer<'a> {
    filter: &'a Filter,
    form: Form,
    /// Lines still wanted; `None`: all.
    left: Option<u64>,
    style: Style,
    last_ns: Option<u64>,
    /// ns since 1970 that relative times count from; 0 until it is known.
    origin_ns: u64,
    /// Events printed so far.
    events: u64,
}

impl<'a> Printer<'a> {
    /// A printer of at most `lines` lines.
    pub(crate) fn new(filter: &'a Filter, form: Form, lines: Option<u64>) -> Self {
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

    /// A writer of the form that the options ask for.
    pub(crate) fn writer<'d>(&self) -> Writer<'d> {
        match self.form.json.version() {
            Some(JsonVersion::Current) => Writer::Json(JsonWriter::new()),
            Some(JsonVersion::Old) => Writer::OldJson(OldJsonWriter::new()),
            None => Writer::Text(TextWriter::new()),
        }
    }

    /// Whether as many lines as wanted are out.
    pub(crate) fn is_done(&self) -> bool {
        self.left == Some(0)
    }

    /// Number of events printed so far, losses not counted.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Takes the start of the first session as the origin of relative times, once it is known.
    pub(crate) fn learn_origin(&mut self, dump: &Dump) {
        if self.origin_ns == 0 {
            self.origin_ns = origin(dump);
        }
    }

    /// Appends the line of an item that passes the filter.
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
            Writer::OldJson(writer) => writer.write(item, out),
            Writer::Text(writer) => {
                let from = out.len();
                writer.write(item, out);
                self.restamp(item, from, out);
                self.colour(item, from, out);
            }
        }
    }

    /// Replaces the wall clock's time, which every line of text begins with.
    fn restamp(&mut self, item: &Output<'_>, from: usize, out: &mut Vec<u8>) {
        let (wall_ns, session) = match item {
            Output::Event(event) => (event.wall_ns(), event.session),
            Output::Lost(lost) => (lost.session.clock.wall_ns(lost.t_ns), lost.session),
        };
        let before = match self.form.time {
            Time::Wall if has_dates(session) => return,
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

/// Whether times of a session can be dates: without its header its start is not known.
pub(crate) fn has_dates(session: &Session) -> bool {
    session.header.is_some()
}

/// ns since 1970 at which the first session began; 0 if no session says.
fn origin(dump: &Dump) -> u64 {
    let starts = dump.sessions.iter().map(|s| s.clock.real_zero_ns);
    starts.filter(|ns| *ns > 0).min().unwrap_or(0)
}
