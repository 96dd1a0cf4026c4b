//! Promise: the memory of an export does not grow with the trace: threads, names and open spans need
//! some, records none.
//!
//! With `RINGMARK_LONG=1` alone: traces of two lengths, and one of 1 GB with the bar.

#[path = "../../decoder/tests/common/mod.rs"]
mod common;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;

use common::*;
use ringmark_format::attribute::tag;
use ringmark_format::codec::write as blocks;
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::{Running, is_long, ringmark};

const THREADS: u64 = 64;
const MIB: u64 = 1 << 20;
/// More memory that a trace three times as long may need.
const MORE_MAX: u64 = 4 * MIB;
/// Most memory of an export of 1 GB with 64 threads, 100,000 names and 100,000 open spans.
const ANON_MAX: u64 = 64 * MIB;

/// What a trace holds.
#[derive(Clone, Copy)]
struct Amount {
    bytes: u64,
    names: u32,
    open: u64,
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

/// Writes a trace: on each thread the open spans, then spans in spans.
fn write(path: &Path, amount: Amount) {
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
    let mut threads: Vec<_> = (0..THREADS).map(Thread::new).collect();
    for id in 1..=amount.open {
        threads[(id % THREADS) as usize].add(16, &[id, id], &mut out);
    }
    let (mut written, mut number) = (0, 0_u32);
    while written + (out.len() as u64) < amount.bytes {
        for thread in &mut threads {
            for part in 0..32 {
                let took = if part % 4 == 3 { 3500 } else { 500 };
                let id = FIRST + number % amount.names;
                thread.add(id, &[took, number.into()], &mut out);
                number = number.wrapping_add(1);
            }
        }
        file.write_all(&out).expect("a trace file");
        written += out.len() as u64;
        out.clear();
    }
    threads.iter_mut().for_each(|thread| thread.end(&mut out));
    file.write_all(&out).expect("a trace file");
}

/// The most anonymous memory that an export of this trace had, in bytes, as looked at all the time.
fn most_memory(fixture: &Fixture, trace: &Path, format: &str) -> u64 {
    let mut command = ringmark();
    command.args(["export", "--format", format]).arg(trace);
    command.arg("-o").arg(fixture.path("out"));
    let mut running = Running::start(&mut command).expect("the tool");
    let status = format!("/proc/{}/status", running.id());
    let mut most = 0;
    while running.child().try_wait().expect("a child").is_none() {
        most = anonymous(&status).max(most);
        thread::sleep(Duration::from_millis(1));
    }
    let done = running.finish(SOON);
    assert_eq!(done.code(), 0, "{}", done.stderr_text());
    most
}

fn anonymous(status: &str) -> u64 {
    let text = fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[test]
fn memory_does_not_grow_with_the_trace() {
    if !is_long() {
        return;
    }
    let fixture = Fixture::new("export-memory");
    let traces = [6 * MIB, 18 * MIB].map(|bytes| {
        let trace = fixture.path(&format!("{bytes}.rmk"));
        let (names, open) = (500, 500);
        let amount = Amount { bytes, names, open };
        write(&trace, amount);
        trace
    });
    for format in ["perfetto", "chrome", "folded"] {
        let [short, long] = traces
            .each_ref()
            .map(|trace| most_memory(&fixture, trace, format));
        println!("{format}: {short} and {long} bytes");
        assert!(short > MIB, "{short} bytes were seen");
        assert!(long <= short + MORE_MAX, "{format}: {short}, then {long}");
    }
}

#[test]
fn a_gigabyte_fits_into_64_mib() {
    if !is_long() {
        return;
    }
    let fixture = Fixture::new("export-gigabyte");
    let trace = fixture.path("a.rmk");
    let amount = Amount {
        bytes: 1000 * MIB,
        names: 100_000,
        open: 100_000,
    };
    write(&trace, amount);
    let most = most_memory(&fixture, &trace, "perfetto");
    println!("{most} bytes");
    assert!(most <= ANON_MAX, "{most} bytes");
}
