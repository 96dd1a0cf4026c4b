//! `cat`: one line per event, in order of time.

use std::io::Write;

use ringmark_decoder::{Dump, Filter, SpanContents, unordered_notice};

use crate::input::trace_files::Input;
use crate::input::{follow, notices, rings};
use crate::options::event_filter::FilterOptions;
use crate::output::endings;
use crate::output::event_lines::{Form, Printer};
use crate::output::last_words::{self, Show};
use crate::output::tree::Tree;
use ringmark_console::{Exit, Failure, Sink, note};

/// Bytes of lines that are gathered before they are written.
const LINES_BYTES: usize = 60 << 10;

/// Show events, one per line, in order of time
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Several trace files are read together: their events are merged by time,
repeated pages are dropped. Spans that were open at the end follow the
events, by thread, unless a filter or -n limits the output. In JSON the bad ends
of sessions follow, too.

A span has one line, at its end: took is from beginning to end, busy the time
in which threads were in it, idle the rest, polls how often it was entered.
--raw shows the records that say so. A --where may name all four, and a unit:
took>20ms.

--tree prints a span, and a call of a function, before what is in it, indented,
once the outermost one has ended. What --name and --where choose has a line with
all that is in it; --level, --tid and times hold for every line. What is open at
the end has the line of its beginning.

--span shows what happened in one span, in the spans inside it and in functions,
on every thread, whatever else happened meanwhile. IDs are in lines in a pipe
and with --verbose; 'report --slowest' prints the command. If several spans have
the ID, --pid, --host and times choose among them.

Examples:
  ringmark cat run.rmk --name 'request.*' --where status=500
  ringmark cat run.rmk --where 'took>20ms'
  ringmark cat run.rmk --tree --where id=42
  ringmark cat run.rmk --tree --span 7
  ringmark cat -p 812 --follow --level warn
  ringmark cat run.rmk --json | jq .args")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Go on with what is written later, until Ctrl-C
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    filter: FilterOptions,
    /// Only what happened in the span with this ID, on every thread
    #[arg(long, value_name = "ID", value_parser = span_id, conflicts_with = "follow")]
    span: Option<u64>,
    #[command(flatten)]
    form: Form,
    /// End after N lines
    #[arg(short = 'n', value_name = "N")]
    lines: Option<u64>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if self.follow {
            return self.follow_on(&self.filter.following()?);
        }
        let process = self.input.process()?;
        let dump = match process {
            Some(pid) => rings::snapshot(pid)?,
            None => self.input.read_for(&self.filter.to_read()?)?,
        };
        let mut filter = self.filter.within(&dump)?;
        let contents = self.span.map(|id| contents(&dump, id, &filter));
        if contents.is_some() {
            // Its time chose the span, which is shown whole.
            filter = filter.without_times();
        }
        let contents = contents.as_ref();
        if process.is_some() {
            notices::tell_schema(&dump);
        }
        let mut out = if self.form.json.is_on() {
            Sink::direct()
        } else {
            Sink::paged().within(self.form.columns())
        };
        let mut printer = self.printer(&filter);
        printer.learn_origin(&dump);
        printer.learn_gaps(&dump);
        match self.form.tree {
            true => print_tree(&dump, (&filter, contents), &mut printer, &mut out)?,
            false => print(&dump, contents, &mut printer, &mut out)?,
        }
        // What has no record yet, unless less was asked for.
        if contents.is_none() && filter.has_all_of_end() && !printer.is_done() {
            match self.form.json.is_on() {
                true => out.write_all(&last_words::objects(&dump)?)?,
                false => out.write_all(last_words::text(&dump, Show::Open).as_bytes())?,
            }
        }
        out.finish()?;
        endings::tell(&dump);
        unordered_notice(&dump).iter().for_each(|line| note(line));
        if printer.events() == 0 && !printer.is_done() && !filter.is_empty() {
            note(&self.filter.closest(&dump));
        }
        if let Some(text) = printer.cut_spans(&dump).filter(|_| contents.is_none()) {
            note(&text);
        }
        Ok(exit(&dump, process.is_some()))
    }

    fn printer<'f>(&self, filter: &'f Filter) -> Printer<'f> {
        let mut printer = Printer::new(filter, self.form, self.lines);
        if self.filter.is_utc() {
            printer.in_utc();
        }
        printer
    }

    fn follow_on(&self, filter: &Filter) -> anyhow::Result<Exit> {
        let mut printer = self.printer(filter);
        self.input.require_whole("--follow")?;
        match (self.input.process()?, self.input.files().as_slice()) {
            (Some(pid), _) => follow::process(pid, &mut printer),
            (None, [path]) => follow::file(path, &mut printer),
            _ => Err(Failure::usage("--follow takes one FILE").into()),
        }
    }
}

/// Says whether the whole input is sound, whatever part of it was shown. Pages of living rings that a
/// recorder has taken already are not missing.
fn exit(dump: &Dump, is_living: bool) -> Exit {
    notices::tell_gone(dump);
    let found = dump.verify();
    match is_living {
        true => Exit::lost_if(found.lost > 0 || !found.damage.is_empty()),
        false => Exit::lost_if(!found.is_clean()),
    }
}

/// The id of a span as lines have it, or as JSON has it: in hexadecimal, after 0x.
fn span_id(text: &str) -> Result<u64, String> {
    let id = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    id.map_err(|_| "expected the id of a span, a number as in span=7, or 0x7".to_owned())
}

/// What happened in the spans with an id; a word to the user if that is not one.
fn contents(dump: &Dump, id: u64, filter: &Filter) -> SpanContents {
    let contents = dump.span_contents(id, filter);
    match contents.spans() {
        0 => note(&format!(
            "--span {id}: no span with this id begins or ends there; 'cat --verbose' shows the ids: span=…"
        )),
        1 => {}
        spans => note(&format!(
            "--span {id}: {spans} spans have this id: --pid, --host, --from and --to choose among them"
        )),
    }
    contents
}

/// Prints all events that pass, and the losses between them.
fn print(
    dump: &Dump,
    contents: Option<&SpanContents>,
    printer: &mut Printer<'_>,
    out: &mut Sink,
) -> anyhow::Result<()> {
    let mut writer = printer.writer();
    let mut lines = Vec::with_capacity(LINES_BYTES + 4096);
    for item in dump.events() {
        if contents.is_some_and(|contents| !contents.holds(&item)) {
            continue;
        }
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

/// Prints the same as trees.
fn print_tree(
    dump: &Dump,
    (filter, contents): (&Filter, Option<&SpanContents>),
    printer: &mut Printer<'_>,
    out: &mut Sink,
) -> anyhow::Result<()> {
    let mut writer = printer.writer();
    let mut tree = Tree::new(filter, contents.is_some());
    let mut lines = Vec::new();
    for item in dump.events() {
        if contents.is_some_and(|contents| !contents.holds(&item)) {
            continue;
        }
        tree.take(&item, printer.look(&item));
        tree.write(printer, &mut writer, &mut lines);
        if lines.len() >= LINES_BYTES {
            out.write_all(&lines)?;
            lines.clear();
        }
        if printer.is_done() {
            break;
        }
    }
    tree.finish();
    tree.write(printer, &mut writer, &mut lines);
    Ok(out.write_all(&lines)?)
}
