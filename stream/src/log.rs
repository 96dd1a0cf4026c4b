//! The log of a command that runs on: its notices by importance, as lines for people, for machines
//! or for systemd's journal.

use std::env;
use std::io;
use std::os::fd::AsFd;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use ringmark_collector::{Doing, Notice, Reason, Severity};
use ringmark_decoder::Stamper;
use rustix::fs::fstat;
use serde_json::json;

use ringmark_console::json::{self, Head};
use ringmark_console::printable;

/// How notices are written to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Text,
    /// Lines with time and level
    Timed,
    /// One object of JSON per line
    Json,
    /// Lines that begin with a priority, for systemd's journal
    Journal,
}

/// The least important notices that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// What was lost, or cannot be stored
    Error,
    /// That, and what may need an operator
    Warning,
    /// Everything
    Info,
}

/// The options of a log.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct LogOptions {
    /// How to write notices to standard error: text, timed (with time and level), json or journal
    /// (with a priority); default: journal if systemd's journal reads it, else text
    #[arg(long, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    log: Option<LogFormat>,
    /// Least important notices to write: error, warning or info
    #[arg(
        long,
        value_enum,
        value_name = "LEVEL",
        default_value = "info",
        hide_possible_values = true
    )]
    log_level: LogLevel,
}

impl LogOptions {
    /// The line for a notice, with its end; `None`: it is not important enough.
    pub(crate) fn line(self, notice: &Notice) -> Option<String> {
        let is_wanted = notice.severity <= self.log_level.into();
        is_wanted.then(|| written(self.format(), notice, now_ns()))
    }

    fn format(self) -> LogFormat {
        self.log.unwrap_or_else(|| match is_read_by_journal() {
            true => LogFormat::Journal,
            false => LogFormat::Text,
        })
    }
}

impl From<LogLevel> for Severity {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::Error,
            LogLevel::Warning => Self::Warning,
            LogLevel::Info => Self::Info,
        }
    }
}

/// Whether systemd's journal reads standard error: its device and inode are in a variable.
fn is_read_by_journal() -> bool {
    let Ok(named) = env::var("JOURNAL_STREAM") else {
        return false;
    };
    fstat(io::stderr().as_fd())
        .is_ok_and(|about| named == format!("{}:{}", about.st_dev, about.st_ino))
}

fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// The line for a notice at the time `ns`.
fn written(format: LogFormat, notice: &Notice, ns: u64) -> String {
    let text = || printable(&notice.to_string());
    let (level, priority) = level(notice.severity);
    match format {
        LogFormat::Text => format!("ringmark: {}\n", text()),
        LogFormat::Timed => format!("{} {level} {}\n", stamp(ns), text()),
        LogFormat::Json => format!("{}\n", object(notice, level, ns)),
        LogFormat::Journal => format!("<{priority}>{}\n", text()),
    }
}

/// Name and priority of syslog.
const fn level(severity: Severity) -> (&'static str, u8) {
    match severity {
        Severity::Error => ("error", 3),
        Severity::Warning => ("warning", 4),
        Severity::Info => ("info", 6),
    }
}

fn stamp(ns: u64) -> String {
    String::from_utf8_lossy(Stamper::default().stamp(ns)).into_owned()
}

fn object(notice: &Notice, level: &str, ns: u64) -> json::Line {
    let origin = notice.origin.as_ref();
    let welcomed = origin.filter(|origin| origin.host.is_some());
    let reason = origin.and_then(|origin| match origin.doing {
        Doing::Refused(reason) => Some(reason),
        Doing::Came | Doing::Went => None,
    });
    let fields = json!({
        "ts": stamp(ns),
        "ts_ns": json::ts_ns(Some(ns)),
        "level": level,
        "text": notice.text,
        "from": origin.map(|origin| &origin.shown),
        "doing": origin.map(|origin| doing(origin.doing)),
        "reason": reason.map(Reason::name),
        "code": reason.map(Reason::code),
        "sessions": welcomed.map(|origin| origin.sessions),
        "bytes": welcomed.map(|origin| origin.bytes),
    });
    let head = Head {
        session: origin.and_then(|origin| Some(origin.session?.to_string())),
        host: origin.and_then(|origin| origin.host.clone()),
        ..Head::default()
    };
    json::Line(json::object("notice", &head, fields))
}

/// What a peer did, in a word.
const fn doing(doing: Doing) -> &'static str {
    match doing {
        Doing::Came => "connected",
        Doing::Went => "disconnected",
        Doing::Refused(_) => "refused",
    }
}

#[cfg(test)]
mod tests {
    use ringmark_collector::Origin;

    use super::*;

    /// 2026-11-25, 00:00:00.
    const MIDNIGHT: u64 = 1_795_564_800_000_000_000;

    fn notice(severity: Severity) -> Notice {
        Notice {
            severity,
            origin: Some(Origin {
                address: None,
                shown: "10.0.0.1:5".to_owned(),
                doing: Doing::Refused(Reason::Protocol),
                host: Some("web-1".to_owned()),
                session: None,
                sessions: 2,
                bytes: 77,
            }),
            text: "no\u{1b}[2J".to_owned(),
        }
    }

    #[test]
    fn each_form_has_its_line() {
        let of = |format| written(format, &notice(Severity::Warning), MIDNIGHT);
        assert!(of(LogFormat::Text).starts_with("ringmark: 10.0.0.1:5: no"));
        let timed = of(LogFormat::Timed);
        let begin = "2026-11-25T00:00:00.000000000Z warning 10.0.0.1:5: no";
        assert!(timed.starts_with(begin), "{timed}");
        assert!(of(LogFormat::Journal).starts_with("<4>10.0.0.1:5: no"));
        for format in LogFormat::value_variants() {
            let line = of(*format);
            assert!(!line.contains('\u{1b}') && line.ends_with('\n'), "{line}");
        }
        let line: serde_json::Value = serde_json::from_str(&of(LogFormat::Json)).unwrap();
        assert_eq!(
            (&line["level"], &line["code"], &line["from"]),
            (&json!("warning"), &json!(3), &json!("10.0.0.1:5"))
        );
        assert_eq!(
            (&line["host"], &line["reason"], &line["doing"]),
            (&json!("web-1"), &json!("protocol"), &json!("refused"))
        );
        assert_eq!((&line["sessions"], &line["bytes"]), (&json!(2), &json!(77)));
        assert_eq!(line["ts_ns"], MIDNIGHT.to_string());
    }

    #[test]
    fn what_is_less_important_is_left_out() {
        let is_there = |log_level, severity| {
            let log = Some(LogFormat::Text);
            let line = LogOptions { log, log_level }.line(&notice(severity));
            line.is_some()
        };
        assert!(is_there(LogLevel::Error, Severity::Error));
        assert!(!is_there(LogLevel::Error, Severity::Warning));
        assert!(is_there(LogLevel::Warning, Severity::Warning));
        assert!(!is_there(LogLevel::Warning, Severity::Info));
        assert!(is_there(LogLevel::Info, Severity::Info));
    }
}
