//! A trace that has each text of the corpus at every place where a program may put one: names of
//! events, spans, functions, modules, fields, threads, targets, categories, files, units and labels;
//! arguments and messages; and, put together, in the names of the process, the host and the service.

use ringmark_format::TypeId;
use ringmark_format::attribute::{push, tag};
use ringmark_format::codec::write as blocks;
use ringmark_format::function::{FunctionEntry, ModuleEntry};
use ringmark_format::open_span::{Frame, Head, OpenSpans};
use ringmark_format::schema::{EventEntry, FieldEntry, Kind, Level, Shape, entry_kind, semantic};
use ringmark_format::session::Mode;
use zerocopy::IntoBytes;

use super::corpus;
use crate::common::function_schema::{entry, function_type, function_types, tracer};
use crate::common::*;

/// Longest name: longer ones are cut by producers.
const NAME_BYTES_MAX: usize = 1000;
/// Types of events of one text.
const TYPES: u32 = 8;

/// Places of the types of a text.
mod of {
    pub(super) const SPAN: u32 = 0;
    pub(super) const EVENT: u32 = 1;
    pub(super) const COUNTER: u32 = 2;
    pub(super) const LOG: u32 = 3;
    pub(super) const NEW: u32 = 4;
    pub(super) const ENTER: u32 = 5;
    pub(super) const EXIT: u32 = 6;
    pub(super) const CLOSE: u32 = 7;
}

/// What the trace holds, once for each text.
pub(crate) const SPANS_EACH: u64 = 1;

fn first_type(text: usize) -> u32 {
    16 + TYPES * text as u32
}

fn name_of(text: &[u8]) -> &[u8] {
    &text[..text.len().min(NAME_BYTES_MAX)]
}

/// The trace.
pub(crate) fn everywhere() -> Vec<u8> {
    let texts = corpus();
    let mut out = Vec::new();
    blocks::session(&mut out, SESSION, &session(&texts)).unwrap();
    let mut schema = Vec::new();
    for (place, text) in texts.iter().enumerate() {
        types(first_type(place), name_of(text), &mut schema);
    }
    functions(&texts, &mut schema);
    blocks::schema(&mut out, SESSION, 0, &schema).unwrap();
    for (place, text) in texts.iter().enumerate() {
        page(place, text, &texts, &mut out);
    }
    open_spans(&texts, &mut out);
    let all = texts.len() as u64;
    let counts = (0..all).map(|place| {
        let mut slot = slot_counters(if place == 0 { 12 } else { 10 }, [0; 8]);
        (slot.slot, slot.ring_id, slot.tid) = (place as u32, 5 + place, 70 + place as u32);
        slot
    });
    let content = counters(&counts.collect::<Vec<_>>(), [0; 8], true);
    blocks::counters(&mut out, SESSION, &content).unwrap();
    out
}

/// A session whose names are all short texts, one after the other.
fn session(texts: &[Vec<u8>]) -> Vec<u8> {
    let short: Vec<_> = texts.iter().filter(|text| text.len() < 200).collect();
    let all: Vec<u8> = short.into_iter().flatten().copied().collect();
    let mut attributes = Vec::new();
    for tag in [
        tag::PROCESS_NAME,
        tag::HOST,
        tag::SERVICE_NAME,
        tag::SERVICE_VERSION,
        tag::KERNEL,
        tag::EXECUTABLE,
        tag::RINGMARK_VERSION,
        tag::TAG,
        tag::COMMAND_LINE,
        tag::NOTICE,
    ] {
        push(&mut attributes, tag, name_of(&all));
    }
    let mut header = session_header(Mode::Discard);
    header.attributes_bytes = attributes.len() as u32;
    [header.as_bytes(), &attributes].concat()
}

/// A field with a meaning; 0: none.
fn field_of(name: &[u8], kind: Kind, offset: u32, meaning: u32, unit: &[u8]) -> Vec<u8> {
    let fixed = FieldEntry {
        kind: kind as u8,
        flags: 0,
        count: 0,
        offset,
        bytes: kind.fixed_bytes() as u32,
        reserved: 0,
    };
    let mut value = fixed.as_bytes().to_vec();
    push(&mut value, tag::NAME, name);
    if meaning != 0 {
        push(&mut value, tag::SEMANTIC, &meaning.to_le_bytes());
    } else if kind == Kind::U64 {
        let label = [&3_u64.to_le_bytes()[..], name].concat();
        push(&mut value, tag::ENUM_LABEL, &label);
    }
    push(&mut value, tag::UNIT, unit);
    value
}

