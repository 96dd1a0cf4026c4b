//! `events --enable`, `--disable`: switch event types of a running process on and off.

use std::io::Write;
use std::time::Duration;

use ringmark_format::schema::Level;
use ringmark_format::session_text::{SessionAnswer, SessionRequest, Switch, TypePattern};
use ringmark_format::span_condition::SpanCondition;
use ringmark_reader::{Access, Session, control, find};

use crate::input::rings;
use crate::options::event_filter;
use ringmark_console::units::counted;
use ringmark_console::{Exit, Failure, Sink, note, printable, text};

/// How long a process has for its answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// Options that only lists of event types have.
const OF_LISTS: [&str; 6] = ["files", "host", "service", "json", "lines", "wide"];

/// Options that switch event types of a process.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct SwitchOptions {
    /// Switch the types of process -p on whose names match: '*' is any text, '?' any character
    #[arg(
        long,
        value_name = "PATTERN",
        value_parser = parse_pattern,
        group = "switch",
        requires = "pid",
        conflicts_with_all = OF_LISTS
    )]
    enable: Option<String>,
    /// Switch them off
    #[arg(
        long,
        value_name = "PATTERN",
        value_parser = parse_pattern,
        group = "switch",
        requires = "pid",
        conflicts_with_all = OF_LISTS
    )]
    disable: Option<String>,
    /// Switch only this level and more important ones
    #[arg(long, value_name = "LEVEL", value_parser = parse_level, requires = "switch")]
    level: Option<Level>,
    /// Switch them on inside spans of this name whose fields have these values only, such as
    /// 'order[id=42]'; the spans themselves, too
    #[arg(
        long,
        value_name = "SPAN",
        value_parser = parse_spans,
        requires = "enable",
        conflicts_with = "disable"
    )]
    inside: Option<String>,
    /// Switch only this category
    #[arg(long, value_name = "CATEGORY", value_parser = parse_pattern, requires = "switch")]
    category: Option<String>,
}

/// What a process is asked to switch.
pub(super) struct SwitchRequest<'a> {
    switch: Switch,
    pattern: &'a str,
    options: &'a SwitchOptions,
    pid: u32,
}

/// A pattern is a word of the request, so it cannot hold white space.
fn parse_pattern(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err(format!(
            "found {text:?}, expected a name or a pattern without spaces"
        ));
    }
    Ok(text.to_owned())
}

/// It is a word of the request, too.
fn parse_spans(text: &str) -> Result<String, String> {
    let spans = parse_pattern(text)?;
    match SpanCondition::parse(&spans) {
        Some(condition) => Ok(condition.to_string()),
        None => Err(format!("found {text:?}, expected SPAN[FIELD=VALUE]")),
    }
}

fn parse_level(text: &str) -> Result<Level, String> {
    let lower = text.to_ascii_lowercase();
    let found = Level::ALL.iter().find(|level| level.name() == lower);
    found
        .copied()
        .ok_or_else(|| format!("found {text:?}, expected error, warn, info, debug or trace"))
}

impl SwitchOptions {
    /// The request to this process; `None`: the types are only listed.
    pub(super) fn request(&self, pid: u32) -> Option<SwitchRequest<'_>> {
        let on = self.enable.as_deref().map(|types| (Switch::Enable, types));
        let off = self
            .disable
            .as_deref()
            .map(|types| (Switch::Disable, types));
        let (switch, pattern) = on.or(off)?;
        Some(SwitchRequest {
            switch,
            pattern,
            options: self,
            pid,
        })
    }
}

impl SwitchRequest<'_> {
    /// Asks all sessions of the process, and says how many types match.
    ///
    /// # Errors
    /// No session answers, or no type matches.
    pub(super) fn send(&self) -> anyhow::Result<Exit> {
        let open = |place| Session::open_found(place, Access::Control);
        let found = find::by_pid(self.pid)?;
        let sessions: Vec<_> = found.iter().map(open).collect::<Result<_, _>>()?;
        let request = SessionRequest::Switch(self.switch, self.types()).to_string();
        let (mut matched, mut trouble, mut has_answered) = (0_u64, Vec::new(), false);
        for answer in control::request_all(&sessions, &request, ANSWER_WITHIN) {
            match answer {
                Ok(answer) if answer.status == 0 => {
                    if let Some(SessionAnswer::Matched(n)) = SessionAnswer::parse(&answer.text) {
                        matched = matched.saturating_add(n);
                    }
                    has_answered = true;
                }
                Ok(answer) => {
                    let text = format!("pid {}: {}", self.pid, printable(&answer.text));
                    trouble.push(Failure::no_target(text).into());
                }
                Err(error) => trouble.push(anyhow::Error::from(error)),
            }
        }
        // A session without control has no say; one that answers speaks for its own types.
        if !has_answered && !trouble.is_empty() {
            return Err(trouble.swap_remove(0));
        }
        for error in &trouble {
            note(&printable(&text(error)));
        }
        if matched == 0 {
            return Err(self.nothing_matches());
        }
        let mut out = Sink::direct();
        let now = match self.switch {
            Switch::Enable => "on",
            Switch::Disable => "off",
        };
        writeln!(out, "{} {now}", counted(matched, "event type"))?;
        out.finish()?;
        Ok(Exit::lost_if(!trouble.is_empty()))
    }

    fn types(&self) -> TypePattern<'_> {
        TypePattern {
            name: self.pattern,
            level: self.options.level,
            category: self.options.category.as_deref(),
            inside: self.options.inside.as_deref(),
        }
    }

    /// The error of a pattern without types. It stays in force for types that are registered later.
    fn nothing_matches(&self) -> anyhow::Error {
        let closest = match rings::snapshot(self.pid) {
            Ok(dump) => event_filter::closest_types(&dump, self.pattern),
            Err(_) => "types that are registered later will follow it".to_owned(),
        };
        let (pid, pattern) = (self.pid, self.pattern);
        Failure::no_target(format!(
            "pid {pid}: {pattern:?} matches no event type; {closest}"
        ))
        .into()
    }
}
