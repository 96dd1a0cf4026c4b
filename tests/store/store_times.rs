//! Promise: every command that looks for a time in a store reads the segments of that time and no
//! others, of all hosts together, and is told how wrong the times can be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringmark_collector::Figures;
use ringmark_collector::store::{DirectoryOptions, Now, Retention, Store, StoreOptions, SyncMode};
use ringmark_decoder::Stamper;
use ringmark_format::store::INDEX_TAIL_BYTES;
use ringmark_reader::Codec;
use ringmark_reader::stream::Address;
use ringmark_tests::collecting::{Collecting, options, segments, stream_as};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{LIMIT, SITES, compile, library};
use ringmark_tests::recording::decode;
use ringmark_tests::{Finished, Running, binary, require_tools, run};

const SEGMENT: u64 = 24 << 10;
/// Beyond an index's times: what the clock of one segment may be wrong, as its reader takes it.
const SLACK_NS: u64 = 1_100_000_000;

/// A store of two hosts that called functions for some seconds, in small segments with indexes.
struct Scene {
    fixture: Fixture,
    store: PathBuf,
    /// Earliest and latest event, ns since 1970.
    times: (u64, u64),
}

impl Scene {
    fn new() -> Self {
        let fixture = Fixture::new("store-times");
        let program = compile(&fixture, "nested.c", "nested", SITES);
        let hosts = ["one", "two"].map(|host| (host, Fixture::new(host)));
        let running = hosts.each_ref().map(|(_, at)| {
            let mut command = at.command(&program);
            command.args(["2500", "2000"]);
            command.env(
                "RINGMARK",
                "mode=discard,ring=4M,page=4K,session=16M,keep=always",
            );
            command.env("RINGMARK_TRACE", "tracer=graph;filter=*");
            command.env("LD_PRELOAD", library());
            Running::start(&mut command).unwrap()
        });
        for running in running {
            let _ = running.finish(LIMIT).expect_code(0);
        }
        let (socket, store) = (fixture.path("socket"), fixture.path("store"));
        let mut collector = options(Address::Unix(socket.clone()), &store);
        collector.store.segment_bytes = SEGMENT;
        let collecting = Collecting::with(collector);
        for (host, at) in &hosts {
            let _ = stream_as(host, &at.ring_file(), &socket, Codec::None);
        }
        let found = collecting.stored().verify();
        assert!(found.is_clean() && found.sessions == 2, "{found}");
        let times = (found.first_ns.unwrap(), found.last_ns.unwrap());
        drop(collecting);
        let scene = Self {
            fixture,
            store,
            times,
        };
        scene.make_indexes();
        scene
    }

    /// What a collector does from time to time.
    fn make_indexes(&self) {
        let options = StoreOptions {
            root: self.store.clone(),
            sync: SyncMode::Cache,
            segment_bytes: SEGMENT,
            segment_age: Duration::from_secs(3600),
            retention: Retention::default(),
            session_bytes: 1 << 20,
            directory: DirectoryOptions::default(),
        };
        let store = Store::open(options, std::sync::Arc::new(Figures::default())).unwrap();
        assert!(store.tidy(Now::read()).is_empty());
        let made = |path: &PathBuf| index(path).exists();
        assert!(segments(&self.store).iter().all(made));
    }

    /// The middle tenth of the whole time, ns since 1970.
    fn middle(&self) -> (u64, u64) {
        let (first, last) = self.times;
        let at = |part| first + (last - first) / 100 * part;
        (at(45), at(55))
    }

    /// Segments with events near that time, found by reading all of them.
    fn near(&self, (from, to): (u64, u64)) -> BTreeSet<PathBuf> {
        let is_near = |path: &PathBuf| {
            let found = decode(std::slice::from_ref(path)).verify();
            let times = found.first_ns.zip(found.last_ns);
            times.is_some_and(|(first, last)| first < to + SLACK_NS && last + SLACK_NS > from)
        };
        segments(&self.store).into_iter().filter(is_near).collect()
    }

    /// Runs the tool over the store; with it, the bytes that it read of each file of the store.
    fn ask(&self, command: &str, (from, to): (u64, u64)) -> (Finished, BTreeMap<PathBuf, u64>) {
        let log = self.fixture.path("calls");
        let mut strace = self.fixture.command("strace");
        strace.args(["-f", "-y", "-e", "trace=openat,read,pread64,mmap", "-o"]);
        strace
            .arg(&log)
            .arg(binary::path())
            .args([command, "--json"]);
        let stamp = |ns| String::from_utf8(Stamper::default().stamp(ns).to_vec()).unwrap();
        strace.args(["--from", &stamp(from), "--to", &stamp(to)]);
        let asked = run(strace.arg(&self.store), SOON).unwrap();
        let calls = fs::read_to_string(&log).unwrap();
        (asked, bytes_read(&calls, &self.store))
    }
}

