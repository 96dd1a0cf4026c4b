//! Options that say what `report` sums up.

use ringmark_console::Failure;
use ringmark_decoder::{Chosen, Counted, Dump, Figures, Filter};

use super::calls::CallOptions;
use super::event_filter::{ConditionOptions, LastOption};

/// Options that say what is summed up.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FigureOptions {
    #[command(flatten)]
    pub(crate) calls: CallOptions,
    #[command(flatten)]
    last: LastOption,
    #[command(flatten)]
    pub(crate) conditions: ConditionOptions,
    /// Show the N slowest spans and calls in place of the sums, each with the command that shows
    /// its lines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) slowest: Option<u32>,
}

impl FigureOptions {
    /// The filter for reading.
    ///
    /// # Errors
    /// A text is no time.
    pub(crate) fn to_read(&self) -> Result<Filter, Failure> {
        Ok(self.last.to_read(self.calls.filter()?))
    }

    /// The filter of threads and times.
    ///
    /// # Errors
    /// As [`Self::to_read`].
    pub(crate) fn records(&self, dump: &Dump) -> Result<Filter, Failure> {
        Ok(self.last.within(self.calls.filter()?, dump))
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
        if self.last.is_given() {
            let text = "--last: a profile counts the whole time together";
            return Err(Failure::usage(text));
        }
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
