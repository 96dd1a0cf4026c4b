//! `ringmark_layout.h`: what the header's inline path must know of the format and of the writer,
//! written from their own definitions. A test compares the file in `include/` with this text.

use core::fmt::Write;

use ringmark::__private::raw::PAYLOAD_WORDS_MAX;
use ringmark::__private::raw::{RawReservation, RawSpan, SpanStack, span_stack};
use ringmark::__private::writer_offsets;
use ringmark::client::{Shape, TypeState};
use ringmark::{Clock, Kind, Level};
use ringmark_format::open_span::{self, Head};
use ringmark_format::schema::semantic;
use ringmark_format::{TypeId, record};

/// A constant of the C header: name, value, what it is.
type Constant = (&'static str, u64, &'static str);

const WRITER: [Constant; 8] = [
    (
        "WRITER_BEGUN",
        writer_offsets::BEGUN as u64,
        "u64: reservations begun",
    ),
    (
        "WRITER_ENDED",
        writer_offsets::ENDED as u64,
        "u64: reservations ended, in any order",
    ),
    (
        "WRITER_RESERVATIONS",
        writer_offsets::RESERVATIONS as u64,
        "u64: records reserved so far",
    ),
    (
        "WRITER_CURSOR",
        writer_offsets::CURSOR as u64,
        "pointer: where the search for an empty word begins",
    ),
    (
        "WRITER_END",
        writer_offsets::END as u64,
        "pointer: end of the open page; null: nothing fits",
    ),
    (
        "WRITER_TICK_BASE",
        writer_offsets::TICK_BASE as u64,
        "u64: what the open page's ticks count from",
    ),
    (
        "WRITER_CLOCK",
        writer_offsets::CLOCK as u64,
        "u64: number of the clock",
    ),
    (
        "WRITER_TOP",
        writer_offsets::TOP as u64,
        "pointer: the frame of the next open span; null or aligned to STACK_BYTES: none",
    ),
];

const SPANS: [Constant; 6] = [
    (
        "STACK_BYTES",
        size_of::<SpanStack>() as u64,
        "size and alignment of a stack of open spans",
    ),
    (
        "FRAME_WORDS",
        span_stack::FRAME_WORDS as u64,
        "words of a frame",
    ),
    (
        "FRAME_KEEPS",
        open_span::KEPT_WORDS as u64,
        "payload words that a frame holds after the tick",
    ),
    (
        "FRAME_HEAD",
        Head {
            type_id: TypeId(0),
            words: 0,
            serial: 0,
            lexical: false,
        }
        .pack(),
        "head of a frame, without type, words and serial number",
    ),
    (
        "FRAME_LEXICAL",
        open_span::LEXICAL,
        "bit of a head: the span ends with its block",
    ),
    (
        "FRAME_CLAIMED",
        open_span::CLAIMED,
        "head of a frame that is being filled, without serial number",
    ),
];

const SHIFT_OF_TYPE: u32 = record::pack(0, TypeId(1), 0).trailing_zeros();
const SHIFT_OF_LENGTH: u32 = record::pack(0, TypeId(0), 1).trailing_zeros();

const RECORD: [Constant; 9] = [
    (
        "TYPE_ENABLED",
        TypeState::ENABLED_OFFSET as u64,
        "u32 in a type: its id if it is on, else 0",
    ),
    (
        "TYPE_STATE_BYTES",
        size_of::<TypeState>() as u64,
        "what a type begins with",
    ),
    (
        "TYPE_SHIFT",
        SHIFT_OF_TYPE as u64,
        "header word: ticks, the type's id from this bit on",
    ),
    (
        "LENGTH_SHIFT",
        SHIFT_OF_LENGTH as u64,
        "header word: payload words from this bit on",
    ),
    (
        "LONG",
        record::LONG,
        "payload length that says: the next word holds it",
    ),
    (
        "BUSY",
        record::pack_span(record::BUSY, 0),
        "header word of a reserved record, without its length",
    ),
    (
        "CANCELLED",
        record::pack_span(record::CANCELLED, 0),
        "header word of a cancelled record, without its length",
    ),
    ("PAYLOAD_WORDS_MAX", PAYLOAD_WORDS_MAX, "no page holds more"),
    (
        "CLOCK_TSC",
        Clock::Tsc as u64,
        "the clock that the inline path reads",
    ),
];

