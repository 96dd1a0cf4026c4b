//! Options that say which events are shown; the decoder knows what they mean.

use std::collections::BTreeSet;
use std::time::Duration;

use ringmark_console::units::{counted, duration, parse_duration, whole_ns};
use ringmark_console::{Failure, now_ns, printable};
use ringmark_decoder::{
    Dump, Event, Filter, Output, Paired, SpanPairs, Stamper, duration_ns, parse_anywhere,
};

use super::moment::{self, Moment};
use super::threads;

/// Options that name a span of time.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct TimeOptions {
    /// Leave out what is before this: 2026-01-31T12:00:00Z, 12:00:00 as lines show it, -10m, or 1.5s
    /// after the first session's start
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// Leave out what is at this time and later
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
    /// Only what is so near to a time: 12:00:00±500ms, or +- for ±; without it 1s
    #[arg(long, value_name = "TIME±D", conflicts_with_all = ["from", "to", "last"])]
    around: Option<String>,
    /// Only the end of the trace, such as 10s; it ends when its last process does
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "from")]
    last: Option<Duration>,
    /// Times without an offset are UTC, on the screen, too
    #[arg(long)]
    pub(crate) utc: bool,
}

/// How near to --around is, if that is not said.
const AROUND: &str = "1s";

/// Beginning and end that options name.
type Bounds = (Option<Moment>, Option<Moment>);

impl TimeOptions {
    /// Whether one of them bounds the time.
    pub(crate) fn is_given(&self) -> bool {
        let texts = [&self.from, &self.to, &self.around];
        self.last.is_some() || texts.iter().any(|text| text.is_some())
    }

    /// Checks that the times mean the same to a command that knows times with an offset, and since the start,
    /// alone.
    ///
    /// # Errors
    /// One does not.
    pub(crate) fn require_plain(&self, by: &str) -> Result<(), Failure> {
        let is_plain = |text: &String| {
            let has_offset = parse_anywhere(text).is_some_and(|(_, offset)| offset.is_some());
            has_offset || duration_ns(text).is_some()
        };
        let mut texts = [&self.from, &self.to].into_iter().flatten();
        if self.around.is_none() && !self.utc && texts.all(is_plain) {
            return Ok(());
        }
        let text = format!(
            "{by}: expected times with an offset, such as 2026-01-31T12:00:00Z, or since the start, as in --from 1.5s"
        );
        Err(Failure::usage(text))
    }

    /// The options as they were given, for a person; `None`: there are none.
    pub(crate) fn words(&self) -> Option<String> {
        let named = [
            ("--from", &self.from),
            ("--to", &self.to),
            ("--around", &self.around),
        ];
        let texts = named.iter();
        let texts = texts.filter_map(|(name, text)| Some(format!("{name} {}", text.as_ref()?)));
        let last = self
            .last
            .map(|last| format!("--last {}", duration(whole_ns(last))));
        let all: Vec<_> = texts.chain(last).collect();
        (!all.is_empty()).then(|| all.join(" "))
    }

    /// Whether no time can pass: the end is not after the beginning.
    ///
    /// # Errors
    /// A text is no time.
    pub(crate) fn is_reversed(&self) -> Result<bool, Failure> {
        Ok(put(self.bounds()?, Filter::new()).is_reversed())
    }

    /// The filter for reading: a time of day is known when the trace is.
    ///
    /// # Errors
    /// A text is no time.
    pub(crate) fn to_read(&self) -> Result<Filter, Failure> {
        let (from, to) = self.bounds()?;
        let mut filter = match from {
            Some(Moment::SinceStart(ns)) => {
                let mut filter = put((None, to), Filter::new());
                filter.reads_since(ns);
                filter
            }
            from => put((from, to), Filter::new()),
        };
        if let Some(last) = self.last {
            filter.reads_end(whole_ns(last));
        }
        Ok(filter)
    }

    /// The filter for reading all that is before the end.
    ///
    /// # Errors
    /// A text is no time.
    pub(crate) fn until(&self) -> Result<Filter, Failure> {
        let (_, to) = self.bounds()?;
        Ok(put((None, to), Filter::new()))
    }

