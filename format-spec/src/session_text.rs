//! Requests to a session and their answers, as text (SPEC, section 15).
//!
//! A request is one line: a verb, then arguments with spaces between them. Controllers write it and
//! the session's helper thread parses it; the answer goes the other way. A request whose verb is
//! none of these belongs to a library in the process, such as the function tracer with its
//! [`crate::tracer_text`].
//!
//! | request | what the session does | answer |
//! | --- | --- | --- |
//! | `ping` | nothing | `pong` |
//! | `filter DIRECTIVES` | replaces its filter, forgets patterns | `enabled=N`, types that are enabled now |
//! | `enable PATTERN [level=L] [category=C] [inside=SPAN]` | enables the types that match; with `inside` inside such spans only ([`crate::span_condition`]) | `matched=N`, types that match |
//! | `disable PATTERN [level=L] [category=C]` | disables them | the same |
//! | the last two, where no type matches | follows the pattern for later types | `matched=0 closest=NAME,NAME` |
//!
//! A request that cannot be understood changes nothing. Its answer has a status other than 0 and
//! says why: [`WrongRequest`].
//!
//! Arguments are words: a pattern, a category or directives with white space in them cannot be
//! written: a tool refuses them when its user gives them.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::schema::Level;

/// First word of a request that asks for nothing but an answer.
const PING: &str = "ping";
/// First word of a request with a new filter.
const FILTER: &str = "filter";

/// What a controller requests of a session.
///
/// ```
/// use ringmark_format::session_text::{SessionRequest, Switch, TypePattern};
///
/// let category = Some("noise");
/// let pattern = TypePattern { name: "request.*", level: None, category, inside: None };
/// let request = SessionRequest::Switch(Switch::Disable, pattern);
/// assert_eq!(request.to_string(), "disable request.* category=noise");
/// assert_eq!(SessionRequest::parse("disable request.* category=noise"), Ok(Some(request)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRequest<'a> {
    /// Shows that the process answers.
    Ping,
    /// Replaces the filter by these directives, `info,hyper=debug`.
    Filter(&'a str),
    /// Enables or disables the event types that match.
    Switch(Switch, TypePattern<'a>),
}

/// Which way event types are switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Their events are recorded from now on.
    Enable,
    /// Their events are no longer recorded.
    Disable,
}

impl Switch {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Enable, Self::Disable];

    fn of_verb(verb: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.verb() == verb)
    }

    /// The verb of its request.
    #[must_use]
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Enable => "enable",
            Self::Disable => "disable",
        }
    }
}

/// Which event types are meant: those that meet all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypePattern<'a> {
    /// Pattern of their names, for [`crate::glob::matches`].
    pub name: &'a str,
    /// The least severe level; `None`: every level.
    pub level: Option<Level>,
    /// Their category; `None`: every category.
    pub category: Option<&'a str>,
    /// The spans inside which they are enabled, as [`crate::span_condition`] has it; `None`: everywhere.
    pub inside: Option<&'a str>,
}

impl fmt::Display for SessionRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ping => f.write_str(PING),
            Self::Filter(directives) => write!(f, "{FILTER} {directives}"),
            Self::Switch(switch, pattern) => {
                write!(f, "{} {}", switch.verb(), pattern.name)?;
                if let Some(level) = pattern.level {
                    write!(f, " level={}", level.name())?;
                }
                if let Some(category) = pattern.category {
                    write!(f, " category={category}")?;
                }
                match pattern.inside {
                    Some(spans) => write!(f, " inside={spans}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl<'a> SessionRequest<'a> {
    /// Parses a request; `Ok(None)`: its first word is the verb of no request to a session.
    ///
    /// # Errors
    /// [`WrongRequest`]: the verb is known, what follows it cannot be used.
    pub fn parse(text: &'a str) -> Result<Option<Self>, WrongRequest> {
        let mut words = text.split_whitespace();
        let verb = words.next().unwrap_or_default();
        let switch = Switch::of_verb(verb);
        Ok(match (verb, switch) {
            (PING, _) => Some(Self::Ping),
            (FILTER, _) => Some(Self::Filter(words.next().unwrap_or_default())),
            (_, Some(switch)) => Some(Self::Switch(switch, TypePattern::parse(words)?)),
            _ => None,
        })
    }
}

impl<'a> TypePattern<'a> {
    fn parse(mut words: impl Iterator<Item = &'a str>) -> Result<Self, WrongRequest> {
        let mut pattern = Self {
            name: words.next().ok_or(WrongRequest::NoPattern)?,
            level: None,
            category: None,
            inside: None,
        };
        for word in words {
            match word.split_once('=') {
                Some(("level", level)) => pattern.level = Some(parse_level(level)?),
                Some(("category", category)) => pattern.category = Some(category),
                Some(("inside", spans)) => pattern.inside = Some(spans),
                _ => return Err(WrongRequest::Option(word.to_owned())),
            }
        }
        Ok(pattern)
    }
}

fn parse_level(text: &str) -> Result<Level, WrongRequest> {
    let found = Level::ALL.iter().find(|level| level.name() == text);
    found
        .copied()
        .ok_or_else(|| WrongRequest::Level(text.to_owned()))
}

/// Why a request to a session was refused before anything was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrongRequest {
    /// `enable` and `disable` need a pattern.
    NoPattern,
    /// No level has this name.
    Level(String),
    /// A word after the pattern that is neither a level nor a category.
    Option(String),
}

impl fmt::Display for WrongRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expected = "expected error, warn, info, debug or trace";
        match self {
            Self::NoPattern => f.write_str("a pattern is missing"),
            Self::Level(found) => write!(f, "level: found {found:?}, {expected}"),
            Self::Option(found) => write!(f, "unknown option {found:?}"),
        }
    }
}

impl core::error::Error for WrongRequest {}

/// What a session answers to a request that it has done.
///
/// ```
/// use ringmark_format::session_text::SessionAnswer;
///
/// assert_eq!(SessionAnswer::parse("matched=3"), Some(SessionAnswer::Matched(3)));
/// assert_eq!(SessionAnswer::NoneMatches(vec!["tick"]).to_string(), "matched=0 closest=tick");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionAnswer<'a> {
    /// To [`SessionRequest::Ping`].
    Pong,
    /// To [`SessionRequest::Filter`]: the number of event types that are enabled now.
    Enabled(u64),
    /// To [`SessionRequest::Switch`]: the number of event types that match.
    Matched(u64),
    /// To [`SessionRequest::Switch`] where none matches: up to three names that begin most like
    /// the pattern.
    NoneMatches(Vec<&'a str>),
}

impl fmt::Display for SessionAnswer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pong => f.write_str("pong"),
            Self::Enabled(types) => write!(f, "enabled={types}"),
            Self::Matched(types) => write!(f, "matched={types}"),
            Self::NoneMatches(closest) => write!(f, "matched=0 closest={}", closest.join(",")),
        }
    }
}

impl<'a> SessionAnswer<'a> {
    /// Parses the answer to a request that was done; `None`: it is of a later version. Words after
    /// those that are known are passed over, and a name with a comma becomes several.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (text, closest) = text.split_once(" closest=").unwrap_or((text, ""));
        let word = text.split_whitespace().next()?;
        if word == "pong" {
            return Some(Self::Pong);
        }
        Some(match word.split_once('=')? {
            ("enabled", types) => Self::Enabled(types.parse().ok()?),
            ("matched", "0") => {
                Self::NoneMatches(closest.split(',').filter(|name| !name.is_empty()).collect())
            }
            ("matched", types) => Self::Matched(types.parse().ok()?),
            _ => return None,
        })
    }
}
