//! Promise: a dump from an enemy takes time and memory in proportion to its size. Each kind of dump
//! is decoded in two sizes by a process of its own; four times the size may take little more than
//! four times as long.

use std::process::Command;
use std::time::Duration;

use ringmark_format::attribute::{self, tag};
use ringmark_format::block::{PageState, codec, kind};
use ringmark_format::codec::write;
use ringmark_format::counters::SlotCounters;
use ringmark_format::schema::{Kind, Level, Shape};
use ringmark_format::session::Mode;
use ringmark_format::{PageNumber, RingId, Uuid};
use ringmark_tests::process::run;
use ringmark_tests::{TempDir, is_long};
use rustix::time::{ClockId, clock_gettime};
use zerocopy::{FromZeros, IntoBytes};

use crate::common;
use crate::dump_blocks;

use common::{FieldOf, PageOf, SESSION, event_entry, field, start};

/// Largest ratio of times for four times the size: 4, the logarithms of maps and sorts, and what
/// caches cost.
const RATIO_MAX: f64 = 6.5;
/// Bytes of memory per byte of input, and beyond that what any process takes.
const MEMORY_RATIO_MAX: u64 = 100;
const MEMORY_FREE_BYTES: u64 = 48 << 20;
/// Times below this are not told from noise.
const TOO_SHORT: Duration = Duration::from_millis(20);

/// A dump of a kind and about this many bytes.
type Make = fn(usize) -> Vec<u8>;

const KINDS: &[(&str, Make)] = &[
    ("tiny blocks", tiny_blocks),
    ("broken headers", broken_headers),
    ("giant lengths", giant_lengths),
    ("sessions with large type ids", sessions),
    ("rings and types", rings_and_types),
    ("types never described", unknown_types),
    ("labels", labels),
    ("attributes of a session", attributes),
    ("counters", counters),
    ("copies of one page", copies),
    ("copies of a large page", copies_of_a_large_page),
    ("pieces of schema", pieces),
    ("names and fields shown by every event", names),
    ("records backwards in time", backwards),
    ("containers that expand", bombs),
];

fn tiny_blocks(bytes: usize) -> Vec<u8> {
    let mut out = start(Mode::Discard);
    while out.len() < bytes {
        write::block(&mut out, write::header(99, SESSION), b"").unwrap();
    }
    out
}

fn broken_headers(bytes: usize) -> Vec<u8> {
    let mut out = start(Mode::Discard);
    out.extend(b"RMKBRMK".iter().cycle().take(bytes));
    out
}

/// Right headers whose content is said to be 64 KiB and is none of it, each with the next one in it.
fn giant_lengths(bytes: usize) -> Vec<u8> {
    let mut out = start(Mode::Discard);
    let mut header = write::header(kind::PAGE, SESSION);
    write::seal_header(&mut header, &vec![1; 64 << 10]).unwrap();
    while out.len() < bytes {
        out.extend_from_slice(header.as_bytes());
    }
    out
}

fn uuid(number: u64) -> Uuid {
    let mut uuid = SESSION;
    uuid.0[..8].copy_from_slice(&number.to_le_bytes());
    uuid
}

/// A page of a few words, as a block of any session.
fn page_block(session: Uuid, slot: u32, words: &[u64], out: &mut Vec<u8>) {
    let mut page = PageOf::new(0, 0);
    page.header.slot = slot;
    page.header.ring_id = u64::from(slot) + 1;
    words.iter().for_each(|w| _ = page.word(*w));
    page.bytes[..96].copy_from_slice(page.header.as_bytes());
    let extent = page.bytes.len() as u32;
    let ring = RingId(page.header.ring_id);
    let header = write::page_header(session, ring, PageNumber(0), extent, 4096, PageState::Open);
    write::block(out, header, &page.bytes).unwrap();
}

fn event(id: u32) -> u64 {
    ringmark_format::record::pack(1, ringmark_format::TypeId(id), 0)
}

fn sessions(bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for number in 0.. {
        if out.len() >= bytes {
            break;
        }
        page_block(uuid(number), 0, &[event(65_000)], &mut out);
    }
    out
}

fn rings_and_types(bytes: usize) -> Vec<u8> {
    let mut out = start(Mode::Discard);
    let mut stream = common::schema();
    for id in 19.. {
        if stream.len() >= bytes / 2 {
            break;
        }
        stream.extend(event_entry(id, "t", Level::Info, Shape::Instant, &[]));
    }
    schema_of(&stream, &mut out);
    for slot in 0.. {
        if out.len() >= bytes {
            break;
        }
        page_block(SESSION, slot, &[event(16)], &mut out);
    }
    out
}

