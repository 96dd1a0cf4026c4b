//! Promise: memory of what reads a trace grows with threads and open spans, not with the trace. `cat`,
//! `report`, `graph`, `export --format csv` and `verify` read one long session, and many that overlap in time, under a limit
//! of the memory that is theirs alone.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ringmark_format::attribute::{self, tag};
use ringmark_format::block::PageState;
use ringmark_format::codec::write;
use ringmark_format::page::PageHeader;
use ringmark_format::session::Mode;
use ringmark_format::{PageNumber, RingId, Uuid};
use ringmark_tests::{TempDir, binary, is_long, require_tools, run};
use zerocopy::IntoBytes;

use crate::common;

use common::function_schema::function_type;
use common::random_trace::{DONE, more_schema};
use common::{PageOf, counters, schema, session_header, slot_counters};

const PAGE_BYTES: u32 = 1 << 16;
/// Ticks between two records, which are nanoseconds.
const STEP: u64 = 10;
/// Number of the first session that shares its process with those after it.
const COPIES: u16 = 60_000;

/// A session of this number with one thread: calls in calls, an event in them, and a finished span
/// around each pair. It begins `late` steps after the first session.
fn write_session(path: &Path, number: u16, pages: u64, late: u64) -> u64 {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let mut uuid = Uuid([9; 16]);
    uuid.0[..2].copy_from_slice(&number.to_le_bytes());
    let mut out = Vec::new();
    write::session(&mut out, uuid, &content(uuid, number)).unwrap();
    write::schema(&mut out, uuid, 0, &schema()).unwrap();
    let at = schema().len() as u64;
    write::schema(&mut out, uuid, at, &more_schema()).unwrap();
    let (mut tick, mut events) = (10_000 + late * STEP, 0);
    for number in 0..pages {
        let mut page = PageOf::new(number, events);
        page.page_bytes = PAGE_BYTES;
        page.header.tick_base = tick;
        let base = tick;
        while page.left() > 128 {
            let mut at = || {
                tick += STEP;
                (tick - base) as u32
            };
            page.event(at(), function_type(0, false), &[0]);
            page.event(at(), function_type(1, false), &[0]);
            page.event(at(), 16, &[events]);
            page.event(at(), function_type(1, true), &[]);
            page.event(at(), DONE, &[3 * STEP]);
            page.event(at(), function_type(0, true), &[]);
            events += 6;
        }
        page.close();
        page.bytes[..PageHeader::BYTES].copy_from_slice(page.header.as_bytes());
        let (ring, number) = (RingId(page.header.ring_id), PageNumber(number));
        let header = write::page_header(
            uuid,
            ring,
            number,
            PAGE_BYTES,
            PAGE_BYTES,
            PageState::Sealed,
        );
        write::block(&mut out, header, &page.bytes).unwrap();
        file.write_all(&out).unwrap();
        out.clear();
    }
    let counted = counters(&[slot_counters(events, [0; 8])], [0; 8], true);
    write::counters(&mut out, uuid, &counted).unwrap();
    file.write_all(&out).unwrap();
    file.flush().unwrap();
    events
}

/// Each session is a process of its own, on one of 20 hosts; those from [`COPIES`] on are copies of the
/// library in one process.
fn content(uuid: Uuid, number: u16) -> Vec<u8> {
    let mut header = session_header(Mode::Discard);
    header.session = uuid.0;
    header.pid = 1000 + u32::from(number.min(COPIES));
    header.start_time = 99;
    let mut attributes = Vec::new();
    attribute::push(&mut attributes, tag::PROCESS_NAME, b"server");
    let host = format!("web-{}", number % 20);
    attribute::push(&mut attributes, tag::HOST, host.as_bytes());
    header.attributes_bytes = attributes.len() as u32;
    [header.as_bytes(), &attributes].concat()
}

/// Runs a command under a limit of its private memory in bytes; returns the lines that it prints.
fn lines_within(limit: u64, words: &str, files: &[PathBuf]) -> u64 {
    let script = "set -o pipefail; prlimit --data=\"$0\" \"$@\" | wc -l";
    let mut command = Command::new("bash");
    command.args(["-c", script, &limit.to_string()]);
    command
        .arg(binary::path())
        .args(words.split(' '))
        .args(files);
    let long = Duration::from_secs(if is_long() { 3000 } else { 120 });
    let done = run(&mut command, long).unwrap();
    assert!(
        done.status.success(),
        "{words} with {limit} bytes: {done:?}"
    );
    let printed = String::from_utf8(done.stdout).unwrap();
    printed.trim().parse().unwrap()
}

/// Every reader gives what it should within the limit.
fn expect_readers_within(limit: u64, files: &[PathBuf], events: u64) {
    assert_eq!(lines_within(limit, "cat", files), events);
    // Two lines for each call with others inside it, one for an event and for the call around it.
    let graph = lines_within(limit, "graph", files);
    assert!(graph > events / 2, "{graph} lines for {events} records");
    assert!(lines_within(limit, "report", files) > 4);
    // A header, and a row for each call, event and span.
    let rows = "export --format csv -o -";
    assert_eq!(lines_within(limit, rows, files), 1 + events / 6 * 4);
    assert!(lines_within(limit, "report --by host,name --csv", files) > 4);
    assert!(lines_within(limit, "verify", files) > 4);
}

#[test]
fn one_long_session() {
    if !require_tools(&["bash", "prlimit", "wc"]) {
        return;
    }
    let dir = TempDir::new("readers-memory-one").unwrap();
    let (bytes, limit) = match is_long() {
        true => (2 << 30, 96 << 20),
        false => (24 << 20, 12 << 20),
    };
    let path = dir.join("long.rmk");
    let events = write_session(&path, 0, bytes / u64::from(PAGE_BYTES), 0);
    assert!(path.metadata().unwrap().len() >= bytes);
    expect_readers_within(limit, &[path], events);
}

#[test]
fn many_sessions_that_overlap() {
    if !require_tools(&["bash", "prlimit", "wc"]) {
        return;
    }
    let dir = TempDir::new("readers-memory-many").unwrap();
    let (sessions, pages, limit) = match is_long() {
        true => (500, 66, 96 << 20),
        false => (40, 10, 24 << 20),
    };
    let mut events = 0;
    let files = (0..sessions).map(|number| {
        let path = dir.join(format!("{number}.rmk"));
        events += write_session(&path, number, pages, u64::from(number) * 7);
        path
    });
    let files: Vec<_> = files.collect();
    expect_readers_within(limit, &files, events);
}

#[test]
fn one_thread_in_two_sessions() {
    if !require_tools(&["bash", "prlimit", "wc"]) {
        return;
    }
    let dir = TempDir::new("readers-memory-thread").unwrap();
    let (bytes, limit) = match is_long() {
        true => (2_u64 << 30, 96 << 20),
        false => (24 << 20, 12 << 20),
    };
    let pages = bytes / 2 / u64::from(PAGE_BYTES);
    let mut events = 0;
    let files: Vec<_> = [COPIES, COPIES + 1]
        .map(|number| {
            let path = dir.join(format!("{number}.rmk"));
            events += write_session(&path, number, pages, u64::from(number - COPIES) * 3);
            path
        })
        .into();
    assert_eq!(lines_within(limit, "cat", &files), events);
    assert!(lines_within(limit, "report", &files) > 4);
    assert!(lines_within(limit, "verify", &files) > 4);
}
