//! Options that say what `report` sums up.

use ringmark_decoder::{Counted, Dump, Figures};

use super::calls::CallOptions;
use super::event_filter::ConditionOptions;
use ringmark_console::Failure;

/// Options that say what is summed up.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FigureOptions {
    #[command(flatten)]
    pub(crate) calls: CallOptions,
    #[command(flatten)]
    pub(crate) conditions: ConditionOptions,
    /// Exact P50 and P99, at 8 bytes of memory for each span; else they are within 1 %
    #[arg(long)]
    exact: bool,
    /// Show the N slowest spans and calls in place of the sums, each with the command that shows
    /// its lines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) slowest: Option<u32>,
}

impl FigureOptions {
    /// The figures of what the options let pass.
    ///
    /// # Errors
    /// An option cannot be understood, or no session has a tracer of the name.
    pub(crate) fn figures<'d>(&self, dump: &'d Dump) -> Result<Figures<'d>, Failure> {
        let records = self.calls.filter()?;
        let mut filter = records.clone();
        self.conditions.add_to(&mut filter)?;
        Ok(dump.figures(Counted {
            records,
            conditions: (!self.conditions.is_empty()).then_some(filter),
            tracers: self.calls.tracers(dump)?,
            exact: self.exact,
            slowest: self.slowest.unwrap_or(0) as usize,
        }))
    }
}
