//! Traces of spans that lie in each other.

use ringmark_format::attribute::tag;
use ringmark_format::codec::write as blocks;
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;

use crate::common::*;

/// Numbers that look like chance and are the same each time.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// Less than `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// A span: start and end in ticks of 1 ns.
pub(crate) type Times = (u64, u64);

/// Spans of a thread that lie in each other, in the order of their ends.
pub(crate) fn nested(chance: &mut Chance, from: u64, to: u64, depth: u32, spans: &mut Vec<Times>) {
    let mut at = from;
    while at + 4 < to {
        let length = 2 + chance.below((to - at) / 3 + 2);
        let end = (at + length).min(to - 1);
        if depth < 6 && end - at > 8 {
            nested(chance, at + 1, end - 1, depth + 1, spans);
        }
        spans.push((at, end));
        at = end + 1 + chance.below(3);
    }
}

/// Spans of a page.
pub(crate) const OF_PAGE: usize = 150;

/// A trace of such spans, one thread each, their numbers as arguments.
pub(crate) fn trace(threads: &[Vec<Times>]) -> Vec<u8> {
    trace_without(threads, None)
}

/// The same without the page of this number of each thread.
pub(crate) fn trace_without(threads: &[Vec<Times>], missing: Option<u64>) -> Vec<u8> {
    let mut out = Vec::new();
    blocks::session(
        &mut out,
        SESSION,
        &session_content(session_header(Mode::Discard)),
    )
    .unwrap();
    let duration = semantic::DURATION.to_le_bytes();
    let duration = [(tag::SEMANTIC, &duration[..])];
    let first = FieldOf {
        extra: &duration,
        ..field("duration", Kind::U64, 0)
    };
    let fields = [first, field("n", Kind::U64, 8)];
    let schema = event_entry(16, "span", Level::Info, Shape::Span, &fields);
    blocks::schema(&mut out, SESSION, 0, &schema).unwrap();
    for (thread, spans) in threads.iter().enumerate() {
        let (mut number, mut first) = (0, 0);
        for piece in spans.chunks(OF_PAGE) {
            let mut page = PageOf::new(number, first);
            page.header.slot = thread as u32;
            page.header.ring_id = 5 + thread as u64;
            page.header.tid = 70 + thread as u32;
            page.header.tick_base = 1000 + piece[0].1;
            for (n, (start, end)) in (first..).zip(piece) {
                page.event((end - piece[0].1) as u32, 16, &[end - start, n]);
            }
            if missing != Some(number) {
                page.close().write(true, &mut out);
            }
            number += 1;
            first += piece.len() as u64;
        }
    }
    out
}