fn index(segment: &Path) -> PathBuf {
    segment.with_extension("idx")
}

/// Bytes read of each file below `root`, by calls as strace shows them.
fn bytes_read(calls: &str, root: &Path) -> BTreeMap<PathBuf, u64> {
    let mut read = BTreeMap::new();
    for call in calls.lines().filter(|line| line.contains("ead")) {
        let Some((_, rest)) = call.split_once('<') else {
            continue;
        };
        let (path, rest) = rest.split_once('>').unwrap();
        let bytes = rest.rsplit_once("= ").map_or("", |(_, result)| result);
        let is_below = Path::new(path).starts_with(root);
        if let (true, Ok(bytes)) = (is_below, bytes.trim().parse::<u64>()) {
            *read.entry(path.into()).or_default() += bytes;
        }
    }
    assert!(!read.is_empty(), "{calls}");
    let maps = calls.lines().filter(|line| line.contains("mmap("));
    let below = root.display().to_string();
    assert!(maps.into_iter().all(|line| !line.contains(&below)));
    read
}

/// Lines of a kind that `text` shows: of `cat` events, of `graph` calls, of `report` their sum.
fn count(command: &str, text: &str) -> u64 {
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    match command {
        "report" => {
            let functions = lines.filter(|line| line["of"] == "function");
            functions.filter_map(|line| line["count"].as_u64()).sum()
        }
        "graph" => lines.filter(|line| line["ended"] == "returned").count() as u64,
        _ => lines.filter(|line| line.get("lost").is_none()).count() as u64,
    }
}

#[test]
fn only_segments_of_the_time_are_read() {
    if !require_tools(&["gcc", "strace"]) {
        return;
    }
    let scene = Scene::new();
    let all = segments(&scene.store);
    let size = |path: &PathBuf| fs::metadata(path).unwrap().len();
    let total: u64 = all.iter().map(size).sum();
    let near = scene.near(scene.middle());
    assert!(
        near.len() >= 4 && near.len() + 8 <= all.len(),
        "{} of {}",
        near.len(),
        all.len()
    );
    // The index of every segment, and the end that the index names. Pages are read twice: they are
    // checked, and stay in their file until their records are shown.
    let looked_at = all.len() as u64 * (u64::from(INDEX_TAIL_BYTES) + 512);
    let most = 2 * near.iter().map(size).sum::<u64>() + looked_at;
    for command in ["cat", "graph", "report"] {
        let (quick, read) = scene.ask(command, scene.middle());
        let (quick, told) = (quick.stdout_text(), quick.expect_code(0).stderr_text());
        let sum: u64 = read.values().sum();
        println!(
            "{command}: {sum} bytes of {total}, at most {most}; {}",
            told.trim()
        );
        let whole = |(_, bytes): &(&PathBuf, &u64)| **bytes > u64::from(INDEX_TAIL_BYTES);
        let read: BTreeSet<_> = read
            .iter()
            .filter(whole)
            .map(|(path, _)| path.clone())
            .collect();
        let read = read.into_iter().filter(|path| all.contains(path)).collect();
        assert!(near.is_superset(&read), "{read:?}, expected only {near:?}");
        assert!(
            sum <= most && most < 2 * total,
            "{sum} bytes, expected at most {most}"
        );
        assert!(told.contains("of other times were not read"), "{told}");
        assert!(
            told.contains("on the collector's clock, each at most"),
            "{told}"
        );
        let (slow, read) = without_indexes(&all, || scene.ask(command, scene.middle()));
        let whole = read.values().sum::<u64>();
        assert!(
            (total.max(sum + 1)..=2 * total).contains(&whole),
            "without indexes all is read: {whole} bytes of {total}: {read:?}"
        );
        let [quick, slow] =
            [quick, slow.expect_code(0).stdout_text()].map(|text| count(command, &text));
        println!("{command}: {quick} found by indexes, {slow} without");
        // At the edges a nanosecond may differ: less of the session's clock was read.
        assert!(
            quick.abs_diff(slow) <= 20 && quick > 100,
            "{quick} and {slow}"
        );
    }
}

/// What `ask` returns while the index of no segment is there.
fn without_indexes<T>(all: &[PathBuf], ask: impl FnOnce() -> T) -> T {
    let content = |path: &PathBuf| (index(path), fs::read(index(path)).unwrap());
    let hidden: Vec<_> = all.iter().map(content).collect();
    for (path, _) in &hidden {
        fs::remove_file(path).unwrap();
    }
    let answer = ask();
    for (path, bytes) in hidden {
        fs::write(path, bytes).unwrap();
    }
    answer
}
