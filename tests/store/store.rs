//! Promise: a time is found in a store without reading what is of other times, by indexes that no reader has to believe;
//! what is old or too much is removed, and nothing else.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ringmark_collector::Figures;
use ringmark_collector::store::{DirectoryOptions, Now, Retention, Store, StoreOptions, SyncMode};
use ringmark_decoder::Stamper;
use ringmark_reader::Codec;
use ringmark_reader::stream::Address;
use ringmark_tests::collecting::{Collecting, options, segments, stream};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::decode;
use ringmark_tests::{Finished, binary, require_tools, run};

const EMIT: &str = ringmark_tests::program!("emit");

/// Events that are emitted without a pause between them.
const EDGE: usize = 20;

/// A store of one session whose events take some seconds, in small segments with indexes.
struct Filled {
    fixture: Fixture,
    store: PathBuf,
    /// Earliest and latest event, ns since 1970.
    times: (u64, u64),
}

impl Filled {
    fn new(label: &str) -> Self {
        let fixture = Fixture::new(label);
        let ringmark = "mode=discard,ring=4M,page=4K,session=16M,keep=always";
        let program = fixture.start(EMIT, ringmark, "1 8000 burst=20 pause=10000");
        let _ = program.finish(SOON).expect_code(0);
        let (socket, store) = (fixture.path("socket"), fixture.path("store"));
        let mut collector = options(Address::Unix(socket.clone()), &store);
        collector.store.segment_bytes = 24 << 10;
        let collecting = Collecting::with(collector);
        let _ = stream(&fixture.ring_file(), &socket, Codec::None);
        let found = collecting.stored().verify();
        assert_eq!((found.events, found.is_clean()), (8000, true));
        let filled = Self {
            fixture,
            store,
            times: (found.first_ns.unwrap(), found.last_ns.unwrap()),
        };
        drop(collecting);
        filled.tidy(Retention::default());
        filled
    }

    fn options(&self, retention: Retention) -> StoreOptions {
        StoreOptions {
            root: self.store.clone(),
            sync: SyncMode::Cache,
            segment_bytes: 24 << 10,
            segment_age: Duration::from_secs(3600),
            retention,
            session_bytes: 1 << 20,
            directory: DirectoryOptions::default(),
        }
    }

    /// What a collector does from time to time.
    fn tidy(&self, retention: Retention) {
        let store = Store::open(self.options(retention), Arc::new(Figures::default()));
        let errors = store.unwrap().tidy(Now::read());
        assert!(errors.is_empty(), "{errors:?}");
    }

    /// The same at that time, ns since 1970, of a clock that is known to be steady, until this number of
    /// segments are left and no more go.
    fn tidy_until(&self, retention: Retention, real_ns: u64, left: usize) {
        const HOURS_NS: u64 = 2 * 3_600_000_000_000;
        let store = Store::open(self.options(retention), Arc::new(Figures::default())).unwrap();
        let tidy = |real_ns, boot_ns| {
            let errors = store.tidy(Now { real_ns, boot_ns });
            assert!(errors.is_empty(), "{errors:?}");
        };
        tidy(real_ns - HOURS_NS, HOURS_NS);
        for _ in 0..100 {
            tidy(real_ns, 2 * HOURS_NS);
        }
        assert_eq!(self.segments().len(), left, "{:?}", store.take_notices());
    }

    fn segments(&self) -> Vec<PathBuf> {
        let mut found = segments(&self.store);
        found.sort_by_key(|path| number(path));
        found
    }

    /// Looks for these parts of the whole time, in thousandths.
    fn cat(&self, from: u64, to: u64) -> Finished {
        let (first, last) = self.times;
        let at = |part| stamp(first + (last - first) / 1000 * part);
        let mut command = self.fixture.command(binary::path());
        command.arg("cat").arg(&self.store);
        command.args(["--json", "--from", &at(from), "--to", &at(to)]);
        run(&mut command, SOON).unwrap()
    }
}

fn number(segment: &Path) -> u32 {
    let name = segment.file_stem().unwrap().to_str().unwrap();
    name.rsplit_once('.').unwrap().1.parse().unwrap()
}

fn index(segment: &Path) -> PathBuf {
    segment.with_extension("idx")
}

fn stamp(ns: u64) -> String {
    String::from_utf8(Stamper::default().stamp(ns).to_vec()).unwrap()
}

/// The numbers of the events that were shown.
fn shown(cat: &Finished) -> Vec<u64> {
    let text = cat.stdout_text();
    let numbers = text.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["args"]["seq"]
            .as_u64()
            .unwrap_or_else(|| panic!("{line}"))
    });
    numbers.collect()
}

/// Whether segments were left out.
fn left_out(cat: &Finished) -> bool {
    cat.stderr_text().contains("of other times were not read")
}

