//! `graph`: shows calls of functions nested in each other, with their durations.

use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;
use std::{io, iter};

use ringmark_console::json::JsonOption;
use ringmark_console::units::{counted, parse_min_time, whole_ns};
use ringmark_console::wide::WideOption;
use ringmark_console::width::{SHORTEST_NAME, shorten, width};
use ringmark_console::{Exit, Failure, Sink, Style, note, printable};
use ringmark_decoder::{
    CallGraph, CallJsonWriter, CallLimits, Calls, ChosenCalls, Dump, Filter, Function, GraphLine,
    OpenCall, Output, Session, Step, WordForms,
};

use crate::input::trace_files::Input;
use crate::input::{notices, rings};
use crate::options::calls::CallOptions;
use crate::options::event_filter::no_name;
use crate::tables::cover;
use crate::tracing::source_places::SourcePlaces;

/// Show calls of traced functions, nested, with their durations
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A call with others inside it has its duration at the closing brace. Marks: +
took longer than 10 us, ! 100 us, # 1 ms, * 10 ms, @ 100 ms, $ 1 s. Events are
between the calls as comments. If there are several threads, each line says
whose it is.

--json prints a line per call where it ends, and calls that are still open
last. t_ns is where it began. dur_ns and self_ns are null where an end is not
known. depth counts the calls around it. ended is returned, unwound (exception,
longjmp, end of thread), unseen (the end was not recorded) or open.

A call that began before --from shows only its end, one that ends after --to
only its beginning.

Arguments and results that were recorded (--args, --result) are shown: in
hexadecimal, or as --types says. FORM is i8 to i64, u8 to u64, x64, bool or
char; arguments after the last that is named are left out.

--name and --where choose calls, which are shown with what is inside them;
--only leaves that out. --where may name took, and arg1 … and result, if they
were recorded. 'report --by thread,name' sums up by thread.

--srcline tells functions of equal name apart: 'seek() [/src/file.c:12]'. The
files that were traced must be there; of stripped ones the separate file is
looked for by its build id, and where .gnu_debuglink says.

