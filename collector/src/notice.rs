//! What the collector tells its operator.

use std::fmt;
use std::net::IpAddr;

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something was lost, or cannot be stored.
    Error,
    /// Something is wrong that may need an operator.
    Warning,
    /// Something happened as it was meant to.
    Info,
}

/// A notice for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How much it matters.
    pub severity: Severity,
    /// Whose doing it reports; `None`: the collector's own.
    pub origin: Option<Origin>,
    /// What happened.
    pub text: String,
}

/// A peer whose doing is reported. Whatever it says, notices of one address and one code are alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Its address; `None`: a unix socket.
    pub address: Option<IpAddr>,
    /// Its port or the path of the socket, for people.
    pub shown: String,
    /// The code of the refusal, of the specification's table `stream::refusal`.
    pub code: u32,
}

impl Notice {
    /// Something that needs an operator.
    #[must_use]
    pub fn error(text: impl ToString) -> Self {
        Self::own(Severity::Error, text)
    }

    /// Something that may need an operator.
    pub(crate) fn warning(text: impl ToString) -> Self {
        Self::own(Severity::Warning, text)
    }

    /// Something that happened as it was meant to.
    #[must_use]
    pub fn info(text: impl ToString) -> Self {
        Self::own(Severity::Info, text)
    }

    fn own(severity: Severity, text: impl ToString) -> Self {
        Self {
            severity,
            origin: None,
            text: text.to_string(),
        }
    }

    /// What a peer did.
    pub(crate) fn of(origin: Origin, text: String) -> Self {
        Self {
            severity: Severity::Warning,
            origin: Some(origin),
            text,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "{}: {}", origin.shown, self.text),
            None => f.write_str(&self.text),
        }
    }
}
