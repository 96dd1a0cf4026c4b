//! `graph`: shows calls of functions nested in each other, with their durations.

use std::io::{self, Write};
use std::time::Duration;

use ringmark_decoder::{CallGraph, CallJsonWriter, CallLimits, Calls, Dump, GraphLine, Output};

use crate::input::rings;
use crate::input::trace_files::Input;
use crate::options::calls::CallOptions;
use crate::output::json::{JsonOption, JsonVersion};
use crate::output::units::{parse_min_time, whole_ns};
use crate::output::{Exit, Failure, Sink, Style};
use crate::tables::cover;

/// Show calls of traced functions, nested, with their durations
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A closing brace carries the duration of its call in microseconds. Events stand
between the calls as comments. If there are several threads, each line says
whose it is.

--json prints a line per call where it ends, and calls that are still open
last. t_ns is where it began, dur_ns and self_ns are null where an end is not
known, depth counts the calls around it, and ended is returned, unwound
(exception, longjmp, end of thread), unseen (the end was not recorded) or open.

A call that began before --from shows only its end, one that ends after --to
only its beginning.

Examples:
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
    #[arg(short = 'D', long, value_name = "N", alias = "depth")]
    max_depth: Option<u32>,
    /// Only calls that took at least this long, such as 100us
    #[arg(short = 't', long, value_name = "TIME", alias = "min-us", value_parser = parse_min_time)]
    min_time: Option<Duration>,
    #[command(flatten)]
    json: JsonOption,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let dump = match self.input.process()? {
            Some(pid) => rings::snapshot(pid)?,
            None => self.input.read_for(&self.calls.filter()?)?,
        };
        if !dump.has_functions() {
            let what = "no function records: start a function tracer with 'ringmark trace start -p PID', \
                        or record with 'ringmark run --kind graph -- CMD'";
            return Err(Failure::unreadable(what).into());
        }
        match self.json.version() {
            Some(JsonVersion::Current) => {
                self.write_json(&dump, CallJsonWriter::new(self.limits()))?;
            }
            Some(JsonVersion::Old) => self.write_json(&dump, CallJsonWriter::old(self.limits()))?,
            None => self.write_text(&dump)?,
        }
        let found = dump.verify();
        Ok(Exit::lost_if(found.lost > 0 || !found.damage.is_empty()))
    }

    fn limits(&self) -> CallLimits {
        CallLimits {
            depth: self.max_depth,
            min_ns: self.min_time.map(whole_ns),
        }
    }

    fn write_text(&self, dump: &Dump) -> anyhow::Result<()> {
        let mut graph = CallGraph::default();
        let filter = self.calls.filter()?;
        let mut calls = Calls::new(self.calls.tracers(dump)?);
        calls.walk(dump, &filter, |item, steps, depth| {
            graph.take(item, steps, depth as u32);
        });
        graph.hide(self.limits());
        let mut out = Sink::paged();
        for line in cover::lines(dump) {
            writeln!(out, "# {line}")?;
        }
        let of_several = dump.has_several_hosts();
        write_graph(&graph, of_several, &mut out, Style::detect())?;
        Ok(out.finish()?)
    }

    fn write_json<'d>(&self, dump: &'d Dump, mut writer: CallJsonWriter<'d>) -> anyhow::Result<()> {
        let mut out = Sink::direct();
        let (mut lines, mut written) = (Vec::new(), Ok(()));
        let filter = self.calls.filter()?;
        let mut calls = Calls::new(self.calls.tracers(dump)?);
        calls.walk(dump, &filter, |item, steps, _| {
            let Output::Event(event) = item else { return };
            for step in steps {
                writer.write(event, step, &mut lines);
            }
            if written.is_ok() {
                written = out.write_all(&lines);
            }
            lines.clear();
        });
        written?;
        writer.finish(&mut lines);
        out.write_all(&lines)?;
        Ok(out.finish()?)
    }
}

/// Whose a line is: its thread, with its process if there are several hosts.
fn thread_of(line: &GraphLine<'_>, of_several: bool) -> String {
    match of_several {
        true => format!("{} {}", line.session.process_label(), line.tid),
        false => line.tid.to_string(),
    }
}

/// Writes a graph: time, thread if there are several, then the line, indented by its depth.
fn write_graph(
    graph: &CallGraph<'_>,
    of_several: bool,
    out: &mut impl Write,
    style: Style,
) -> io::Result<()> {
    let (heading, plain) = (style.heading(), style.plain());
    let width = match of_several {
        true => graph
            .lines()
            .map(|line| thread_of(line, true).chars().count())
            .max(),
        false => graph.has_several_threads().then_some(7),
    };
    let cell = |text: &str| width.map_or_else(String::new, |width| format!(" {text:>width$} |"));
    let (thread, rule) = (cell("TID"), width.map_or(0, |width| width + 3));
    writeln!(out, "{heading}  Time(us) |{thread} Function Graph{plain}")?;
    let rule = if rule > 0 {
        "-".repeat(rule - 1) + "+"
    } else {
        String::new()
    };
    writeln!(out, "-----------+{rule}---------------")?;
    let mut text = Vec::new();
    for line in graph.lines() {
        let thread = match width {
            Some(_) => cell(&thread_of(line, of_several)),
            None => String::new(),
        };
        let (on, off) = match line.is_loss() {
            true => (style.alarm(), style.plain()),
            false => ("", ""),
        };
        let time = line.duration_ns().map_or_else(String::new, microseconds);
        let indent = 2 * line.depth.min(100) as usize;
        write!(out, "{time:>10} |{thread} {:indent$}{on}", "")?;
        text.clear();
        line.text(&mut text);
        out.write_all(&text)?;
        writeln!(out, "{off}")?;
    }
    Ok(())
}

fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
