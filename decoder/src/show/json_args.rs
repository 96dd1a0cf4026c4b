//! The arguments of an event as JSON: the keys `args` and `exact`.
//!
//! An argument has one type, which its declaration decides and its value does not. What that type
//! cannot say without loss stands in `exact` once more, as text.

use ringmark_format::schema::semantic;

use crate::events::event::Event;
use crate::events::span::Span;
use crate::show::function_line;
use crate::show::json_keys::id_bytes;
use crate::trace_file::field::Field;
use crate::trace_file::function_words::FunctionWords;
use crate::trace_file::functions::FunctionUse;
use crate::trace_file::schema::EventType;
use crate::trace_file::session::Session;
use crate::trace_file::value::Value;
use crate::words::escape;
use crate::words::number::{EXACT_MAX, signed, unsigned};

/// The arguments that events of one type show.
#[derive(Debug)]
pub(super) struct ArgKeys {
    args: Vec<ArgKey>,
    /// Place of the field with the flow id.
    flow: Option<usize>,
    /// Place of the field with the trace id.
    trace: Option<usize>,
}

/// An argument: what stands before its value, escaped.
#[derive(Debug)]
struct ArgKey {
    /// The field's place in its type.
    place: usize,
    /// `"name":`.
    key: Vec<u8>,
    /// Whether the value is an address, which is shown as an id is.
    is_address: bool,
}

impl ArgKeys {
    /// The arguments of `ty`. A name that another argument has already gets `#2`, or the next free
    /// number, at its end.
    #[cold]
    pub(super) fn new(ty: &EventType) -> Self {
        let with = |meaning: u32| {
            let mut fields = ty.fields.iter();
            fields.position(|field| is_id(field, meaning))
        };
        let (flow, trace) = (with(semantic::FLOW), with(semantic::TRACE_ID));
        let mut args: Vec<ArgKey> = Vec::new();
        for (place, field) in ty.fields.iter().enumerate() {
            if ty.shows(place) && ![flow, trace].contains(&Some(place)) {
                let is_free = |key: &Vec<u8>| args.iter().all(|other| other.key != *key);
                let numbered = |n: usize| match n {
                    1 => key_of(&field.name),
                    n => key_of(&[&field.name[..], format!("#{n}").as_bytes()].concat()),
                };
                let Some(key) = (1..).map(numbered).find(is_free) else {
                    continue;
                };
                let is_address = field.semantic == Some(semantic::ADDRESS);
                args.push(ArgKey {
                    place,
                    key,
                    is_address,
                });
            }
        }
        Self { args, flow, trace }
    }

    /// Appends `"flow":…,"trace":…`: the ids that tie the event to others.
    #[inline]
    pub(super) fn ids(&self, ty: &EventType, payload: &[u8], out: &mut Vec<u8>) {
        if self.flow.is_none() && self.trace.is_none() {
            return out.extend_from_slice(NO_IDS);
        }
        for (key, place) in [
            (&b",\"flow\":"[..], self.flow),
            (b",\"trace\":", self.trace),
        ] {
            out.extend_from_slice(key);
            let field = place.and_then(|place| ty.fields.get(place));
            id_of(field.map(|field| field.value(payload)), out);
        }
    }
}

/// Appends the id that a field holds, or null.
fn id_of(value: Option<Value<'_>>, out: &mut Vec<u8>) {
    match value {
        Some(Value::U64(id)) => id_bytes(&id.to_be_bytes(), out),
        Some(Value::U128(id)) => id_bytes(&id.to_be_bytes(), out),
        Some(Value::Bytes(id)) if !id.is_empty() => id_bytes(id, out),
        _ => out.extend_from_slice(b"null"),
    }
}

/// Whether the value of a field is an id that has a key of its own.
fn is_id(field: &Field, meaning: u32) -> bool {
    field.semantic == Some(meaning) && field.count == 0 && !field.optional
}

/// The ids of an event that is tied to no other.
pub(super) const NO_IDS: &[u8] = b",\"flow\":null,\"trace\":null";

fn key_of(name: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    escape::json(name, &mut key);
    key.push(b':');
    key
}

/// Writes arguments. `exact` is memory that is used again for the next event.
pub(super) struct ArgsWriter<'o> {
    out: &'o mut Vec<u8>,
    exact: &'o mut Vec<u8>,
    /// Bytes of text that may still be written: no more than the payload has.
    budget: usize,
}

