//! What a controller requests of the function tracers of a process.
//!
//! The first line is `trace VERB`; each further line is `KEY=VALUE`.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::moved::MovedSite;
use super::{TRACE, line};
use crate::function::TracerKind;

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Switches a tracer on.
    Start,
    /// Switches a tracer off, or all: [`RequestLine::Tracer`] `*`.
    Stop,
    /// Lists all tracers.
    Status,
    /// Changes what a tracer records of a call.
    Set,
    /// Replaces the functions that a tracer is for.
    Filter,
    /// Replaces the functions that a tracer does not trace.
    Notrace,
    /// Replaces a tracer's triggers.
    Trigger,
    /// Lists the tracers whose triggers requested a snapshot, and clears the list.
    Snapshot,
    /// Removes a tracer.
    Remove,
    /// Renews the lease of a start.
    Renew,
    /// Lists what a profile tracer has gathered.
    Profile,
    /// Lists functions that can be traced, and those that cannot.
    Functions,
    /// Adds patch sites for functions whose compiler left none.
    Sites,
}

impl Verb {
    /// All of them, in the order in which errors name them.
    pub const ALL: [Self; 13] = [
        Self::Start,
        Self::Stop,
        Self::Status,
        Self::Set,
        Self::Filter,
        Self::Notrace,
        Self::Trigger,
        Self::Snapshot,
        Self::Remove,
        Self::Renew,
        Self::Profile,
        Self::Functions,
        Self::Sites,
    ];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Status => "status",
            Self::Set => "set",
            Self::Filter => "filter",
            Self::Notrace => "notrace",
            Self::Trigger => "trigger",
            Self::Snapshot => "snapshot",
            Self::Remove => "remove",
            Self::Renew => "renew",
            Self::Profile => "profile",
            Self::Functions => "functions",
            Self::Sites => "sites",
        }
    }

    /// The verb of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }
}

/// A whole request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// What it is about.
    pub verb: Verb,
    /// The rest of it, in order.
    pub lines: Vec<RequestLine<'a>>,
}

impl fmt::Display for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{TRACE} {}", self.verb.name())?;
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl<'a> Request<'a> {
    /// Takes a request apart.
    ///
    /// # Errors
    /// Any [`WrongLine`].
    pub fn parse(text: &'a str) -> Result<Self, WrongLine> {
        let mut lines = text.lines();
        let mut words = lines.next().unwrap_or_default().split_whitespace();
        let verb = words.nth(1).unwrap_or_default();
        let verb = Verb::parse(verb).ok_or_else(|| WrongLine::Verb(verb.to_owned()))?;
        let lines = lines.filter(|line| !line.trim().is_empty());
        Ok(Self {
            verb,
            lines: lines.map(RequestLine::parse).collect::<Result<_, _>>()?,
        })
    }
}

/// How the names in patterns are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Syntax {
    /// `*` is any text, `?` any character.
    #[default]
    Glob,
    /// A regular expression that may match anywhere in the name.
    Regex,
}

impl Syntax {
    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Glob => "glob",
            Self::Regex => "regex",
        }
    }
}

