//! Arguments as debug annotations.

use ringmark_decoder::{Event, Field, FunctionWords, Kept, OpenSpan, Span, Value, escape};
use ringmark_format::schema::semantic;

use super::fields::{annotation, event};
use super::names::NameOf;
use super::proto::{Message, Smalls};
use super::sequence::{Ids, Namer};

/// Bytes of text and byte strings that may still be written of a record: no more than it has, so
/// that a hostile payload cannot show the same bytes many times.
type Budget = usize;

/// Appends the fields of an event, but for those with structure.
#[inline]
pub(super) fn of_event(of: &Event<'_>, names: Ids<'_>, out: &mut Message<'_>) {
    let mut budget: Budget = of.payload.len();
    for (place, field) in of.ty.fields.iter().enumerate() {
        if of.ty.shows(place) {
            let name = names.argument(place);
            field_value(name, field, field.value(&of.payload), &mut budget, out);
        }
    }
}

/// Appends the fields of an event to a small packet. `None`: one of them is more than a number.
#[inline]
pub(super) fn of_small(of: &Event<'_>, names: Ids<'_>, out: &mut Smalls) -> Option<()> {
    for (place, field) in of.ty.fields.iter().enumerate() {
        if !of.ty.shows(place) {
            continue;
        }
        match field.value(&of.payload) {
            Value::U64(n) if field.labels.is_empty() => {
                let name = (annotation::NAME_IID, names.argument(place));
                out.pair(event::ANNOTATION, name, (kind_of(field), n));
            }
            Value::None | Value::Missing => {}
            _ => return None,
        }
    }
    Some(())
}

/// The field in which an unsigned number stands.
#[inline]
fn kind_of(field: &Field) -> u32 {
    match field.semantic == Some(semantic::ADDRESS) {
        true => annotation::POINTER,
        false => annotation::UINT,
    }
}

/// Appends the payload of an event whose type nothing describes.
pub(super) fn raw(of: &Event<'_>, namer: &mut Namer<'_>) -> Option<(u64, Vec<u8>)> {
    if of.ty.known || of.payload.is_empty() {
        return None;
    }
    let mut digits = Vec::new();
    escape::hex(&of.payload, &mut digits);
    Some((namer.name(NameOf::Argument, b"raw"), digits))
}

/// The arguments of a span over threads, with their names: made for each, since its fields come from
/// several records.
pub(super) fn of_span(span: &Span<'_>, namer: &mut Namer<'_>, out: &mut Vec<u8>) {
    let mut budget = usize::MAX;
    for (field, value) in span.args() {
        let name = namer.name(NameOf::Argument, &field.name);
        field_value(name, field, value, &mut budget, &mut Message(out));
    }
    let Some(entered) = &span.entered else { return };
    let fields = span.args();
    for (name, other, number) in [
        ("busy_ns", "busy_ns of the span", entered.busy_ns),
        ("idle_ns", "idle_ns of the span", entered.idle_ns),
        ("polls", "polls of the span", entered.polls),
    ] {
        // An object has one value of a name: the program's own field keeps it.
        let is_taken = fields
            .iter()
            .any(|(field, _)| field.name == name.as_bytes());
        let name = if is_taken { other } else { name };
        let name = namer.name(NameOf::Argument, name.as_bytes());
        annotation(name, &mut Message(out), |a| {
            a.number(annotation::UINT, number)
        });
    }
}

/// The arguments of an open span as they were when it began. What was not kept is left out; a text
/// without its end has a sign there.
pub(super) fn of_open(span: &OpenSpan<'_>, namer: &mut Namer<'_>, out: &mut Vec<u8>) {
    let mut budget = usize::MAX;
    for (field, kept) in span.args() {
        let name = namer.name(NameOf::Argument, &field.name);
        match kept {
            Kept::Whole(value) => {
                field_value(name, field, value, &mut budget, &mut Message(out));
            }
            Kept::Cut(value) => {
                let mut shown = Vec::new();
                put_text(value, &mut shown);
                shown.extend_from_slice("…".as_bytes());
                annotation(name, &mut Message(out), |a| {
                    a.text(annotation::STRING, &shown)
                });
            }
            Kept::Not => {}
        }
    }
}