/// The types of events that a text has.
fn types(first: u32, name: &[u8], out: &mut Vec<u8>) {
    let number = |meaning| field_of(name, Kind::U64, 0, meaning, name);
    let text = |place| field_of(name, Kind::Str, place, 0, name);
    let message = field_of(b"message", Kind::Str, 0, 0, b"");
    let labelled = field_of(name, Kind::U64, 8, 0, name);
    let mut one = |place: u32, name: &[u8], shape: Shape, fields: &[Vec<u8>]| {
        let fixed = EventEntry {
            level: Level::Warn as u8,
            shape: shape as u8,
            flags: 0,
            fixed_payload_bytes: 0,
        };
        let mut attributes = vec![(tag::NAME, name)];
        for tag in [tag::TARGET, tag::CATEGORY, tag::FILE, tag::DOC] {
            attributes.push((tag, name));
        }
        attributes.extend(fields.iter().map(|field| (tag::FIELD, field.as_slice())));
        out.extend(entry(
            entry_kind::EVENT,
            first + place,
            fixed.as_bytes(),
            &attributes,
        ));
    };
    let id = number(semantic::SPAN_ID);
    one(
        of::SPAN,
        name,
        Shape::Span,
        &[number(semantic::DURATION), text(8)],
    );
    one(of::EVENT, name, Shape::Instant, &[text(0), labelled]);
    one(
        of::COUNTER,
        name,
        Shape::Counter,
        &[number(semantic::COUNTER)],
    );
    one(of::LOG, b"log event", Shape::Instant, &[message]);
    one(of::NEW, name, Shape::SpanNew, &[id.clone(), text(8)]);
    one(of::ENTER, name, Shape::SpanEnter, std::slice::from_ref(&id));
    one(of::EXIT, name, Shape::SpanExit, std::slice::from_ref(&id));
    one(of::CLOSE, name, Shape::SpanClose, &[id]);
}

/// A module and a function for each text.
fn functions(texts: &[Vec<u8>], out: &mut Vec<u8>) {
    for (place, text) in (0..).zip(texts) {
        let module = ModuleEntry {
            base: 0x10_0000 * (1 + u64::from(place)),
            bytes: 0x1000,
        };
        let function = FunctionEntry {
            address: module.base + 0x100,
            bytes: 0x40,
            module: place,
        };
        let name = [(tag::NAME, name_of(text))];
        out.extend(entry(entry_kind::MODULE, place, module.as_bytes(), &name));
        out.extend(entry(
            entry_kind::FUNCTION,
            place,
            function.as_bytes(),
            &name,
        ));
    }
    out.extend(tracer());
    out.extend(function_types(0, texts.len() as u32, 1, 0));
}

fn words(text: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    text.chunks(8).map(word).collect()
}

/// A thread for each text, all its records in one page.
fn page(place: usize, text: &[u8], texts: &[Vec<u8>], out: &mut Vec<u8>) {
    let mut page = PageOf::new(0, 0);
    page.page_bytes = 1 << 20;
    let header = &mut page.header;
    header.slot = place as u32;
    header.ring_id = 5 + place as u64;
    header.tid = 70 + place as u32;
    let cut = text.len().min(header.thread_name.len());
    header.thread_name.fill(0);
    header.thread_name[..cut].copy_from_slice(&text[..cut]);
    let first = first_type(place);
    let long = (text.len() as u64) << 32;
    let (text, id) = (words(text), 100 + place as u64);
    let with = |head: &[u64]| [head, &text].concat();
    page.event(10, first + of::EVENT, &with(&[16 | long, 3]));
    page.event(11, first + of::COUNTER, &[7]);
    page.event(12, first + of::LOG, &with(&[8 | long]));
    page.event(20, first + of::SPAN, &with(&[5, 16 | long]));
    page.event(21, first + of::NEW, &with(&[id, 16 | long]));
    page.event(22, first + of::ENTER, &[id]);
    page.event(23, first + of::EXIT, &[id]);
    page.event(24, first + of::CLOSE, &[id]);
    page.event(30, function_type(place as u32, false), &[0]);
    page.event(40, function_type(place as u32, true), &[0]);
    if place == 0 {
        // Types that nothing describes.
        page.event(50, first_type(texts.len()) + 1, &text);
        page.event(51, first_type(texts.len()) + 2, &with(&[1, 2]));
    }
    page.close().write(true, out);
}

/// A span that is open in each thread.
fn open_spans(texts: &[Vec<u8>], out: &mut Vec<u8>) {
    for (place, text) in texts.iter().enumerate() {
        let head = Head {
            type_id: TypeId(first_type(place) + of::SPAN),
            words: 6,
            serial: 9,
            lexical: false,
        };
        let mut payload = [0; 6];
        // As the stack holds it: without the duration, and cut where the frame ends.
        payload[0] = 16 | (text.len() as u64) << 32;
        for (to, from) in payload[1..].iter_mut().zip(words(text)) {
            *to = from;
        }
        let frame = Frame {
            head: head.pack(),
            tick: 1050,
            payload,
        };
        let mut name = [0; 16];
        let cut = text.len().min(16);
        name[..cut].copy_from_slice(&text[..cut]);
        let header = OpenSpans {
            ring_id: 5 + place as u64,
            tick: 2000,
            over: 0,
            tid: 70 + place as u32,
            slot: place as u32,
            thread_name: name,
            frames: 1,
            flags: 0,
            ring_wait_ns: 0,
        };
        blocks::open_spans(out, SESSION, &header, &[frame]).unwrap();
    }
}