/// A line of a request after the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestLine<'a> {
    /// Which tracer is meant; the default one where there is no such line.
    Tracer(&'a str),
    /// Kind of a tracer that is to be made.
    Kind(TracerKind),
    /// How the patterns after it are written.
    Match(Syntax),
    /// Functions that are traced, a pattern.
    Filter(&'a str),
    /// Functions that are left out, a pattern.
    Notrace(&'a str),
    /// Least size of the functions that are traced, in bytes.
    MinBytes(u64),
    /// Integer arguments that are recorded, at most 6.
    Args(u8),
    /// Whether return values are recorded.
    Result(bool),
    /// Least duration of the calls that are recorded, in ns; 0: all.
    MinNs(u64),
    /// How many calls deep those are at most that are recorded; 0: any number.
    MaxDepth(u32),
    /// Functions whose calls are recorded with all that they call, a pattern; empty: none in particular.
    Inside(&'a str),
    /// Functions whose calls are recorded with those that led to them, a pattern; empty: none in particular.
    Caller(&'a str),
    /// A trigger, as its user writes it.
    Trigger(&'a str),
    /// No triggers.
    NoTriggers,
    /// Most CPU time that tracing may take, in millionths; 0: no limit.
    BudgetPpm(u64),
    /// Time after which a start ends unless it is renewed, in ms.
    LeaseMs(u64),
    /// Number of the first item of a list that the answer is to hold.
    From(u64),
    /// The list includes functions that cannot be traced.
    Refused,
    /// The module that the sites after it are of.
    Module {
        /// The sum of this and an address in its file is the address in memory.
        base: u64,
        /// Its build id: two digits for each byte; empty where it has none.
        build_id: &'a str,
    },
    /// A patch site for a function whose compiler left none.
    Moved(MovedSite<'a>),
    /// A profile tracer that is off begins to count at 0.
    Anew,
    /// More sites of this module are to come.
    More,
    /// The jumps of this module's sites that take the place of several instructions are put there, as far as they could be.
    Put,
    /// A program that this process has started waits, before its own code runs, until a request for sites without
    /// any has come.
    Await(u32),
}

impl fmt::Display for RequestLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tracer(name) => write!(f, "tracer={}", line(name)),
            Self::Kind(kind) => write!(f, "kind={}", kind.name()),
            Self::Match(syntax) => write!(f, "match={}", syntax.name()),
            Self::Filter(pattern) => write!(f, "filter={}", line(pattern)),
            Self::Notrace(pattern) => write!(f, "notrace={}", line(pattern)),
            Self::MinBytes(bytes) => write!(f, "min_bytes={bytes}"),
            Self::Args(count) => write!(f, "args={count}"),
            Self::Result(true) => f.write_str("result=on"),
            Self::Result(false) => f.write_str("result=off"),
            Self::MinNs(ns) => write!(f, "min_ns={ns}"),
            Self::MaxDepth(levels) => write!(f, "max_depth={levels}"),
            Self::Inside(pattern) => write!(f, "inside={}", line(pattern)),
            Self::Caller(pattern) => write!(f, "caller={}", line(pattern)),
            Self::Trigger(trigger) => write!(f, "trigger={}", line(trigger)),
            Self::NoTriggers => f.write_str("trigger=none"),
            Self::BudgetPpm(ppm) => write!(f, "budget_ppm={ppm}"),
            Self::LeaseMs(ms) => write!(f, "lease_ms={ms}"),
            Self::From(at) => write!(f, "from={at}"),
            Self::Refused => f.write_str("refused=on"),
            Self::Module { base, build_id } => write!(f, "module={base:x} {}", line(build_id)),
            Self::Moved(site) => write!(f, "moved={site}"),
            Self::More => f.write_str("more=on"),
            Self::Put => f.write_str("put=on"),
            Self::Anew => f.write_str("anew=on"),
            Self::Await(pid) => write!(f, "await={pid}"),
        }
    }
}

impl<'a> RequestLine<'a> {
    /// Takes a line apart.
    ///
    /// # Errors
    /// [`WrongLine::Key`], [`WrongLine::Value`].
    pub fn parse(line: &'a str) -> Result<Self, WrongLine> {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        Ok(match key {
            "tracer" => Self::Tracer(value),
            "kind" => Self::Kind(kind(value)?),
            "match" => Self::Match(syntax(value)?),
            "filter" => Self::Filter(value),
            "notrace" => Self::Notrace(value),
            "min_bytes" => Self::MinBytes(number("min_bytes", value)?),
            "args" => Self::Args(arguments(value)?),
            "result" => Self::Result(switch("result", value)?),
            "min_ns" => Self::MinNs(number("min_ns", value)?),
            "max_depth" => Self::MaxDepth(
                value
                    .parse()
                    .map_err(|_| wrong("max_depth", value, "a number"))?,
            ),
            "inside" => Self::Inside(value),
            "caller" => Self::Caller(value),
            "trigger" if value == "none" => Self::NoTriggers,
            "trigger" => Self::Trigger(value),
            "budget_ppm" => Self::BudgetPpm(number("budget_ppm", value)?),
            "lease_ms" => Self::LeaseMs(number("lease_ms", value)?),
            "from" => Self::From(number("from", value)?),
            "refused" if matches!(value, "on" | "") => Self::Refused,
            "refused" => return Err(wrong("refused", value, "on")),
            "module" => module(value)?,
            "moved" => Self::Moved(moved(value)?),
            "await" => Self::Await(value.parse().map_err(|_| wrong("await", value, "a pid"))?),
            "more" if matches!(value, "on" | "") => Self::More,
            "put" if matches!(value, "on" | "") => Self::Put,
            "anew" if matches!(value, "on" | "") => Self::Anew,
            "more" => return Err(wrong("more", value, "on")),
            other => return Err(WrongLine::Key(other.to_owned())),
        })
    }
}

/// The starts that a program is to make when it begins, each as its lines.
///
/// The text has lines as in a request, or one line with `;` between them. Each `tracer=` but the
/// first begins another start.
pub fn starts(wish: &str) -> Vec<Vec<&str>> {
    let between = if wish.contains('\n') { '\n' } else { ';' };
    let mut starts: Vec<Vec<&str>> = Vec::new();
    for line in wish.split(between).map(str::trim) {
        match starts.last_mut() {
            _ if line.is_empty() => {}
            Some(start) if !line.starts_with("tracer=") => start.push(line),
            _ => starts.push(alloc::vec![line]),
        }
    }
    starts
}

fn module(text: &str) -> Result<RequestLine<'_>, WrongLine> {
    let (base, build_id) = text.split_once(' ').unwrap_or((text, ""));
    let base = u64::from_str_radix(base, 16);
    let base = base.map_err(|_| wrong("module", text, "an address and a build id"))?;
    Ok(RequestLine::Module { base, build_id })
}

