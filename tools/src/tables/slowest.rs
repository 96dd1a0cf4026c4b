//! The slowest spans and calls of a trace, and the commands that show their lines.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ringmark_decoder::{
    Dump, JsonWriter, RanIn, Slowest, Span, Stamper, WaitedFor, escape, span_args,
};
use serde_json::{Value, json};

use super::state_table;
use ringmark_console::file::is_standard;
use ringmark_console::shell::quoted;
use ringmark_console::units::{counted, duration};
use ringmark_console::width::width;
use ringmark_console::{Style, printable};

/// Waits of a span, and stacks that ran in it, that are shown.
const SHOWN: usize = 3;

/// Writes some lines for each: what it was, when and where, what its thread did, and the command that shows its lines.
///
/// # Errors
/// Those of writing.
pub(crate) fn write(
    slowest: &Slowest<'_>,
    source: &Source<'_>,
    (style, columns): (Style, Option<usize>),
    out: &mut impl Write,
) -> io::Result<()> {
    for span in slowest.spans() {
        let mut args = Vec::new();
        span_args(span, &mut args);
        let took = duration(span.total_ns);
        let name = printable(&String::from_utf8_lossy(span.name));
        let (heading, plain) = (style.heading(), style.plain());
        let args = String::from_utf8_lossy(&args);
        writeln!(out, "{heading}{took:>8}  {name}{plain}{args}")?;
        writeln!(out, "          {}", place(span))?;
        if let Some(did) = did(span) {
            writeln!(out, "          {did}")?;
        }
        for line in ran_in(span).into_iter().chain(waited_for(span)) {
            let line = line.replace('\n', " ");
            writeln!(out, "          {line}")?;
        }
        if let Some(mut words) = source.command(span, quoted) {
            words.extend(span.id.map(|_| "--tree".to_owned()));
            writeln!(out, "          {}", in_lines(&words, columns))?;
        }
    }
    Ok(())
}

/// A command as a shell takes it, in lines of at most that many columns, as far as its words let it.
fn in_lines(words: &[String], columns: Option<usize>) -> String {
    const INDENT: usize = 10;
    const GOES_ON: &str = " \\\n  ";
    let (mut text, mut at) = (String::new(), INDENT);
    for word in words {
        let wide = width(word);
        // Room for what says that the line goes on.
        if !text.is_empty() && columns.is_some_and(|columns| at + 1 + wide + 2 > columns) {
            text += GOES_ON;
            at = 2;
        } else if !text.is_empty() {
            text.push(' ');
            at += 1;
        }
        text += word;
        at += wide;
    }
    text
}

/// A JSON object for each: that of `cat`, with the command that shows its lines.
pub(crate) fn as_json<'d>(slowest: &Slowest<'d>, source: &Source<'_>) -> Vec<Value> {
    let mut writer = JsonWriter::new();
    let object = |span: &Span<'d>| {
        let mut line = Vec::new();
        writer.span(span, &mut line);
        let mut object: Value = serde_json::from_slice(&line).unwrap_or_default();
        object["kind"] = "slow_span".into();
        object["of"] = if span.is_call() { "function" } else { "span" }.into();
        object["self_ns"] = json!(span.self_ns);
        let did = span.times;
        object["running_ns"] = json!(did.map(|did| did.running_ns));
        object["ready_ns"] = json!(did.map(|did| did.ready_ns));
        object["throttled_ns"] = json!(did.map(|did| did.throttled_ns));
        object["waiting_ns"] = json!(did.map(|did| did.waiting_ns));
        object["waits"] = json!(did.map(|did| did.waits));
        object["preemptions"] = json!(did.map(|did| did.preemptions));
        object["ran_in"] = span.ran_in().iter().map(ran_object).collect();
        object["waited_for"] = span.waited_for().iter().map(as_object).collect();
        object["lines"] = source
            .command(span, |file| file.display().to_string())
            .into();
        object
    };
    slowest.spans().map(object).collect()
}

/// `began 2026-11-22T08:45:37.333152045Z in worker-1[815], busy 48.2 us, 3 polls`.
fn place(span: &Span<'_>) -> String {
    let end = &span.end;
    let mut thread = Vec::new();
    let name = match end.comm() {
        [] => end.session.process_name(),
        name => name,
    };
    escape::text(name, &mut thread);
    let thread = String::from_utf8_lossy(&thread);
    let mut text = format!(
        "began {} in {thread}[{}]",
        stamp(span.start_wall_ns()),
        end.tid()
    );
    if let Some(entered) = &span.entered {
        let polls = counted(entered.polls, "poll");
        text += &format!(", busy {}, {polls}", duration(entered.busy_ns));
        if !entered.is_whole {
            text += " at least: records were lost";
        }
    }
    text
}

/// What its thread did, the longest part first; `None`: no switches were recorded.
fn did(span: &Span<'_>) -> Option<String> {
    let unknown = || "what its thread did is not known: not all switches are here".to_owned();
    let has_switches = span.end.session.has_switches();
    has_switches.then(|| span.times.map_or_else(unknown, state_table::in_words))
}

