//! Stores of objects as collectors write them, out of random traces, and the rows of their tables.

#![allow(dead_code, unreachable_pub, reason = "every test uses its own part")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use ringmark_decoder::Stamper;
use ringmark_decoder::store::{FooterEntry, OBJECTS_ID, SegmentFooter, raw_object, schema_object};
use ringmark_format::Uuid;
use ringmark_format::block::kind;
use ringmark_format::block_at::Blocks;
use ringmark_format::codec::write;
use ringmark_format::page::PageHeader;
use ringmark_format::progress::{GoneRange, Progress, ProgressSlot, cause};
use ringmark_format::session::Mode;
use ringmark_format::stream::HostClock;

use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::common::random_trace::{RandomTrace, Step, counters_at};

pub const HOST: &str = "web-1";
/// Where a session's header has its uuid.
const UUID_AT: usize = std::mem::offset_of!(ringmark_format::session::SessionHeader, session);

/// The hour before the tests began, which has ended, as names of segments have it.
pub fn hour() -> &'static str {
    static HOUR: LazyLock<String> = LazyLock::new(|| hour_before(1));
    &HOUR
}

/// The hour so many hours ago.
pub fn hour_before(hours: u64) -> String {
    hour_of(now_ns() - hours * 3600 * 1_000_000_000)
}

/// Now, in ns since 1970.
pub fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a time").as_nanos() as u64
}

/// The hour of a time, as names of segments have it.
pub fn hour_of(ns: u64) -> String {
    let mut stamper = Stamper::default();
    let text = stamper.stamp(ns);
    let text = String::from_utf8(text[..13].to_vec()).expect("digits");
    text.replace('T', "-")
}

/// A store in a directory of its own, removed at the end.
pub struct Store(pub PathBuf);

impl Drop for Store {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A session as its collector gets it: pages in the order in which they were sealed.
pub struct Sent {
    pub session: Uuid,
    /// The host that a collector proved.
    pub host: &'static str,
    front: Vec<u8>,
    schema: Vec<u8>,
    /// Bytes of the stream in it.
    schema_bytes: u64,
    pub pages: Vec<Vec<u8>>,
    headers: Vec<PageHeader>,
    /// Slots and numbers of the pages.
    numbers: Vec<(u32, u64)>,
    pub end: Vec<u8>,
}

impl Sent {
    /// A random session that has ended; the same for the same seed.
    pub fn new(seed: u64, steps: usize) -> Self {
        let mut state = seed | 1;
        let mut below = |end: u64| {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 8) % end
        };
        let mut step = || -> Step {
            (
                below(3) as u8,
                below(2000) as u16,
                below(14) as u8,
                below(7) as u8,
            )
        };
        let steps: Vec<Step> = (0..steps).map(|_| step()).collect();
        let trace = RandomTrace::new(Mode::Overwrite, 3, 0).finish(&steps, true);
        Self::of_trace(&trace, Uuid([seed as u8; 16]))
    }

    /// What a trace file holds of its only session.
    pub fn of_trace(trace: &[u8], session: Uuid) -> Self {
        let mut sent = Self {
            session,
            host: HOST,
            front: Vec::new(),
            schema: Vec::new(),
            schema_bytes: 0,
            pages: Vec::new(),
            headers: Vec::new(),
            numbers: Vec::new(),
            end: Vec::new(),
        };
        for block in Blocks::new(trace) {
            let mut content = block.content().expect("a sound block").to_vec();
            let mut header = block.header;
            header.session = session.0;
            if header.kind == kind::SESSION {
                content[UUID_AT..UUID_AT + 16].copy_from_slice(&session.0);
            }
            let mut bytes = Vec::new();
            write::block(&mut bytes, header, &content).expect("a block");
            match header.kind {
                kind::SESSION => sent.front = bytes,
                kind::SCHEMA => {
                    sent.schema.extend(bytes);
                    sent.schema_bytes += content.len() as u64;
                }
                kind::PAGE => {
                    let (header, _) = PageHeader::read_from_prefix(&content).expect("a header");
                    sent.numbers.push((header.slot, block.header.page_number));
                    sent.headers.push(header);
                    sent.pages.push(bytes);
                }
                _ => sent.end.extend(bytes),
            }
        }
        sent
    }
}

