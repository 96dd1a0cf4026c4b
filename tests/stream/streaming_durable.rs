//! Promise: what a collector acknowledged is on the disk, also while it receives more than it syncs; what a power
//! loss or a failing disk left of the rest comes again.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringmark_decoder::{BlockReader, Item};
use ringmark_format::align8;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::stream::{Ack, kind as message};
use ringmark_reader::Codec;
use ringmark_tests::collecting::{Collecting, segments, stream};
use ringmark_tests::fixture::Fixture;
use ringmark_tests::recording::decode;
use ringmark_tests::store_contents::{ended_session, events, expected, repeated};
use ringmark_tests::{Running, binary, require_tools, wait_until};
use zerocopy::FromBytes;

const EMIT: &str = ringmark_tests::program!("emit");
const LONG: Duration = Duration::from_secs(120);

/// A call that has begun, or has ended.
struct Step<'a> {
    thread: &'a str,
    call: &'a str,
    rest: &'a str,
    begins: bool,
    ends: bool,
}

impl<'a> Step<'a> {
    /// A line of `strace -f`: a call in one line, its begin or its end.
    fn of(line: &'a str) -> Option<Self> {
        let (thread, rest) = line.split_once(' ')?;
        let rest = rest.trim_start();
        if let Some(end) = rest.strip_prefix("<... ") {
            let (call, rest) = end.split_once(" resumed>")?;
            return Some(Self {
                thread,
                call,
                rest,
                begins: false,
                ends: true,
            });
        }
        let (call, rest) = rest.split_once('(')?;
        let ends = !rest.ends_with("<unfinished ...>");
        Some(Self {
            thread,
            call,
            rest,
            begins: true,
            ends,
        })
    }

    /// What the system answered.
    fn answer(&self) -> Option<u64> {
        let (_, answer) = self.rest.rsplit_once("= ")?;
        answer.split(' ').next()?.parse().ok()
    }

    /// The number behind the file.
    fn number(&self) -> Option<u64> {
        let (_, behind) = self.rest.split_once(">, ")?;
        behind.split([')', ' ']).next()?.parse().ok()
    }

    /// The segment that it is about, with its name or before it has one.
    fn segment(&self) -> Option<&'a str> {
        let (path, _) = self.rest.split_once('<')?.1.split_once('>')?;
        [".rmk", ".new"]
            .iter()
            .any(|end| path.ends_with(end))
            .then_some(path)
    }

    /// What an acknowledgement says is durable.
    fn acknowledged(&self) -> Option<u64> {
        let text = self.rest.split('"').nth(1)?;
        let bytes = text.split("\\x").skip(1);
        let bytes: Vec<u8> = bytes
            .map(|b| u8::from_str_radix(b, 16).ok())
            .collect::<Option<_>>()?;
        let (header, content) = BlockHeader::read_from_prefix(&bytes).ok()?;
        let is_ack = &header.magic == b"RMKB" && header.kind == message::ACK;
        is_ack
            .then(|| Ack::read_from_prefix(content).ok())
            .flatten()
            .map(|(ack, _)| ack.durable)
    }
}

/// What a log of calls shows.
#[derive(Debug, Default)]
struct Seen {
    /// Syncs that failed with something to lose.
    failed: u64,
    /// What was acknowledged, and the bytes of the segment that were on the disk by then.
    acks: Vec<(u64, u64)>,
    syncs: u64,
    /// Writes that ended while a sync was under way.
    writes_beside: u64,
}

fn read_log(log: &str) -> Seen {
    let (mut seen, mut written, mut synced) = (Seen::default(), 0, 0);
    // What a sync that failed did not write is gone, and must be written again.
    let mut is_lost = false;
    // For each thread the call that has begun: where it stands in the segment's bytes.
    let mut writing: HashMap<&str, bool> = HashMap::new();
    let mut syncing: HashMap<&str, u64> = HashMap::new();
    for step in log.lines().filter_map(Step::of) {
        match step.call {
            "fdatasync" => {
                if step.begins {
                    assert!(!is_lost, "what a sync did not write is taken for written");
                    let _ = syncing.insert(step.thread, written);
                }
                if step.ends
                    && let Some(from) = syncing.remove(step.thread)
                {
                    match step.answer() {
                        Some(0) => (synced, seen.syncs) = (from.max(synced), seen.syncs + 1),
                        _ => is_lost = from > synced,
                    }
                    seen.failed += u64::from(is_lost);
                }
            }
            "ftruncate" if step.begins => {
                written = step.number().expect("a length");
                is_lost &= written > synced;
            }
            "write" | "sendto" | "writev" | "sendmsg" => {
                if step.begins {
                    let _ = writing.insert(step.thread, step.segment().is_some());
                    seen.acks
                        .extend(step.acknowledged().map(|durable| (durable, synced)));
                }
                if step.ends && writing.remove(step.thread) == Some(true) {
                    written += step.answer().expect("a number of bytes");
                    seen.writes_beside += u64::from(!syncing.is_empty());
                }
            }
            _ => {}
        }
    }
    seen
}

fn block_bytes(header: &BlockHeader) -> u64 {
    (BlockHeader::BYTES + align8(header.stored_bytes as usize)) as u64
}

/// For the end of each block of a segment the bytes of what was streamed up to there.
fn streamed(segment: &Path) -> Vec<(u64, u64)> {
    let mut reader = BlockReader::new("a segment", fs::File::open(segment).unwrap());
    let (mut all, mut sum, mut before) = (Vec::new(), 0, 0);
    while let Some(item) = reader.next_item() {
        let Item::Block(block) = item else {
            panic!("damage")
        };
        let kind = block.header.kind;
        let end = before + block_bytes(&block.header);
        sum += if kind == kind::HOST_CLOCK {
            0
        } else {
            end - before
        };
        before = end;
        all.push((end, sum));
    }
    all
}