/// What its threads were seen waiting for, in lines: `14.0 ms for mutex of worker[12], in sell < seller < start_thread`.
fn waited_for(span: &Span<'_>) -> Vec<String> {
    let (waits, is_exact) = (span.waited_for(), span.times.is_some());
    let line = |of: &WaitedFor<'_>| {
        let functions: Vec<_> = of.text.functions().map(printed).collect();
        // One look at the thread saw it wait, and not for how long.
        let time = match (of.ns, is_exact) {
            (0, _) => "some time".to_owned(),
            (ns, true) => duration(ns),
            (ns, false) => format!("{} at least", duration(ns)),
        };
        let times = match of.times {
            1 => String::new(),
            times => format!(" ({})", counted(times, "wait")),
        };
        let place = match functions.is_empty() {
            true => String::new(),
            false => format!(", in {}", functions.join(" < ")),
        };
        let what = printed(of.text.what);
        format!("{time} for {what}{place}{times}")
    };
    let mut lines: Vec<_> = waits.iter().take(SHOWN).map(line).collect();
    if waits.len() > SHOWN {
        let more = counted((waits.len() - SHOWN) as u64, "other wait");
        lines.push(format!("and for less in {more}"));
    }
    lines
}

/// What its threads ran, by samples, in lines: `about 121 ms in deflate < compress < handle (12 samples)`.
fn ran_in(span: &Span<'_>) -> Vec<String> {
    let ran = span.ran_in();
    let line = |of: &RanIn<'_>| {
        let functions: Vec<_> = of.stack.functions().map(printed).collect();
        let place = match functions.is_empty() {
            true => "unknown code".to_owned(),
            false => functions.join(" < "),
        };
        let samples = counted(of.samples, "sample");
        format!("about {} in {place} ({samples})", duration(of.ns))
    };
    let mut lines: Vec<_> = ran.iter().take(SHOWN).map(line).collect();
    if ran.len() > SHOWN {
        let more = counted((ran.len() - SHOWN) as u64, "other stack");
        lines.push(format!("and for less in {more}"));
    }
    lines
}

fn printed(bytes: &[u8]) -> String {
    printable(&String::from_utf8_lossy(bytes))
}

fn as_object(of: &WaitedFor<'_>) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let functions: Vec<_> = of.text.functions().map(text).collect();
    json!({"for": text(of.text.what), "functions": functions, "ns": of.ns, "times": of.times})
}

fn ran_object(of: &RanIn<'_>) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let functions: Vec<_> = of.stack.functions().map(text).collect();
    json!({"functions": functions, "ns": of.ns, "samples": of.samples})
}

fn stamp(ns: u64) -> String {
    String::from_utf8_lossy(Stamper::default().stamp(ns)).into_owned()
}

/// Where the spans come from, as a command line names it.
pub(crate) struct Source<'s> {
    pub(crate) files: &'s [PathBuf],
    /// The running process, if that is read.
    pub(crate) pid: Option<u32>,
    /// What was read, of which the span is in one process.
    pub(crate) dump: &'s Dump,
    /// Whether that is a part of the files: some of their hosts, services or processes.
    pub(crate) is_part: bool,
}

impl Source<'_> {
    /// The words of the command that shows what happened in a span, or in the thread of a call while it lasted;
    /// `None`: standard input is not there a second time. `word` makes a word of a file's path.
    fn command(&self, span: &Span<'_>, word: Word) -> Option<Vec<String>> {
        let shows = if span.is_call() { "graph" } else { "cat" };
        let mut words = vec!["ringmark".to_owned(), shows.to_owned()];
        match self.pid {
            Some(pid) => words.extend(["-p".to_owned(), pid.to_string()]),
            None if self.files.iter().any(|file| is_standard(file)) => return None,
            None => words.extend(self.files.iter().map(|file| {
                let is_option = file.as_os_str().as_encoded_bytes().starts_with(b"-");
                let dir = if is_option { "." } else { "" };
                word(&Path::new(dir).join(file))
            })),
        }
        words.extend(self.process(span, word));
        // Times are rounded to ns: the first record may lie one before.
        let from = span.start_wall_ns().saturating_sub(1);
        let to = span.end.wall_ns().saturating_add(1);
        words.extend(["--from".to_owned(), stamp(from)]);
        words.extend(["--to".to_owned(), stamp(to)]);
        match span.id {
            // What is in it may be on other threads, too.
            Some(id) => words.extend(["--span".to_owned(), id.to_string()]),
            None => {
                let tids = span.tids().into_iter();
                words.extend(tids.flat_map(|tid| ["--tid".to_owned(), tid.to_string()]));
            }
        }
        Some(words)
    }

    /// The options that choose the process of a span: those of host, service and id that not all sessions
    /// share. Threads of two processes may have one id.
    fn process(&self, span: &Span<'_>, word: Word) -> Vec<String> {
        let (of, all) = (span.end.session, &self.dump.sessions);
        let mut words = Vec::new();
        if self.pid.is_some() {
            return words;
        }
        let mut name = |option: &str, name: &[u8]| {
            let name = String::from_utf8_lossy(name);
            words.extend([option.to_owned(), word(Path::new(&*name))]);
        };
        let is_told = |differs: bool| self.is_part || differs;
        if is_told(all.iter().any(|other| other.host() != of.host())) && !of.host().is_empty() {
            name("--host", of.host());
        }
        if is_told(all.iter().any(|other| other.service() != of.service()))
            && !of.service().is_empty()
        {
            name("--service", of.service());
        }
        if is_told(all.iter().any(|other| other.pid() != of.pid())) && of.pid() != 0 {
            name("--pid", of.pid().to_string().as_bytes());
        }
        words
    }
}

/// Makes a word of a command line.
type Word = fn(&Path) -> String;
