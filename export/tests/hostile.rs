//! Strings that a program may record to do harm are inert in every format: nothing in the output
//! drives a terminal, reorders text, or ends a string, a line or a frame early.

#[path = "../../decoder/tests/common/mod.rs"]
mod common;

use common::*;
use ringmark_export::{Cut, Format, Plan, write};
use ringmark_format::attribute::tag;
use ringmark_format::codec::write as blocks;
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;

/// What each name and each text of the trace is, one trace each.
fn corpus() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = [
        &b"\x1b[31mred\x07"[..],
        b"line\nline\r\n",
        b"a\"b'c\\d",
        b"</script><!--",
        "right \u{202e}tfel\u{202c} \u{200f}".as_bytes(),
        b"\xff\xfe\xc2",
        b"=1+1;cmd",
        b"",
        b" 120\nfake;stack 7",
        b"\0\x9b\xc2\x9b",
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    all.push(
        b"long\x1b\""
            .iter()
            .copied()
            .cycle()
            .take(64 << 10)
            .collect(),
    );
    all
}

/// A trace of a span, an event and a counter whose texts are all this one.
fn trace(text: &[u8]) -> Vec<u8> {
    // Names are cut to what a schema may hold.
    let name = &text[..text.len().min(1000)];
    let mut schema = Vec::new();
    let duration = semantic::DURATION.to_le_bytes();
    let counted = semantic::COUNTER.to_le_bytes();
    let number = |offset, meaning| FieldOf {
        extra: meaning,
        ..field("n", Kind::U64, offset)
    };
    let (duration, counted) = (
        [(tag::SEMANTIC, &duration[..])],
        [(tag::SEMANTIC, &counted[..]), (tag::UNIT, name)],
    );
    for (id, shape, fields) in [
        (
            16,
            Shape::Span,
            vec![number(0, &duration), field("text", Kind::Str, 8)],
        ),
        (17, Shape::Instant, vec![field("text", Kind::Str, 0)]),
        (18, Shape::Counter, vec![number(0, &counted)]),
    ] {
        schema.extend(event_entry_of(id, name, Level::Warn, shape, &fields));
    }
    let mut out = Vec::new();
    let mut header = session_header(Mode::Discard);
    let mut attributes = Vec::new();
    for tag in [tag::PROCESS_NAME, tag::HOST, tag::SERVICE_NAME] {
        ringmark_format::attribute::push(&mut attributes, tag, name);
    }
    header.attributes_bytes = attributes.len() as u32;
    let content = [zerocopy::IntoBytes::as_bytes(&header), &attributes].concat();
    blocks::session(&mut out, SESSION, &content).unwrap();
    blocks::schema(&mut out, SESSION, 0, &schema).unwrap();
    let mut page = PageOf::new(0, 0);
    page.page_bytes = 1 << 20;
    page.header.thread_name.fill(b'\x1b');
    let words: Vec<u64> = text
        .chunks(8)
        .map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        })
        .collect();
    let pair = |offset: u64| offset | (text.len() as u64) << 32;
    page.event(10, 17, &[&[pair(8)][..], &words].concat());
    page.event(11, 18, &[7]);
    page.event(20, 16, &[&[5, pair(16)][..], &words].concat());
    page.close().write(true, &mut out);
    end(3, &mut out);
    out
}

/// Whether text can drive a terminal or reorder what is beside it.
fn is_harmful(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}

fn exported(text: &[u8], format: Format) -> Vec<u8> {
    let dump = read(&trace(text)).unwrap();
    let plan = Plan::new(&dump, Cut::default());
    let counts = plan.counts();
    assert_eq!((counts.slices, counts.instants, counts.counters), (1, 1, 1));
    let mut out = Vec::new();
    let written = write(&plan, format, &mut out, |_, _| {}).unwrap();
    assert_eq!(written.bytes, out.len() as u64);
    out
}

#[test]
fn folded_stacks_have_their_shape() {
    for text in corpus() {
        let out = String::from_utf8(exported(&text, Format::Folded)).unwrap();
        let lines: Vec<_> = out.lines().collect();
        assert_eq!(lines.len(), 1, "{out}");
        let (stack, ns) = lines[0].rsplit_once(' ').unwrap();
        assert_eq!((stack.split(';').count(), ns), (3, "5"), "{out}");
        assert!(!out.chars().any(is_harmful), "{out:?}");
    }
}

#[test]
fn json_is_json_and_holds_the_text() {
    for text in corpus() {
        let out = String::from_utf8(exported(&text, Format::Chrome)).unwrap();
        assert!(!out.chars().any(is_harmful), "{out:?}");
        let json: serde_json::Value = serde_json::from_str(&out).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        let instant = events.iter().find(|event| event["ph"] == "i").unwrap();
        if let Ok(text) = std::str::from_utf8(&text) {
            assert_eq!(instant["args"]["text"], text);
        }
        let counter = events.iter().find(|event| event["ph"] == "C").unwrap();
        let values: Vec<_> = counter["args"].as_object().unwrap().values().collect();
        assert_eq!(values, [7]);
    }
}

/// The texts of all fields of a message and of the messages in it that are no messages themselves.
fn texts(bytes: &[u8], found: &mut Vec<Vec<u8>>) -> Option<()> {
    let mut rest = bytes;
    let varint = |rest: &mut &[u8]| {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let (byte, after) = rest.split_first()?;
            *rest = after;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
    };
    let mut inside = Vec::new();
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        if tag >> 3 == 0 {
            return None;
        }
        match tag & 7 {
            0 => drop(varint(&mut rest)?),
            1 => rest = rest.get(8..)?,
            2 => {
                let length = varint(&mut rest)? as usize;
                inside.push(rest.get(..length)?);
                rest = &rest[length..];
            }
            _ => return None,
        }
    }
    for bytes in inside {
        let mut deeper = Vec::new();
        if bytes.is_empty() || texts(bytes, &mut deeper).is_none() {
            found.push(bytes.to_vec());
        }
        found.append(&mut deeper);
    }
    Some(())
}

#[test]
fn protobuf_holds_nothing_but_printable_text() {
    for text in corpus() {
        let mut found = Vec::new();
        texts(&exported(&text, Format::Perfetto), &mut found).expect("protobuf");
        let mut expected = Vec::new();
        ringmark_decoder::escape::text(&text, &mut expected);
        // An empty text is no text that can be told apart.
        let is_there = |texts: &[Vec<u8>]| texts.iter().filter(|t| **t == expected).count();
        assert!(text.is_empty() || is_there(&found) >= 2, "{text:?}");
        for text in found {
            let text = String::from_utf8(text).expect("UTF-8");
            assert!(
                !text.chars().any(|c| is_harmful(c) || c == '\n'),
                "{text:?}"
            );
        }
    }
}
