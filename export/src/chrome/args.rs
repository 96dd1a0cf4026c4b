//! Arguments as JSON.

use ringmark_decoder::{Event, Field, FunctionWords, Kept, OpenSpan, Span, Value, escape, number};
use ringmark_format::schema::semantic;

/// Largest magnitude up to which every reader of JSON keeps integers exact.
const EXACT_MAX: u128 = 1 << 53;

/// The members of an object that is being written.
pub(super) struct Members<'o> {
    out: &'o mut Vec<u8>,
    is_first: bool,
    /// Bytes of text that may still be written: no more than the record has.
    budget: usize,
}

impl<'o> Members<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>, budget: usize) -> Self {
        Self {
            out,
            is_first: true,
            budget,
        }
    }

    fn key(&mut self, name: &[u8]) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        escape::json(name, self.out);
        self.out.push(b':');
    }

    pub(super) fn text(&mut self, name: &[u8], text: &[u8]) {
        self.key(name);
        escape::json(text, self.out);
    }

    pub(super) fn number(&mut self, name: &[u8], n: u64) {
        self.key(name);
        number::json_unsigned(n, self.out);
    }

    fn field(&mut self, field: &Field, value: Value<'_>) {
        self.key(&field.name);
        match value {
            Value::Array(..) => {
                self.out.push(b'[');
                for (place, item) in value.items().enumerate() {
                    if place > 0 {
                        self.out.push(b',');
                    }
                    self.scalar(field, item);
                }
                self.out.push(b']');
            }
            value => self.scalar(field, value),
        }
    }

    fn scalar(&mut self, field: &Field, value: Value<'_>) {
        if let Value::Str(bytes) | Value::Bytes(bytes) = value {
            match self.budget.checked_sub(bytes.len()) {
                Some(left) => self.budget = left,
                None => return self.out.extend_from_slice(b"null"),
            }
        }
        let label = match value {
            _ if field.labels.is_empty() => None,
            Value::U64(n) => field.label(n),
            Value::I64(n) => field.label(n as u64),
            _ => None,
        };
        if let Some(label) = label {
            return escape::json(label, self.out);
        }
        match value {
            Value::U64(n) if field.semantic == Some(semantic::ADDRESS) => {
                self.out.extend_from_slice(format!("\"{n:#x}\"").as_bytes());
            }
            value => plain(value, self.out),
        }
    }

    /// The fields of an event, but for those with structure; the words of a function record.
    pub(super) fn event(&mut self, of: &Event<'_>) {
        if let Some(meaning) = of.ty.function {
            return self.call(FunctionWords::read(meaning, &of.payload));
        }
        if !of.ty.known && !of.payload.is_empty() {
            let mut digits = Vec::new();
            escape::hex(&of.payload, &mut digits);
            return self.text(b"raw", &digits);
        }
        of.args()
            .for_each(|(field, value)| self.field(field, value));
    }

    fn call(&mut self, words: FunctionWords<'_>) {
        if let Some(cpu) = words.cpu {
            self.number(b"cpu", cpu.into());
        }
        if words.caller != 0 {
            self.text(b"caller", format!("{:#x}", words.caller).as_bytes());
        }
        for (place, value) in words.arguments().enumerate() {
            self.number(format!("arg{}", place + 1).as_bytes(), value);
        }
        if let Some(result) = words.result {
            self.number(b"result", result);
        }
    }

    pub(super) fn span(&mut self, span: &Span<'_>) {
        for (field, value) in span.args() {
            self.field(field, value);
        }
        if let Some(entered) = &span.entered {
            self.number(b"busy_ns", entered.busy_ns);
            self.number(b"idle_ns", entered.idle_ns);
            self.number(b"polls", entered.polls);
        }
    }

    /// The arguments of an open span; what was not kept is left out.
    pub(super) fn open(&mut self, span: &OpenSpan<'_>) {
        for (field, kept) in span.args() {
            if let Kept::Whole(value) | Kept::Cut(value) = kept {
                self.field(field, value);
            }
        }
    }
}

fn integer(n: i128, out: &mut Vec<u8>) {
    let text = match n.unsigned_abs() > EXACT_MAX {
        true => format!("\"{n}\""),
        false => n.to_string(),
    };
    out.extend_from_slice(text.as_bytes());
}

fn float(n: f64, out: &mut Vec<u8>) {
    let text = match n.is_finite() {
        true => format!("{n:?}"),
        false => format!("\"{n}\""),
    };
    out.extend_from_slice(text.as_bytes());
}

/// A value without a label; a number beyond 2^53 as text.
pub(super) fn plain(value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::U64(n) => number::json_unsigned(n, out),
        Value::I64(n) => number::json_signed(n, out),
        Value::I128(n) => integer(n, out),
        Value::U128(n) => out.extend_from_slice(format!("\"{n}\"").as_bytes()),
        Value::F32(n) => float(n.into(), out),
        Value::F64(n) => float(n, out),
        Value::Bool(b) => out.extend_from_slice(if b { b"true" } else { b"false" }),
        Value::Char(c) => escape::json(c.encode_utf8(&mut [0; 4]).as_bytes(), out),
        Value::Str(text) => escape::json(text, out),
        Value::Bytes(bytes) => {
            out.push(b'"');
            escape::hex(bytes, out);
            out.push(b'"');
        }
        Value::None | Value::Missing | Value::Array(..) => out.extend_from_slice(b"null"),
    }
}