/// A schema stream in blocks of at most 1 MiB.
fn schema_of(stream: &[u8], out: &mut Vec<u8>) {
    for (number, piece) in stream.chunks(1 << 20).enumerate() {
        write::schema(out, SESSION, (number << 20) as u64, piece).unwrap();
    }
}

/// The dearest of all: every record has a type of its own.
fn unknown_types(bytes: usize) -> Vec<u8> {
    let bytes = bytes / 4;
    let mut out = start(Mode::Discard);
    let mut id = 100;
    for slot in 0.. {
        if out.len() >= bytes {
            break;
        }
        let words: Vec<u64> = (id..id + 400).map(event).collect();
        id += 400;
        page_block(SESSION, slot, &words, &mut out);
    }
    out
}

/// Half a schema of one type, half pages of its events.
fn schema_and_events(bytes: usize, entry: &[u8], payload: &[u64]) -> Vec<u8> {
    let session = common::session_content(common::session_header(Mode::Discard));
    let mut out = Vec::new();
    write::session(&mut out, SESSION, &session).unwrap();
    schema_of(entry, &mut out);
    for number in 0.. {
        if out.len() >= bytes {
            break;
        }
        let mut page = PageOf::new(number, 200 * number);
        while page.left() >= 8 + 8 * payload.len() {
            page.event(1, 16, payload);
        }
        page.write(true, &mut out);
    }
    out
}

fn labels(bytes: usize) -> Vec<u8> {
    let label = |value: u64| [&value.to_le_bytes()[..], b"l"].concat();
    let all: Vec<Vec<u8>> = (0..bytes as u64 / 64).map(label).collect();
    let extra: Vec<(u16, &[u8])> = all.iter().map(|l| (tag::ENUM_LABEL, &l[..])).collect();
    let one = FieldOf {
        extra: &extra,
        ..field("n", Kind::U64, 0)
    };
    let entry = event_entry(16, "tick", Level::Info, Shape::Instant, &[one]);
    schema_and_events(bytes, &entry, &[u64::MAX])
}

fn attributes(bytes: usize) -> Vec<u8> {
    let mut header = common::session_header(Mode::Discard);
    let mut list = Vec::new();
    while list.len() < (bytes / 2).min(3 << 20) {
        attribute::push(&mut list, tag::TAG, b"");
    }
    header.attributes_bytes = list.len() as u32;
    let mut out = Vec::new();
    let content = [header.as_bytes(), &list].concat();
    write::session(&mut out, SESSION, &content).unwrap();
    for slot in 0.. {
        if out.len() >= bytes {
            break;
        }
        page_block(SESSION, slot, &[event(16)], &mut out);
    }
    out
}

fn counters(bytes: usize) -> Vec<u8> {
    let mut out = start(Mode::Discard);
    let slots = (bytes / 2).min(3 << 20) / SlotCounters::BYTES;
    let mut all = vec![SlotCounters::new_zeroed(); slots];
    all.iter_mut().zip(0..).for_each(|(s, n)| s.slot = n);
    write::counters(&mut out, SESSION, &common::counters(&all, [0; 8], true)).unwrap();
    let small = common::counters(&[], [0; 8], false);
    while out.len() < bytes {
        write::counters(&mut out, SESSION, &small).unwrap();
    }
    out
}

fn copies(bytes: usize) -> Vec<u8> {
    let mut out = start(Mode::Discard);
    for number in 0.. {
        if out.len() >= bytes {
            break;
        }
        page_block(SESSION, 0, &[event(16), event(16 + number)], &mut out);
    }
    out
}

/// The kept page is large, the copies are small, and none is just its beginning.
fn copies_of_a_large_page(bytes: usize) -> Vec<u8> {
    let mut out = start(Mode::Discard);
    let mut page = PageOf::new(0, 0);
    page.page_bytes = 1 << 20;
    let mut small = page.bytes.clone();
    while page.left() >= 8 {
        page.word(event(16));
    }
    page.write(false, &mut out);
    small[..96].copy_from_slice(page.header.as_bytes());
    small.extend_from_slice(&ringmark_format::record::pack_span(2, 2).to_le_bytes());
    small.extend_from_slice(&[0; 8]);
    while out.len() < bytes {
        let extent = small.len() as u32;
        let header = write::page_header(
            SESSION,
            RingId(5),
            PageNumber(0),
            extent,
            1 << 20,
            PageState::Open,
        );
        write::block(&mut out, header, &small).unwrap();
    }
    out
}