impl Sent {
    /// The counters as they were when this page began.
    pub fn counters(&self, page: usize) -> Vec<u8> {
        counters_at(self.session, &self.headers, self.headers[page].tick_base)
    }

    /// What its host says when its clock shows this, and runs ahead of its collector's by so much: pages that are not here will
    /// come, but for those that were never sealed.
    pub fn said(&self, (real_ns, ahead_ns): (u64, i64)) -> Vec<u8> {
        let mut numbers = self.numbers.clone();
        numbers.sort_unstable();
        let (mut next, mut ranges) = (BTreeMap::new(), Vec::new());
        for (slot, number) in numbers {
            let from = next.insert(slot, number + 1).unwrap_or(0);
            let cause = cause::OVERWRITTEN;
            let to = number;
            if to > from {
                let events = 0;
                ranges.push(GoneRange {
                    slot,
                    cause,
                    from,
                    to,
                    events,
                });
            }
        }
        let head = Progress {
            epoch: 1,
            mono_ns: real_ns,
            real_ns,
            slots: next.len() as u32,
            ranges: ranges.len() as u32,
            ..Progress::new_zeroed()
        };
        let slots = next.keys().map(|slot| ProgressSlot {
            slot: *slot,
            ..ProgressSlot::new_zeroed()
        });
        let slots = slots.flat_map(|slot| slot.as_bytes().to_vec());
        let ranges = ranges.iter().flat_map(|range| range.as_bytes());
        let content = head.as_bytes().iter().copied().chain(slots);
        let content: Vec<u8> = content.chain(ranges.copied()).collect();
        let mut out = Vec::new();
        let header = write::header(kind::PROGRESS, self.session);
        write::block(&mut out, header, &content).expect("a block");
        let measured = HostClock {
            real_ns: real_ns.saturating_add_signed(-ahead_ns),
            offset_ns: ahead_ns,
            error_ns: 1000,
            mono_ns: real_ns,
        };
        write::host_clock(&mut out, self.session, &measured).expect("a block");
        out
    }
}

impl Store {
    pub fn new(name: &str) -> Self {
        let name = format!("ringmark-fleet-{name}-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).expect("a directory");
        fs::write(root.join(OBJECTS_ID), "{}").expect("a file");
        Self(root)
    }

    /// Puts an object.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("one")).expect("a directory");
        fs::write(path, bytes).expect("an object");
    }

    /// Puts what a collector puts first of a session.
    pub fn begin(&self, sent: &Sent) {
        let bytes = [&sent.front[..], &sent.schema].concat();
        let range = (0, sent.schema.len() as u64);
        self.put(&schema_object(sent.host, sent.session, range, 7), &bytes);
    }

    /// Puts segment `number` with these blocks of sessions, uploaded in [`hour`].
    pub fn segment(&self, number: u64, of: &[(&Sent, &[u8])]) -> PathBuf {
        self.segment_of(hour(), number, of)
    }

    /// The same, uploaded in another hour.
    pub fn segment_of(&self, hour: &str, number: u64, of: &[(&Sent, &[u8])]) -> PathBuf {
        let mut bytes = Vec::new();
        let mut sessions: BTreeMap<[u8; 16], FooterEntry> = BTreeMap::new();
        for (sent, blocks) in of {
            bytes.extend_from_slice(&sent.front);
            bytes.extend_from_slice(blocks);
            let entry = FooterEntry {
                session: sent.session,
                host: sent.host.into(),
                service: b"shop".to_vec(),
                schema_bytes: sent.schema_bytes,
                epoch: 1,
                bytes: blocks.len() as u32,
                index: None,
            };
            sessions.insert(sent.session.0, entry);
        }
        let footer = SegmentFooter {
            segment_bytes: bytes.len() as u64,
            sessions: sessions.into_values().collect(),
            is_grouped: false,
        };
        bytes.extend(footer.block());
        let name = raw_object(hour, Uuid([1; 16]), number);
        self.put(&name, &bytes);
        self.0.join(name)
    }