Examples:
  ringmark graph run.rmk --srcline
  ringmark graph run.rmk --types 'seek@arg1/i32,arg2/i64,result/i64'
  ringmark graph run.rmk --name handle --where 'took>20ms' -n 50
  ringmark graph run.rmk --min-time 100us
  ringmark graph /var/lib/ringmark --from 2026-01-31T12:00:00Z \\
      --to 2026-01-31T12:00:01Z
  ringmark graph -p 812 --max-depth 3 --tid 813
  ringmark graph run.rmk --json | jq 'select(.self_ns > 1000)'")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    calls: CallOptions,
    /// Only calls with fewer than N calls around them
    #[arg(short = 'D', long, value_name = "N")]
    max_depth: Option<u32>,
    /// Only calls of functions whose names match, and what is inside: '*' is any text, '?' any character;
    /// may be given several times
    #[arg(long, value_name = "GLOB")]
    name: Vec<String>,
    /// Only calls that have FIELD=VALUE, or != < <= > >=, such as took>20ms, and what is inside; may be
    /// given several times
    #[arg(long = "where", value_name = "FIELD=VALUE")]
    conditions: Vec<String>,
    /// Leave out what is inside the calls that --name and --where choose
    #[arg(long)]
    only: bool,
    /// Only calls that took at least this long, such as 100us
    #[arg(short = 't', long, value_name = "TIME", value_parser = parse_min_time)]
    min_time: Option<Duration>,
    /// Show arguments and results of FUNCTION in these forms, such as 'neg@arg1/i32,result/i32'; may be
    /// given several times
    #[arg(long, value_name = "FUNCTION@arg1/FORM,…", conflicts_with = "json")]
    types: Vec<String>,
    /// Show behind each function the file and line of the source where it begins, from its file or the
    /// separate one with its debug information
    #[arg(long, conflicts_with = "json")]
    srcline: bool,
    /// End after N lines; with --json after N calls
    #[arg(short = 'n', value_name = "N")]
    lines: Option<u64>,
    #[command(flatten)]
    json: JsonOption,
    #[command(flatten)]
    wide: WideOption,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let dump = match self.input.process()? {
            Some(pid) => rings::snapshot(pid)?,
            None => self.input.read_for(&self.calls.to_read()?)?,
        };
        if !dump.has_functions() {
            let what = "no function records: start a function tracer with 'ringmark trace start -p PID', \
                        or record with 'ringmark run --kind graph -- CMD'";
            return Err(Failure::unreadable(what).into());
        }
        match self.json.is_on() {
            true => self.write_json(&dump)?,
            false => self.write_text(&dump)?,
        }
        notices::tell_gone(&dump);
        let found = dump.verify();
        Ok(Exit::lost_if(found.lost > 0 || !found.damage.is_empty()))
    }

    fn limits(&self) -> CallLimits {
        CallLimits {
            depth: self.max_depth,
            min_ns: self.min_time.map(whole_ns),
        }
    }

    /// The calls that are chosen; `None`: all are.
    fn chosen(&self, dump: &Dump, records: &Filter) -> anyhow::Result<Option<ChosenCalls>> {
        let mut filter = Filter::new();
        for name in &self.name {
            filter.name(name);
        }
        for condition in &self.conditions {
            let added = filter.condition(condition).map(drop);
            added.map_err(|error| Failure::usage(format!("--where: {error}")))?;
        }
        if filter.is_empty() {
            return Ok(None);
        }
        let tracers = self.calls.tracers(dump)?;
        let chosen = ChosenCalls::new(dump, (filter, records), tracers, self.only);
        Ok(Some(chosen))
    }

    /// Says which option let nothing pass.
    fn tell_nothing(&self, dump: &Dump) {
        if !self.conditions.is_empty() {
            let conditions = printable(&self.conditions.join(", "));
            note(&format!("--where {conditions} holds for none of the calls"));
        } else if let Some(wanted) = self.name.first() {
            note(&printable(&format!("--name {}", no_name(dump, wanted))));
        }
    }

    /// The forms of arguments and results.
    fn forms(&self) -> Result<WordForms, Failure> {
        let mut forms = WordForms::default();
        for text in &self.types {
            let declared = forms.declare(text);
            declared.map_err(|error| Failure::usage(format!("--types: {error}")))?;
        }
        Ok(forms)
    }

    fn words(&self, dump: &Dump) -> Result<Words, Failure> {
        let places = match self.srcline {
            true => SourcePlaces::of(dump),
            false => SourcePlaces::default(),
        };
        let forms = self.forms()?;
        Ok(Words { forms, places })
    }

    fn write_text(&self, dump: &Dump) -> anyhow::Result<()> {
        let words = self.words(dump)?;
        let filter = self.calls.filter(dump)?;
        let columns = self.wide.columns();
        let mut out = Sink::paged().within(columns);
        for line in cover::lines(dump) {
            writeln!(out, "# {line}")?;
        }
        let calls = || Ok::<_, anyhow::Error>(Calls::new(self.calls.tracers(dump)?));
        let shown = Shown {
            thread: thread_column(dump, &filter, calls()?),
            of_several: dump.has_several_hosts(),
            columns,
            style: Style::detect(),
        };
        write_heading(shown, &mut out)?;
        let mut graph = CallGraph::new(self.limits());
        let mut written = Ok(());
        let mut lines = 0;
        let mut write = |line: &GraphLine<'_>| {
            lines += 1;
            if written.is_ok() && self.lines.is_none_or(|most| lines <= most) {
                written = write_line(line, &words, shown, &mut out);
            }
        };
        let mut calls = calls()?;
        let chosen = self.chosen(dump, &filter)?;
        let mut flat = 0_u64;
        calls.walk(dump, &filter, |item, steps, depth| {
            let of_one_record = steps.iter().filter(|step| is_of_one_record(step));
            flat += of_one_record.count() as u64;
            if let Some(steps) = of(chosen.as_ref(), item, steps) {
                graph.take(item, &steps, depth as u32, &mut write);
            }
        });
        graph.finish(write);
        written?;
        if lines == 0 {
            self.tell_nothing(dump);
        }
        let more = self.lines.map_or(0, |most| lines.saturating_sub(most));
        if more > 0 {
            writeln!(out, "# {} (-n)", counted(more, "more line"))?;
        }
        if flat > 0 {
            note(&format!(
                "{}, recorded with --min-time or --caller, have one record each and stand where they ended: what is around them is not shown",
                counted(flat, "call")
            ));
        }
        let open = calls.open_elsewhere().count() as u64;
        if open > 0 {
            writeln!(
                out,
                "# {} on other stacks did not end",
                counted(open, "call")
            )?;
        }
        Ok(out.finish()?)
    }

    fn write_json(&self, dump: &Dump) -> anyhow::Result<()> {
        let mut writer = CallJsonWriter::new(self.limits());
        let mut out = Sink::direct();
        let (mut lines, mut written) = (Vec::new(), Ok(()));
        let filter = self.calls.filter(dump)?;
        let mut calls = Calls::new(self.calls.tracers(dump)?);
        let chosen = self.chosen(dump, &filter)?;
        let mut left = self.lines.unwrap_or(u64::MAX);
        calls.walk(dump, &filter, |item, steps, _| {
            let Output::Event(event) = item else { return };
            let steps = of(chosen.as_ref(), item, steps).unwrap_or_default();
            for step in steps.iter() {
                writer.write(event, step, &mut lines);
            }
            if written.is_ok() {
                written = out.write_all(first(&lines, &mut left));
            }
            lines.clear();
        });
        written?;
        let open = calls.open_elsewhere();
        let chosen = chosen.as_ref();
        let is_chosen = |call: &&OpenCall<'_>| {
            chosen.is_none_or(|of| of.passes_cut(call.target(), &call.function.name))
        };
        open.filter(is_chosen)
            .for_each(|call| writer.take_open(call));
        writer.finish(&mut lines);
        out.write_all(first(&lines, &mut left))?;
        Ok(out.finish()?)
    }
}

