//! The lines of `cat`: events as text or JSON, under the time that a person asked for.

use std::io;
use std::io::IsTerminal;

use clap::ValueEnum;
use ringmark_console::json::JsonOption;
use ringmark_console::{Style, columns};
use ringmark_decoder::{
    CallTook, Dump, Filter, JsonWriter, Output, Paired, Session, Span, SpanPairs, Stamper,
    TIMESTAMP_BYTES, TextWriter,
};

use super::screen::Screen;
use super::spans;

/// Stands where the time of an event is not known.
const UNKNOWN_TIME: &str = "????-??-??T??:??:??.?????????Z";
/// The same on a terminal.
const UNKNOWN_OF_DAY: &str = "??:??:??.??????";

/// Deepest nesting that is shown by indentation.
const DEEPEST: usize = 100;

/// The options that say how a line looks.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Form {
    /// Time that each line begins with
    #[arg(long, value_enum, default_value_t = Time::Wall, conflicts_with = "json")]
    time: Time,
    #[command(flatten)]
    pub(crate) json: JsonOption,
    /// Print each record of a span of `tracing` or of a future, in place of one line at its end
    #[arg(long)]
    raw: bool,
    /// On a terminal, too, print whole lines as in a pipe: UTC, level, target, ids
    #[arg(short, long, conflicts_with = "json")]
    verbose: bool,
    /// Do not cut lines to the width of the terminal
    #[arg(long)]
    wide: bool,
    /// Print each span before what is in it, which is indented; times are those of beginnings
    #[arg(long, conflicts_with_all = ["json", "raw", "follow"])]
    pub(crate) tree: bool,
}

impl Form {
    /// Width to which lines are made; `None`: standard output is no terminal, or all is wanted.
    pub(crate) fn columns(self) -> Option<usize> {
        columns(io::stdout()).filter(|_| !self.wide && !self.verbose && !self.json.is_on())
    }

