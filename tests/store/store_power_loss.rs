//! Promise: when the power goes, everything that a collector acknowledged is in its store, under its name; what it says
//! afterwards is there is there, and what it is sent again it stores once.
//!
//! The calls of a real collector on its store are logged with what it says to its streamers. From them come the files
//! that a disk may hold after a loss of power at any of these moments, and a store is opened over them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringmark_collector::Figures;
use ringmark_collector::store::{DirectoryOptions, Now, Retention, Store, StoreOptions, SyncMode};
use ringmark_decoder::{BlockReader, Item};
use ringmark_format::block::{BlockHeader, PageState, kind};
use ringmark_format::codec::write;
use ringmark_format::page::PageHeader;
use ringmark_format::stream::{self, Ack};
use ringmark_format::{PageNumber, RingId, Uuid};
use ringmark_tests::collecting::segments;
use ringmark_tests::disk::{Disk, Moment};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::preload_shim::{self, Call};
use ringmark_tests::random::Random;
use ringmark_tests::scripted_streamer::{ScriptedStreamer, block};
use ringmark_tests::{Running, binary, is_long, require_tools, wait_until};
use rustix::process::Signal;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

const SEGMENT: u64 = 12 << 10;
const HOST: &str = "here";

/// A page: its session, its slot, its number.
type Name = (Uuid, u32, u64);

/// What streamers sent, and in which order.
#[derive(Default)]
struct Sent {
    blocks: BTreeMap<Name, Vec<u8>>,
    /// For each connection: how many bytes had been sent after each page.
    connections: Vec<Vec<(u64, Name)>>,
    sessions: BTreeMap<Uuid, Vec<u8>>,
}

/// A sealed page that has nothing to do with any other one.
fn page((session, slot, number): Name, random: &mut Random) -> Vec<u8> {
    let header = PageHeader {
        generation: number + 1,
        ring_id: u64::from(slot) + 1,
        slot,
        ..PageHeader::new_zeroed()
    };
    let bytes = 1024 + 8 * random.below(200) as usize;
    let mut content = header.as_bytes().to_vec();
    content.resize_with(bytes, || random.below(256) as u8);
    let ring = RingId(u64::from(slot) + 1);
    let header = write::page_header(
        session,
        ring,
        PageNumber(number),
        bytes as u32,
        4096,
        PageState::Sealed,
    );
    let mut block = Vec::new();
    write::block(&mut block, header, &content).unwrap();
    block
}

/// A streamer that was greeted. A socket that is there may not listen yet.
async fn greeted(socket: &Path) -> ScriptedStreamer {
    loop {
        match ScriptedStreamer::greeted(socket, HOST).await {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            greeted => return greeted.expect("a greeting"),
        }
    }
}

/// Streams two sessions over each of two connections, schema and pages by turns, and a part again.
async fn talk(socket: &Path, random: &mut Random, sent: &mut Sent) {
    let mut peers = Vec::new();
    for n in 0..2_u8 {
        let mut peer = greeted(socket).await;
        for uuid in [Uuid([2 * n + 1; 16]), Uuid([2 * n + 2; 16])] {
            peer.announce(uuid).await.unwrap();
            let _ = sent.sessions.insert(uuid, vec![0; 320]);
        }
        peers.push(peer);
        sent.connections.push(Vec::new());
    }
    let mut next: HashMap<(Uuid, u32), u64> = HashMap::new();
    let mut schema: HashMap<Uuid, u64> = HashMap::new();
    for _ in 0..if is_long() { 400 } else { 40 } {
        let at = random.below(2) as usize;
        let uuid = Uuid([(2 * at as u64 + 1 + random.below(2)) as u8; 16]);
        let peer = &mut peers[at];
        if random.below(6) == 0 {
            let known = schema.entry(uuid).or_default();
            let piece = vec![*known as u8; 8 * (1 + random.below(40) as usize)];
            let mut block = Vec::new();
            write::schema(&mut block, uuid, *known, &piece).unwrap();
            *known += piece.len() as u64;
            peer.send(&block).await.unwrap();
        }
        for _ in 0..1 + random.below(4) {
            let slot = random.below(2) as u32;
            let number = next.entry((uuid, slot)).or_default();
            let name = (uuid, slot, *number);
            // Now and then there is a gap: pages that are gone.
            *number += 1 + u64::from(random.below(8) == 0);
            let block = page(name, random);
            peer.send(&block).await.unwrap();
            sent.connections[at].push((peer.sent, name));
            let _ = sent.blocks.insert(name, block);
        }
        if random.below(2) == 0 {
            peer.settle().await.unwrap();
        }
    }
    for mut peer in peers {
        peer.say(&block(stream::kind::BYE, Uuid([0; 16]), &[]))
            .await
            .unwrap();
        let _ = peer.end().await;
        assert_eq!(peer.durable, peer.sent);
    }
}