fn pieces(bytes: usize) -> Vec<u8> {
    let mut out = start(Mode::Discard);
    for number in 0..(bytes / 80) as u64 {
        write::schema(&mut out, SESSION, 1_000_000 - 3 * number % 999_983, &[0; 8]).unwrap();
    }
    out
}

/// A type of many long names, and events of one word.
fn names(bytes: usize) -> Vec<u8> {
    let name = "n".repeat(50);
    let fields: Vec<FieldOf<'_>> = (0..20).map(|_| field(&name, Kind::U64, 0)).collect();
    let entry = event_entry(16, &name, Level::Info, Shape::Instant, &fields);
    schema_and_events(bytes / 4, &entry, &[1])
}

fn backwards(bytes: usize) -> Vec<u8> {
    let mut out = start(Mode::Discard);
    let pages = bytes as u64 / 4200;
    for number in 0..pages {
        let mut page = PageOf::new(number, 500 * number);
        page.header.tick_base = 1000 * (pages - number);
        let mut ticks = 500;
        while page.left() >= 8 {
            ticks -= 1;
            page.event(ticks, 16, &[]);
        }
        page.write(true, &mut out);
    }
    out
}

fn bombs(bytes: usize) -> Vec<u8> {
    let mut out = start(Mode::Discard);
    let mut raw = Vec::new();
    write::block(&mut raw, write::header(99, SESSION), &vec![0; 1 << 20]).unwrap();
    while out.len() < bytes / 16 {
        write::container(&mut out, SESSION, codec::LZ4, &raw).unwrap();
    }
    out
}

/// What this thread has used of a processor: other programs' load is not in it.
fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

/// Decodes the dump that the environment names; not a test on its own, but what the others run.
#[test]
#[ignore = "run by the other test, in a process of its own"]
fn decode_one() {
    let path = std::env::var("RINGMARK_TEST_DUMP").expect("a dump");
    let bytes = std::fs::read(path).unwrap();
    // The best of three: others use the machine, too.
    let times = (0..3).map(|_| {
        let start = processor_time();
        dump_blocks::decode(&bytes);
        processor_time() - start
    });
    let best = times.min().unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kib = peak.split_ascii_whitespace().nth(1).unwrap();
    println!("MEASURED {} {kib}", best.as_nanos());
}

struct Cost {
    time: Duration,
    peak_bytes: u64,
}

fn cost(dir: &TempDir, bytes: &[u8]) -> Cost {
    let path = dir.join("hostile.rmk");
    std::fs::write(&path, bytes).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "linear::decode_one", "--nocapture"]);
    command.env("RINGMARK_TEST_DUMP", &path);
    let done = run(&mut command, Duration::from_secs(120))
        .unwrap()
        .expect_code(0);
    let text = done.stdout_text();
    let (_, found) = text.split_once("MEASURED ").expect("figures");
    let mut numbers = found
        .split_ascii_whitespace()
        .map(|n| n.parse::<u64>().unwrap());
    let time = Duration::from_nanos(numbers.next().unwrap());
    let peak_bytes = numbers.next().unwrap() << 10;
    Cost { time, peak_bytes }
}

/// Costs of two dumps of a kind; measured again where the other programs of the machine may have
/// been at fault.
fn ratio_of(dir: &TempDir, dumps: &[Vec<u8>; 2]) -> (f64, u64) {
    let mut best = f64::INFINITY;
    let mut peak_bytes = 0;
    for _ in 0..3 {
        let [small, large] = dumps.each_ref().map(|dump| cost(dir, dump));
        let ratio = large.time.as_secs_f64() / small.time.max(TOO_SHORT / 4).as_secs_f64();
        println!("  {:?}, {:?}: {ratio:.1} x", small.time, large.time);
        best = best.min(ratio);
        peak_bytes = large.peak_bytes;
        if large.time < TOO_SHORT {
            best = 0.0;
        }
        if best <= RATIO_MAX {
            break;
        }
    }
    (best, peak_bytes)
}

#[test]
fn time_and_memory_grow_with_the_input() {
    let dir = TempDir::new("linear").unwrap();
    let unit = if is_long() { 4 << 20 } else { 512 << 10 };
    let mut wrong = Vec::new();
    for (name, make) in KINDS {
        let dumps = [make(unit), make(4 * unit)];
        let bytes = dumps[1].len() as u64;
        println!("{name}: {} and {bytes} bytes", dumps[0].len());
        let (ratio, peak_bytes) = ratio_of(&dir, &dumps);
        println!("  {} MiB of memory", peak_bytes >> 20);
        let bound = MEMORY_FREE_BYTES + MEMORY_RATIO_MAX * bytes;
        if ratio > RATIO_MAX || peak_bytes > bound {
            wrong.push(*name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