#[test]
fn a_time_is_found_without_reading_the_rest() {
    let filled = Filled::new("times");
    let segments = filled.segments();
    assert!(segments.len() >= 6, "{} segments", segments.len());
    assert!(segments.iter().all(|path| index(path).exists()));
    for (from, to) in [(0, 100), (450, 550), (930, 1001)] {
        let quick = filled.cat(from, to).expect_code(0);
        assert!(left_out(&quick), "{from}..{to}: {}", quick.stderr_text());
        let found = shown(&quick);
        // The truth: without indexes everything is read.
        let hidden = hide(&segments);
        let slow = filled.cat(from, to).expect_code(0);
        unhide(&hidden);
        assert!(!left_out(&slow));
        // At the edges a nanosecond may differ: less of the session's clock was read.
        let slow = shown(&slow);
        let inside = &slow[EDGE..slow.len() - EDGE];
        assert!(
            found.windows(inside.len()).any(|part| part == inside),
            "{from}..{to}: {found:?}"
        );
        assert!(found.len().abs_diff(slow.len()) <= 2 * EDGE);
        assert!(found.len() > 2 * EDGE, "{} events", found.len());
        println!(
            "{from}..{to}: {} events; {}",
            found.len(),
            quick.stderr_text().trim()
        );
    }
    // Nothing is read of what is left out: it may be unreadable.
    let early = shown(&filled.cat(0, 100).expect_code(0));
    for path in segments.iter().rev().take(2) {
        let mut bytes = fs::read(path).unwrap();
        bytes[100..2000].fill(0xEE);
        fs::write(path, bytes).unwrap();
    }
    let again = filled.cat(0, 100).expect_code(0);
    assert_eq!(shown(&again), early);
    assert!(!again.stderr_text().contains("checksum"));
    assert_eq!(filled.cat(0, 1001).code(), 1, "damage that is read is told");
}

fn hide(segments: &[PathBuf]) -> Vec<(PathBuf, Vec<u8>)> {
    let take = |path: &PathBuf| {
        let index = index(path);
        let bytes = fs::read(&index).unwrap();
        fs::remove_file(&index).unwrap();
        (index, bytes)
    };
    segments.iter().map(take).collect()
}

fn unhide(hidden: &[(PathBuf, Vec<u8>)]) {
    for (path, bytes) in hidden {
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn an_index_that_is_wrong_is_not_believed_and_one_that_is_gone_is_made_again() {
    let filled = Filled::new("wrong");
    let segments = filled.segments();
    let late = shown(&filled.cat(930, 1001).expect_code(0));
    let expect = |what: &str, is_left_out| {
        let found = filled.cat(930, 1001).expect_code(0);
        assert_eq!(
            left_out(&found),
            is_left_out,
            "{what}: {}",
            found.stderr_text()
        );
        assert_eq!(shown(&found), late, "{what}");
    };
    expect("as it is", true);
    // Each index is that of the first segment: its session, its times, but not its end.
    let kept: Vec<_> = segments
        .iter()
        .map(|path| fs::read(index(path)).unwrap())
        .collect();
    for path in &segments {
        fs::write(index(path), &kept[0]).unwrap();
    }
    // All but the first one are read, late events among them.
    expect("another segment's", true);
    for at in [0, 70, 100] {
        for (path, bytes) in segments.iter().zip(&kept) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 4;
            fs::write(index(path), bytes).unwrap();
        }
        expect("damaged", false);
    }
    for path in &segments {
        fs::write(index(path), b"").unwrap();
    }
    expect("empty", false);
    for path in &segments {
        fs::remove_file(index(path)).unwrap();
    }
    expect("gone", false);
    filled.tidy(Retention::default());
    expect("made again", true);
    let made: Vec<_> = segments
        .iter()
        .map(|path| fs::read(index(path)).unwrap())
        .collect();
    assert_eq!(made, kept);
    // A segment that grew is not what its index says.
    let last = segments.last().unwrap();
    let mut bytes = fs::read(last).unwrap();
    bytes.extend_from_slice(&fs::read(&segments[0]).unwrap());
    fs::write(&segments[0], bytes).unwrap();
    let early = filled.cat(930, 1001);
    assert_eq!(shown(&early), late, "{}", early.stderr_text());
}

#[test]
fn a_session_that_goes_on_is_found_by_its_indexes() {
    let filled = Filled::new("on");
    let before = filled.segments();
    let socket = filled.fixture.path("again");
    let mut collector = options(Address::Unix(socket.clone()), &filled.store);
    collector.store.segment_bytes = 24 << 10;
    // What a recovery need not read may even be gone: the index says what was there.
    let bytes = fs::read(&before[1]).unwrap();
    let mut torn = bytes.clone();
    torn[100..1000].fill(0xEE);
    fs::write(&before[1], torn).unwrap();
    let collecting = Collecting::with(collector);
    let figures = stream(&filled.fixture.ring_file(), &socket, Codec::None);
    // A page that a thread of a process that exits had no time to seal may come again, no other.
    assert!(collecting.figure("pages_total") <= 1, "{figures:?}");
    drop(collecting);
    fs::write(&before[1], bytes).unwrap();
    assert_eq!(shown(&filled.cat(0, 1001).expect_code(0)).len(), 8000);
}

#[test]
fn what_is_old_or_too_much_is_removed() {
    const DAY: Duration = Duration::from_secs(86_400);
    let filled = Filled::new("old");
    let all = filled.segments();
    // The times of the files, those of a copy perhaps, say the opposite.
    let now = SystemTime::now();
    for (n, path) in all.iter().enumerate() {
        let file = File::options().append(true).open(path).unwrap();
        file.set_modified(now - DAY * n as u32).unwrap();
    }
    let size = |path: &PathBuf| fs::metadata(path).unwrap().len();
    let keep: u64 = all[2..].iter().map(size).sum();
    let too_much = |bytes| Retention {
        bytes: Some(bytes),
        ..Retention::default()
    };
    filled.tidy_until(too_much(keep), real_ns(), all.len() - 2);
    assert_eq!(filled.segments(), all[2..]);
    assert!(!index(&all[0]).exists() && index(&all[2]).exists());
    // A moment after the last event of the fourth has become too old.
    let fourth = decode(&all[3..4]).verify().last_ns.unwrap();
    let old = Retention {
        age: Some(DAY),
        ..Retention::default()
    };
    let at = fourth + DAY.as_nanos() as u64 + 5_000_000;
    filled.tidy_until(old, at, all.len() - 4);
    assert_eq!(filled.segments(), all[4..]);
    // What is left is read as ever; what is gone is told as removed.
    let found = shown_events(&filled);
    assert!(found.contains(&7999) && !found.contains(&0));
    filled.tidy_until(too_much(0), real_ns(), 0);
    assert!(filled.segments().is_empty());
}

fn real_ns() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap().as_nanos() as u64
}

