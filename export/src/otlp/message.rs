//! One message of OTLP: rows of one session, as a line of JSON.

use std::io::{self, Write};

use ringmark_decoder::{Row, Session, Value, escape, value_text};
use ringmark_format::attribute::tag;
use ringmark_format::schema::Level;

use super::links::Ids;

/// What a file of OTLP has. No file has both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Spans and calls.
    Traces,
    /// Events, with the span that they are in.
    Logs,
}

/// The resource of a session and its rows.
#[derive(Debug)]
pub(super) struct Message {
    signal: Signal,
    session: Option<usize>,
    resource: Vec<u8>,
    items: Vec<u8>,
    rows: usize,
}

impl Message {
    pub(super) fn new(signal: Signal) -> Self {
        Self {
            signal,
            session: None,
            resource: Vec::new(),
            items: Vec::new(),
            rows: 0,
        }
    }

    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    /// Whether it has rows of this session, or none.
    pub(super) fn is_of(&self, session: &Session) -> bool {
        self.session.is_none_or(|number| number == session.number)
    }

    /// Appends a row.
    pub(super) fn push(&mut self, row: &Row<'_, '_>, ids: &Ids) {
        if self.session != Some(row.record.session.number) {
            self.session = Some(row.record.session.number);
            self.resource.clear();
            resource(row.record.session, &mut self.resource);
        }
        if self.rows > 0 {
            self.items.push(b',');
        }
        self.rows += 1;
        match self.signal {
            Signal::Traces => span(row, ids, &mut self.items),
            Signal::Logs => record(row, ids, &mut self.items),
        }
    }

    /// Writes the line, if there are rows, and begins the next one.
    pub(super) fn write(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.rows > 0 {
            let (resources, scopes, items) = match self.signal {
                Signal::Traces => ("resourceSpans", "scopeSpans", "spans"),
                Signal::Logs => ("resourceLogs", "scopeLogs", "logRecords"),
            };
            write!(out, "{{\"{resources}\":[{{\"resource\":{{\"attributes\":[")?;
            out.write_all(&self.resource)?;
            let version = env!("CARGO_PKG_VERSION");
            write!(
                out,
                "]}},\"{scopes}\":[{{\"scope\":{{\"name\":\"ringmark\",\"version\":\"{version}\"}},\"{items}\":["
            )?;
            out.write_all(&self.items)?;
            out.write_all(b"]}]}]}\n")?;
        }
        (self.session, self.rows) = (None, 0);
        self.items.clear();
        Ok(())
    }
}

/// The attributes of a session: whose rows they are.
fn resource(session: &Session, out: &mut Vec<u8>) {
    let service = match session.service() {
        [] => session.process_name(),
        service => service,
    };
    let texts = [
        ("service.name", service),
        (
            "service.version",
            session.attribute(tag::SERVICE_VERSION).unwrap_or_default(),
        ),
        ("host.name", session.host()),
        (
            "container.id",
            session.attribute(tag::CONTAINER_ID).unwrap_or_default(),
        ),
        ("process.executable.name", session.process_name()),
    ];
    for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        attribute(name.as_bytes(), Value::Str(text), out);
    }
    attribute(b"process.pid", Value::U64(session.pid().into()), out);
    let uuid = session.uuid.to_string();
    attribute(b"ringmark.session", Value::Str(uuid.as_bytes()), out);
}

fn span(row: &Row<'_, '_>, ids: &Ids, out: &mut Vec<u8>) {
    let start = row.start_ns.unwrap_or_default();
    let end = start.saturating_add(row.dur_ns.unwrap_or_default());
    text(
        out,
        format_args!(
            "{{\"traceId\":\"{:032x}\",\"spanId\":\"{:016x}\",",
            ids.trace, ids.span
        ),
    );
    if ids.parent != 0 {
        text(
            out,
            format_args!("\"parentSpanId\":\"{:016x}\",", ids.parent),
        );
    }
    out.extend_from_slice(b"\"name\":");
    escape::json(row.name, out);
    text(
        out,
        format_args!(
            ",\"kind\":1,\"startTimeUnixNano\":\"{start}\",\"endTimeUnixNano\":\"{end}\",\"attributes\":["
        ),
    );
    attributes(row, out);
    out.extend_from_slice(b"]}");
}