    pub fn command(&self, words: &str) -> Command {
        // The tests of ringmark-query have only that: it can do the same.
        let program = option_env!("CARGO_BIN_EXE_ringmark-fleet");
        let program = program.or(option_env!("CARGO_BIN_EXE_ringmark-query"));
        let mut command = Command::new(program.expect("a program that is tested"));
        command.current_dir(&self.0).args(words.split(' '));
        command
    }

    /// Makes tables; it must succeed.
    pub fn compact(&self) -> String {
        self.compact_with("compact .")
    }

    /// The same with options.
    pub fn compact_with(&self, words: &str) -> String {
        let done = self.command(words).output().expect("it runs");
        let said = said(&done);
        assert!(done.status.code().is_some_and(|code| code <= 1), "{said}");
        said
    }

    /// Paths of the files of a table, by its log, and how often each was added.
    pub fn files(&self, table: &str) -> Vec<PathBuf> {
        let table = self.0.join("tables").join(table);
        let mut files = Vec::new();
        for version in 0.. {
            let path = table.join(format!("_delta_log/{version:020}.json"));
            let Ok(text) = fs::read_to_string(path) else {
                break;
            };
            for line in text.lines() {
                let action: serde_json::Value = serde_json::from_str(line).expect("JSON");
                let path =
                    |of: &serde_json::Value| of["path"].as_str().map(|path| table.join(path));
                files.extend(path(&action["add"]));
                if let Some(path) = path(&action["remove"]) {
                    files.retain(|file| *file != path);
                }
            }
        }
        files
    }

    /// The rows of spans and events, sorted.
    pub fn rows(&self) -> Vec<String> {
        let files = self.files("spans").into_iter().chain(self.files("events"));
        let mut rows: Vec<String> = files.flat_map(|file| rows_of(&file)).collect();
        rows.sort();
        rows
    }

    /// Checks that the tables have the rows of an export, each once, and beside them only spans and calls that
    /// did not end. Returns the number of the latter.
    pub fn check(&self, expected: &[String], what: &str) -> usize {
        check(&self.rows(), expected, what)
    }

    /// The rows that a scan of the store gives.
    pub fn scanned(&self) -> Vec<String> {
        let out = self.0.with_extension("scan");
        let done = self
            .command("export . --format parquet -o")
            .arg(&out)
            .output()
            .expect("it runs");
        assert!(
            done.status.code().is_some_and(|code| code <= 1),
            "{}",
            said(&done)
        );
        let mut rows = rows_of(&out);
        let _ = fs::remove_file(out);
        rows.sort();
        rows
    }
}

/// Two sessions in segments that each hold some pages of both; the last one has their ends.
pub fn segments(sent: &[Sent], count: usize) -> Vec<Vec<(&Sent, Vec<u8>)>> {
    let mut segments = Vec::new();
    for number in 0..count {
        let of = sent.iter().map(|sent| {
            let each = sent.pages.len().div_ceil(count);
            let pages = sent.pages.chunks(each).nth(number).unwrap_or_default();
            let mut blocks = pages.concat();
            let last = ((number + 1) * each).min(sent.pages.len()) - 1;
            blocks.extend(sent.counters(last));
            if number + 1 == count {
                blocks.extend_from_slice(&sent.end);
            }
            (sent, blocks)
        });
        segments.push(of.collect());
    }
    segments
}