    /// The lines for eyes, where eyes are.
    fn screen(self, style: Style) -> Option<Screen> {
        let is_wanted = !self.verbose && !self.json.is_on() && io::stdout().is_terminal();
        is_wanted.then(|| Screen::new(self.columns(), style))
    }
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
    /// The printer's own lines for a terminal.
    Screen,
    Json(JsonWriter<'d>),
}

/// What an item is among the lines.
pub(crate) enum Looked<'d> {
    /// A record of a span that goes on: it has no line.
    Part,
    /// A span that has ended, and whether it passes the filter.
    Span(Box<Span<'d>>, bool),
    /// An event, a native span or a loss, and whether it passes the filter.
    Item(bool),
}

/// Turns events and losses into lines, as many as are wanted.
pub(crate) struct Printer<'a> {
    filter: &'a Filter,
    form: Form,
    /// Lines still wanted; `None`: all.
    left: Option<u64>,
    style: Style,
    /// Makes the lines on a terminal.
    screen: Option<Screen>,
    last_ns: Option<u64>,
    /// ns since 1970 that relative times count from; 0 until it is known.
    origin_ns: u64,
    /// Lines of text say which process is meant.
    has_process: bool,
    /// Events and spans printed so far.
    events: u64,
    /// The spans that are open; `None`: each record is printed as it is.
    pairs: Option<SpanPairs>,
    /// The calls that are open, if the filter asks how long they take.
    calls: Option<CallTook>,
    stamper: Stamper,
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
            screen: form.screen(style),
            last_ns: None,
            origin_ns: 0,
            has_process: false,
            events: 0,
            pairs: (!form.raw).then(SpanPairs::default),
            calls: filter.asks_duration().then(CallTook::default),
            stamper: Stamper::default(),
        }
    }

    /// Shows times in UTC, on a terminal, too.
    pub(crate) const fn in_utc(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.in_utc();
        }
    }

    /// Learns where a dump that is printed as a whole has gaps.
    pub(crate) fn learn_gaps(&mut self, dump: &Dump) {
        if let Some(pairs) = &mut self.pairs {
            *pairs = SpanPairs::new(dump);
        }
    }

    /// Notice about the spans that could pass and have no line, because the dump, which was printed
    /// to its end, does not hold them whole; `None`: there are none.
    pub(crate) fn cut_spans(&self, dump: &Dump) -> Option<String> {
        let pairs = self.pairs.as_ref().filter(|_| !self.is_done())?;
        let mut cut = pairs.cut(dump);
        cut.retain_mut(|of_type| {
            let passes = self.filter.passes_cut(of_type.ty);
            if !passes {
                // When such a one was is not known; one that is open at the end is in the last time.
                of_type.no_start = 0;
            }
            passes || of_type.ty.is_some_and(|ty| self.filter.passes_open(ty))
        });
        spans::notice(&cut, pairs.left_out())
    }

    /// A writer of the form that the options ask for.
    pub(crate) fn writer<'d>(&self) -> Writer<'d> {
        match &self.screen {
            _ if self.form.json.is_on() => Writer::Json(JsonWriter::new()),
            Some(_) => Writer::Screen,
            None if self.has_process => Writer::Text(TextWriter::with_process()),
            None => Writer::Text(TextWriter::new()),
        }
    }

    /// Width to which lines are made.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.form.columns()
    }

    /// Whether as many lines as wanted are out.
    pub(crate) fn is_done(&self) -> bool {
        self.left == Some(0)
    }

    /// Number of events and spans printed so far, losses not counted.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Takes the start of the first session as the origin of relative times, once it is known; and
    /// whether lines have to say whose they are.
    pub(crate) fn learn_origin(&mut self, dump: &Dump) {
        if self.origin_ns == 0 {
            self.origin_ns = dump.start_ns().unwrap_or(0);
        }
        self.has_process = dump.has_several_hosts();
        if let Some(screen) = &mut self.screen {
            screen.learn(dump);
        }
    }

    /// Appends the line of an item that passes the filter. The records of a span that goes on have
    /// none; the one that closes it has the span's.
    pub(crate) fn line<'d>(
        &mut self,
        writer: &mut Writer<'d>,
        item: &Output<'d>,
        out: &mut Vec<u8>,
    ) {
        if self.is_done() {
            return;
        }
        match self.look(item) {
            Looked::Part | Looked::Span(_, false) | Looked::Item(false) => {}
            Looked::Span(span, true) => self.span(writer, &span, out),
            Looked::Item(true) => self.item(writer, item, out),
        }
    }

    /// Takes the next item in the order of time, and says what it is.
    #[inline]
    pub(crate) fn look<'d>(&mut self, item: &Output<'d>) -> Looked<'d> {
        match self.pairs.as_mut().map(|pairs| pairs.take(item)) {
            Some(Paired::Part) => Looked::Part,
            Some(Paired::Ended(span)) => {
                let passes = self.filter.passes_span(&span);
                Looked::Span(span, passes)
            }
            Some(Paired::Alone) | None => Looked::Item(self.passes(item)),
        }
    }

    /// Makes the lines that follow those of something with that many spans around it in a tree.
    pub(crate) fn indent(&mut self, writer: &mut Writer<'_>, depth: usize) {
        match (writer, &mut self.screen) {
            (Writer::Text(writer), _) => writer.indent(2 * depth.min(DEEPEST)),
            (_, Some(screen)) => screen.indent(2 * depth.min(DEEPEST)),
            _ => {}
        }
    }

    /// Appends the line of an item.
    pub(crate) fn item<'d>(
        &mut self,
        writer: &mut Writer<'d>,
        item: &Output<'d>,
        out: &mut Vec<u8>,
    ) {
        self.events += u64::from(matches!(item, Output::Event(_)));
        self.left = self.left.map(|left| left - 1);
        match writer {
            Writer::Json(writer) => writer.write(item, out),
            Writer::Text(writer) => {
                let from = out.len();
                writer.write(item, out);
                self.restamp(moment(item, self.form.tree), from, out);
                self.colour(item, from, out);
            }
            Writer::Screen => self.on_screen(item, out),
        }
    }

    /// Appends the line that a terminal has.
    #[cold]
    fn on_screen(&mut self, item: &Output<'_>, out: &mut Vec<u8>) {
        let (wall_ns, session) = moment(item, self.form.tree);
        let time = self.other_time((wall_ns, session));
        match (&mut self.screen, item) {
            (Some(screen), Output::Event(event)) => {
                screen.event(event, wall_ns, time.as_deref(), out);
            }
            (Some(screen), Output::Lost(lost)) => screen.lost(lost, time.as_deref(), out),
            (None, _) => {}
        }
    }

    fn passes(&mut self, item: &Output<'_>) -> bool {
        match (&mut self.calls, item) {
            (Some(calls), Output::Event(event)) => {
                let took_ns = calls.take(event);
                self.filter.passes_after(event, took_ns)
            }
            _ => self.filter.passes_item(item),
        }
    }

    /// Appends the line of a span that has ended.
    pub(crate) fn span<'d>(&mut self, writer: &mut Writer<'d>, span: &Span<'d>, out: &mut Vec<u8>) {
        self.events += 1;
        self.left = self.left.map(|left| left - 1);
        let wall_ns = match self.form.tree {
            true => span.start_wall_ns(),
            false => span.end.wall_ns(),
        };
        let moment = (wall_ns, span.end.session);
        match writer {
            Writer::Json(writer) => writer.span(span, out),
            Writer::Text(writer) => {
                let from = out.len();
                writer.span(span, out);
                self.restamp(moment, from, out);
            }
            Writer::Screen => {
                let time = self.other_time(moment);
                if let Some(screen) = &mut self.screen {
                    screen.span(span, wall_ns, time.as_deref(), out);
                }
            }
        }
    }

    /// Replaces the wall clock's time, which every line of text begins with.
    #[inline]
    fn restamp(&mut self, moment: (u64, &Session), from: usize, out: &mut Vec<u8>) {
        if self.form.time == Time::Wall && !self.form.tree && moment.1.has_times() {
            return;
        }
        if let Some(text) = self.other_time(moment) {
            out.splice(from..from + TIMESTAMP_BYTES, text.into_bytes());
        } else if self.form.tree {
            out[from..from + TIMESTAMP_BYTES].copy_from_slice(self.stamper.stamp(moment.0));
        }
    }

    /// The time that a line has in place of the wall clock's; `None`: it has that one.
    fn other_time(&mut self, (wall_ns, session): (u64, &Session)) -> Option<String> {
        let before = match self.form.time {
            Time::Wall if session.has_times() => return None,
            Time::Wall if self.screen.is_some() => return Some(UNKNOWN_OF_DAY.to_owned()),
            Time::Wall => return Some(UNKNOWN_TIME.to_owned()),
            Time::Relative => self.origin_ns,
            Time::Delta => self.last_ns.replace(wall_ns).unwrap_or(wall_ns),
        };
        let sign = if wall_ns < before { '-' } else { ' ' };
        let ns = wall_ns.abs_diff(before);
        let (seconds, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
        Some(format!("{sign}{seconds:>5}.{ns:09}"))
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

/// When an item was, or began if that is asked for, and in which session.
fn moment<'d>(item: &Output<'d>, at_start: bool) -> (u64, &'d Session) {
    match item {
        Output::Event(event) if at_start => {
            let wall_ns = event.session.clock.wall_ns(event.start_ns());
            (wall_ns, event.session)
        }
        Output::Event(event) => (event.wall_ns(), event.session),
        Output::Lost(lost) => (lost.session.clock.wall_ns(lost.t_ns), lost.session),
    }
}