/// A real collector's calls.
fn recorded(random: &mut Random) -> (Vec<Call>, Sent) {
    let fixture = Fixture::new("store-power");
    let shim = preload_shim::build(&fixture, "store_shim");
    let (socket, log, store) = (
        fixture.path("socket"),
        fixture.path("log"),
        fixture.path("store"),
    );
    fs::create_dir(&store).unwrap();
    let store = store.canonicalize().unwrap();
    let mut command = fixture.command(binary::path());
    let listen = format!("unix://{}", socket.display());
    command.args([
        "collect",
        "--listen",
        &listen,
        "--segment-size",
        &SEGMENT.to_string(),
    ]);
    command.arg("--store").arg(&store);
    command
        .env("LD_PRELOAD", shim)
        .env("SHIM_STORE", &store)
        .env("SHIM_LOG", &log);
    let collector = Running::start(&mut command).unwrap();
    wait_until(SOON, "a socket", || socket.exists().then_some(()));
    let mut sent = Sent::default();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    runtime.block_on(talk(&socket, random, &mut sent));
    collector.signal(Signal::TERM).unwrap();
    let _ = collector.finish(SOON).expect_code(0);
    (preload_shim::read_log(&log), sent)
}

/// What was acknowledged so far: the sockets of the connections, by their order.
#[derive(Default)]
struct Acknowledged {
    sockets: HashMap<u32, usize>,
    pages: BTreeSet<Name>,
}

impl Acknowledged {
    fn apply(&mut self, call: &Call, sent: &Sent) {
        if call.call() != "said" {
            return;
        }
        match call.offset as u16 {
            stream::kind::WELCOME => {
                let number = self.sockets.len();
                assert_eq!(self.sockets.insert(call.file, number), None);
            }
            stream::kind::ACK => {
                let (ack, _) = Ack::read_from_prefix(&call.data).unwrap();
                let of = &sent.connections[self.sockets[&call.file]];
                let durable = of.iter().filter(|(behind, _)| *behind <= ack.durable);
                self.pages.extend(durable.map(|(_, name)| *name));
            }
            _ => {}
        }
    }
}

/// The pages of a store, and how often; each as it was sent.
fn pages(root: &Path, sent: &Sent) -> Result<BTreeMap<Name, usize>, String> {
    let mut found = BTreeMap::new();
    for path in segments(root) {
        let bytes = fs::read(&path).unwrap();
        let mut reader = BlockReader::new("segment", bytes.as_slice());
        while let Some(item) = reader.next_item() {
            let Item::Block(block) = item else { continue };
            if block.header.kind != kind::PAGE {
                continue;
            }
            let (header, _) = PageHeader::read_from_prefix(block.content).unwrap();
            let name = (
                Uuid(block.header.session),
                header.slot,
                block.header.page_number,
            );
            let right = sent.blocks.get(&name).is_some_and(|block_sent| {
                block_sent[BlockHeader::BYTES..].starts_with(block.content)
            });
            if !right {
                return Err(format!("{name:?} was never sent so"));
            }
            *found.entry(name).or_default() += 1;
        }
    }
    Ok(found)
}