const SEMANTICS: [Constant; 2] = [
    (
        "SEMANTIC_DURATION",
        semantic::DURATION as u64,
        "first field of a span",
    ),
    (
        "SEMANTIC_COUNTER",
        semantic::COUNTER as u64,
        "the field of a counter",
    ),
];

/// Sizes of what the library reads in a program: see `structs.rs`.
fn sizes() -> [Constant; 4] {
    let [type_bytes, field_bytes] = crate::structs::sizes();
    let reservation_bytes = size_of::<RawReservation>() as u64;
    [
        (
            "RESERVATION_BYTES",
            reservation_bytes,
            "struct ringmark_reservation",
        ),
        (
            "SPAN_BYTES",
            size_of::<RawSpan>() as u64,
            "struct ringmark_span",
        ),
        ("TYPE_BYTES", type_bytes, "struct ringmark_type"),
        ("FIELD_BYTES", field_bytes, "struct ringmark_field"),
    ]
}

fn plain() -> impl Iterator<Item = Constant> {
    let all = WRITER.iter().chain(&RECORD).chain(&SPANS).chain(&SEMANTICS);
    all.copied().chain(sizes())
}

/// Kinds, levels and shapes: prefix, names, numbers.
fn numbered() -> [(&'static str, Vec<(&'static str, u8)>); 3] {
    [
        (
            "KIND",
            Kind::ALL.iter().map(|k| (k.name(), *k as u8)).collect(),
        ),
        (
            "LEVEL",
            Level::ALL.iter().map(|l| (l.name(), *l as u8)).collect(),
        ),
        (
            "SHAPE",
            Shape::ALL.iter().map(|s| (s.name(), *s as u8)).collect(),
        ),
    ]
}

fn literal(value: u64) -> String {
    if value > u64::from(u32::MAX) {
        format!("{value:#x}ULL")
    } else {
        format!("{value}U")
    }
}

/// Tells layouts apart: a program's header and its library must have the same one.
#[must_use]
pub fn number() -> u64 {
    let lists = numbered().into_iter().flat_map(|(_, list)| list);
    let lists = lists.map(|(name, number)| (name, u64::from(number)));
    let all = plain().map(|(name, value, _)| (name, value)).chain(lists);
    all.fold(0xCBF2_9CE4_8422_2325, |hash, (name, value)| {
        fnv_1a(fnv_1a(hash, name.as_bytes()), &value.to_le_bytes())
    })
}

fn fnv_1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3)
    })
}

/// The whole header.
#[must_use]
pub fn text() -> String {
    let mut out = format!(
        "/* What ringmark.h must know of the format and of the writer. Written from their definitions by\n   \
         `cargo run -p ringmark-c --example layout`; not to be changed by hand. */\n\
         #ifndef RINGMARK_LAYOUT_H\n#define RINGMARK_LAYOUT_H\n\n\
         /* Must be the library's: else its types stay off. */\n\
         #define RINGMARK_LAYOUT {}\n\n",
        literal(number())
    );
    for (name, value, what) in plain() {
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "#define RINGMARK_{name} {} /* {what} */",
            literal(value)
        );
    }
    for (kind, list) in numbered() {
        out.push('\n');
        for (name, number) in list {
            let _ = writeln!(
                out,
                "#define RINGMARK_{kind}_{} {number}U",
                name.to_uppercase()
            );
        }
    }
    out.push_str("\n#endif\n");
    out
}
