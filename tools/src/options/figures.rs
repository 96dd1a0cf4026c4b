//! Options that say what `report` sums up.

use ringmark_console::Failure;
use ringmark_decoder::{Chosen, Counted, Dump, Figures, Filter};

use super::calls::CallOptions;
use super::event_filter::ConditionOptions;

/// Options that say what is summed up.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FigureOptions {
    #[command(flatten)]
    pub(crate) calls: CallOptions,
    #[command(flatten)]
    pub(crate) conditions: ConditionOptions,
    /// Show the N slowest spans and calls in place of the sums, each with the command that shows
    /// its lines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) slowest: Option<u32>,
}

impl FigureOptions {
    /// The line that says which part of the time, and of the threads, is shown; `None`: all is.
    pub(crate) fn part(&self) -> Option<String> {
        let words = self.calls.words();
        (!words.is_empty()).then(|| format!("shown of it: {}", words.join(" ")))
    }

    /// The same, with the other options that leave something out.
    pub(crate) fn part_of_all(&self) -> Option<String> {
        let words = [self.calls.words(), self.conditions.words()].concat();
        (!words.is_empty()).then(|| format!("shown of it: {}", words.join(" ")))
    }

    /// The filter for reading.
    ///
    /// # Errors
    /// A text is no time.
    pub(crate) fn to_read(&self) -> Result<Filter, Failure> {
        self.calls.to_read()
    }

    /// The filter of threads and times.
    ///
    /// # Errors
    /// As [`Self::to_read`].
    pub(crate) fn records(&self, dump: &Dump) -> Result<Filter, Failure> {
        self.calls.filter(dump)
    }

    /// The filter of all that is chosen.
    ///
    /// # Errors
    /// An option cannot be understood.
    pub(crate) fn filter(&self, dump: &Dump) -> Result<Filter, Failure> {
        let mut filter = self.records(dump)?;
        self.conditions.add_to(&mut filter)?;
        Ok(filter)
    }

    /// The rows that are chosen.
    ///
    /// # Errors
    /// As [`Self::filter`].
    pub(crate) fn rows(&self, dump: &Dump) -> Result<Chosen, Failure> {
        let conditions = (!self.conditions.is_empty()).then(|| self.filter(dump));
        Ok(Chosen {
            records: self.records(dump)?,
            conditions: conditions.transpose()?,
        })
    }

    /// Checks that no thread and no time is named: a profile counts all of them together.
    ///
    /// # Errors
    /// One is named.
    pub(crate) fn require_all(&self) -> Result<(), Failure> {
        self.calls.require_all()
    }

    /// The figures of what the options let pass.
    ///
    /// # Errors
    /// An option cannot be understood, or no session has a tracer of the name.
    pub(crate) fn figures<'d>(&self, dump: &'d Dump) -> Result<Figures<'d>, Failure> {
        let chosen = self.rows(dump)?;
        Ok(dump.figures(Counted {
            records: chosen.records,
            conditions: chosen.conditions,
            tracers: self.calls.tracers(dump)?,
            slowest: self.slowest.unwrap_or(0) as usize,
        }))
    }
}