/// Whether a step is a call that stands alone, at its end.
fn is_of_one_record(step: &Step<'_>) -> bool {
    matches!(step, Step::Whole(call) if call.known_depth().is_none())
}

/// The steps of an item that are chosen; `None`: the item is not shown.
fn of<'s, 'd>(
    chosen: Option<&ChosenCalls>,
    item: &Output<'d>,
    steps: &'s [Step<'d>],
) -> Option<Cow<'s, [Step<'d>]>> {
    match chosen {
        Some(chosen) => chosen.of(item, steps),
        None => Some(Cow::Borrowed(steps)),
    }
}

/// As many of these lines as are left of those that are wanted.
fn first<'l>(lines: &'l [u8], left: &mut u64) -> &'l [u8] {
    let mut end = 0;
    while *left > 0
        && let Some(line) = lines[end..].iter().position(|byte| *byte == b'\n')
    {
        end += line + 1;
        *left -= 1;
    }
    &lines[..end]
}

/// Whose a line is: its thread, with its process if there are several hosts.
fn thread_of(session: &Session, tid: u32, of_several: bool) -> String {
    match of_several {
        true => format!("{} {tid}", session.process_label()),
        false => tid.to_string(),
    }
}

/// Width of the column that says whose a line is; `None`: all are of one thread.
fn thread_column<'d>(dump: &'d Dump, filter: &Filter, mut calls: Calls<'d>) -> Option<usize> {
    if dump.has_several_hosts() {
        let mut widest = None;
        calls.walk(dump, filter, |item, _, _| {
            let (session, tid) = whose(item);
            widest = widest.max(Some(width(&thread_of(session, tid, true))));
        });
        return widest;
    }
    let mut items = dump.events().filter(|item| {
        let mut has_line = filter.passes_item(item);
        if let Output::Event(event) = item
            && event.ty.function.is_some()
            && has_line
        {
            has_line = false;
            calls.take(event, |_| has_line = true);
        }
        has_line
    });
    let (_, first) = whose(&items.next()?);
    items.any(|item| whose(&item).1 != first).then_some(7)
}