/// The words of a function record, with their names.
pub(super) fn of_call(of: &Event<'_>, namer: &mut Namer<'_>, out: &mut Vec<u8>) {
    let Some(meaning) = of.ty.function else {
        return;
    };
    let words = FunctionWords::read(meaning, &of.payload);
    let mut number = |name: &[u8], field, value: u64| {
        let name = namer.name(NameOf::Argument, name);
        annotation(name, &mut Message(out), |a| a.number(field, value));
    };
    if let Some(cpu) = words.cpu {
        number(b"cpu", annotation::UINT, cpu.into());
    }
    if words.caller != 0 {
        number(b"caller", annotation::POINTER, words.caller);
    }
    for (place, value) in words.arguments().enumerate() {
        let name = format!("arg{}", place + 1);
        number(name.as_bytes(), annotation::UINT, value);
    }
    if let Some(result) = words.result {
        number(b"result", annotation::UINT, result);
    }
}

/// An odd number whose multiples are far apart: 2^64 divided by the golden ratio.
const APART: u64 = 0x9e37_79b9_7f4a_7c15;

/// The flow that an event belongs to; ids of more than 64 bits are cut to their last 64. Perfetto's flows
/// are of the whole trace, those of a program its own: jobs of two processes may have one number.
pub(super) fn flow(of: &Event<'_>) -> Option<u64> {
    let is_flow = |field: &&Field| field.semantic == Some(semantic::FLOW);
    let field = of.ty.fields.iter().find(is_flow)?;
    let id = match field.value(&of.payload) {
        Value::U64(id) => id,
        Value::I64(id) => id as u64,
        Value::U128(id) => id as u64,
        _ => return None,
    };
    Some(id ^ (of.session.process as u64).wrapping_mul(APART))
}

/// Appends an annotation.
#[inline]
pub(super) fn annotation(name: u64, out: &mut Message<'_>, value: impl FnOnce(&mut Message<'_>)) {
    out.message(event::ANNOTATION, |annotation| {
        annotation.number(annotation::NAME_IID, name);
        value(annotation);
    });
}

/// Appends a field. One that is not there is left out.
#[inline]
fn field_value(
    name: u64,
    field: &Field,
    value: Value<'_>,
    budget: &mut Budget,
    out: &mut Message<'_>,
) {
    match value {
        Value::None | Value::Missing => {}
        Value::U64(n) if field.labels.is_empty() => {
            annotation(name, out, |one| one.number(kind_of(field), n));
        }
        Value::Array(..) => annotation(name, out, |all| {
            for item in value.items() {
                all.message(annotation::ARRAY, |one| scalar(field, item, budget, one));
            }
        }),
        value => annotation(name, out, |one| scalar(field, value, budget, one)),
    }
}

#[inline]
fn scalar(field: &Field, value: Value<'_>, budget: &mut Budget, out: &mut Message<'_>) {
    let label = match value {
        _ if field.labels.is_empty() => None,
        Value::U64(n) => field.label(n),
        Value::I64(n) => field.label(n as u64),
        _ => None,
    };
    if let Some(label) = label {
        return out.message(annotation::STRING, |text| escape::text(label, text.0));
    }
    match value {
        Value::U64(n) if field.semantic == Some(semantic::ADDRESS) => {
            out.number(annotation::POINTER, n);
        }
        Value::U64(n) => out.number(annotation::UINT, n),
        Value::I64(n) => out.signed(annotation::INT, n),
        Value::F32(n) => out.double(annotation::DOUBLE, n.into()),
        Value::F64(n) => out.double(annotation::DOUBLE, n),
        Value::Bool(b) => out.number(annotation::BOOL, b.into()),
        Value::Str(bytes) | Value::Bytes(bytes) if bytes.len() > *budget => {
            out.text(annotation::STRING, b"?");
        }
        value => {
            if let Value::Str(bytes) | Value::Bytes(bytes) = value {
                *budget -= bytes.len();
            }
            out.message(annotation::STRING, |text| put_text(value, text.0));
        }
    }
}

/// A value as printable text, as `cat` has it but without quotes.
fn put_text(value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Str(text) => escape::text(text, out),
        Value::Bytes(bytes) => escape::hex(bytes, out),
        Value::Char(c) => escape::text(c.encode_utf8(&mut [0; 4]).as_bytes(), out),
        Value::U128(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::I128(n) => out.extend_from_slice(n.to_string().as_bytes()),
        _ => out.push(b'?'),
    }
}