/// Appends `,"args":{…},"exact":…`. `keys` are those of the event's type; function records have
/// none.
#[inline]
pub(super) fn write(
    event: &Event<'_>,
    keys: Option<&ArgKeys>,
    exact: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    write_with(event.payload.len(), exact, out, |writer| {
        match (event.ty.function, keys) {
            (Some(meaning), _) => writer.function(event.session, meaning, &event.payload),
            (None, Some(keys)) => writer.described(event.ty, &event.payload, keys),
            (None, None) => {}
        }
    });
}

/// The same of a payload alone, which is no function's.
pub(super) fn write_payload(ty: &EventType, payload: &[u8], keys: &ArgKeys, out: &mut Vec<u8>) {
    write_with(payload.len(), &mut Vec::new(), out, |writer| {
        writer.described(ty, payload, keys);
    });
}

/// Appends the same for a span, with `"flow":…,"trace":…` before it.
pub(super) fn write_span(span: &Span<'_>, exact: &mut Vec<u8>, out: &mut Vec<u8>) {
    const IDS: [(&[u8], u32); 2] = [
        (b",\"flow\":", semantic::FLOW),
        (b",\"trace\":", semantic::TRACE_ID),
    ];
    let args = span.args();
    for (key, meaning) in IDS {
        out.extend_from_slice(key);
        let field = args.iter().find(|(field, _)| is_id(field, meaning));
        id_of(field.map(|(_, value)| *value), out);
    }
    let is_arg = |field: &Field| IDS.iter().all(|(_, meaning)| !is_id(field, *meaning));
    write_with(span.payload_bytes(), exact, out, |writer| {
        for (meaning, payload) in span.words.iter().flatten() {
            writer.function(span.end.session, **meaning, payload);
        }
        if !span.ty.known && span.payload_bytes() > 0 {
            return writer.raw(&span.payload());
        }
        for (field, value) in args.into_iter().filter(|(field, _)| is_arg(field)) {
            let key = key_of(&field.name);
            writer.key(&key);
            writer.value(&key, field.semantic == Some(semantic::ADDRESS), value);
        }
    });
}

/// Appends the argument that a field has in a payload, as [`pair`] does.
#[inline]
pub(crate) fn of_field(field: &Field, payload: &[u8], budget: &mut usize, out: &mut Vec<u8>) {
    // Most are numbers: without a value that is made and copied, they take a third of the time.
    let is_number = field.is_plain_number() && field.semantic != Some(semantic::ADDRESS);
    let number = field
        .plain_number(payload)
        .filter(|number| is_number && *number <= EXACT_MAX);
    let Some(number) = number else {
        let value = field.value(payload);
        return pair(&field.name, (Some(field), value), budget, out);
    };
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    out.extend_from_slice(&field.key);
    unsigned(number, out);
}

