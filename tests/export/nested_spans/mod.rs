//! Traces of spans in spans on many threads, of any length, with many names.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use ringmark_format::attribute::tag;
use ringmark_format::codec::write as blocks;
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;

use crate::common::*;

/// What a trace holds.
#[derive(Clone, Copy)]
pub(crate) struct Amount {
    pub(crate) bytes: u64,
    pub(crate) threads: u64,
    pub(crate) names: u32,
    /// Spans over threads that are open at the end.
    pub(crate) open: u64,
}

/// The first type of native spans; the one that makes spans over threads is before it.
const FIRST: u32 = 17;

fn schema(names: u32) -> Vec<u8> {
    let meaning = |meaning: &'static [u8; 4]| [(tag::SEMANTIC, &meaning[..])];
    let id = meaning(const { &semantic::SPAN_ID.to_le_bytes() });
    let duration = meaning(const { &semantic::DURATION.to_le_bytes() });
    let with = |extra| FieldOf {
        extra,
        ..field("n", Kind::U64, 0)
    };
    let made = [with(&id), field("path", Kind::U64, 8)];
    let mut all = event_entry(16, "request", Level::Info, Shape::SpanNew, &made);
    for number in 0..names {
        let name = format!("app.part.{number}");
        let fields = [with(&duration), field("rows", Kind::U64, 8)];
        let id = FIRST + number;
        all.extend(event_entry(id, &name, Level::Info, Shape::Span, &fields));
    }
    all
}

/// A thread that is being written.
struct Thread {
    number: u64,
    page: PageOf,
    pages: u64,
    records: u64,
    tick: u64,
}

impl Thread {
    fn new(number: u64) -> Self {
        let mut new = Self {
            number,
            page: PageOf::new(0, 0),
            pages: 0,
            records: 0,
            tick: 1000 + number,
        };
        new.begin();
        new
    }

    fn begin(&mut self) {
        self.page = PageOf::new(self.pages, self.records);
        self.page.page_bytes = 1 << 16;
        let header = &mut self.page.header;
        header.slot = self.number as u32;
        header.ring_id = 5 + self.number;
        header.tid = 100 + self.number as u32;
        header.tick_base = self.tick;
    }

    /// Adds a record; a page that is full goes to `out`.
    fn add(&mut self, id: u32, payload: &[u64], out: &mut Vec<u8>) {
        self.tick += 1000;
        if self.page.left() < 64 {
            self.end(out);
            self.begin();
        }
        let ticks = self.tick - self.page.header.tick_base;
        self.page.event(ticks as u32, id, payload);
        self.records += 1;
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.page.close().write(true, out);
        self.pages += 1;
    }
}

/// Writes a trace: on each thread the open spans, then spans in spans. Returns how many of those there are.
pub(crate) fn write(path: &Path, amount: Amount) -> u64 {
    let mut file = File::create(path).expect("a trace file");
    let mut out = Vec::new();
    let content = session_content(session_header(Mode::Discard));
    blocks::session(&mut out, SESSION, &content).expect("a session");
    let schema = schema(amount.names);
    let mut offset = 0;
    for piece in schema.chunks(1 << 16) {
        blocks::schema(&mut out, SESSION, offset, piece).expect("a schema");
        offset += piece.len() as u64;
    }
    let mut threads: Vec<_> = (0..amount.threads).map(Thread::new).collect();
    for id in 1..=amount.open {
        threads[(id % amount.threads) as usize].add(16, &[id, id], &mut out);
    }
    let (mut written, mut number) = (0, 0_u64);
    while written + (out.len() as u64) < amount.bytes {
        for thread in &mut threads {
            for part in 0..32 {
                let took = if part % 4 == 3 { 3500 } else { 500 };
                let id = FIRST + (number % u64::from(amount.names)) as u32;
                thread.add(id, &[took, number], &mut out);
                number += 1;
            }
        }
        file.write_all(&out).expect("a trace file");
        written += out.len() as u64;
        out.clear();
    }
    threads.iter_mut().for_each(|thread| thread.end(&mut out));
    file.write_all(&out).expect("a trace file");
    number
}