fn shown_events(filled: &Filled) -> Vec<u64> {
    let mut command = filled.fixture.command(binary::path());
    command.arg("cat").arg(&filled.store).arg("--json");
    let cat = run(&mut command, SOON).unwrap();
    let text = cat.stdout_text();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines
        .filter_map(|line| line["args"]["seq"].as_u64())
        .collect()
}

impl Filled {
    /// A command on the store, which is told `error` for what it wants of these segments.
    fn told(&self, error: &str, of: &[PathBuf], arguments: &[&str]) -> Finished {
        let mut command = self.fixture.command("strace");
        command.args(["-qq", "-o", "/dev/null", "-e", "trace=openat,statx"]);
        command.args(["-e", &format!("inject=openat,statx:error={error}")]);
        for segment in of {
            command.arg("-P").arg(segment);
        }
        command.arg(binary::path()).args(arguments).arg(&self.store);
        run(&mut command, SOON).unwrap()
    }

    /// The same without a segment that was there before, and no error.
    fn without(&self, segment: &Path, arguments: &[&str]) -> Finished {
        let aside = self.fixture.path("aside");
        fs::rename(segment, &aside).unwrap();
        let mut command = self.fixture.command(binary::path());
        let finished = run(command.args(arguments).arg(&self.store), SOON).unwrap();
        fs::rename(&aside, segment).unwrap();
        finished
    }
}

/// Retention removes segments while people read: as if they had been removed before. Any other error is damage.
#[test]
fn segments_that_go_while_they_are_read_are_passed_over() {
    if !require_tools(&["strace"]) {
        return;
    }
    let filled = Filled::new("going");
    let all = filled.segments();
    let account = |finished: &Finished| -> serde_json::Value {
        serde_json::from_slice(&finished.stdout)
            .unwrap_or_else(|_| panic!("exit code {}: {}", finished.code(), finished.stderr_text()))
    };
    let verify = ["verify", "--json"];
    let gone = filled.told("ENOENT", &all[..1], &verify);
    let mut found = account(&gone);
    let mut before = account(&filled.without(&all[0], &verify).expect_code(0));
    assert!(before["removed"].as_u64() > Some(0) && before["missing"] == 0);
    assert_eq!(before["removed_segments"].take(), 0);
    assert_eq!(found["removed_segments"].take(), 1);
    assert_eq!((found, gone.code()), (before.clone(), 0));
    for arguments in [&["cat", "--json"][..], &["report"], &["graph"]] {
        let before = filled.without(&all[0], arguments);
        let gone = filled.told("ENOENT", &all[..1], arguments);
        let told = gone.stderr_text();
        assert!(
            told.contains("1 segment removed by the collector"),
            "{arguments:?}: {told}"
        );
        assert_eq!(
            (gone.code(), gone.stdout_text()),
            (before.code(), before.stdout_text()),
            "{arguments:?}"
        );
    }
    let denied = filled.told("EACCES", &all[..1], &verify).expect_code(1);
    let found = account(&denied);
    assert_eq!(
        (&found["events"], &found["damaged"]),
        (&before["events"], &1.into())
    );
    let why = found["damage"][0].as_str().unwrap();
    assert!(
        why.contains("Permission denied") && why.contains(all[0].to_str().unwrap()),
        "{why}"
    );
    // Nothing is left to show.
    for (error, text) in [
        ("ENOENT", "removed by the collector"),
        ("EACCES", "Permission denied"),
    ] {
        let none = filled
            .told(error, &all, &["cat"])
            .expect_code(3)
            .stderr_text();
        assert!(none.contains(text), "{none}");
    }
}