    /// The filter that lets this span of time of a trace pass.
    ///
    /// # Errors
    /// A text is no time.
    pub(crate) fn within(&self, dump: &Dump) -> Result<Filter, Failure> {
        let end_ns = dump.end_ns().unwrap_or(0);
        self.in_trace(dump.start_ns(), end_ns)
    }

    /// The filter for a trace that goes on.
    ///
    /// # Errors
    /// A text is no time; the end of a trace is asked for that has none.
    pub(crate) fn following(&self) -> Result<Filter, Failure> {
        if self.last.is_some() {
            let text = "--last: --follow shows what comes, which has no end yet";
            return Err(Failure::usage(text));
        }
        self.in_trace(None, now_ns())
    }

    /// The filter for a trace with this start and end, in ns since 1970.
    fn in_trace(&self, start_ns: Option<u64>, end_ns: u64) -> Result<Filter, Failure> {
        let placed = |at: Moment| at.since(start_ns).on_day((start_ns, end_ns), self.utc);
        let bounds = match self.around()? {
            // It may be a little after the end.
            Some((at, near_ns)) => {
                let range = (start_ns, end_ns.saturating_add(near_ns));
                near(at.since(start_ns).on_day(range, self.utc), near_ns)
            }
            None => {
                let (from, to) = self.bounds()?;
                let from = from.map(placed);
                (from, to.map(|to| to.after(from, placed(to))))
            }
        };
        let mut filter = put(bounds, Filter::new());
        if let Some(last) = self.last {
            filter.from_wall_ns(end_ns.saturating_sub(whole_ns(last)));
        }
        Ok(filter)
    }

    /// The time of --around, and how near to it, in ns.
    fn around(&self) -> Result<Option<(Moment, u64)>, Failure> {
        let Some(text) = &self.around else {
            return Ok(None);
        };
        let split = ["±", "+-"].iter().find_map(|sign| text.split_once(sign));
        let (at, near) = split.unwrap_or((text, AROUND));
        let at = self.moment("--around", at)?;
        let near = parse_duration(near);
        let near = near.map_err(|error| Failure::usage(format!("--around: {error}")))?;
        Ok(Some((at, whole_ns(near))))
    }

    fn bounds(&self) -> Result<Bounds, Failure> {
        if let Some((at, near_ns)) = self.around()? {
            return Ok(near(at, near_ns));
        }
        let moment = |option: &'static str, text: &Option<String>| {
            let text = text.as_ref();
            text.map(|text| self.moment(option, text)).transpose()
        };
        Ok((moment("--from", &self.from)?, moment("--to", &self.to)?))
    }

    fn moment(&self, option: &str, text: &str) -> Result<Moment, Failure> {
        Moment::parse(text, self.utc).ok_or_else(|| {
            let expected = moment::EXPECTED;
            Failure::usage(format!("{option}: found {text:?}, expected {expected}"))
        })
    }
}

/// What is so near to a time.
fn near(at: Moment, near_ns: u64) -> Bounds {
    // The end is left out, so it is one later.
    let to = at.moved(near_ns.saturating_add(1), true);
    (Some(at.moved(near_ns, false)), Some(to))
}

/// Puts bounds into a filter. A time of day is none without its day.
fn put((from, to): Bounds, mut filter: Filter) -> Filter {
    match from {
        Some(Moment::Wall(ns)) => drop(filter.from_wall_ns(ns)),
        Some(Moment::SinceStart(ns)) => drop(filter.from_start_ns(ns)),
        Some(Moment::OfDay(_)) | None => {}
    }
    match to {
        Some(Moment::Wall(ns)) => drop(filter.to_wall_ns(ns)),
        Some(Moment::SinceStart(ns)) => drop(filter.to_start_ns(ns)),
        Some(Moment::OfDay(_)) | None => {}
    }
    filter
}

