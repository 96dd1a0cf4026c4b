//! What the collector tells its operator.

use std::fmt;
use std::net::IpAddr;

use ringmark_format::Uuid;

use crate::reason::Reason;

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

/// A peer whose doing is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Its address; `None`: a unix socket.
    pub address: Option<IpAddr>,
    /// Its address and port, or the path of the socket, for people.
    pub shown: String,
    /// What it did.
    pub doing: Doing,
    /// The host that it was welcomed as; `None`: it was not.
    pub host: Option<String>,
    /// The session that was refused; `None`: none, or the whole connection.
    pub session: Option<Uuid>,
    /// Sessions that it announced.
    pub sessions: u64,
    /// Bytes of blocks that it sent.
    pub bytes: u64,
}

/// What a peer did. Whatever it says, notices of one address and one doing are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Doing {
    /// It came, and was welcomed.
    Came,
    /// It went, or its connection broke.
    Went,
    /// It was refused.
    Refused(Reason),
}

impl Origin {
    /// The host that it was welcomed as; empty: it was not.
    pub(crate) fn named(&self) -> &str {
        self.host.as_deref().unwrap_or_default()
    }
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
        let severity = match origin.doing {
            Doing::Came | Doing::Went => Severity::Info,
            Doing::Refused(_) => Severity::Warning,
        };
        Self {
            severity,
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
