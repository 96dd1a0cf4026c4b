//! `cat`: one line per event, in order of time.

use std::io::Write;

use ringmark_decoder::{Dump, Filter, unordered_notice};

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

--tree prints a span before what is in it, indented, once the outermost span has
ended. What a filter leaves out has no line; what is in it may have one. A span
of 'tracing' that is open at the end has the line of its beginning. 'graph'
shows calls of functions so.

Examples:
  ringmark cat run.rmk --name 'request.*' --where status=500
  ringmark cat run.rmk --where 'took>20ms'
  ringmark cat run.rmk --tree --from 1.5s --to 1.6s
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
        let filter = self.filter.within(&dump)?;
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
            true => print_tree(&dump, &filter, &mut printer, &mut out)?,
            false => print(&dump, &mut printer, &mut out)?,
        }
        // What has no record yet, unless less was asked for.
        if filter.has_all_of_end() && !printer.is_done() {
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
        if let Some(text) = printer.cut_spans(&dump) {
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

/// Prints all events that pass, and the losses between them.
fn print(dump: &Dump, printer: &mut Printer<'_>, out: &mut Sink) -> anyhow::Result<()> {
    let mut writer = printer.writer();
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

/// Prints the same as trees.
fn print_tree(
    dump: &Dump,
    filter: &Filter,
    printer: &mut Printer<'_>,
    out: &mut Sink,
) -> anyhow::Result<()> {
    let mut writer = printer.writer();
    let (mut tree, mut lines) = (Tree::default(), Vec::new());
    for item in dump.events() {
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
    tree.finish(|made| filter.passes_open(made.ty));
    tree.write(printer, &mut writer, &mut lines);
    Ok(out.write_all(&lines)?)
}
