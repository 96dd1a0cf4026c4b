//! What `collect` prints, on a thread of its own: the collector goes on also without a reader.

use std::time::{Duration, Instant};

use anyhow::Context;
use ringmark_collector::{Collector, Figures, Notice};
use ringmark_reader::stream::Address;

use super::args::Args;
use crate::log::LogOptions;
use crate::repeats::Repeats;
use ringmark_console::json::Head;
use ringmark_console::printer::Printer;
use ringmark_console::units::counted;
use ringmark_console::{Failure, json, note_lines, status};

/// How long the end waits until everything is printed.
const PRINT_WITHIN: Duration = Duration::from_secs(1);

/// What the collector says of itself in JSON.
pub(super) struct Report {
    store: String,
}

impl Report {
    pub(super) fn new(args: &Args) -> Result<Self, Failure> {
        let store = args.store()?.display().to_string();
        Ok(Self { store })
    }

    /// The object of a state.
    pub(super) fn status(
        &self,
        state: &str,
        addresses: &[Address],
        figures: &Figures,
    ) -> serde_json::Value {
        let addresses = addresses.iter().map(Address::to_string);
        let mut fields = serde_json::json!({
            "state": state,
            "store": self.store,
            "listening": addresses.collect::<Vec<_>>(),
        });
        if let serde_json::Value::Object(fields) = &mut fields {
            let figures = figures.values().into_iter();
            fields.extend(figures.map(|(name, value)| (name.to_owned(), number(value))));
        }
        json::object("collector", &Head::default(), fields)
    }
}

/// A figure in JSON: an integer where it is whole.
fn number(value: f64) -> serde_json::Value {
    match value.fract() == 0.0 {
        true => (value as u64).into(),
        false => value.into(),
    }
}

/// Notices on standard error, objects on standard output.
pub(super) struct Log {
    options: LogOptions,
    printer: Printer,
    repeats: Repeats,
}

impl Log {
    pub(super) fn start(options: LogOptions) -> anyhow::Result<Self> {
        Ok(Self {
            options,
            printer: Printer::start().context("a thread that prints")?,
            repeats: Repeats::default(),
        })
    }

    fn note(&mut self, text: String) {
        self.write(&Notice::info(text));
    }

    fn write(&mut self, notice: &Notice) {
        if let Some(line) = self.options.line(notice) {
            self.printer.print(move || note_lines(&line));
        }
    }

    pub(super) fn status(&mut self, status: serde_json::Value) {
        self.printer.print(move || _ = status::print(&status));
    }

    /// A notice of the collector, unless it came before.
    pub(super) fn notice(&mut self, notice: Notice) {
        for notice in self.repeats.filter(notice, Instant::now()) {
            self.write(&notice);
        }
    }

    /// Where the collector listens.
    pub(super) fn started(&mut self, collector: &Collector) {
        for address in collector.addresses() {
            self.note(format!("listening at {address}"));
        }
        if let Some(address) = collector.metrics_address() {
            self.note(format!("figures at http://{address}/metrics"));
        }
    }

    /// How reading the options again went.
    pub(super) fn reloaded(&mut self, read: anyhow::Result<LogOptions>) {
        match read {
            Ok(log) => {
                self.options = log;
                self.note("options and certificates were read again".to_owned());
            }
            Err(why) => {
                let text = format!("{why}; nothing was changed");
                self.write(&Notice::error(text));
            }
        }
    }

    /// How many connections had not ended in time.
    pub(super) fn ended(&mut self, left: usize) {
        if left > 0 {
            self.note(format!(
                "{} had not ended in time; what was not acknowledged is sent again",
                counted(left as u64, "connection")
            ));
        }
    }

    pub(super) fn end(mut self) {
        if let Some(notice) = self.repeats.rest() {
            self.write(&notice);
        }
        self.printer.end_within(PRINT_WITHIN);
    }
}
