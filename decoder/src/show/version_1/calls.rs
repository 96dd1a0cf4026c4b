//! Calls as JSON of version 1.

use ringmark_format::json::OLD_VERSION;

use crate::show::call_line::{Begun, Took};
use crate::words::escape;
use crate::words::number::{json_unsigned, unsigned};

/// Appends the object of a call.
pub(crate) fn object(begun: &Begun<'_>, took: Option<Took>, ended: &str, out: &mut Vec<u8>) {
    let (session, function) = (begun.session, begun.function);
    let front = format!(
        "{{\"v\":{OLD_VERSION},\"kind\":\"call\",\"session\":\"{}\"",
        session.uuid
    );
    out.extend_from_slice(front.as_bytes());
    number("pid", session.pid().into(), out);
    number("tid", begun.tid().into(), out);
    key("name", out);
    escape::json(&function.name, out);
    key("module", out);
    match session.schema.functions().module(function.module) {
        Some(module) => escape::json(module.file_name(), out),
        None => out.extend_from_slice(b"null"),
    }
    number("depth", begun.depth.into(), out);
    time("start_ns", begun.start_ns, out);
    time("duration_ns", took.map(|took| took.duration_ns), out);
    time("self_ns", took.and_then(|took| took.self_ns), out);
    key("ended", out);
    escape::json(ended.as_bytes(), out);
    out.push(b'}');
}

fn key(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn number(name: &str, n: u64, out: &mut Vec<u8>) {
    key(name, out);
    unsigned(n, out);
}

fn time(name: &str, ns: Option<u64>, out: &mut Vec<u8>) {
    key(name, out);
    match ns {
        Some(ns) => json_unsigned(ns, out),
        None => out.extend_from_slice(b"null"),
    }
}
