//! Promise: what a collector acknowledges is on its disk, its name included; what the disk refuses is not acknowledged,
//! what a write or a crash cut off is gone before anything is stored behind it, and who ends asks its streamers to go.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ringmark_decoder::{BlockReader, Item};
use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::stream::{self, Resume, ResumeSlot};
use ringmark_tests::collecting::{segments, wait_for_listener};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::scripted_streamer::{PAGE, ScriptedStreamer, block, page, session};
use ringmark_tests::store_contents::store_id;
use ringmark_tests::{Running, binary, require_tools};
use rustix::process::Signal;
use tokio::runtime::Runtime;
use zerocopy::FromBytes;

const SESSION: Uuid = Uuid([9; 16]);
const BLOCK: u64 = (BlockHeader::BYTES + PAGE) as u64;

struct Scene {
    fixture: Fixture,
    runtime: Runtime,
    socket: PathBuf,
    store: PathBuf,
}

impl Scene {
    fn new(label: &str) -> Self {
        let fixture = Fixture::new(label);
        let mut builder = tokio::runtime::Builder::new_current_thread();
        Self {
            runtime: builder.enable_all().build().unwrap(),
            socket: fixture.path("socket"),
            store: fixture.path("store"),
            fixture,
        }
    }

    /// A collector, started by another program.
    fn collector(&self, by: &[&str], options: &[&str]) -> Running {
        let all = [by, &[binary::path().to_str().unwrap(), "collect"], options].concat();
        let mut command = self.fixture.command(all[0]);
        command.args(&all[1..]).arg("--store").arg(&self.store);
        let listen = format!("unix://{}", self.socket.display());
        let running = Running::start(command.args(["--listen", &listen])).unwrap();
        wait_for_listener(&self.socket);
        running
    }

    /// A connection, and the page behind the last one that is there.
    fn resumed(&self) -> io::Result<(ScriptedStreamer, u64)> {
        self.runtime.block_on(async {
            let mut peer = ScriptedStreamer::greeted(&self.socket, "here").await?;
            peer.send(&session(SESSION)).await?;
            let resume = peer.hear_of(stream::kind::RESUME).await?;
            let slot = ResumeSlot::read_from_prefix(&resume[Resume::BYTES..]);
            Ok((peer, slot.map_or(0, |(slot, _)| slot.next_page)))
        })
    }

    /// Sends pages one by one; how many were acknowledged, and what ended it.
    fn send(
        &self,
        peer: &mut ScriptedStreamer,
        pages: std::ops::Range<u64>,
    ) -> (u64, io::Result<()>) {
        let mut durable = 0;
        let sent = self.runtime.block_on(async {
            for number in pages {
                peer.send(&page(SESSION, number)).await?;
                peer.settle().await?;
                durable += 1;
            }
            Ok(())
        });
        (durable, sent)
    }

    /// The pages of the store in their order.
    fn pages(&self) -> Vec<u64> {
        let mut pages = Vec::new();
        for path in segments(&self.store) {
            let mut reader = BlockReader::new("segment", File::open(path).unwrap());
            while let Some(item) = reader.next_item() {
                match item {
                    Item::Block(block) if block.header.kind == kind::PAGE => {
                        pages.push(block.header.page_number);
                    }
                    Item::Block(_) => {}
                    Item::Damage(damage) => panic!("{damage}"),
                }
            }
        }
        pages
    }
}

/// Every segment and the directories above it were synced when the last ACK came.
#[test]
fn acknowledged_is_on_the_disk() {
    if !require_tools(&["strace"]) {
        return;
    }
    let scene = Scene::new("synced");
    let log = scene.fixture.path("log");
    let by = [
        "strace",
        "-D",
        "-f",
        "-qq",
        "-y",
        "-e",
        "trace=fdatasync,fsync",
        "-o",
    ];
    let by = [&by[..], &[log.to_str().unwrap()]].concat();
    let collector = scene.collector(&by, &["--segment-size", "20K"]);
    let (mut peer, _) = scene.resumed().unwrap();
    let (durable, sent) = scene.send(&mut peer, 0..12);
    let log = fs::read_to_string(&log).unwrap();
    let segments = segments(&scene.store);
    sent.unwrap();
    drop(collector.kill().unwrap());
    assert_eq!((durable, scene.pages()), (12, (0..12).collect()));
    assert!(segments.len() >= 3, "{segments:?}");
    let expect = |call: &str, path: &Path| {
        let synced = format!("<{}>", path.display());
        let is_it = |line: &&str| line.contains(call) && line.contains(&synced);
        assert!(
            log.lines().any(|line| is_it(&line)),
            "{call}{synced}:\n{log}"
        );
    };
    let mut directories = BTreeSet::new();
    for segment in &segments {
        expect("fdatasync(", segment);
        let above = segment.ancestors().skip(1);
        directories.extend(above.take_while(|path| path.starts_with(&scene.store)));
    }
    directories.iter().for_each(|path| expect("fsync(", path));
}

