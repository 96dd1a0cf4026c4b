//! Events as JSON of version 1, one object per line.
//!
//! Integers beyond ±2^53, NaN and infinities are strings; bytes are hexadecimal digits. Losses are
//! lines with `kind: "lost"`, `count` and `cause`.

use ringmark_format::json::OLD_VERSION;
use ringmark_format::schema::Level;

use crate::blocks::page::Page;
use crate::events::event::{Event, Lost, Output};
use crate::show::function_line;
use crate::show::shared::{PerSession, PerType};
use crate::trace_file::field::Field;
use crate::trace_file::function_words::FunctionWords;
use crate::trace_file::functions::FunctionUse;
use crate::trace_file::schema::EventType;
use crate::trace_file::session::Session;
use crate::trace_file::value::Value;
use crate::words::escape;
use crate::words::number::{json_signed, json_unsigned, unsigned};
use crate::words::timestamp::Stamper;

/// What all lines of a session share.
#[derive(Debug)]
struct SessionPieces {
    /// `{"v":1,"session":"…","ring":`.
    front: Vec<u8>,
    types: PerType<TypePieces>,
}

/// What all lines of a type share, escaped.
#[derive(Debug)]
struct TypePieces {
    /// `,"name":…,"kind":…,"level":…,"target":…`.
    names: Vec<u8>,
    /// The fields that lines show.
    fields: Vec<FieldPieces>,
}

/// What stands before the value of a field, escaped.
#[derive(Debug)]
struct FieldPieces {
    /// The field's place in its type.
    place: usize,
    /// `"name":`; after the first field a comma before it.
    key: Vec<u8>,
}

impl SessionPieces {
    #[cold]
    fn new(session: &Session) -> Self {
        let front = format!(
            "{{\"v\":{OLD_VERSION},\"session\":\"{}\",\"ring\":",
            session.uuid
        );
        Self {
            front: front.into_bytes(),
            types: PerType::default(),
        }
    }
}

impl TypePieces {
    #[cold]
    fn new(ty: &EventType) -> Self {
        let mut names = Vec::new();
        push_piece(ty, ty, &mut names);
        let shown = ty.fields.iter().enumerate().filter(|(i, _)| ty.shows(*i));
        let pieces = |(number, (place, field)): (usize, (usize, &Field))| {
            let mut key = if number == 0 { Vec::new() } else { vec![b','] };
            escape::json(&field.name, &mut key);
            key.push(b':');
            FieldPieces { place, key }
        };
        let fields = shown.enumerate().map(pieces).collect();
        Self { names, fields }
    }
}

fn push_piece(ty: &EventType, named: &EventType, out: &mut Vec<u8>) {
    push_names(ty, (&named.name, &named.origin.target), named.level, out);
}

fn push_names(
    ty: &EventType,
    (name, target): (&[u8], &[u8]),
    level: Option<Level>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b",\"name\":");
    escape::json(name, out);
    out.extend_from_slice(b",\"kind\":\"");
    out.extend_from_slice(ty.kind().as_bytes());
    out.extend_from_slice(b"\",\"level\":");
    match level {
        Some(level) => escape::json(Level::name(level).as_bytes(), out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"target\":");
    escape::json(target, out);
    if !ty.origin.category.is_empty() {
        out.extend_from_slice(b",\"category\":");
        escape::json(&ty.origin.category, out);
    }
}

/// Writes items as JSON lines of version 1, for readers that are not moved yet. The next release
/// has no such writer.
///
/// Lines share most of their text: the front per page, the names per event type. Both are made
/// once and kept.
#[derive(Debug, Default)]
pub struct OldJsonWriter<'a> {
    stamper: Stamper,
    page: Option<&'a Page>,
    /// `{"v":…,"ring":N,"seq":` of that page.
    front: Vec<u8>,
    /// `,"pid":…,"tid":…,"comm":…` of that page.
    thread: Vec<u8>,
    sessions: PerSession<'a, SessionPieces>,
}