fn moved(text: &str) -> Result<MovedSite<'_>, WrongLine> {
    MovedSite::parse(text).ok_or_else(|| wrong("moved", text, "a patch site"))
}

fn kind(text: &str) -> Result<TracerKind, WrongLine> {
    let found = TracerKind::ALL.iter().find(|kind| kind.name() == text);
    let expected = "function, graph, callback or profile";
    found.copied().ok_or_else(|| wrong("kind", text, expected))
}

fn syntax(text: &str) -> Result<Syntax, WrongLine> {
    let mut known = [Syntax::Glob, Syntax::Regex].into_iter();
    let found = known.find(|syntax| syntax.name() == text);
    found.ok_or_else(|| wrong("match", text, "glob or regex"))
}

/// A line of the key alone is on, too.
fn switch(key: &'static str, text: &str) -> Result<bool, WrongLine> {
    match text {
        "on" | "" => Ok(true),
        "off" => Ok(false),
        _ => Err(wrong(key, text, "on or off")),
    }
}

fn arguments(text: &str) -> Result<u8, WrongLine> {
    let count = text.parse().ok().filter(|count| *count <= 6);
    count.ok_or_else(|| wrong("args", text, "a number up to 6"))
}

fn number(key: &'static str, text: &str) -> Result<u64, WrongLine> {
    text.parse().map_err(|_| wrong(key, text, "a number"))
}

fn wrong(key: &'static str, found: &str, expected: &'static str) -> WrongLine {
    WrongLine::Value {
        key,
        found: found.to_owned(),
        expected,
    }
}

/// Why a request was refused before anything was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrongLine {
    /// No such verb.
    Verb(String),
    /// No such key.
    Key(String),
    /// A value cannot be used.
    Value {
        /// Its key.
        key: &'static str,
        /// The value.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
}

impl fmt::Display for WrongLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verb(found) => {
                write!(f, "unknown verb {found:?}, expected ")?;
                for (at, verb) in Verb::ALL.into_iter().enumerate() {
                    let between = match at {
                        0 => "",
                        _ if at + 1 == Verb::ALL.len() => " or ",
                        _ => ", ",
                    };
                    write!(f, "{between}{}", verb.name())?;
                }
                Ok(())
            }
            Self::Key(found) => write!(f, "unknown key {found:?}"),
            Self::Value {
                key,
                found,
                expected,
            } => write!(f, "{key}: found {found:?}, expected {expected}"),
        }
    }
}

impl core::error::Error for WrongLine {}
