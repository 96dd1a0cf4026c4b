//! A function tracer, as the answer to `status` lists it.

use core::fmt;

use super::{Word, line};

/// Whether a tracer is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracerState {
    /// It is off.
    Off,
    /// It is on until it is stopped.
    On,
    /// It is on until its lease ends.
    Leased,
}

impl TracerState {
    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Leased => "leased",
        }
    }
}

/// What became of a start whose lease is to be renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    /// The tracer was stopped.
    Off,
    /// The lease is renewed.
    On,
    /// The tracer was started for good.
    Detached,
}

impl LeaseState {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::On, Self::Detached];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Detached => "detached",
        }
    }
}

/// A tracer: `NAME key=value … filter=PATTERNS`. Words that are not known are passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracerLine<'a> {
    /// Its name, a word.
    pub name: &'a str,
    /// Its number in the session.
    pub number: u64,
    /// Name of its kind: a `TracerKind`'s, or one of a later version.
    pub kind: &'a str,
    /// Name of its [`TracerState`], or one of a later version.
    pub state: &'a str,
    /// Whether commands that name no tracer mean it.
    pub is_default: bool,
    /// Number of functions that it traces.
    pub functions: u64,
    /// Number of integer arguments that it records, 0 to 6.
    pub args: u64,
    /// Whether it records return values.
    pub result: bool,
    /// Least duration of the calls that it records, in ns; `None`: it records all.
    pub min_ns: Option<u64>,
    /// How many calls deep those are at most that it records; `None`: any number.
    pub max_depth: Option<u64>,
    /// Whether it waits for a trigger.
    pub is_paused: bool,
    /// Whether one of its triggers wants a snapshot.
    pub wants_snapshot: bool,
    /// Most CPU time that it may take, in millionths; `None`: no limit.
    pub budget_ppm: Option<u64>,
    /// CPU time that it takes, in millionths; `None`: not known yet.
    pub cost_ppm: Option<u64>,
    /// The functions that it traces, as its user wrote them.
    pub filter: &'a str,
}

impl fmt::Display for TracerLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, kind, state) = (Word(self.name), Word(self.kind), Word(self.state));
        write!(f, "{name} number={} kind={kind} state={state}", self.number)?;
        write!(
            f,
            " default={} functions={}",
            self.is_default, self.functions
        )?;
        write!(f, " args={} result={}", self.args, self.result)?;
        if let Some(ns) = self.min_ns {
            write!(f, " min_ns={ns}")?;
        }
        if let Some(levels) = self.max_depth {
            write!(f, " max_depth={levels}")?;
        }
        if self.is_paused {
            f.write_str(" paused=true")?;
        }
        if self.wants_snapshot {
            f.write_str(" snapshot=true")?;
        }
        if let Some(ppm) = self.budget_ppm {
            write!(f, " budget_ppm={ppm}")?;
        }
        if let Some(ppm) = self.cost_ppm {
            write!(f, " cost_ppm={ppm}")?;
        }
        write!(f, " filter={}", line(self.filter))
    }
}

impl<'a> TracerLine<'a> {
    /// Takes the value of a `tracer` line apart; `None`: a word that it needs is missing.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (words, filter) = text.split_once(" filter=")?;
        let (name, words) = words.split_once(' ')?;
        let value = |key: &str| {
            let mut pairs = words.split(' ').filter_map(|word| word.split_once('='));
            pairs
                .find(|(found, _)| *found == key)
                .map(|(_, value)| value)
        };
        let number = |key: &str| value(key).and_then(|text| text.parse().ok());
        Some(Self {
            name,
            number: number("number")?,
            kind: value("kind")?,
            state: value("state")?,
            is_default: value("default")? == "true",
            functions: number("functions")?,
            args: number("args").unwrap_or(0),
            result: value("result") == Some("true"),
            min_ns: number("min_ns"),
            max_depth: number("max_depth"),
            is_paused: value("paused") == Some("true"),
            wants_snapshot: value("snapshot") == Some("true"),
            budget_ppm: number("budget_ppm"),
            cost_ppm: number("cost_ppm"),
            filter,
        })
    }
}
