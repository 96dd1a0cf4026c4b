//! Promise: of a large store, a scan of a hundredth of the time on one host of many reads a twentieth
//! of the bytes at most, and shows what a scan of everything shows.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use ringmark_decoder::store::{directory_name, index_of, segment, segment_end};
use ringmark_decoder::{BlockReader, IndexBuilder, Item};
use ringmark_format::attribute::{self, tag};
use ringmark_format::block::PageState;
use ringmark_format::codec::write;
use ringmark_format::page::PageHeader;
use ringmark_format::session::Mode;
use ringmark_format::{PageNumber, RingId, Uuid};
use ringmark_tests::{TempDir, binary, require_tools, run};
use zerocopy::IntoBytes;

use crate::common;

use common::{PageOf, REAL_ZERO_NS, schema, session_header};

const HOSTS: u8 = 10;
const SEGMENTS: u32 = 10;
/// Pages of 16 KiB in each segment, and ticks between their events, which are ns: a segment lasts for
/// 16 s.
const PAGES: u64 = 8;
const PAGE_BYTES: u32 = 16 << 10;
const STEP: u64 = 2_000_000;
/// Each session begins so much later than the one before, in ns. Times since the start count from the first one.
const LATER: u64 = 1_000_000_000;

/// The session of a host in segments, each with its index.
fn write_host(store: &Path, number: u8) {
    let uuid = Uuid([number + 1; 16]);
    let service = ["shop", "web/front"][usize::from(number % 2)];
    let host = format!("host-{number}");
    let directory = store
        .join("2026-11-20")
        .join(directory_name(service))
        .join(&host);
    fs::create_dir_all(&directory).unwrap();
    let mut header = session_header(Mode::Discard);
    (header.session, header.pid) = (uuid.0, 100 + u32::from(number));
    header.real_zero_ns += u64::from(number) * LATER;
    let mut attributes = Vec::new();
    attribute::push(&mut attributes, tag::HOST, host.as_bytes());
    attribute::push(&mut attributes, tag::SERVICE_NAME, service.as_bytes());
    header.attributes_bytes = attributes.len() as u32;
    let session = [header.as_bytes(), &attributes].concat();
    let (mut tick, mut events) = (10_000, 0);
    for place in 0..SEGMENTS {
        let mut out = Vec::new();
        write::session(&mut out, uuid, &session).unwrap();
        write::schema(&mut out, uuid, 0, &schema()).unwrap();
        for page in 0..PAGES {
            let number = u64::from(place) * PAGES + page;
            let mut page = PageOf::new(number, events);
            (page.page_bytes, page.header.tick_base) = (PAGE_BYTES, tick);
            while page.left() >= 16 {
                let ticks = (tick - page.header.tick_base) as u32;
                page.event(ticks, 16, &[events]);
                (tick, events) = (tick + STEP, events + 1);
            }
            page.close();
            page.bytes[..PageHeader::BYTES].copy_from_slice(page.header.as_bytes());
            let ring = RingId(page.header.ring_id);
            let state = PageState::Sealed;
            let header = write::page_header(
                uuid,
                ring,
                PageNumber(number),
                PAGE_BYTES,
                PAGE_BYTES,
                state,
            );
            write::block(&mut out, header, &page.bytes).unwrap();
        }
        let path = segment(&directory, uuid, place);
        fs::write(&path, out).unwrap();
        write_index(&path);
    }
}

fn write_index(segment: &Path) {
    let mut reader = BlockReader::new("a segment", File::open(segment).unwrap());
    let mut builder = IndexBuilder::default();
    while let Some(Item::Block(block)) = reader.next_item() {
        builder.take(&block).unwrap();
    }
    let index = builder.finish(segment_end(segment).unwrap()).unwrap();
    fs::write(index_of(segment), index.bytes()).unwrap();
}

fn files(below: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(below)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let all = entries.flat_map(|path| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    });
    all.collect()
}

