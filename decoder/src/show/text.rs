//! Events as lines of text:
//! `2026-11-21T01:42:03.123456789Z comm[tid] info target: name key=value …`.
//!
//! The form is stable, so that scripts can split it; everything that comes from the program is
//! escaped.

use ringmark_format::schema::Level;

use crate::blocks::page::Page;
use crate::events::event::{Event, Lost, Output};
use crate::events::span::Span;
use crate::show::field_pieces::FieldPieces;
use crate::show::function_line;
use crate::show::shared::{PerSession, PerType, place_in_source, push_process};
use crate::trace_file::field::Field;
use crate::trace_file::function_words::FunctionWords;
use crate::trace_file::schema::EventType;
use crate::trace_file::session::Session;
use crate::trace_file::thread_times::ThreadTimes;
use crate::trace_file::value::Value;
use crate::words::escape;
use crate::words::number::{signed, unsigned};
use crate::words::timestamp::Stamper;

/// What all lines of a type share, escaped.
#[derive(Debug)]
struct TypePieces {
    /// ` info  target: name`.
    front: Vec<u8>,
    /// The fields that lines show.
    fields: Vec<FieldPieces>,
    /// What stands at the end: ` (file:line)` of an event that is called by its message.
    back: Vec<u8>,
    /// Place of the field that is shown in place of a name.
    message: Option<usize>,
}

impl TypePieces {
    #[cold]
    fn new(ty: &EventType) -> Self {
        let mut front = Vec::new();
        let message = ty.message();
        let name = message.map_or(ty.name.as_slice(), |_| &[]);
        push_front(ty.level, &ty.origin.target, name, &mut front);
        let mut fields = FieldPieces::of(ty);
        fields.retain(|field| Some(field.place) != message);
        Self {
            front,
            fields,
            back: message.map_or_else(Vec::new, |_| place_in_source(ty)),
            message,
        }
    }
}

fn push_front(level: Option<Level>, target: &[u8], name: &[u8], out: &mut Vec<u8>) {
    out.push(b' ');
    let level = level.map_or("-", Level::name);
    out.extend_from_slice(level.as_bytes());
    out.resize(out.len() + 6 - level.len().min(5), b' ');
    if !target.is_empty() {
        escape::text(target, out);
        out.extend_from_slice(b": ");
    }
    escape::text(name, out);
}

/// Writes items as lines of text.
///
/// Lines share most of their text: the thread per page, level, target, name and keys per event
/// type. Both are made once and kept.
#[derive(Debug, Default)]
pub struct TextWriter<'a> {
    stamper: Stamper,
    page: Option<&'a Page>,
    /// ` comm[tid]` of that page.
    thread: Vec<u8>,
    /// Whether lines say which process is meant.
    has_process: bool,
    /// ` host/service[pid]` of that page, or nothing.
    process: Vec<u8>,
    /// Spaces after the thread.
    indent: usize,
    types: PerSession<'a, PerType<TypePieces>>,
}

impl<'a> TextWriter<'a> {
    /// A writer that has written nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A writer whose lines say, after the time, which process is meant: `HOST/SERVICE[PID]`.
    #[must_use]
    pub fn with_process() -> Self {
        let mut writer = Self::new();
        writer.has_process = true;
        writer
    }

    /// Puts that many spaces after the thread in the lines that follow.
    pub const fn indent(&mut self, spaces: usize) {
        self.indent = spaces;
    }

    /// Appends the line of `item`, with its line feed, to `out`.
    pub fn write(&mut self, item: &Output<'a>, out: &mut Vec<u8>) {
        match item {
            Output::Event(event) => self.event(event, out),
            Output::Lost(lost) => self.lost(lost, out),
        }
    }

    /// Appends the line of `event`, with its line feed.
    pub fn event(&mut self, event: &Event<'a>, out: &mut Vec<u8>) {
        if !self.page.is_some_and(|page| std::ptr::eq(page, event.page)) {
            self.begin_page(event.session, event.page);
        }
        out.extend_from_slice(self.stamper.stamp(event.wall_ns()));
        if self.has_process {
            out.extend_from_slice(&self.process);
        }
        if let Some(meaning) = event.ty.function {
            self.push_indent(out);
            function_line::text(event, meaning, out);
            out.push(b'\n');
            return;
        }
        out.extend_from_slice(&self.thread);
        self.push_indent(out);
        let types = self.types.of(event.session, |_| PerType::default());
        let pieces = types.of(event.ty, TypePieces::new);
        match event.span_type {
            None => out.extend_from_slice(&pieces.front),
            Some(_) => push_front(event.level(), event.target(), event.name(), out),
        }
        let mut budget = event.payload.len();
        if let Some(field) = pieces.message.and_then(|place| event.ty.fields.get(place))
            && let Value::Str(text) = field.value(&event.payload).within(&mut budget)
        {
            escape::text(text, out);
        }
        if event.span.is_some() || event.ty.duration.is_some() {
            span_part(event, out);
        }
        args(event, &pieces.fields, budget, out);
        if !pieces.back.is_empty() {
            out.extend_from_slice(&pieces.back);
        }
        out.push(b'\n');
    }

