//! Keys and values that the JSON objects share. Every object begins as [`head`] writes it.

use ringmark_format::Uuid;
use ringmark_format::json::VERSION;

use crate::trace_file::session::Session;
use crate::words::escape;
use crate::words::number::unsigned;
use crate::words::timestamp::Stamper;

/// Appends what the objects of a session begin with: `{"v":…,"session":…,"host":…,"service":…,
/// "pid":…`. Facts that are not known are null.
pub(crate) fn head(session: &Session, out: &mut Vec<u8>) {
    head_of(Some(session.uuid), out);
    key("host", out);
    text(session.host(), out);
    key("service", out);
    text(session.service(), out);
    key("pid", out);
    known(session.pid(), out);
}

/// Appends the same for an object that belongs to no single session.
pub(crate) fn no_head(out: &mut Vec<u8>) {
    head_of(None, out);
    out.extend_from_slice(b",\"host\":null,\"service\":null,\"pid\":null");
}

fn head_of(session: Option<Uuid>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"v\":");
    unsigned(VERSION.into(), out);
    key("session", out);
    match session {
        Some(uuid) => out.extend_from_slice(format!("\"{uuid}\"").as_bytes()),
        None => out.extend_from_slice(b"null"),
    }
}

/// Appends `,"name":`.
pub(crate) fn key(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends a text; null for an empty one.
pub(crate) fn text(text: &[u8], out: &mut Vec<u8>) {
    match text {
        [] => out.extend_from_slice(b"null"),
        text => escape::json(text, out),
    }
}

/// Appends the number of a process or thread; null for 0, which stands for one that is not known.
pub(crate) fn known(id: u32, out: &mut Vec<u8>) {
    number((id != 0).then_some(id.into()), out);
}

/// Appends an integer, or null.
#[inline]
pub(crate) fn number(n: Option<u64>, out: &mut Vec<u8>) {
    match n {
        Some(n) => unsigned(n, out),
        None => out.extend_from_slice(b"null"),
    }
}

/// Appends an id of 64 bits as `"0x…"` with 16 digits, or null. No reader takes that for a number.
pub(crate) fn id(id: Option<u64>, out: &mut Vec<u8>) {
    match id {
        Some(id) => id_bytes(&id.to_be_bytes(), out),
        None => out.extend_from_slice(b"null"),
    }
}

/// Appends an id as `"0x…"` with two digits for each byte, the most significant first.
pub(crate) fn id_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"0x");
    escape::hex(bytes, out);
    out.push(b'"');
}

/// Appends `,"ts":…,"ts_ns":…,"t_ns":…` of one moment. The first two are null where the session's
/// start is not known.
#[inline]
pub(crate) fn times(stamper: &mut Stamper, wall_ns: Option<u64>, t_ns: u64, out: &mut Vec<u8>) {
    match wall_ns {
        Some(ns) => {
            out.extend_from_slice(b",\"ts\":\"");
            out.extend_from_slice(stamper.stamp(ns));
            out.extend_from_slice(b"\",\"ts_ns\":\"");
            unsigned(ns, out);
            out.extend_from_slice(b"\",\"t_ns\":");
        }
        None => out.extend_from_slice(b",\"ts\":null,\"ts_ns\":null,\"t_ns\":"),
    }
    unsigned(t_ns, out);
}

/// Appends `,"ts":null,"ts_ns":null,"t_ns":null`: a moment that is not known.
pub(crate) fn no_times(out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"ts\":null,\"ts_ns\":null,\"t_ns\":null");
}

/// The wall time of a moment of a session, in ns since 1970, if it can be known.
pub(crate) fn wall_ns(session: &Session, wall_ns: u64) -> Option<u64> {
    session.has_times().then_some(wall_ns)
}
