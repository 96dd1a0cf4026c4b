//! What the tracers of a process answer.

use core::fmt;

use super::{Gathered, LeaseState, Site, TracerLine, Untraceable, Word, line};

/// What an answer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Functions that a change applied to.
    Matched,
    /// Patch sites that it changed.
    Patched,
    /// Patch sites that are enabled.
    Open,
    /// Patch sites that could not be changed.
    Refused,
    /// Patch sites of all functions.
    Sites,
    /// Functions that cannot be traced.
    Untraceable,
    /// Functions with sleds at all exits.
    Sleds,
    /// Calls inside a callback, for which no callback was called.
    NotCalled,
    /// Calls for which there was no memory.
    Uncounted,
    /// Where a list goes on: [`RequestLine::From`](super::RequestLine::From) of the next request.
    Next,
}

impl Count {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Matched,
        Self::Patched,
        Self::Open,
        Self::Refused,
        Self::Sites,
        Self::Untraceable,
        Self::Sleds,
        Self::NotCalled,
        Self::Uncounted,
        Self::Next,
    ];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Matched => "matched",
            Self::Patched => "patched",
            Self::Open => "open",
            Self::Refused => "refused",
            Self::Sites => "sites",
            Self::Untraceable => "untraceable",
            Self::Sleds => "sleds",
            Self::NotCalled => "not_called",
            Self::Uncounted => "uncounted",
            Self::Next => "next",
        }
    }
}

/// A function that a budget did not allow: `TRACER PPM NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenUp<'a> {
    /// The tracer, a word.
    pub tracer: &'a str,
    /// The function's share of the CPU time, in millionths.
    pub ppm: u64,
    /// The function's name.
    pub function: &'a str,
}

/// A trigger of a tracer: `TRACER FUNCTIONS TRIGGER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TriggerLine<'a> {
    /// The tracer, a word.
    pub tracer: &'a str,
    /// Functions that it is at.
    pub functions: u64,
    /// The trigger, as its user wrote it.
    pub trigger: &'a str,
}

/// Functions that the selection of a tracer's calls names: `TRACER FUNCTIONS PATTERNS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedLine<'a> {
    /// The tracer, a word.
    pub tracer: &'a str,
    /// How many functions they are.
    pub functions: u64,
    /// The patterns, as their user wrote them.
    pub patterns: &'a str,
}

/// Where the trampolines of a module lie whose sites take the place of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrampolineRange {
    /// Address of the first.
    pub at: u64,
    /// How many there are.
    pub count: u64,
    /// Bytes of each.
    pub bytes: u64,
    /// Where a jump enters one: so many bytes from its beginning.
    pub entry: u64,
    /// Where the address of its site stands in one, in eight bytes.
    pub site: u64,
}

