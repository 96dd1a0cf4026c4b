//! Options that say which events are shown; the decoder knows what they mean.

use std::collections::BTreeSet;
use std::time::Duration;

use ringmark_console::units::{counted, parse_duration, whole_ns};
use ringmark_console::{Failure, printable};
use ringmark_decoder::{Dump, Event, Filter, FilterError, Output, Paired, SpanPairs};

/// Options that name a span of time.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct TimeOptions {
    /// Leave out what is before this: 1.5s after the session's start, or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Leave out what is at this time and later
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
}

impl TimeOptions {
    /// The filter that lets this span of time pass.
    ///
    /// # Errors
    /// A text is no time.
    pub(crate) fn build(&self) -> Result<Filter, Failure> {
        self.try_build()
            .map_err(|error| Failure::usage(error.to_string()))
    }

    /// The filter that lets pass what is before the end.
    ///
    /// # Errors
    /// A text is no time.
    pub(crate) fn until(&self) -> Result<Filter, Failure> {
        let (from, to) = (None, self.to.clone());
        Self { from, to }.build()
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

/// The option that chooses the end of a trace.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct LastOption {
    /// Only the end of the trace, such as 10s
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "from")]
    last: Option<Duration>,
}

impl LastOption {
    /// Whether it is given.
    pub(crate) const fn is_given(self) -> bool {
        self.last.is_some()
    }

    /// The filter for reading, which needs the end alone if that is wanted.
    pub(crate) fn to_read(self, mut filter: Filter) -> Filter {
        if let Some(last) = self.last {
            filter.reads_end(whole_ns(last));
        }
        filter
    }

    /// The filter of what is shown, at the end of the trace if that is wanted.
    pub(crate) fn within(self, mut filter: Filter, dump: &Dump) -> Filter {
        if let Some(last) = self.last {
            let end_ns = dump.verify().last_ns.unwrap_or(0);
            filter.from_wall_ns(end_ns.saturating_sub(whole_ns(last)));
        }
        filter
    }
}

/// Options that name events and spans, by name, value and level; all must hold.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ConditionOptions {
    /// Only names that match: '*' is any text, '?' any character; may be given several times
    #[arg(long, value_name = "GLOB")]
    name: Vec<String>,
    /// Only what has FIELD=VALUE, or != < <= > >=; 'took' is the duration of a span or a call, as
    /// in took>20ms; may be given several times
    #[arg(long = "where", value_name = "FIELD=VALUE")]
    conditions: Vec<String>,
    /// Only this level and more important ones: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,
}

impl ConditionOptions {
    /// Whether none is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.name.is_empty() && self.conditions.is_empty() && self.level.is_none()
    }

    /// Narrows a filter to these.
    ///
    /// # Errors
    /// A condition cannot be understood.
    pub(crate) fn add_to(&self, filter: &mut Filter) -> Result<(), Failure> {
        for name in &self.name {
            filter.name(name);
        }
        for condition in &self.conditions {
            let added = filter.condition(condition).map(drop);
            added.map_err(|error| Failure::usage(format!("--where: {error}")))?;
        }
        if let Some(level) = &self.level {
            let added = filter.level(level).map(drop);
            added.map_err(|error| Failure::usage(error.to_string()))?;
        }
        Ok(())
    }

    /// Notice about conditions that let nothing pass of what `others` lets pass: which one did
    /// not, and what is close to it.
    pub(crate) fn closest(&self, others: &Filter, dump: &Dump) -> String {
        let only_names = Self {
            name: self.name.clone(),
            ..Self::default()
        };
        if let Some(wanted) = self.name.first()
            && only_names.passed(&Filter::new(), dump).0 == 0
        {
            return format!("--name {}", no_name(dump, wanted));
        }
        let without_fields = Self {
            level: self.level.clone(),
            ..only_names
        };
        let (left, fields) = without_fields.passed(others, dump);
        if left == 0 || self.conditions.is_empty() {
            return "the filter matches nothing".to_owned();
        }
        let fields: Vec<_> = fields.into_iter().take(FIELDS_SHOWN).collect();
        format!(
            "--where {} holds for none of the {} that the other options let pass; fields there: {}",
            self.conditions.join(", "),
            counted(left, "event"),
            if fields.is_empty() {
                "none".to_owned()
            } else {
                fields.join(", ")
            }
        )
    }

    /// How many events and spans pass, and the names of what a condition may ask of them.
    fn passed(&self, others: &Filter, dump: &Dump) -> (u64, BTreeSet<String>) {
        let (mut passed, mut fields) = (0, BTreeSet::new());
        let mut filter = others.clone();
        if self.add_to(&mut filter).is_err() {
            return (passed, fields);
        }
        let mut pairs = SpanPairs::new(dump);
        dump.events().for_each(|item| match pairs.take(&item) {
            Paired::Ended(span) if filter.passes_span(&span) => {
                passed += 1;
                let args = span.args().into_iter();
                fields.extend(args.map(|(field, _)| printable_bytes(&field.name)));
                fields.extend(["took", "busy", "idle", "polls"].map(str::to_owned));
            }
            Paired::Alone => {
                if let Output::Event(event) = item
                    && filter.passes(&event)
                {
                    passed += 1;
                    fields.extend(names_of(&event));
                }
            }
            _ => {}
        });
        (passed, fields)
    }
}