impl<'a> OldJsonWriter<'a> {
    /// A writer that has written nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the line of `item`, with its line feed, to `out`.
    #[inline]
    pub fn write(&mut self, item: &Output<'a>, out: &mut Vec<u8>) {
        match item {
            Output::Event(event) => self.event(event, out),
            Output::Lost(lost) => self.lost(lost, out),
        }
    }

    /// Appends the line of `event`, with its line feed.
    #[inline]
    pub fn event(&mut self, event: &Event<'a>, out: &mut Vec<u8>) {
        if !self.page.is_some_and(|page| std::ptr::eq(page, event.page)) {
            self.begin_page(event.session, event.page);
        }
        out.extend_from_slice(&self.front);
        json_unsigned(event.seq, out);
        self.times(event.wall_ns(), event.t_ns, out);
        out.extend_from_slice(&self.thread);
        // A name of a function may be long, and its types are many: nothing of them is kept.
        let pieces = event.ty.function.is_none().then(|| {
            let session = self.sessions.of(event.session, SessionPieces::new);
            session.types.of(event.ty, TypePieces::new)
        });
        match (event.span_type, pieces) {
            (Some(named), _) => push_piece(event.ty, named, out),
            (None, Some(pieces)) => out.extend_from_slice(&pieces.names),
            (None, None) => push_names(event.ty, (event.name(), event.target()), None, out),
        }
        if event.span.is_none() && event.ty.duration.is_none() && !is_whole_call(event.ty) {
            out.extend_from_slice(b",\"span\":null,\"parent\":null,\"args\":{");
        } else {
            spans(event, out);
        }
        let fields = pieces.map_or(&[][..], |pieces| &pieces.fields);
        args(event, fields, out);
        out.extend_from_slice(b"}}\n");
    }

    #[inline]
    fn times(&mut self, wall_ns: u64, t_ns: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"ts\":\"");
        out.extend_from_slice(self.stamper.stamp(wall_ns));
        out.extend_from_slice(b"\",\"t_ns\":");
        json_unsigned(t_ns, out);
    }

    #[inline(never)]
    fn begin_page(&mut self, session: &'a Session, page: &'a Page) {
        self.page = Some(page);
        self.front.clear();
        let pieces = self.sessions.of(session, SessionPieces::new);
        self.front.extend_from_slice(&pieces.front);
        json_unsigned(page.ring.0, &mut self.front);
        self.front.extend_from_slice(b",\"seq\":");
        self.thread.clear();
        thread(
            session,
            page.header.tid,
            page.thread_name(),
            &mut self.thread,
        );
    }

    fn lost(&mut self, lost: &Lost<'a>, out: &mut Vec<u8>) {
        let pieces = self.sessions.of(lost.session, SessionPieces::new);
        out.extend_from_slice(&pieces.front);
        match lost.ring {
            Some(ring) => json_unsigned(ring.0, out),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"seq\":null");
        self.times(lost.session.clock.wall_ns(lost.t_ns), lost.t_ns, out);
        match lost.page {
            Some(page) => thread(lost.session, page.header.tid, page.thread_name(), out),
            None => thread(lost.session, 0, b"", out),
        }
        out.extend_from_slice(b",\"name\":null,\"kind\":\"lost\",\"level\":null,\"target\":null");
        out.extend_from_slice(b",\"span\":null,\"parent\":null,\"args\":{},\"count\":");
        json_unsigned(lost.loss.count, out);
        out.extend_from_slice(b",\"cause\":\"");
        out.extend_from_slice(lost.loss.why.cause().as_bytes());
        out.extend_from_slice(b"\"}\n");
    }
}

/// Whether records of this type carry the duration of a call.
fn is_whole_call(ty: &EventType) -> bool {
    ty.function.is_some_and(|meaning| meaning.timed)
}

fn thread(session: &Session, tid: u32, name: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"pid\":");
    unsigned(session.pid().into(), out);
    out.extend_from_slice(b",\"tid\":");
    unsigned(tid.into(), out);
    out.extend_from_slice(b",\"comm\":");
    let name = if name.is_empty() {
        session.process_name()
    } else {
        name
    };
    escape::json(name, out);
}

