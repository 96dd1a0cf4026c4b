//! Event classes: what the metadata says of an event type, and how its records are laid out.

use std::collections::BTreeSet;

use ringmark_decoder::{Event, EventType, Field, FunctionWords, Value, escape};
use ringmark_format::schema::Kind;

/// How a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Unsigned,
    Signed,
    Double,
    /// Ended by a zero byte.
    Text,
}

/// A field of a class.
#[derive(Debug, Clone)]
struct Member {
    /// A name as the metadata's language wants it.
    name: String,
    layout: Layout,
    /// Values of an array; 0: one value.
    count: u16,
    /// Place among the fields of the type.
    place: usize,
}

/// An event class.
#[derive(Debug)]
pub(super) struct EventClass {
    members: Vec<Member>,
    has_duration: bool,
    is_function: bool,
    is_raw: bool,
}

const fn layout(kind: Option<Kind>) -> Layout {
    match kind {
        Some(Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 | Kind::Bool) => Layout::Unsigned,
        Some(Kind::I8 | Kind::I16 | Kind::I32 | Kind::I64) => Layout::Signed,
        Some(Kind::F32 | Kind::F64) => Layout::Double,
        // The language has no integers of 128 bits; bytes stand as digits.
        _ => Layout::Text,
    }
}

/// A name of letters, digits and underscores, which `taken` does not have. Readers take the first
/// underscore away.
fn identifier(name: &[u8], taken: &mut BTreeSet<String>) -> String {
    let legal = |b: &u8| {
        if b.is_ascii_alphanumeric() {
            *b as char
        } else {
            '_'
        }
    };
    let base: String = std::iter::once('_')
        .chain(name.iter().take(200).map(legal))
        .collect();
    let mut unique = base.clone();
    let mut number = 2;
    while !taken.insert(unique.clone()) {
        unique = format!("{base}_{number}");
        number += 1;
    }
    unique
}

impl EventClass {
    /// The class of a type.
    pub(super) fn of(ty: &EventType) -> Self {
        let mut taken = BTreeSet::from(["_took_ns".to_owned()]);
        let fields = ty.fields.iter().enumerate();
        let members = fields.filter(|(place, _)| !is_duration(ty, *place));
        let members = members.map(|(place, field)| Member {
            name: identifier(&field.name, &mut taken),
            layout: match field.optional {
                true => Layout::Text,
                false => layout(field.kind),
            },
            count: field.count,
            place,
        });
        Self {
            members: members.collect(),
            has_duration: (0..ty.fields.len()).any(|place| is_duration(ty, place)),
            is_function: ty.function.is_some(),
            is_raw: !ty.known,
        }
    }

    /// The members as the metadata has them.
    pub(super) fn describe(&self, out: &mut String) {
        let mut member = |layout: Layout, name: &str, count: u16| {
            let ty = match layout {
                Layout::Unsigned => "u64",
                Layout::Signed => "i64",
                Layout::Double => "f64",
                Layout::Text => "string",
            };
            let count = if count > 0 {
                format!("[{count}]")
            } else {
                String::new()
            };
            out.push_str(&format!("\t\t{ty} {name}{count};\n"));
        };
        if self.is_raw {
            return member(Layout::Text, "_raw", 0);
        }
        if self.is_function {
            member(Layout::Unsigned, "_caller", 0);
            return member(Layout::Text, "_arguments", 0);
        }
        if self.has_duration {
            member(Layout::Unsigned, "_took_ns", 0);
        }
        for field in &self.members {
            member(field.layout, &field.name, field.count);
        }
    }

    /// Appends the payload of a record.
    pub(super) fn payload(&self, of: &Event<'_>, out: &mut Vec<u8>) {
        if self.is_raw {
            escape::hex(&of.payload, out);
            return out.push(0);
        }
        if let Some(meaning) = of.ty.function {
            return call(FunctionWords::read(meaning, &of.payload), out);
        }
        if self.has_duration {
            out.extend_from_slice(&of.duration_ns().unwrap_or(0).to_le_bytes());
        }
        let mut budget = of.payload.len();
        for member in &self.members {
            let field = &of.ty.fields[member.place];
            let value = field.value(&of.payload);
            let mut items = value.items();
            for _ in 0..member.count {
                let item = items.next().unwrap_or(Value::Missing);
                scalar(member.layout, field, item, &mut budget, out);
            }
            if member.count == 0 {
                scalar(member.layout, field, value, &mut budget, out);
            }
        }
    }
}

/// Whether the field at this place says how long a span took.
fn is_duration(ty: &EventType, place: usize) -> bool {
    ty.fields[place].semantic == Some(ringmark_format::schema::semantic::DURATION)
}

/// Arguments of an entry, or the duration and result of an exit, as text.
fn call(words: FunctionWords<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&words.caller.to_le_bytes());
    let arguments: Vec<_> = words.arguments().map(|word| word.to_string()).collect();
    out.extend_from_slice(arguments.join(" ").as_bytes());
    if let Some(result) = words.result {
        out.extend_from_slice(format!("result={result}").as_bytes());
    }
    out.push(0);
}

fn scalar(layout: Layout, field: &Field, value: Value<'_>, budget: &mut usize, out: &mut Vec<u8>) {
    let word = match (layout, value) {
        (Layout::Unsigned, Value::U64(n)) => n,
        (Layout::Unsigned, Value::Bool(b)) => b.into(),
        (Layout::Signed, Value::I64(n)) => n as u64,
        (Layout::Double, Value::F32(n)) => f64::from(n).to_bits(),
        (Layout::Double, Value::F64(n)) => n.to_bits(),
        (Layout::Text, value) => {
            text(field, value, budget, out);
            return out.push(0);
        }
        _ => 0,
    };
    out.extend_from_slice(&word.to_le_bytes());
}

/// A value as printable text, which holds no zero byte.
fn text(field: &Field, value: Value<'_>, budget: &mut usize, out: &mut Vec<u8>) {
    if let Value::Str(bytes) | Value::Bytes(bytes) = value {
        match budget.checked_sub(bytes.len()) {
            Some(left) => *budget = left,
            None => return out.push(b'?'),
        }
    }
    let shown = match value {
        Value::Str(text) => return escape::text(text, out),
        Value::Bytes(bytes) => return escape::hex(bytes, out),
        Value::Char(c) => return escape::text(c.encode_utf8(&mut [0; 4]).as_bytes(), out),
        Value::U64(n) => match field.label(n) {
            Some(label) => return escape::text(label, out),
            None => n.to_string(),
        },
        Value::I64(n) => n.to_string(),
        Value::U128(n) => n.to_string(),
        Value::I128(n) => n.to_string(),
        Value::F32(n) => n.to_string(),
        Value::F64(n) => n.to_string(),
        Value::Bool(b) => b.to_string(),
        Value::None => "none".to_owned(),
        Value::Missing | Value::Array(..) => "?".to_owned(),
    };
    out.extend_from_slice(shown.as_bytes());
}