/// Options that are conditions on events; all must hold.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FilterOptions {
    #[command(flatten)]
    times: TimeOptions,
    /// Only this thread; may be given several times
    #[arg(long, value_name = "TID")]
    tid: Vec<String>,
    #[command(flatten)]
    conditions: ConditionOptions,
}

impl FilterOptions {
    /// The filter that lets these events pass.
    ///
    /// # Errors
    /// An option cannot be understood.
    pub(crate) fn build(&self) -> Result<Filter, Failure> {
        let mut filter = self.records()?;
        self.conditions.add_to(&mut filter)?;
        Ok(filter)
    }

    /// Whether more is asked for than times and threads.
    pub(crate) fn has_conditions(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// The filter of times and threads alone: what may say when a call began.
    ///
    /// # Errors
    /// As [`Self::build`].
    pub(crate) fn records(&self) -> Result<Filter, Failure> {
        let found = self.try_records();
        found.map_err(|error| Failure::usage(error.to_string()))
    }

    fn try_records(&self) -> Result<Filter, FilterError> {
        let mut filter = self.times.try_build()?;
        for tid in &self.tid {
            filter.tid(tid)?;
        }
        Ok(filter)
    }

    /// Notice about a filter that let nothing pass: which option did not, and what is close to it.
    pub(crate) fn closest(&self, dump: &Dump) -> String {
        let others = self.records().unwrap_or_default();
        self.conditions.closest(&others, dump)
    }
}

/// The names of what a condition may ask of an event. The duration as it is stored has a name of
/// its own.
fn names_of(event: &Event<'_>) -> impl Iterator<Item = String> {
    let has_duration = event.duration_ns().is_some();
    let took = has_duration.then(|| "took".to_owned());
    let fields = event.ty.fields.iter();
    let fields = fields.filter(move |f| !has_duration || f.name != b"duration");
    fields.map(|f| printable_bytes(&f.name)).chain(took)
}

/// Most fields that a notice names.
const FIELDS_SHOWN: usize = 12;

fn printable_bytes(name: &[u8]) -> String {
    printable(&String::from_utf8_lossy(name))
}

/// Most names that a notice suggests.
const NAMES_SHOWN: usize = 3;

/// A pattern's text, to compare it with names.
fn without_wildcards(pattern: &str) -> String {
    pattern.replace(['*', '?'], "")
}

/// Text about a pattern that no name matches, with the names that are closest to it.
pub(crate) fn no_name(dump: &Dump, wanted: &str) -> String {
    let names = dump.closest_names(&without_wildcards(wanted), NAMES_SHOWN);
    let close = match names.is_empty() {
        true => "nothing there has a name".to_owned(),
        false => format!("closest names: {}", names.join(", ")),
    };
    format!("{wanted:?} matches nothing shown; {close}")
}

/// Notice with the names of event types that are closest to `wanted`.
pub(crate) fn closest_types(dump: &Dump, wanted: &str) -> String {
    let names = dump.closest_types(&without_wildcards(wanted), NAMES_SHOWN);
    if names.is_empty() {
        return "there are no event types".to_owned();
    }
    format!("closest names: {}", names.join(", "))
}
