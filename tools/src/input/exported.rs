//! Options that say which part of a trace is written for other programs.

use std::time::Duration;

use ringmark_console::units::{count, parse_min_time, whole_ns};
use ringmark_console::{Failure, note};
use ringmark_decoder::{Chosen, Dump, Filter};
use ringmark_export::{Counts, Cut, Plan};

use super::trace_files::Input;
use super::{notices, rings};
use crate::options::event_filter::FilterOptions;

/// More spans and calls than Perfetto's page opens: it has 4 GB of memory.
const SLICES_MAX: u64 = 3_000_000;

/// Options that choose what of a trace is written.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ChosenOptions {
    #[command(flatten)]
    filter: FilterOptions,
}

impl ChosenOptions {
    /// Reads what may be meant; with it comes whether it is a running process. `is_bare`: which finished
    /// spans are around an event is not asked.
    ///
    /// # Errors
    /// An option cannot be understood, or the input cannot be read.
    pub(crate) fn read(&self, input: &Input, is_bare: bool) -> anyhow::Result<(Dump, bool)> {
        let filter = self.filter.to_read()?;
        let Some(pid) = input.process()? else {
            let dump = match is_bare {
                true => input.read_bare_for(&filter)?,
                false => input.read_for(&filter)?,
            };
            return Ok((dump, false));
        };
        let dump = rings::snapshot(pid)?;
        notices::tell_schema(&dump);
        Ok((dump, true))
    }

    /// Checks that the options choose rows of files.
    ///
    /// # Errors
    /// They choose a process that runs, or one cannot be understood.
    pub(crate) fn check_rows(&self, input: &Input, by: &str) -> anyhow::Result<()> {
        let _ = self.filter.to_read()?;
        self.filter.require_plain(by)?;
        if let Some(pid) = input.process()? {
            let text = format!("{by} reads files: write one with 'ringmark snapshot -p {pid}'");
            return Err(Failure::usage(text).into());
        }
        Ok(())
    }

    /// The filter of what is chosen.
    ///
    /// # Errors
    /// An option cannot be understood.
    pub(crate) fn filter(&self, dump: &Dump) -> Result<Filter, Failure> {
        self.filter.within(dump)
    }

    /// The rows that are chosen.
    ///
    /// # Errors
    /// As [`Self::filter`].
    pub(crate) fn rows(&self, dump: &Dump) -> Result<Chosen, Failure> {
        let conditions = self.filter.has_conditions().then(|| self.filter(dump));
        Ok(Chosen {
            records: self.filter.records(dump)?,
            conditions: conditions.transpose()?,
        })
    }

    /// Says which option lets nothing pass, as nothing was written. Returns whether there is one.
    pub(crate) fn tell_closest(&self, dump: &Dump) -> bool {
        let is_filtered = self
            .filter
            .within(dump)
            .is_ok_and(|filter| !filter.is_empty());
        if is_filtered {
            note(&self.filter.closest(dump));
        }
        is_filtered
    }
}

/// Options that cut a trace.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ExportedOptions {
    #[command(flatten)]
    chosen: ChosenOptions,
    /// Only spans and calls that took at least this long, such as 100us
    #[arg(short = 't', long, value_name = "TIME", value_parser = parse_min_time)]
    min_time: Option<Duration>,
}

impl ExportedOptions {
    /// Reads what may be meant; with it comes whether it is a running process.
    ///
    /// # Errors
    /// As [`ChosenOptions::read`].
    pub(crate) fn read(&self, input: &Input, is_bare: bool) -> anyhow::Result<(Dump, bool)> {
        self.chosen.read(input, is_bare)
    }

    /// Checks that the options choose rows of files, which have no least time.
    ///
    /// # Errors
    /// They choose something else, or one cannot be understood.
    pub(crate) fn check_rows(&self, input: &Input, by: &str) -> anyhow::Result<()> {
        self.chosen_rows(by)?.check_rows(input, by)
    }

    /// What rows are chosen by: they have no least time.
    ///
    /// # Errors
    /// One is given.
    pub(crate) fn chosen_rows(&self, by: &str) -> Result<&ChosenOptions, Failure> {
        if self.min_time.is_some() {
            let text = format!("{by}: rows are chosen by --where 'took>=100us', found --min-time");
            return Err(Failure::usage(text));
        }
        Ok(&self.chosen)
    }

    /// What is written of the dump. Says what may be too much for the viewer, and what would not be.
    ///
    /// # Errors
    /// An option cannot be understood.
    pub(crate) fn plan<'d>(&self, dump: &'d Dump) -> anyhow::Result<Plan<'d>> {
        let filter = self.chosen.filter(dump)?;
        let min_ns = self.min_time.map_or(0, whole_ns);
        let plan = Plan::new(dump, Cut { filter, min_ns });
        if let Some(last_ns) = plan.last_with(SLICES_MAX) {
            note(&format!(
                "{} spans and calls, and viewers open about {}: '--last {}ms' fits; --min-time and \
                 --name cut too",
                count(plan.counts().slices),
                count(SLICES_MAX),
                last_ns / 1_000_000
            ));
        }
        Ok(plan)
    }

    /// Says why nothing was shown, if nothing was.
    pub(crate) fn tell_if_nothing(&self, dump: &Dump, shown: &Counts) {
        if !shown.is_empty() || !self.chosen.tell_closest(dump) {
            tell_nothing(dump, shown);
        }
    }
}

/// Says why a trace of which all was shown has nothing to see, if so.
pub(crate) fn tell_nothing(dump: &Dump, shown: &Counts) {
    if shown.slices == 0 && !dump.gathered(&Filter::new()).is_empty() {
        note(
            "calls were counted, not recorded (kind 'profile'): 'ringmark report' shows the counts; \
             kind 'graph' records calls",
        );
    } else if shown.is_empty() && !dump.sessions.is_empty() {
        note("the trace has no events; 'ringmark verify' says what was lost");
    }
}