/// The session of an item, and its thread; 0: not known.
fn whose<'d>(item: &Output<'d>) -> (&'d Session, u32) {
    match item {
        Output::Event(event) => (event.session, event.tid()),
        Output::Lost(lost) => (lost.session, lost.page.map_or(0, |page| page.header.tid)),
    }
}

/// How a graph is shown.
#[derive(Clone, Copy)]
struct Shown {
    /// Width of the column with the thread, if there is one.
    thread: Option<usize>,
    /// The lines are of several hosts.
    of_several: bool,
    /// Width of the terminal, to which lines are cut.
    columns: Option<usize>,
    style: Style,
}

impl Shown {
    /// The cell of a line in the column with the thread, if there is one.
    fn thread_cell(self, text: &str) -> String {
        let cell = |room: usize| {
            let padding = " ".repeat(room.saturating_sub(width(text)));
            format!(" {padding}{text} |")
        };
        self.thread.map_or_else(String::new, cell)
    }
}

fn write_heading(shown: Shown, out: &mut impl Write) -> io::Result<()> {
    let (heading, plain) = (shown.style.heading(), shown.style.plain());
    let cell = shown.thread_cell("TID");
    writeln!(out, "{heading}        TIME |{cell} CALLS{plain}")?;
    let rule = |room: usize| "-".repeat(room + 2) + "+";
    let rule = shown.thread.map_or_else(String::new, rule);
    let rule = format!("-------------+{rule}---------------");
    let end = rule.len().min(shown.columns.unwrap_or(rule.len()));
    writeln!(out, "{}", &rule[..end])
}

/// What is said of functions besides their names.
struct Words {
    forms: WordForms,
    places: SourcePlaces,
}

/// Writes a line: time, thread if there are several, then what it says, indented by its depth.
fn write_line(
    line: &GraphLine<'_>,
    words: &Words,
    shown: Shown,
    out: &mut impl Write,
) -> io::Result<()> {
    let thread = match shown.thread {
        Some(_) => shown.thread_cell(&thread_of(line.session, line.tid, shown.of_several)),
        None => String::new(),
    };
    let (on, off) = match line.is_loss() {
        true => (shown.style.alarm(), shown.style.plain()),
        false => ("", ""),
    };
    let time = line.duration_ns().map_or_else(String::new, marked_duration);
    let mut head = format!("{time:>12} |{thread} ");
    let deepest = shown.columns.map_or(200, |columns| {
        columns.saturating_sub(width(&head) + SHORTEST_NAME)
    });
    let indent = (2 * line.depth as usize).min(deepest.min(200));
    head.extend(iter::repeat_n(' ', indent));
    let mut text = Vec::new();
    let place_of = |session: &Session, function: &Function| words.places.get(session, function);
    line.text_in(&words.forms, &place_of, &mut text);
    let Some(columns) = shown.columns else {
        write!(out, "{head}{on}")?;
        out.write_all(&text)?;
        return writeln!(out, "{off}");
    };
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let room = columns.saturating_sub(width(&head));
    shorten(&mut text, room.max(SHORTEST_NAME));
    writeln!(out, "{head}{on}{text}{off}")
}

/// `! 123.456 us`: a duration after the mark of the greatest limit that it exceeds.
fn marked_duration(ns: u64) -> String {
    const MARKS: [(u64, char); 6] = [
        (1_000_000_000, '$'),
        (100_000_000, '@'),
        (10_000_000, '*'),
        (1_000_000, '#'),
        (100_000, '!'),
        (10_000, '+'),
    ];
    let mark = MARKS.iter().find(|(limit, _)| ns > *limit);
    let (unit, name) = match ns {
        0..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let (whole, rest) = (ns / unit, ns % unit * 1_000 / unit);
    let mark = mark.map_or(' ', |(_, mark)| *mark);
    let time = format!("{whole}.{rest:03} {name}");
    format!("{mark} {time:>10}")
}
