//! What each thread did last, and the spans that it has open: lines for a person, and JSON.

use std::collections::HashSet;

use ringmark_decoder::{Dump, Event, LastWords, Moment, OpenSpan, OpenThread, event_words};
use ringmark_format::ending::{Ending, signal_name};
use serde_json::Value;

use ringmark_console::json::{self, Head};
use ringmark_console::printable;
use ringmark_console::units::{count, counted, duration};
use ringmark_console::width::cut;

/// Most columns of a line.
const COLUMNS: usize = 80;
/// Most threads that are shown, but by `cat`.
const THREADS_SHOWN: usize = 8;
/// Most open spans of a thread that are shown, but by `cat`: of the outermost ones, and of the
/// innermost ones.
const OUTER_SHOWN: usize = 4;
const INNER_SHOWN: usize = 6;
/// Levels of nesting that are shown by indentation; deeper ones stand below each other.
const INDENTED: usize = 8;

/// Which threads are shown, and what of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// All spans that are open. The last events stand above.
    Open,
    /// Threads that have spans open, and those of processes that did not end well.
    Short,
    /// All threads.
    Threads,
}

/// Signals that a thread brings on itself.
const OWN_SIGNALS: [&str; 6] = [
    "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP",
];

/// Lines about threads, those with open spans first; empty: nothing is to be shown.
///
/// ```text
/// last events and open spans, counted back from the end:
/// worker-1[815]
///   last  1.21 ms ago  http.accept path="/cart"
///   open  1.20 ms      http.handle worker=1
/// ```
pub(crate) fn text(dump: &Dump, show: Show) -> String {
    let unclean = dump.sessions.iter().filter(|session| {
        let ending = session.ending;
        ending.is_some_and(|ending| !ending.is_clean())
    });
    let unclean: HashSet<usize> = unclean.map(|session| session.process).collect();
    let mut threads = dump.last_words();
    threads.retain(|thread| match show {
        Show::Open => !thread.open.is_empty(),
        Show::Short => !thread.open.is_empty() || unclean.contains(&thread.session.process),
        Show::Threads => true,
    });
    if threads.is_empty() {
        return String::new();
    }
    let processes: HashSet<usize> = dump.sessions.iter().map(|s| s.process).collect();
    let mut lines = vec![heading(&threads, show)];
    let shown = match show {
        Show::Open => threads.len(),
        Show::Short | Show::Threads => THREADS_SHOWN,
    };
    for thread in threads.iter().take(shown) {
        let process = match processes.len() > 1 {
            true if dump.has_several_hosts() => format!(" of {}", thread.session.process_label()),
            true => of_process(thread),
            false => String::new(),
        };
        lines.push(front(thread, &process));
        if show != Show::Open {
            lines.extend(thread.events.iter().map(|event| last(thread, event)));
        }
        thread
            .open
            .iter()
            .for_each(|open| push_open(open, thread.until, show, &mut lines));
    }
    let more = threads.len().saturating_sub(shown);
    if more > 0 {
        lines.push(format!("and {}", counted(more as u64, "more thread")));
    }
    if let (Some(signal), Show::Short, 2..) = (own_signal(dump), show, threads.len()) {
        lines.push(format!(
            "which thread got {signal} is not known here: a core file has it"
        ));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn heading(threads: &[LastWords<'_>], show: Show) -> String {
    let what = match show {
        Show::Open => "open spans",
        Show::Short | Show::Threads => "last events and open spans",
    };
    let is = |moment| threads.iter().any(|thread| thread.until == moment);
    let from = match (is(Moment::LastEvent), is(Moment::End)) {
        (true, _) => "the last event of any thread",
        (false, true) => "the end",
        (false, false) => "now",
    };
    format!("{what}, counted back from {from}:")
}

/// A signal that ended a process, and that one of its threads brought on itself.
fn own_signal(dump: &Dump) -> Option<&'static str> {
    let endings = dump.sessions.iter().filter_map(|session| session.ending);
    let mut signals = endings.filter_map(Ending::signal).filter_map(signal_name);
    signals.find(|signal| OWN_SIGNALS.contains(signal))
}

/// The process of a thread, where there are several.
fn of_process(thread: &LastWords<'_>) -> String {
    let name = String::from_utf8_lossy(thread.session.process_name());
    format!(" of {}[{}]", printable(&name), thread.session.pid())
}

/// The thread, with its process if there are several.
fn front(thread: &LastWords<'_>, process: &str) -> String {
    let name = String::from_utf8_lossy(thread.name());
    fitted(format!("{}[{}]{process}", printable(&name), thread.tid))
}

fn last(thread: &LastWords<'_>, event: &Event<'_>) -> String {
    let (name, values) = event_words(event);
    let mut words = String::from_utf8_lossy(&name).into_owned();
    words += &match event.duration_ns() {
        Some(took) => format!(" {}", duration(took)),
        None => verb(event).to_owned(),
    };
    words += &String::from_utf8_lossy(&values);
    let ago = duration(thread.until_ns.saturating_sub(event.t_ns));
    fitted(format!("  last {ago:>8} ago  {words}"))
}

/// What an event says of a span or a call: ` begun`, ` left`; empty: it says nothing of one.
pub(crate) fn verb(event: &Event<'_>) -> &'static str {
    match event.ty.kind() {
        "span_new" => " begun",
        "span_close" => " ended",
        "function_entry" => " entered",
        "function_exit" => " left",
        "function_unwound" => " unwound",
        _ => "",
    }
}

fn push_open(open: &OpenThread<'_>, until: Moment, show: Show, lines: &mut Vec<String>) {
    let number = open.spans.len();
    let left_out = match show {
        Show::Open => 0..0,
        Show::Short | Show::Threads => OUTER_SHOWN..number.saturating_sub(INNER_SHOWN),
    };
    let indent = |depth: usize| " ".repeat(2 * depth.min(INDENTED));
    for (depth, span) in open.spans.iter().enumerate() {
        if depth == left_out.start && !left_out.is_empty() {
            let (indent, number) = (indent(depth), count(left_out.len() as u64));
            lines.push(format!("  open               {indent}+ {number} between"));
        }
        if !left_out.contains(&depth) {
            let since = match until {
                Moment::LastEvent => format!("> {}", duration(span.open_ns)),
                Moment::Copy | Moment::End => duration(span.open_ns),
            };
            let words = span_words(span);
            let since = format!("{since:>8}");
            let line = format!("  open {since:<14}{}{words}", indent(depth));
            lines.push(fitted(line));
        }
    }
    let indent = indent(number);
    if open.deeper > 0 {
        let number = count(open.deeper);
        lines.push(format!("  open               {indent}+ {number} deeper"));
    }
    if open.moving {
        lines.push("  (it went on: others may be missing)".to_owned());
    }
}

fn span_words(span: &OpenSpan<'_>) -> String {
    let name = printable(&String::from_utf8_lossy(&span.ty.name));
    let mut args = Vec::new();
    span.text_args(&mut args);
    format!("{name}{}", String::from_utf8_lossy(&args))
}

/// A line within the width of a terminal.
fn fitted(mut line: String) -> String {
    cut(&mut line, COLUMNS);
    line
}

/// An object for each open span, and one for the end of each session that did not end well.
pub(crate) fn objects(dump: &Dump) -> anyhow::Result<Vec<u8>> {
    let mut out = Vec::new();
    for open in dump.open_spans() {
        open.push_json(&mut out);
    }
    let ends = dump.endings().into_iter();
    for end in ends.filter(|end| !end.ending.is_clean()) {
        let fields: Value = serde_json::from_str(&end.to_json())?;
        let head = dump.sessions.get(end.session).map(Head::of);
        let object = json::object("session_end", &head.unwrap_or_default(), fields);
        out.extend_from_slice(format!("{}\n", json::Line(object)).as_bytes());
    }
    Ok(out)
}