    /// Appends the line of a span at its end, with its line feed.
    pub fn span(&mut self, span: &Span<'a>, out: &mut Vec<u8>) {
        let end = &span.end;
        if !self.page.is_some_and(|page| std::ptr::eq(page, end.page)) {
            self.begin_page(end.session, end.page);
        }
        out.extend_from_slice(self.stamper.stamp(end.wall_ns()));
        out.extend_from_slice(&self.process);
        out.extend_from_slice(&self.thread);
        self.push_indent(out);
        push_front(span.ty.level, span.target, span.name, out);
        let kind = if span.is_call() { "call" } else { "span" };
        span_head(kind, (span.id, span.parent, span.took_ns()), out);
        if let Some(entered) = &span.entered {
            // Where records are lost these are what is known at least.
            let is = if entered.is_whole { "=" } else { ">=" };
            for (key, number, unit) in [
                (" busy", entered.busy_ns, "ns"),
                (" idle", entered.idle_ns, "ns"),
                (" polls", entered.polls, ""),
            ] {
                let is = if key == " idle" && !entered.is_whole {
                    "<="
                } else {
                    is
                };
                out.extend_from_slice(key.as_bytes());
                out.extend_from_slice(is.as_bytes());
                unsigned(number, out);
                out.extend_from_slice(unit.as_bytes());
            }
        }
        did(span.times, out);
        out.push(b'}');
        span_args(span, out);
        out.push(b'\n');
    }

    #[inline]
    fn push_indent(&self, out: &mut Vec<u8>) {
        if self.indent > 0 {
            out.resize(out.len() + self.indent, b' ');
        }
    }

    /// Takes over the thread of another page. Neighbouring lines may be of different threads, so
    /// this has to be cheap.
    #[inline(never)]
    fn begin_page(&mut self, session: &Session, page: &'a Page) {
        self.page = Some(page);
        self.process.clear();
        if self.has_process {
            push_process(session, &mut self.process);
        }
        self.thread.clear();
        self.thread.push(b' ');
        let name = page.thread_name();
        let name = if name.is_empty() {
            session.process_name()
        } else {
            name
        };
        escape::text(name, &mut self.thread);
        self.thread.push(b'[');
        unsigned(page.header.tid.into(), &mut self.thread);
        self.thread.push(b']');
    }

    fn lost(&mut self, lost: &Lost<'a>, out: &mut Vec<u8>) {
        let wall = lost.session.clock.wall_ns(lost.t_ns);
        out.extend_from_slice(self.stamper.stamp(wall));
        match lost.page {
            Some(page) => {
                self.begin_page(lost.session, page);
                out.extend_from_slice(&self.process);
                out.extend_from_slice(&self.thread);
            }
            None => {
                if self.has_process {
                    push_process(lost.session, out);
                }
                out.push(b' ');
                escape::text(lost.session.process_name(), out);
                out.push(b'[');
                unsigned(lost.session.pid().into(), out);
                out.push(b']');
            }
        }
        out.extend_from_slice(b" LOST ");
        unsigned(lost.loss.count, out);
        out.extend_from_slice(b" events: ");
        out.extend_from_slice(lost.loss.why.cause().as_bytes());
        out.push(b'\n');
    }
}

/// Appends `name key=value …`: the line of `event` without time, thread, level, target and line
/// feed.
pub fn event_text(event: &Event<'_>, out: &mut Vec<u8>) {
    escape::text(event.name(), out);
    if event.span.is_some() || event.ty.duration.is_some() {
        span_part(event, out);
    }
    args(event, &FieldPieces::of(event.ty), event.payload.len(), out);
}

/// An event as a person calls it, without ids: its name, which is its message if it has no other,
/// and ` key=value …`.
#[must_use]
pub fn event_words(event: &Event<'_>) -> (Vec<u8>, Vec<u8>) {
    let (mut name, mut values) = (Vec::new(), Vec::new());
    if event.ty.function.is_some() {
        escape::text(event.name(), &mut name);
        return (name, values);
    }
    let mut budget = event.payload.len();
    let mut fields = FieldPieces::of(event.ty);
    let message = event.ty.message();
    let field = message.and_then(|place| event.ty.fields.get(place));
    match field.map(|field| field.value(&event.payload).within(&mut budget)) {
        Some(Value::Str(text)) => {
            escape::text(text, &mut name);
            fields.retain(|field| Some(field.place) != message);
        }
        _ => escape::text(event.name(), &mut name),
    }
    args(event, &fields, budget, &mut values);
    (name, values)
}

/// Appends ` key=value …`: the fields of a span, as its line has them, or the arguments of a call.
pub fn span_args(span: &Span<'_>, out: &mut Vec<u8>) {
    for (meaning, payload) in span.words.iter().flatten() {
        function_line::words(&FunctionWords::read(**meaning, payload), out);
    }
    let mut budget = span.payload_bytes();
    if !span.ty.known && budget > 0 {
        out.extend_from_slice(b" raw=");
        span.parts.iter().for_each(|part| escape::hex(&part.1, out));
        return;
    }
    for (field, found) in span.args() {
        out.push(b' ');
        escape::text(&field.name, out);
        out.push(b'=');
        value(field, found, &mut budget, out);
        escape::text(&field.unit, out);
    }
}