fn record(row: &Row<'_, '_>, ids: &Ids, out: &mut Vec<u8>) {
    let at = row.start_ns.unwrap_or_default();
    text(out, format_args!("{{\"timeUnixNano\":\"{at}\","));
    if let Some((number, name)) = row.level().map(severity) {
        text(
            out,
            format_args!("\"severityNumber\":{number},\"severityText\":\"{name}\","),
        );
    }
    out.extend_from_slice(b"\"body\":{\"stringValue\":");
    let mut body = row.name.to_vec();
    row.args(|name, _, value| {
        if name == b"message"
            && let Value::Str(message) = value
        {
            body = message.to_vec();
        }
    });
    escape::json(&body, out);
    out.extend_from_slice(b"},\"eventName\":");
    escape::json(row.name, out);
    out.push(b',');
    if ids.trace != 0 {
        text(
            out,
            format_args!(
                "\"traceId\":\"{:032x}\",\"spanId\":\"{:016x}\",",
                ids.trace, ids.span
            ),
        );
    }
    out.extend_from_slice(b"\"attributes\":[");
    attributes(row, out);
    out.extend_from_slice(b"]}");
}

/// The number and the name of a level.
const fn severity(level: Level) -> (u32, &'static str) {
    match level {
        Level::Trace => (1, "TRACE"),
        Level::Debug => (5, "DEBUG"),
        Level::Info => (9, "INFO"),
        Level::Warn => (13, "WARN"),
        Level::Error => (17, "ERROR"),
    }
}

/// Where a row was, and its arguments.
fn attributes(row: &Row<'_, '_>, out: &mut Vec<u8>) {
    attribute(b"thread.id", Value::U64(row.record.tid().into()), out);
    for (name, text) in [
        (&b"thread.name"[..], row.thread()),
        (b"code.namespace", row.target),
    ] {
        if !text.is_empty() {
            attribute(name, Value::Str(text), out);
        }
    }
    row.args(|name, field, value| {
        let mut shown = Vec::new();
        match value {
            Value::None | Value::Missing => {}
            Value::Array(..) | Value::Bytes(_) | Value::U128(_) | Value::I128(_) => {
                if value_text((field, value), &mut usize::MAX.clone(), &mut shown) {
                    attribute(name, Value::Str(&shown), out);
                }
            }
            value => attribute(name, value, out),
        }
    });
}

/// Appends an attribute, after a comma if one is before it.
fn attribute(name: &[u8], value: Value<'_>, out: &mut Vec<u8>) {
    if out.last().is_some_and(|last| *last != b'[') {
        out.push(b',');
    }
    out.extend_from_slice(b"{\"key\":");
    escape::json(name, out);
    out.extend_from_slice(b",\"value\":{");
    match value {
        Value::U64(number) if i64::try_from(number).is_err() => {
            text(out, format_args!("\"stringValue\":\"{number}\""));
        }
        Value::U64(number) => text(out, format_args!("\"intValue\":\"{number}\"")),
        Value::I64(number) => text(out, format_args!("\"intValue\":\"{number}\"")),
        Value::F32(number) => double(number.into(), out),
        Value::F64(number) => double(number, out),
        Value::Bool(is) => text(out, format_args!("\"boolValue\":{is}")),
        Value::Char(char) => {
            out.extend_from_slice(b"\"stringValue\":");
            escape::json(char.encode_utf8(&mut [0; 4]).as_bytes(), out);
        }
        Value::Str(text) => {
            out.extend_from_slice(b"\"stringValue\":");
            escape::json(text, out);
        }
        _ => {}
    }
    out.extend_from_slice(b"}}");
}

/// A number with a fraction; those that JSON has not are texts, as Protobuf's JSON has them.
fn double(number: f64, out: &mut Vec<u8>) {
    match number.is_finite() {
        true => text(out, format_args!("\"doubleValue\":{number:?}")),
        false if number.is_nan() => text(out, format_args!("\"doubleValue\":\"NaN\"")),
        false if number > 0.0 => text(out, format_args!("\"doubleValue\":\"Infinity\"")),
        false => text(out, format_args!("\"doubleValue\":\"-Infinity\"")),
    }
}

fn text(out: &mut Vec<u8>, words: std::fmt::Arguments<'_>) {
    // A buffer in memory takes everything.
    let _ = out.write_fmt(words);
}