#[cold]
fn spans(event: &Event<'_>, out: &mut Vec<u8>) {
    let mut id = |key: &str, id: Option<u64>| {
        out.extend_from_slice(key.as_bytes());
        match id {
            Some(id) => json_unsigned(id, out),
            None => out.extend_from_slice(b"null"),
        }
    };
    id(",\"span\":", event.span);
    id(",\"parent\":", event.parent);
    if event.duration_ns().is_some() {
        id(",\"dur_ns\":", event.duration_ns());
    }
    out.extend_from_slice(b",\"args\":{");
}

#[inline]
fn args(event: &Event<'_>, fields: &[FieldPieces], out: &mut Vec<u8>) {
    if let Some(meaning) = event.ty.function {
        return function_args(event, meaning, out);
    }
    if !event.ty.known && !event.payload.is_empty() {
        out.extend_from_slice(b"\"raw\":\"");
        escape::hex(&event.payload, out);
        out.push(b'"');
        return;
    }
    let mut budget = event.payload.len();
    for pieces in fields {
        if let Some(field) = event.ty.fields.get(pieces.place) {
            out.extend_from_slice(&pieces.key);
            value(field.value(&event.payload), &mut budget, out);
        }
    }
}

/// Appends one value; `budget` as in the text.
#[inline]
fn value(value: Value<'_>, budget: &mut usize, out: &mut Vec<u8>) {
    match value {
        Value::U64(n) => json_unsigned(n, out),
        Value::Array(..) => {
            out.push(b'[');
            for (i, item) in value.items().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                scalar(item, budget, out);
            }
            out.push(b']');
        }
        value => scalar(value, budget, out),
    }
}

fn scalar(value: Value<'_>, budget: &mut usize, out: &mut Vec<u8>) {
    match value.within(budget) {
        Value::U64(n) => json_unsigned(n, out),
        Value::I64(n) => json_signed(n, out),
        Value::Str(text) => escape::json(text, out),
        Value::Bytes(bytes) => {
            out.push(b'"');
            escape::hex(bytes, out);
            out.push(b'"');
        }
        Value::Bool(b) => out.extend_from_slice(if b { b"true" } else { b"false" }),
        Value::Char(c) => {
            let mut buffer = [0; 4];
            escape::json(c.encode_utf8(&mut buffer).as_bytes(), out);
        }
        Value::F32(n) => float(n.into(), &n.to_string(), out),
        Value::F64(n) => float(n, &n.to_string(), out),
        Value::U128(n) => wide(n <= 1 << 53, &n.to_string(), out),
        Value::I128(n) => wide(n.unsigned_abs() <= 1 << 53, &n.to_string(), out),
        Value::None | Value::Missing | Value::Array(..) => out.extend_from_slice(b"null"),
    }
}

fn float(n: f64, text: &str, out: &mut Vec<u8>) {
    wide(n.is_finite(), text, out);
}

/// A number, or a string where a reader could not keep it.
fn wide(as_number: bool, text: &str, out: &mut Vec<u8>) {
    if as_number {
        out.extend_from_slice(text.as_bytes());
    } else {
        escape::json(text.as_bytes(), out);
    }
}

/// Appends what stands between the braces of the JSON key `args`.
fn function_args(event: &Event<'_>, meaning: FunctionUse, out: &mut Vec<u8>) {
    let words = FunctionWords::read(meaning, &event.payload);
    let key = |key: &str, out: &mut Vec<u8>| {
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
        escape::json(key.as_bytes(), out);
        out.push(b':');
    };
    if let Some(cpu) = words.cpu {
        key("cpu", out);
        unsigned(cpu.into(), out);
    }
    if words.caller != 0 {
        let mut name = Vec::new();
        function_line::caller(event.session.schema.functions(), words.caller, &mut name);
        key("caller", out);
        escape::json(name.trim_ascii_start(), out);
    }
    for (number, value) in words.arguments().enumerate() {
        key(&format!("arg{}", number + 1), out);
        json_unsigned(value, out);
    }
    if let Some(value) = words.result {
        key("result", out);
        json_unsigned(value, out);
    }
}