/// Rows that a scan shows, and the bytes that it read below the store.
fn scan(dir: &TempDir, store: &Path, words: &str) -> (BTreeSet<String>, u64) {
    let log = dir.join("calls");
    let mut strace = std::process::Command::new("strace");
    strace.args([
        "-f",
        "-y",
        "-e",
        "trace=read,readv,pread64,preadv,mmap",
        "-o",
    ]);
    strace.arg(&log).arg(binary::path());
    strace
        .args(["export", "--format", "csv", "-o", "-"])
        .arg(store);
    strace.args(words.split_whitespace());
    let done = run(&mut strace, std::time::Duration::from_secs(120)).unwrap();
    let text = done.expect_code(0).stdout_text();
    let below = format!("<{}/", store.display());
    let calls = fs::read_to_string(&log).unwrap();
    let calls = calls.lines().filter(|line| line.contains(&below));
    let bytes = calls.map(|line| {
        assert!(!line.contains("mmap("), "{line}");
        let result = line.rsplit_once("= ").map_or("", |(_, result)| result);
        result.trim().parse::<u64>().unwrap_or(0)
    });
    (
        text.lines().skip(1).map(str::to_owned).collect(),
        bytes.sum(),
    )
}

/// When a row begins, in ns since 1970.
fn time(row: &str) -> u64 {
    row.split(',').next().unwrap().parse().unwrap()
}

#[test]
fn a_hundredth_of_the_time_on_one_host() {
    if !require_tools(&["strace"]) {
        return;
    }
    let dir = TempDir::new("scan-reads").unwrap();
    let store = dir.join("store");
    (0..HOSTS).for_each(|number| write_host(&store, number));
    let all = files(&store);
    let total: u64 = all.iter().map(|file| file.metadata().unwrap().len()).sum();
    let (everything, _) = scan(&dir, &store, "");
    let events = u64::from(SEGMENTS) * PAGES * ((u64::from(PAGE_BYTES) - 64) / 16);
    let whole_ns = events * STEP;
    assert!(everything.len() as u64 > u64::from(HOSTS) * (events - 1000));
    // From 45 % to 46 % of the whole time.
    let at = |percent: u64| whole_ns / 100 * percent;
    let window = format!("--from {}ns --to {}ns", at(45), at(46));
    // The number of the first host that is chosen comes last.
    for (choice, host, most, first) in [
        ("--host host-4", Some(",host-4,"), 5, 4),
        ("--host host-4 --service shop", Some(",host-4,"), 5, 4),
        ("--service web*", None, 25, 1),
        ("", None, 50, 0),
    ] {
        let start = REAL_ZERO_NS + first * LATER;
        let is_inside = |row: &&String| (start + at(45)..start + at(46)).contains(&time(row));
        let (found, bytes) = scan(&dir, &store, &format!("{choice} {window}"));
        let of_host = |row: &&String| host.is_none_or(|host| row.contains(host));
        let of_service = |row: &&String| !choice.contains("web") || row.contains(",web/front,");
        let expected = everything
            .iter()
            .filter(is_inside)
            .filter(of_host)
            .filter(of_service);
        let expected: BTreeSet<_> = expected.cloned().collect();
        println!(
            "{choice}: {bytes} of {total} bytes, {:.1} %",
            100.0 * bytes as f64 / total as f64
        );
        let differ: Vec<_> = found.symmetric_difference(&expected).take(4).collect();
        assert!(
            differ.is_empty() && !found.is_empty(),
            "{choice}: {differ:?}"
        );
        assert!(100 * bytes <= most * total, "{choice}: {bytes} of {total}");
    }
    // The last half second of what is chosen: the last segment of each session, which is read twice.
    for (choice, most) in [("--host host-4", 5), ("", 30)] {
        let (found, bytes) = scan(&dir, &store, &format!("{choice} --last 500ms"));
        let is_chosen = |row: &&String| choice.is_empty() || row.contains(",host-4,");
        let chosen = everything.iter().filter(is_chosen);
        let last = chosen.clone().map(|row| time(row)).max().unwrap();
        let expected = chosen.filter(|row| time(row) >= last - 500_000_000);
        assert_eq!(found, expected.cloned().collect(), "{choice}");
        assert!(100 * bytes <= most * total, "{choice}: {bytes} of {total}");
    }
    let (none, bytes) = scan(&dir, &store, &format!("--service other {window}"));
    assert!(none.is_empty() && bytes == 0, "{bytes}");
}
