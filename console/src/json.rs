//! JSON objects that commands print: the option `--json`, and what every object begins with.

use std::fmt;

use ringmark_decoder::{Session, escape};
use ringmark_format::attribute::tag;
use ringmark_format::json::VERSION;
use ringmark_reader::SessionInfo;
use serde_json::Value;

/// The option of every command that can print JSON.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct JsonOption {
    /// Print JSON, one object per line
    #[arg(long, global = true)]
    json: bool,
}

impl JsonOption {
    /// Whether JSON is printed.
    pub fn is_on(self) -> bool {
        self.json
    }
}

/// An object as a line that is safe on a terminal. All that is printed as JSON is printed so.
#[derive(Debug)]
pub struct Line(pub Value);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape::json_line(self.0.to_string()))
    }
}

/// Whose facts an object holds. What is not known, or differs between those it sums up, is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// The uuid of the session.
    pub session: Option<String>,
    /// The host it ran on.
    pub host: Option<String>,
    /// The service that it is of.
    pub service: Option<String>,
    /// The number of its process.
    pub pid: Option<u32>,
}

impl Head {
    /// The head of what belongs to one recorded session.
    pub fn of(session: &Session) -> Self {
        Self {
            session: Some(session.uuid.to_string()),
            host: text(session.host()),
            service: text(session.service()),
            pid: Some(session.pid()).filter(|pid| *pid != 0),
        }
    }

    /// The head of what belongs to one session on this machine; its process has number `pid` here.
    pub fn of_info(info: &SessionInfo, pid: Option<u32>) -> Self {
        let attribute = |tag| {
            let found = info.attributes.iter().find(|a| a.tag == tag);
            found.and_then(|a| text(&a.value))
        };
        Self {
            session: Some(info.uuid.to_string()),
            host: attribute(tag::HOST),
            service: attribute(tag::SERVICE_NAME),
            pid,
        }
    }

    /// The head of what belongs to this machine.
    pub fn of_host(host: &str) -> Self {
        Self {
            host: Some(host.to_owned()),
            ..Self::default()
        }
    }

    /// The head of what sums up all these sessions: what they have in common.
    pub fn of_all(sessions: &[Session]) -> Self {
        let mut heads = sessions.iter().map(Self::of);
        let first = heads.next().unwrap_or_default();
        heads.fold(first, |all, one| Self {
            session: all.session.filter(|_| false),
            host: all.host.filter(|host| one.host.as_ref() == Some(host)),
            service: all
                .service
                .filter(|service| one.service.as_ref() == Some(service)),
            pid: all.pid.filter(|pid| one.pid == Some(*pid)),
        })
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned())
}

/// The object `fields` with what every object has: `v`, `kind`, and whose facts it holds.
pub fn object(kind: &str, head: &Head, mut fields: Value) -> Value {
    if let Value::Object(fields) = &mut fields {
        let mut add = |key: &str, value: Value| fields.insert(key.to_owned(), value);
        add("v", VERSION.into());
        add("kind", kind.into());
        add("session", head.session.clone().into());
        add("host", head.host.clone().into());
        add("service", head.service.clone().into());
        add("pid", head.pid.into());
    }
    fields
}

/// An address as an object has it.
pub fn address(address: u64) -> Value {
    format!("{address:#018x}").into()
}

/// A moment as an object has it: ns since 1970, as digits.
pub fn ts_ns(ns: Option<u64>) -> Value {
    ns.map(|ns| ns.to_string()).into()
}

/// Counts by their cause, those of 0 left out.
pub fn by_cause<'c>(counts: impl Iterator<Item = (&'c str, u64)>) -> Value {
    let found = counts.filter(|(_, count)| *count > 0);
    found
        .map(|(cause, count)| serde_json::json!({"cause": cause, "count": count}))
        .collect()
}
