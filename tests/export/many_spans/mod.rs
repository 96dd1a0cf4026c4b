//! A trace of many spans over many threads, each with a text of its own as its argument.

use ringmark_format::attribute::tag;
use ringmark_format::codec::write as blocks;
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;
use ringmark_tests::random::Random;

use crate::common::*;

/// Names of the spans, as many at each depth.
const NAMES: u32 = 64;
/// Spans of a group: one around three, each of which is around one or two.
const GROUP: u64 = 8;
/// From the beginning of a group to that of the next one, in ns.
const GROUP_NS: u64 = 1_000_000;

/// A trace, and what is in it.
pub(crate) struct ManySpans {
    pub(crate) bytes: Vec<u8>,
    pub(crate) spans: u64,
    /// The text of the span that took longest, and its ns.
    pub(crate) slowest: (String, u64),
}

/// Writes a trace of `groups` times eight spans on each of `threads` threads, all in the same stretch
/// of time.
pub(crate) fn many_spans(threads: u64, groups: u64) -> ManySpans {
    let mut bytes = Vec::new();
    let content = session_content(session_header(Mode::Discard));
    blocks::session(&mut bytes, SESSION, &content).expect("a session");
    blocks::schema(&mut bytes, SESSION, 0, &types()).expect("a schema");
    let mut made = ManySpans {
        bytes,
        spans: threads * groups * GROUP,
        slowest: (String::new(), 0),
    };
    for thread in 0..threads {
        Thread::new(thread).write(groups, &mut made);
    }
    made
}

fn types() -> Vec<u8> {
    let duration = semantic::DURATION.to_le_bytes();
    let duration = [(tag::SEMANTIC, &duration[..])];
    let took = FieldOf {
        extra: &duration,
        ..field("duration", Kind::U64, 0)
    };
    let of = |number| {
        let name = format!("app.part.{number}");
        let fields = [FieldOf { ..took }, field("path", Kind::Str, 8)];
        event_entry(16 + number, &name, Level::Info, Shape::Span, &fields)
    };
    (0..NAMES).flat_map(of).collect()
}

/// A thread that is being written.
struct Thread {
    number: u64,
    random: Random,
    page: PageOf,
    pages: u64,
    written: u64,
}

impl Thread {
    fn new(number: u64) -> Self {
        Self {
            number,
            random: Random::from_seed(2 * number),
            page: PageOf::new(0, 0),
            pages: 0,
            written: 0,
        }
    }

    fn write(mut self, groups: u64, made: &mut ManySpans) {
        self.begin(1000);
        for group in 0..groups {
            let from = 1000 + group * GROUP_NS + self.random.below(GROUP_NS / 20);
            self.group(from, made);
        }
        self.end(&mut made.bytes);
    }

    /// Spans in the order of their ends.
    fn group(&mut self, from: u64, made: &mut ManySpans) {
        let mut at = from + 1 + self.random.below(5_000);
        for part in 0..3 {
            let outer = at;
            for _ in 0..if part == 0 { 2 } else { 1 } {
                let inner = at + 1 + self.random.below(2_000);
                at = inner + 100 + self.random.below(80_000);
                self.span(2, inner, at, made);
            }
            at += 1 + self.random.below(3_000);
            self.span(1, outer, at, made);
            at += 1 + self.random.below(20_000);
        }
        let end = at + 1 + self.random.below(50_000);
        self.span(0, from, end, made);
    }

    fn span(&mut self, depth: u32, from: u64, to: u64, made: &mut ManySpans) {
        if self.page.left() < 256 {
            self.end(&mut made.bytes);
            self.begin(to);
        }
        let number = self.written;
        let seed = self.random.below(1 << 32);
        let text = format!(
            "/srv/shop/{:02}/order-{number:06}-{seed:08x}.json",
            self.number
        );
        if to - from > made.slowest.1 {
            made.slowest = (text.clone(), to - from);
        }
        let words = text.as_bytes().chunks(8).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        });
        let place = 16 | (text.len() as u64) << 32;
        let payload: Vec<u64> = [to - from, place].into_iter().chain(words).collect();
        let id = 16 + depth * (NAMES / 3) + (seed % u64::from(NAMES / 3)) as u32;
        let ticks = (to - self.page.header.tick_base) as u32;
        self.page.event(ticks, id, &payload);
        self.written += 1;
    }

    fn begin(&mut self, tick: u64) {
        self.page = PageOf::new(self.pages, self.written);
        self.page.page_bytes = 1 << 16;
        let header = &mut self.page.header;
        header.slot = self.number as u32;
        header.ring_id = 5 + self.number;
        header.tid = 100 + self.number as u32;
        header.tick_base = tick;
        let name = format!("worker-{}", self.number);
        header.thread_name[..name.len()].copy_from_slice(name.as_bytes());
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.page.close().write(true, out);
        self.pages += 1;
    }
}
