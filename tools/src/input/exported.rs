//! Options that say which part of a trace another viewer gets.

use std::time::Duration;

use ringmark_decoder::Dump;
use ringmark_export::{Counts, Cut, Plan};

use super::trace_files::Input;
use super::{notices, rings};
use crate::options::event_filter::FilterOptions;
use crate::output::note;
use crate::output::units::{count, parse_duration, parse_min_time, whole_ns};

/// More spans and calls than Perfetto's page opens: it has 4 GB of memory.
const SLICES_MAX: u64 = 3_000_000;

/// Options that cut a trace.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ExportedOptions {
    /// Only the end of the trace, such as 10s
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "from")]
    last: Option<Duration>,
    #[command(flatten)]
    filter: FilterOptions,
    /// Only spans and calls that took at least this long, such as 100us
    #[arg(short = 't', long, value_name = "TIME", value_parser = parse_min_time)]
    min_time: Option<Duration>,
}

impl ExportedOptions {
    /// Reads what may be meant; with it comes whether it is a running process.
    ///
    /// # Errors
    /// An option cannot be understood, or the input cannot be read.
    pub(crate) fn read(&self, input: &Input) -> anyhow::Result<(Dump, bool)> {
        let filter = self.filter.build()?;
        let Some(pid) = input.process()? else {
            return Ok((input.read_bare_for(&filter)?, false));
        };
        let dump = rings::snapshot(pid)?;
        notices::tell_schema(&dump);
        Ok((dump, true))
    }

    /// What is written of the dump. Says what may be too much for the viewer, and what would not be.
    ///
    /// # Errors
    /// An option cannot be understood.
    pub(crate) fn plan<'d>(&self, dump: &'d Dump) -> anyhow::Result<Plan<'d>> {
        let mut filter = self.filter.build()?;
        if let Some(last) = self.last {
            let end_ns = dump.verify().last_ns.unwrap_or(0);
            filter.from_wall_ns(end_ns.saturating_sub(whole_ns(last)));
        }
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

    /// Says which option lets nothing pass, if nothing was shown.
    pub(crate) fn tell_if_nothing(&self, dump: &Dump, shown: &Counts) {
        let is_filtered = self.filter.build().is_ok_and(|filter| !filter.is_empty());
        if is_filtered && shown.is_empty() {
            note(&self.filter.closest(dump));
        }
    }
}