/// A collector whose syncs take long, below strace.
fn slow_collector(fixture: &Fixture, options: &[&str]) -> (Running, PathBuf, PathBuf) {
    let (log, socket, store) = (
        fixture.path("log"),
        fixture.path("socket"),
        fixture.path("store"),
    );
    let mut command = fixture.command("strace");
    command.args(["-f", "-y", "-x", "-s", "96", "-o"]).arg(&log);
    command.args([
        "-e",
        "trace=write,writev,sendto,sendmsg,fdatasync,ftruncate",
        "-e",
        "signal=none",
    ]);
    command.args(options).arg(binary::path());
    command.args([
        "collect",
        "--listen",
        &format!("unix://{}", socket.display()),
        "--store",
    ]);
    let running = Running::start(command.arg(&store)).unwrap();
    wait_until(LONG, "a socket", || socket.exists().then_some(()));
    (running, log, store)
}

/// An ended session of some megabytes.
fn large_session(fixture: &Fixture) -> PathBuf {
    let ringmark = "mode=discard,ring=16M,page=64K,session=64M,keep=always";
    let program = fixture.start(EMIT, ringmark, "1 200000");
    let _ = program.finish(LONG).expect_code(0);
    fixture.ring_file()
}

#[test]
fn nothing_is_acknowledged_before_it_is_synced() {
    if !require_tools(&["strace"]) {
        return;
    }
    let fixture = Fixture::new("synced");
    let ring_file = large_session(&fixture);
    let slow = ["-e", "inject=fdatasync:delay_enter=200000"];
    let (collector, log, store) = slow_collector(&fixture, &slow);
    let _ = stream(&ring_file, &fixture.path("socket"), Codec::None);
    drop(collector);
    let seen = read_log(&fs::read_to_string(log).unwrap());
    let [segment] = &segments(&store)[..] else {
        panic!("several segments")
    };
    let streamed = streamed(segment);
    let all = streamed.last().unwrap().1;
    // SESSION is kept with the first block behind it, and comes again on every connection.
    let announced = streamed[0].1;
    for &(durable, synced) in &seen.acks {
        let safe = streamed.iter().rev().find(|(end, _)| *end <= synced);
        let safe = safe.map_or(announced, |(_, bytes)| *bytes);
        assert!(
            durable <= safe,
            "{durable} acknowledged, {safe} on the disk"
        );
    }
    let last = seen.acks.last().expect("acknowledgements").0;
    println!(
        "{all} bytes, {} acknowledgements, {} syncs, {} writes beside them",
        seen.acks.len(),
        seen.syncs,
        seen.writes_beside
    );
    assert!(last == all && all > 3 << 20, "{last} of {all} acknowledged");
    assert!(seen.writes_beside > 0, "nothing is received while it syncs");
}

/// The system tells a failure once: the next sync succeeds, and what the first one gave up is not
/// on the disk.
#[test]
fn what_a_failing_disk_did_not_take_comes_again() {
    if !require_tools(&["strace"]) {
        return;
    }
    // strace counts the calls of each thread: which of them fail, and whether there is something to lose
    // then, depends on how the collector's threads share the work.
    let has_failed = (0..20).any(|_| stream_to_a_failing_disk() > 0);
    assert!(has_failed, "no sync failed");
}

/// How many syncs failed with something to lose. The store has everything in the end.
fn stream_to_a_failing_disk() -> u64 {
    let fixture = Fixture::new("failing");
    let ring_file = large_session(&fixture);
    let expected = expected(&fixture, &ring_file);
    let failing = ["-e", "inject=fdatasync:error=EIO:when=2+4"];
    let (collector, log, store) = slow_collector(&fixture, &failing);
    let _ = stream(&ring_file, &fixture.path("socket"), Codec::None);
    drop(collector);
    let seen = read_log(&fs::read_to_string(log).unwrap());
    println!("{} syncs failed, {} did not", seen.failed, seen.syncs);
    check_store(&store, &expected);
    seen.failed
}

#[test]
fn a_segment_whose_beginning_is_not_there_is_begun_again() {
    for left in [0, 100] {
        let fixture = Fixture::new("beginning");
        let ring_file = ended_session(&fixture, EMIT);
        let expected = expected(&fixture, &ring_file);
        let (socket, store) = (fixture.path("socket"), fixture.path("store"));
        let copy = fixture.path("copy.ring");
        let _ = fs::copy(&ring_file, &copy).unwrap();
        let collecting = Collecting::start(&socket, &store);
        let _ = stream(&copy, &socket, Codec::None);
        drop(collecting);
        // As a power loss may leave it.
        let before = segments(&store);
        let file = fs::OpenOptions::new().write(true).open(&before[0]);
        file.unwrap().set_len(left).unwrap();
        let collecting = Collecting::start(&socket, &store);
        let _ = stream(&ring_file, &socket, Codec::None);
        drop(collecting);
        assert_eq!(segments(&store), before);
        check_store(&store, &expected);
    }
}

/// A store has these events, each once.
fn check_store(store: &Path, expected: &[String]) {
    let segments = segments(store);
    let stored = decode(&segments);
    assert!(stored.damage.is_empty(), "{:?}", stored.damage);
    let found = events(&stored);
    let differs = found.iter().zip(expected).position(|(f, e)| f != e);
    assert_eq!((found.len(), differs), (expected.len(), None));
    assert_eq!((repeated(&segments), stored.conflicts), (0, 0));
}
