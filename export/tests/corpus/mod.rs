//! Strings that a program may record to do harm, and traces that have them.
//!
//! The only corpus of such strings: tests of libraries and of the tools take it from here.
#![allow(dead_code, unreachable_pub, reason = "every test uses its own part")]

pub mod everywhere;

use ringmark_format::attribute::tag;
use ringmark_format::codec::write as blocks;
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;

use crate::common::*;

/// What each name and each text of the trace is, one trace each.
pub(crate) fn corpus() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = [
        &b"\x1b[31mred\x07"[..],
        b"\x1b]0;title\x07\x1b[2J",
        b"line\nline\r\n",
        b"a\"b'c\\d",
        b"</script><!--",
        b"</script><script>window.ran = true</script>",
        b"<img src=x onerror='window.ran = true'>",
        b"\"; }; }; event { name = \"made\"; /*",
        b"\",\"made\":[1,{\"x\":\"",
        "right \u{202e}tfel\u{202c} \u{200f}\u{061c}\u{2067}".as_bytes(),
        "\u{feff}hid\u{200b}den\u{2028}\u{e0041}".as_bytes(),
        b"\xff\xfe\xc2",
        b"=1+1;cmd",
        b"=HYPERLINK(\"x\",\"y\")",
        b"",
        b" 120\nfake;stack 7",
        b"\0\x9b\xc2\x9b",
        b"%s%n{}${x}`x`$(x)",
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
pub(crate) fn trace(text: &[u8]) -> Vec<u8> {
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

/// Whether text can drive a terminal, reorder what is beside it, or hide.
pub(crate) fn is_harmful(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{061C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}')
        || matches!(c, '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}