/// Appends one argument, `"name":value`, to an object that was begun with `{`. Integers have all their
/// digits. `budget`: bytes of text that may still be written.
pub(crate) fn pair(
    name: &[u8],
    (field, value): (Option<&Field>, Value<'_>),
    budget: &mut usize,
    out: &mut Vec<u8>,
) {
    let of_name;
    let is_named_so = |field: &&Field| std::ptr::eq(field.name.as_ptr(), name.as_ptr());
    let key = match field.filter(is_named_so) {
        Some(field) => &field.key,
        None => {
            of_name = key_of(name);
            &of_name
        }
    };
    let mut exact = Vec::new();
    let mut writer = ArgsWriter {
        out,
        exact: &mut exact,
        budget: *budget,
    };
    writer.key(key);
    let is_address = field.is_some_and(|field| field.semantic == Some(semantic::ADDRESS));
    writer.value(key, is_address, value);
    *budget = writer.budget;
}

#[inline]
fn write_with(
    budget: usize,
    exact: &mut Vec<u8>,
    out: &mut Vec<u8>,
    args: impl FnOnce(&mut ArgsWriter<'_>),
) {
    out.extend_from_slice(b",\"args\":{");
    exact.clear();
    args(&mut ArgsWriter { out, exact, budget });
    if exact.is_empty() {
        out.extend_from_slice(b"},\"exact\":null");
    } else {
        out.extend_from_slice(b"},\"exact\":{");
        out.extend_from_slice(exact);
        out.push(b'}');
    }
}

impl ArgsWriter<'_> {
    fn raw(&mut self, payload: &[u8]) {
        self.out.extend_from_slice(b"\"raw\":\"");
        escape::hex(payload, self.out);
        self.out.push(b'"');
    }

    #[inline]
    fn described(&mut self, ty: &EventType, payload: &[u8], keys: &ArgKeys) {
        if !ty.known && !payload.is_empty() {
            return self.raw(payload);
        }
        for arg in &keys.args {
            let Some(field) = ty.fields.get(arg.place) else {
                continue;
            };
            self.key(&arg.key);
            self.value(&arg.key, arg.is_address, field.value(payload));
        }
    }

    #[inline]
    fn key(&mut self, key: &[u8]) {
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        self.out.extend_from_slice(key);
    }

    #[inline]
    fn value(&mut self, key: &[u8], is_address: bool, value: Value<'_>) {
        match value {
            Value::U64(address) if is_address => id_bytes(&address.to_be_bytes(), self.out),
            Value::U64(n) if n <= EXACT_MAX => unsigned(n, self.out),
            array @ Value::Array(..) => self.array(key, array),
            value => {
                if let Some(exact) = self.scalar(value) {
                    self.exactly(key, &exact);
                }
            }
        }
    }

    fn array(&mut self, key: &[u8], array: Value<'_>) {
        let (mut exact, mut is_exact) = (Vec::new(), true);
        self.out.push(b'[');
        for (i, item) in array.items().enumerate() {
            if i > 0 {
                self.out.push(b',');
                exact.push(b' ');
            }
            let from = self.out.len();
            match self.scalar(item) {
                Some(text) => {
                    is_exact = false;
                    exact.extend_from_slice(&text);
                }
                None => exact.extend_from_slice(&self.out[from..]),
            }
        }
        self.out.push(b']');
        if !is_exact {
            self.exactly(key, &exact);
        }
    }

    /// Appends one value; returns it as text if some reader would not keep it as it is.
    fn scalar(&mut self, value: Value<'_>) -> Option<Vec<u8>> {
        let out = &mut *self.out;
        let from = out.len();
        let as_written = |out: &Vec<u8>| Some(out[from..].to_vec());
        match value.within(&mut self.budget) {
            Value::U64(n) => {
                unsigned(n, out);
                return (n > EXACT_MAX).then(|| as_written(out)).flatten();
            }
            Value::I64(n) => {
                signed(n, out);
                return (n.unsigned_abs() > EXACT_MAX)
                    .then(|| as_written(out))
                    .flatten();
            }
            Value::Str(text) => {
                escape::json(text, out);
                return std::str::from_utf8(text).is_err().then(|| hex(text));
            }
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
            Value::F32(n) => return float(n.is_finite(), &format!("{n:?}"), out),
            Value::F64(n) => return float(n.is_finite(), &format!("{n:?}"), out),
            Value::U128(n) => out.extend_from_slice(format!("\"{n}\"").as_bytes()),
            Value::I128(n) => out.extend_from_slice(format!("\"{n}\"").as_bytes()),
            Value::None | Value::Missing | Value::Array(..) => out.extend_from_slice(b"null"),
        }
        None
    }

    /// Notes the exact text of an argument. `key` is `"name":`.
    #[cold]
    fn exactly(&mut self, key: &[u8], text: &[u8]) {
        if !self.exact.is_empty() {
            self.exact.push(b',');
        }
        self.exact.extend_from_slice(key);
        escape::json(text, self.exact);
    }

    /// The words of a function record.
    fn function(&mut self, session: &Session, meaning: FunctionUse, payload: &[u8]) {
        let words = FunctionWords::read(meaning, payload);
        if let Some(cpu) = words.cpu {
            self.key(b"\"cpu\":");
            unsigned(cpu.into(), self.out);
        }
        if words.caller != 0 {
            let mut name = Vec::new();
            function_line::caller(session.schema.functions(), words.caller, &mut name);
            self.key(b"\"caller\":");
            escape::json(name.trim_ascii_start(), self.out);
        }
        let arguments = words.arguments().enumerate();
        let arguments = arguments.map(|(i, value)| (format!("arg{}", i + 1), value));
        let result = words.result.map(|value| ("result".to_owned(), value));
        for (name, value) in arguments.chain(result) {
            let key = key_of(name.as_bytes());
            self.key(&key);
            if let Some(exact) = self.scalar(Value::U64(value)) {
                self.exactly(&key, &exact);
            }
        }
    }
}

/// Appends a number that is marked as one that may have a fraction; null if it is not finite.
fn float(is_finite: bool, text: &str, out: &mut Vec<u8>) -> Option<Vec<u8>> {
    if is_finite {
        out.extend_from_slice(text.as_bytes());
        return None;
    }
    out.extend_from_slice(b"null");
    Some(text.as_bytes().to_vec())
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    let mut digits = Vec::with_capacity(2 * bytes.len());
    escape::hex(bytes, &mut digits);
    digits
}