/// Options that name events and spans, by name, value and level; all must hold.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ConditionOptions {
    /// Only names that match: '*' is any text, '?' any character; may be given several times
    #[arg(long, value_name = "GLOB")]
    name: Vec<String>,
    /// Only what has FIELD=VALUE, or != < <= > >=; 'took' is the duration of a span or a call, as
    /// in took>20ms, 'running', 'ready' and 'waiting' its parts; may be given several times
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

    /// Whether there are conditions on values.
    pub(crate) const fn has_fields(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// The options as they were given, for a person.
    pub(crate) fn words(&self) -> Vec<String> {
        let named = |option: &str, text: &String| format!("{option} {text}");
        let names = self.name.iter().map(|text| named("--name", text));
        let fields = self.conditions.iter().map(|text| named("--where", text));
        let level = self.level.iter().map(|text| named("--level", text));
        names.chain(fields).chain(level).collect()
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
        if left == 0 && others.has_time() {
            return format!("no event is in that time: the trace {}", covered(dump));
        }
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
                let parts = span.times.map(|_| ["running", "ready", "waiting"]);
                fields.extend(parts.into_iter().flatten().map(str::to_owned));
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
    #[arg(long, value_name = "TID", value_parser = threads::parse)]
    tid: Vec<u32>,
    #[command(flatten)]
    conditions: ConditionOptions,
}

impl FilterOptions {
    /// The filter for reading.
    ///
    /// # Errors
    /// An option cannot be understood.
    pub(crate) fn to_read(&self) -> Result<Filter, Failure> {
        self.named(self.times.to_read()?)
    }

    /// The filter that lets these events of a trace pass.
    ///
    /// # Errors
    /// An option cannot be understood.
    pub(crate) fn within(&self, dump: &Dump) -> Result<Filter, Failure> {
        threads::require(&self.tid, dump)?;
        self.named(self.times.within(dump)?)
    }

    /// The filter for a trace that goes on.
    ///
    /// # Errors
    /// An option cannot be understood.
    pub(crate) fn following(&self) -> Result<Filter, Failure> {
        self.named(self.times.following()?)
    }

    fn named(&self, times: Filter) -> Result<Filter, Failure> {
        let mut filter = self.of_threads(times)?;
        self.conditions.add_to(&mut filter)?;
        Ok(filter)
    }

    /// Whether more is asked for than times and threads.
    pub(crate) fn has_conditions(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// Checks the times for another command.
    ///
    /// # Errors
    /// As [`TimeOptions::require_plain`].
    pub(crate) fn require_plain(&self, by: &str) -> Result<(), Failure> {
        self.times.require_plain(by)
    }

    /// Whether times are UTC.
    pub(crate) const fn is_utc(&self) -> bool {
        self.times.utc
    }

    /// The filter of times and threads alone: what may say when a call began.
    ///
    /// # Errors
    /// As [`Self::within`].
    pub(crate) fn records(&self, dump: &Dump) -> Result<Filter, Failure> {
        threads::require(&self.tid, dump)?;
        self.of_threads(self.times.within(dump)?)
    }

    fn of_threads(&self, mut filter: Filter) -> Result<Filter, Failure> {
        for tid in &self.tid {
            let added = filter.tid(&tid.to_string()).map(drop);
            added.map_err(|error| Failure::usage(error.to_string()))?;
        }
        Ok(filter)
    }

    /// Notice about a filter that let nothing pass: which option did not, and what is close to it.
    pub(crate) fn closest(&self, dump: &Dump) -> String {
        let others = self.records(dump).unwrap_or_default();
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

/// From when to when a trace is, in words.
fn covered(dump: &Dump) -> String {
    let found = dump.verify();
    match (found.first_ns, found.last_ns) {
        (Some(first), Some(last)) => {
            let stamp = |ns| String::from_utf8_lossy(Stamper::default().stamp(ns)).into_owned();
            let end = dump.end_ns().filter(|end| *end > last);
            let end = end.map_or_else(String::new, |end| format!(", and ends at {}", stamp(end)));
            format!("has events from {} to {}{end}", stamp(first), stamp(last))
        }
        _ => "has no events with a time".to_owned(),
    }
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