/// Appends kind, ids and duration of an event of a span: `{span span=1 parent=2 took=3ns}`.
#[cold]
fn span_part(event: &Event<'_>, out: &mut Vec<u8>) {
    let ids = (event.span, event.parent, event.duration_ns());
    span_head(event.ty.kind(), ids, out);
    did(event.did(), out);
    out.push(b'}');
}

/// Appends what a thread did, if that is known: ` running=1ns ready=2ns waiting=3ns`.
fn did(times: Option<ThreadTimes>, out: &mut Vec<u8>) {
    let Some(times) = times else { return };
    for (key, ns) in [
        (" running=", times.running_ns),
        (" ready=", times.ready_ns),
        (" waiting=", times.waiting_ns),
    ] {
        out.extend_from_slice(key.as_bytes());
        unsigned(ns, out);
        out.extend_from_slice(b"ns");
    }
}

/// Appends the front of such a part, without the brace at its end.
fn span_head(
    kind: &str,
    (span, parent, took): (Option<u64>, Option<u64>, Option<u64>),
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b" {");
    out.extend_from_slice(kind.as_bytes());
    for (key, number, unit) in [
        (" span=", span, ""),
        (" parent=", parent, ""),
        (" took=", took, "ns"),
    ] {
        if let Some(number) = number {
            out.extend_from_slice(key.as_bytes());
            unsigned(number, out);
            out.extend_from_slice(unit.as_bytes());
        }
    }
}

#[inline]
fn args(event: &Event<'_>, fields: &[FieldPieces], mut budget: usize, out: &mut Vec<u8>) {
    if !event.ty.known && !event.payload.is_empty() {
        out.extend_from_slice(b" raw=");
        escape::hex(&event.payload, out);
        return;
    }
    for pieces in fields {
        if let Some(field) = event.ty.fields.get(pieces.place) {
            out.extend_from_slice(&pieces.key);
            let plain = pieces.is_plain.then(|| field.plain_number(&event.payload));
            match plain.flatten() {
                Some(number) => unsigned(number, out),
                None => value(field, field.value(&event.payload), &mut budget, out),
            }
            if !pieces.unit.is_empty() {
                out.extend_from_slice(&pieces.unit);
            }
        }
    }
}

/// Appends one value. `budget`: bytes of text and byte strings that may still be shown of this
/// payload. Without it a hostile payload could show the same bytes many times.
#[inline]
pub(super) fn value(field: &Field, value: Value<'_>, budget: &mut usize, out: &mut Vec<u8>) {
    match value {
        Value::U64(n) if field.base == 10 && field.labels.is_empty() => unsigned(n, out),
        Value::Array(..) => {
            out.push(b'[');
            for (i, item) in value.items().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                scalar(field, item, budget, out);
            }
            out.push(b']');
        }
        value => scalar(field, value, budget, out),
    }
}

fn scalar(field: &Field, value: Value<'_>, budget: &mut usize, out: &mut Vec<u8>) {
    match value.within(budget) {
        Value::U64(n) => number(field, n, out),
        Value::I64(n) => match field.label(n as u64) {
            Some(label) => escape::text(label, out),
            None => signed(n, out),
        },
        Value::Str(text) => {
            out.push(b'"');
            quoted(text, out);
            out.push(b'"');
        }
        Value::Bytes(bytes) => escape::hex(bytes, out),
        value => push_display(value, out),
    }
}

/// Text between quotes: a quote in it is escaped too.
fn quoted(text: &[u8], out: &mut Vec<u8>) {
    for (i, piece) in text.split(|b| *b == b'"').enumerate() {
        if i > 0 {
            out.extend_from_slice(b"\\\"");
        }
        escape::text(piece, out);
    }
}

fn number(field: &Field, n: u64, out: &mut Vec<u8>) {
    if let Some(label) = field.label(n) {
        return escape::text(label, out);
    }
    let text = match field.base {
        2 => format!("{n:#b}"),
        8 => format!("{n:#o}"),
        16 => format!("{n:#x}"),
        _ => return unsigned(n, out),
    };
    out.extend_from_slice(text.as_bytes());
}

fn push_display(value: Value<'_>, out: &mut Vec<u8>) {
    let text = match value {
        Value::U128(n) => n.to_string(),
        Value::I128(n) => n.to_string(),
        Value::F32(n) => n.to_string(),
        Value::F64(n) => n.to_string(),
        Value::Bool(b) => b.to_string(),
        Value::Char(c) => {
            let mut buffer = [0; 4];
            out.push(b'\'');
            escape::text(c.encode_utf8(&mut buffer).as_bytes(), out);
            out.push(b'\'');
            return;
        }
        Value::None => "none".to_owned(),
        _ => "?".to_owned(),
    };
    out.extend_from_slice(text.as_bytes());
}