/// What a disk holds, as files.
fn restore(disk: &Disk, root: &Path) {
    let _ = fs::remove_dir_all(root);
    fs::create_dir_all(root).unwrap();
    for (name, content) in disk.reachable() {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

fn options(root: &Path) -> StoreOptions {
    StoreOptions {
        root: root.to_owned(),
        sync: SyncMode::Cache,
        segment_bytes: SEGMENT,
        segment_age: Duration::from_secs(3600),
        retention: Retention::default(),
        session_bytes: 16 << 20,
        directory: DirectoryOptions::default(),
    }
}

/// The next collector: what it says is there is there, and it takes the rest.
fn go_on(root: &Path, sent: &Sent) -> Result<(), String> {
    let there = pages(root, sent)?;
    let store = Store::open(options(root), Arc::new(Figures::default())).unwrap();
    let _ = store.tidy(Now::read());
    for (uuid, content) in &sent.sessions {
        let session = store
            .session(*uuid, HOST, content)
            .map_err(|e| e.to_string())?;
        let mut session = session.lock().unwrap();
        let known = session.known().slots;
        let known: BTreeMap<_, _> = known.iter().map(|at| (at.slot, at.next_page)).collect();
        for ((_, slot, number), block) in sent
            .blocks
            .range((*uuid, 0, 0)..=(*uuid, u32::MAX, u64::MAX))
        {
            let name = (*uuid, *slot, *number);
            let is_known = known.get(slot).is_some_and(|next| number < next);
            if is_known && !there.contains_key(&name) {
                return Err(format!("{name:?} is said to be there and is not"));
            }
            let (header, _) = BlockHeader::read_from_prefix(block).unwrap();
            let content = &block[BlockHeader::BYTES..][..header.stored_bytes as usize];
            let _ = session
                .add(&header, content, block)
                .map_err(|e| e.to_string())?;
        }
    }
    drop(store);
    let all = pages(root, sent)?;
    if let Some(name) = sent.blocks.keys().find(|name| !all.contains_key(name)) {
        return Err(format!("{name:?} was sent again and is not there"));
    }
    match all.iter().find(|(_, count)| **count > 1) {
        Some((name, count)) => Err(format!("{name:?} is there {count} times")),
        None => Ok(()),
    }
}

/// Goes through the moments of a collector; how many disks there were.
fn check(calls: &[Call], sent: &Sent, random: &mut Random, each: u64) -> Result<usize, String> {
    let fixture = Fixture::new("store-disk");
    let root = fixture.path("store");
    let (mut moment, mut said, mut count) = (Moment::default(), Acknowledged::default(), 0);
    for (index, call) in calls.iter().enumerate() {
        moment.apply(call);
        said.apply(call, sent);
        let place = |error| format!("after call {index}: {error}");
        for disk in
            std::iter::once(moment.safe.clone()).chain((0..each).map(|_| moment.by_chance(random)))
        {
            restore(&disk, &root);
            let there = pages(&root, sent).map_err(place)?;
            if let Some(name) = said.pages.iter().find(|name| !there.contains_key(name)) {
                return Err(place(format!("{name:?} was acknowledged and is gone")));
            }
            go_on(&root, sent).map_err(place)?;
            count += 1;
        }
    }
    assert_eq!(
        said.pages.len(),
        sent.blocks.len(),
        "all is acknowledged in the end"
    );
    Ok(count)
}

#[test]
fn what_is_acknowledged_is_there_after_a_power_loss() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let mut random = Random::seeded();
    let (rounds, each) = if is_long() { (20, 20) } else { (1, 1) };
    for _ in 0..rounds {
        let (calls, sent) = recorded(&mut random);
        let syncs = calls
            .iter()
            .filter(|call| call.call() == "fdatasync")
            .count();
        let disks = check(&calls, &sent, &mut random, each).unwrap();
        println!(
            "{} pages, {} calls, {syncs} syncs, {disks} disks",
            sent.blocks.len(),
            calls.len()
        );
        assert!(syncs > 10 && disks > 200);
    }
}

#[test]
fn planted_mistakes_are_found() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let mut random = Random::seeded();
    let (calls, sent) = recorded(&mut random);
    for name in ["fdatasync", "fsync"] {
        let mut without = calls.clone();
        without.retain(|call| call.call() != name);
        let error = check(&without, &sent, &mut random, 0).unwrap_err();
        assert!(error.contains("was acknowledged and is gone"), "{error}");
    }
    // Acknowledged a moment too early: before the sync that it waited for.
    let mut early = calls.clone();
    for at in 1..early.len() {
        let is_ack = early[at].call() == "said" && early[at].offset as u16 == stream::kind::ACK;
        if is_ack && early[at - 1].call() == "fdatasync" {
            early.swap(at - 1, at);
        }
    }
    let error = check(&early, &sent, &mut random, 0).unwrap_err();
    assert!(error.contains("was acknowledged and is gone"), "{error}");
}