/// Puts segment `number`.
pub fn put(store: &Store, number: usize, of: &[(&Sent, Vec<u8>)]) {
    put_in(store, hour(), number, of);
}

/// The same, uploaded in another hour.
pub fn put_in(store: &Store, hour: &str, number: usize, of: &[(&Sent, Vec<u8>)]) {
    let of: Vec<_> = of
        .iter()
        .map(|(sent, blocks)| (*sent, &blocks[..]))
        .collect();
    store.segment_of(hour, number as u64, &of);
}

/// All segments were put so long ago, by the clock of the store.
pub fn make_old(store: &Store, ago: Duration) {
    let time = SystemTime::now() - ago;
    for path in paths_below(&store.0.join("raw")) {
        let file = File::options().write(true).open(&path).expect("a file");
        file.set_modified(time).expect("a time");
    }
}

/// A store of some sessions without its segments.
pub fn begun(name: &str, sent: &[Sent]) -> Store {
    let store = Store::new(name);
    sent.iter().for_each(|sent| store.begin(sent));
    store
}

/// Two sessions that have ended.
pub fn sessions() -> [Sent; 2] {
    [Sent::new(19, 1500), Sent::new(23, 1000)]
}

/// As [`Store::check`], for rows from anywhere.
pub fn check(rows: &[String], expected: &[String], what: &str) -> usize {
    let mut left: BTreeMap<&str, i64> = BTreeMap::new();
    rows.iter()
        .for_each(|row| *left.entry(row).or_default() += 1);
    expected
        .iter()
        .for_each(|row| *left.entry(row).or_default() -= 1);
    let differing = left
        .iter()
        .filter(|(row, count)| **count < 0 || **count > 0 && (**count > 1 || !is_unended(row)));
    let differing: Vec<_> = differing.take(5).collect();
    assert!(differing.is_empty(), "{what}: {differing:#?}");
    rows.len() - expected.len()
}

pub fn said(done: &Output) -> String {
    String::from_utf8(done.stderr.clone()).expect("UTF-8")
}

/// Columns that are compared: all but when losses were noticed, and what is only in tables.
pub const COLUMNS: [&str; 18] = [
    "kind",
    "ts_ns",
    "dur_ns",
    "truncated",
    "name",
    "target",
    "level",
    "host",
    "service",
    "session",
    "pid",
    "tid",
    "thread",
    "ring",
    "page",
    "idx",
    "depth",
    "args",
];

/// Whether a row is a span or a call without an end.
pub fn is_unended(row: &str) -> bool {
    let mut cells = row.split('|');
    let (kind, _) = (cells.next(), cells.next());
    matches!(kind, Some("span" | "call"))
        && cells.next() == Some("")
        && cells.next() == Some("false")
}

pub fn batches(path: &Path) -> Vec<RecordBatch> {
    let file = File::open(path).expect("the file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    let reader = reader.build().expect("Parquet");
    reader.map(|batch| batch.expect("rows")).collect()
}

/// The rows of a file as text.
fn rows_of(path: &Path) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches(path) {
        let columns: Vec<_> = COLUMNS
            .iter()
            .map(|name| batch.column_by_name(name).expect(name))
            .collect();
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| cell(column, row));
            rows.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    rows
}

/// A cell as text.
pub fn cell(column: &dyn Array, row: usize) -> String {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int32Type, Int64Type};
    use arrow_schema::DataType;
    if column.is_null(row) {
        return String::new();
    }
    match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Boolean => column.as_boolean().value(row).to_string(),
        _ => column.as_string::<i32>().value(row).to_owned(),
    }
}

/// The files below a directory.
pub fn paths_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let below = paths.flat_map(|path| match path.is_dir() {
        true => paths_below(&path),
        false => vec![path],
    });
    below.collect()
}

/// Number of files below a directory.
pub fn below(directory: &Path) -> usize {
    paths_below(directory).len()
}
