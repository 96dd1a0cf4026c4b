//! The options that say which events are shown; the decoder knows what they mean.

use ringmark_decoder::{Dump, Filter, FilterError};

use crate::output::Failure;

/// Which times are meant.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct TimeOptions {
    /// Nothing before this: 1.5s after the session's start, or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Nothing from this on
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
}

impl TimeOptions {
    /// What lets these times pass.
    ///
    /// # Errors
    /// Text that is no time.
    pub(crate) fn build(&self) -> Result<Filter, Failure> {
        self.try_build()
            .map_err(|error| Failure::usage(error.to_string()))
    }

    fn try_build(&self) -> Result<Filter, FilterError> {
        let mut filter = Filter::new();
        if let Some(from) = &self.from {
            filter.from(from)?;
        }
        if let Some(to) = &self.to {
            filter.to(to)?;
        }
        Ok(filter)
    }
}

/// Conditions on events; all must hold.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FilterOptions {
    #[command(flatten)]
    times: TimeOptions,
    /// Only this thread; may be given several times
    #[arg(long, value_name = "TID")]
    tid: Vec<String>,
    /// Only names that match: '*' is any text, '?' any character; may be given several times
    #[arg(long, value_name = "GLOB")]
    name: Vec<String>,
    /// Only this level and more important ones: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,
    /// Only events with FIELD=VALUE, also != < <= > >=; may be given several times
    #[arg(long = "where", value_name = "FIELD=VALUE")]
    conditions: Vec<String>,
}

impl FilterOptions {
    /// The filter.
    ///
    /// # Errors
    /// An option that cannot be understood.
    pub(crate) fn build(&self) -> Result<Filter, Failure> {
        self.try_build()
            .map_err(|error| Failure::usage(error.to_string()))
    }

    fn try_build(&self) -> Result<Filter, FilterError> {
        let mut filter = self.times.try_build()?;
        for tid in &self.tid {
            filter.tid(tid)?;
        }
        for name in &self.name {
            filter.name(name);
        }
        if let Some(level) = &self.level {
            filter.level(level)?;
        }
        for condition in &self.conditions {
            filter.condition(condition)?;
        }
        Ok(filter)
    }

    /// For a filter that let nothing through: what could have been meant.
    pub(crate) fn closest(&self, dump: &Dump) -> String {
        let mut text = "the filter matches nothing".to_owned();
        if let Some(wanted) = self.name.first() {
            text = format!(
                "--name {wanted:?} matches nothing shown; {}",
                closest(dump, wanted)
            );
        }
        text
    }
}

/// `closest names: …` of the types in a dump.
pub(crate) fn closest(dump: &Dump, wanted: &str) -> String {
    let names = dump.closest_names(&wanted.replace(['*', '?'], ""), 3);
    if names.is_empty() {
        return "there are no event types".to_owned();
    }
    format!("closest names: {}", names.join(", "))
}