/// A disk that does not take it: there is no ACK, and no RESUME that says otherwise.
#[test]
fn what_cannot_be_synced_is_not_acknowledged() {
    if !require_tools(&["strace"]) {
        return;
    }
    for call in ["fdatasync", "fsync"] {
        let scene = Scene::new(call);
        // One that is there: a new one is not begun on such a disk.
        fs::create_dir(&scene.store).unwrap();
        fs::write(scene.store.join("store.id"), store_id()).unwrap();
        let (trace, inject) = (format!("trace={call}"), format!("inject={call}:error=EIO"));
        let by = [
            "strace",
            "-D",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            &trace,
            "-e",
            &inject,
        ];
        let collector = scene.collector(&by, &[]);
        let (mut peer, _) = scene.resumed().unwrap();
        let (durable, sent) = scene.send(&mut peer, 0..5);
        let told = sent.unwrap_err().to_string();
        // SESSION alone may be: there is no file of it before the first page.
        let announced = session(SESSION).len() as u64;
        assert!(durable == 0 && peer.durable <= announced, "{durable} pages");
        assert!(told.contains("sync: Input/output error"), "{told}");
        // What was given up is not there: it is found again without, or cannot be found.
        match scene.resumed() {
            Ok((_, next)) => assert_eq!(next, 0, "{call}"),
            Err(error) => {
                let told = error.to_string();
                assert!(told.contains("sync: Input/output error"), "{told}");
            }
        }
        drop(collector.kill().unwrap());
    }
}

/// A write that is cut short by a full disk, here by a limit: the page is refused and comes again, each is there once.
#[test]
fn a_write_that_fails_leaves_nothing_behind() {
    let scene = Scene::new("limit");
    // In units of 512 bytes.
    let limited = "trap '' XFSZ; ulimit -f 80; exec \"$@\"";
    let by = ["sh", "-c", limited, "sh"];
    let collector = scene.collector(&by, &["--sync", "cache"]);
    let mut next = 0;
    for _ in 0..3 {
        let (mut peer, from) = scene.resumed().unwrap();
        assert_eq!(from, next);
        let (durable, sent) = scene.send(&mut peer, from..40);
        let told = sent.unwrap_err().to_string();
        assert!(told.contains("write: File too large"), "{told}");
        next += durable;
        assert!((5..10).contains(&next), "{next} pages");
        assert_eq!(scene.pages(), (0..next).collect::<Vec<_>>());
    }
    drop(collector.kill().unwrap());
    fs::remove_file(&scene.socket).unwrap();
    let collector = scene.collector(&[], &["--sync", "cache"]);
    let (mut peer, from) = scene.resumed().unwrap();
    assert_eq!(from, next);
    scene.send(&mut peer, from..40).1.unwrap();
    drop(collector.kill().unwrap());
    assert_eq!(scene.pages(), (0..40).collect::<Vec<_>>());
}

/// A collector is killed, and the end of its segment is not what it was: half a block more, then a bit that turned
/// in the last one.
#[test]
fn a_torn_end_is_cut_off() {
    let scene = Scene::new("torn");
    let go_on = |from: u64, to: u64| {
        let collector = scene.collector(&[], &["--sync", "cache"]);
        let (mut peer, next) = scene.resumed().unwrap();
        assert_eq!(next, from);
        scene.send(&mut peer, from..to).1.unwrap();
        drop(collector.kill().unwrap());
        fs::remove_file(&scene.socket).unwrap();
        assert_eq!(scene.pages(), (0..to).collect::<Vec<_>>());
    };
    go_on(0, 5);
    let segment = segments(&scene.store).remove(0);
    let mut file = OpenOptions::new().append(true).open(&segment).unwrap();
    // More than one block follows: what is not cut off would be seen behind it.
    file.write_all(&page(SESSION, 5)[..3000]).unwrap();
    go_on(5, 9);
    assert!(!segment.with_extension("damaged").exists());
    let file = OpenOptions::new().write(true).open(&segment).unwrap();
    let bytes = file.metadata().unwrap().len();
    file.write_all_at(&[0x40], bytes - BLOCK + 1000).unwrap();
    go_on(8, 20);
    let damaged = segment.with_extension("damaged");
    assert_eq!(fs::metadata(damaged).unwrap().len(), BLOCK);
}

/// A collector that ends says so, and takes in what comes until its streamers say BYE.
#[test]
fn streamers_are_asked_to_go() {
    let scene = Scene::new("drain");
    let collector = scene.collector(&[], &["--sync", "cache"]);
    let (mut peer, _) = scene.resumed().unwrap();
    collector.signal(Signal::TERM).unwrap();
    let asked = scene.runtime.block_on(peer.hear_of(stream::kind::DRAIN));
    let _ = asked.expect("DRAIN");
    let (durable, sent) = scene.send(&mut peer, 0..5);
    sent.unwrap();
    let bye = block(stream::kind::BYE, Uuid([0; 16]), &[]);
    scene.runtime.block_on(peer.say(&bye)).unwrap();
    let _ = collector.finish(SOON).expect_code(0);
    assert_eq!((durable, scene.pages()), (5, (0..5).collect()));
}