/// A line of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerLine<'a> {
    /// A number.
    Count(Count, u64),
    /// What was not done, for people.
    Note(&'a str),
    /// A patch site that was refused, and why, for people.
    Refusal(&'a str),
    /// Whether the processor checks return addresses (CET), so that none is replaced.
    ShadowStack(bool),
    /// A tracer.
    Tracer(TracerLine<'a>),
    /// A trigger.
    Trigger(TriggerLine<'a>),
    /// Functions whose calls a tracer records with all that they call.
    Inside(NamedLine<'a>),
    /// Functions whose calls a tracer records with those that led to them.
    Caller(NamedLine<'a>),
    /// A function that a budget did not allow.
    GivenUp(GivenUp<'a>),
    /// A tracer whose trigger wanted a snapshot.
    Snapshot(&'a str),
    /// Jumps are to be put at the sites of these trampolines, while no thread is there.
    Trampolines(TrampolineRange),
    /// What became of a lease.
    State(LeaseState),
    /// Path of the module that the functions after it belong to.
    Module(&'a str),
    /// A function that can be traced.
    Site(Site<'a>),
    /// A function that cannot be traced.
    Untraceable(Untraceable<'a>),
    /// What a profile tracer has gathered of a function.
    Gathered(Gathered<'a>),
}

impl fmt::Display for AnswerLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count, number) => write!(f, "{}={number}", count.name()),
            Self::Note(text) => write!(f, "note={}", line(text)),
            Self::Refusal(text) => write!(f, "refusal={}", line(text)),
            Self::ShadowStack(true) => f.write_str("shadow_stack=on"),
            Self::ShadowStack(false) => f.write_str("shadow_stack=off"),
            Self::Tracer(tracer) => write!(f, "tracer={tracer}"),
            Self::Trigger(one) => {
                let (tracer, functions) = (Word(one.tracer), one.functions);
                write!(f, "trigger={tracer} {functions} {}", line(one.trigger))
            }
            Self::Inside(named) => write!(f, "inside={named}"),
            Self::Caller(named) => write!(f, "caller={named}"),
            Self::GivenUp(one) => {
                let (tracer, ppm) = (Word(one.tracer), one.ppm);
                write!(f, "given_up={tracer} {ppm} {}", line(one.function))
            }
            Self::Snapshot(tracer) => write!(f, "snapshot={}", line(tracer)),
            Self::Trampolines(of) => {
                let (at, count, bytes) = (of.at, of.count, of.bytes);
                let (entry, site) = (of.entry, of.site);
                write!(f, "trampolines={at:x} {count} {bytes} {entry} {site}")
            }
            Self::State(state) => write!(f, "state={}", state.name()),
            Self::Module(path) => write!(f, "module={}", line(path)),
            Self::Site(site) => site.fmt(f),
            Self::Untraceable(function) => function.fmt(f),
            Self::Gathered(function) => write!(f, "function={function}"),
        }
    }
}

impl<'a> AnswerLine<'a> {
    /// Takes a line apart; `None`: it is of a kind that is not known, or lacks something.
    #[must_use]
    pub fn parse(line: &'a str) -> Option<Self> {
        // No key has a space.
        match line.split_once(' ') {
            Some(("on", site)) => return Site::parse(true, site).map(Self::Site),
            Some(("off", site)) => return Site::parse(false, site).map(Self::Site),
            Some(("no", rest)) => return Untraceable::parse(rest).map(Self::Untraceable),
            _ => {}
        }
        let (key, value) = line.split_once('=')?;
        match key {
            "note" => Some(Self::Note(value)),
            "refusal" => Some(Self::Refusal(value)),
            "shadow_stack" => Some(Self::ShadowStack(value == "on")),
            "tracer" => TracerLine::parse(value).map(Self::Tracer),
            "trigger" => three(value).map(|(tracer, functions, trigger)| {
                Self::Trigger(TriggerLine {
                    tracer,
                    functions,
                    trigger,
                })
            }),
            "inside" => NamedLine::parse(value).map(Self::Inside),
            "caller" => NamedLine::parse(value).map(Self::Caller),
            "given_up" => three(value).map(|(tracer, ppm, function)| {
                Self::GivenUp(GivenUp {
                    tracer,
                    ppm,
                    function,
                })
            }),
            "snapshot" => Some(Self::Snapshot(value)),
            "trampolines" => TrampolineRange::parse(value).map(Self::Trampolines),
            "state" => {
                let known = LeaseState::ALL.into_iter();
                let mut found = known.filter(|state| state.name() == value);
                found.next().map(Self::State)
            }
            "module" => Some(Self::Module(value)),
            "function" => Gathered::parse(value).map(Self::Gathered),
            _ => {
                let count = Count::ALL.into_iter().find(|count| count.name() == key)?;
                Some(Self::Count(count, value.parse().ok()?))
            }
        }
    }

    /// The lines of an answer in order; lines that are not known are left out.
    pub fn all(answer: &'a str) -> impl Iterator<Item = Self> {
        answer.lines().filter_map(Self::parse)
    }
}

impl fmt::Display for NamedLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tracer, patterns) = (Word(self.tracer), line(self.patterns));
        write!(f, "{tracer} {} {patterns}", self.functions)
    }
}

impl<'a> NamedLine<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (tracer, functions, patterns) = three(text)?;
        Some(Self {
            tracer,
            functions,
            patterns,
        })
    }
}

impl TrampolineRange {
    fn parse(text: &str) -> Option<Self> {
        let (at, rest) = text.split_once(' ')?;
        let mut numbers = rest.split(' ').map(|word| word.parse().ok());
        let mut number = || numbers.next()?;
        Some(Self {
            at: u64::from_str_radix(at, 16).ok()?,
            count: number()?,
            bytes: number()?,
            entry: number()?,
            site: number()?,
        })
    }
}

/// A word, a number, and the rest.
fn three(text: &str) -> Option<(&str, u64, &str)> {
    let mut words = text.splitn(3, ' ');
    Some((words.next()?, words.next()?.parse().ok()?, words.next()?))
}

/// The number that an answer gives for `wanted`; `None`: it gives none.
#[must_use]
pub fn count(answer: &str, wanted: Count) -> Option<u64> {
    AnswerLine::all(answer).find_map(|line| match line {
        AnswerLine::Count(count, number) if count == wanted => Some(number),
        _ => None,
    })
}
