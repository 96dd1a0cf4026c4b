//! Promise: the memory of a collector of objects is bounded as it says, and within that every block that the protocol
//! allows gets through.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ringmark_collector::store::object_sessions::ObjectOptions;
use ringmark_decoder::store::{SegmentFooter, is_raw, objects_below};
use ringmark_format::Uuid;
use ringmark_format::block::{CONTENT_BYTES_MAX, codec, kind};
use ringmark_format::codec::write;
use ringmark_format::stream;
use ringmark_reader::stream::Address;
use ringmark_tests::collecting::{Collecting, options};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::scripted_streamer::{ScriptedStreamer, block, page_of, session};
use ringmark_tests::wait_until;
use tokio::runtime::Runtime;

const MEMORY: u64 = 16 << 20;

fn store(fixture: &Fixture) -> PathBuf {
    fixture.path("objects")
}

/// The footers of all segments, each of which has one.
fn footers(fixture: &Fixture) -> Vec<SegmentFooter> {
    let store = store(fixture);
    let names = objects_below(&store, "raw").unwrap();
    let read = |name: &String| {
        let segment = fs::read(store.join(name)).unwrap();
        let bytes = SegmentFooter::end_bytes(&segment).expect("a footer");
        SegmentFooter::read(&segment[segment.len() - bytes..]).expect("a whole footer")
    };
    names.iter().filter(|name| is_raw(name)).map(read).collect()
}

/// A collector with little memory.
fn with_little_memory(fixture: &Fixture, flush: Duration) -> Collecting {
    let mut options = options(Address::Unix(fixture.path("socket")), &store(fixture));
    options.objects = Some(ObjectOptions {
        flush,
        memory_bytes: MEMORY,
    });
    Collecting::with(options)
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

async fn greeted(fixture: &Fixture, number: usize) -> ScriptedStreamer {
    let host = format!("host-{number}");
    let greeted = ScriptedStreamer::greeted(&fixture.path("socket"), &host).await;
    greeted.unwrap()
}

/// SCHEMA of this size, a whole stream.
fn schema_of(of: Uuid, bytes: usize) -> Vec<u8> {
    block(kind::SCHEMA, of, &vec![7; bytes])
}

/// What all connections may send and have not sent, and what waits, is no more than the memory. Connections that send
/// nothing keep nothing of it, and one for which there is none gets some when others are quiet. None starves.
#[test]
fn credit_is_memory() {
    let fixture = Fixture::new("objects-credit");
    let collecting = with_little_memory(&fixture, Duration::from_millis(20));
    let mut given = 0;
    runtime().block_on(async {
        let mut peers: Vec<ScriptedStreamer> = Vec::new();
        for number in 0..60 {
            peers.push(greeted(&fixture, number).await);
            given += peers[number].credit;
        }
        println!("{} connections share {given} bytes", peers.len());
        // One that sends without credit is refused.
        let mut hasty = greeted(&fixture, 99).await;
        hasty.say(&session(Uuid([99; 16]))).await.unwrap();
        for number in 0..16 {
            let _ = hasty.say(&page_of(Uuid([99; 16]), number, 1 << 20)).await;
        }
        let why = hasty.end().await;
        assert!(why.contains("beyond the credit"), "{why}");
        for (number, peer) in peers.iter_mut().enumerate() {
            let session = Uuid([number as u8 + 1; 16]);
            peer.announce(session).await.unwrap();
            for number in 0..50 {
                let page = page_of(session, number, 16 << 10);
                peer.send(&page).await.unwrap();
            }
        }
        for peer in &mut peers {
            peer.settle().await.unwrap();
        }
    });
    drop(collecting);
    let sessions: BTreeSet<_> = footers(&fixture)
        .iter()
        .flat_map(|footer| footer.sessions.iter().map(|entry| entry.session))
        .collect();
    assert_eq!(sessions.len(), 60);
}

/// The largest blocks of the protocol get through however much of the memory others have been promised.
#[test]
fn the_largest_blocks_get_through() {
    const IDLE: usize = 200;
    let fixture = Fixture::new("objects-large");
    let collecting = with_little_memory(&fixture, Duration::from_millis(20));
    runtime().block_on(async {
        let mut idle = Vec::new();
        for number in 0..IDLE {
            idle.push(greeted(&fixture, number).await);
        }
        let mut large = Vec::new();
        for number in 0..2 {
            large.push(greeted(&fixture, IDLE + number).await);
        }
        for (number, peer) in large.iter_mut().enumerate() {
            let uuid = Uuid([number as u8 + 1; 16]);
            // As `session`, but as large as it may be.
            let announced = block(kind::SESSION, uuid, &vec![0; 256 << 10]);
            peer.send(&announced).await.unwrap();
            let _ = peer.hear_of(stream::kind::RESUME).await.unwrap();
            peer.send(&schema_of(uuid, 1 << 20)).await.unwrap();
            peer.send(&page_of(uuid, 0, 1 << 20)).await.unwrap();
        }
        for (number, peer) in large.iter_mut().enumerate() {
            let uuid = Uuid([number as u8 + 10; 16]);
            peer.announce(uuid).await.unwrap();
            peer.send(&schema_of(uuid, CONTENT_BYTES_MAX as usize))
                .await
                .unwrap();
            peer.settle().await.unwrap();
        }
        drop(idle);
    });
    drop(collecting);
    let schema = objects_below(&store(&fixture), "schema").unwrap();
    assert_eq!(schema.len(), 4, "{schema:?}");
}

/// What is packed is charged as it is kept: while the store takes nothing, no more is taken in than there is memory for.
#[test]
fn packed_blocks_are_charged_unpacked() {
    // As many as the socket holds that are not taken in.
    const SENT: u64 = 14;
    let fixture = Fixture::new("objects-packed");
    let collecting = with_little_memory(&fixture, Duration::from_millis(20));
    // No directory can be made below a file.
    let raw = store(&fixture).join("raw");
    fs::write(&raw, "in the way").unwrap();
    let waiting = |collecting: &Collecting| collecting.figure("waiting_bytes");
    let uuid = Uuid([7; 16]);
    let containers: Vec<_> = (0..SENT)
        .map(|number| {
            let pages = (0..3).map(|at| page_of(uuid, number * 3 + at, 1 << 20));
            let mut packed = Vec::new();
            let blocks = pages.collect::<Vec<_>>().concat();
            write::container(&mut packed, uuid, codec::LZ4, &blocks).unwrap();
            packed
        })
        .collect();
    runtime().block_on(async {
        let mut peer = greeted(&fixture, 0).await;
        peer.announce(uuid).await.unwrap();
        for container in &containers {
            peer.send(container).await.unwrap();
        }
        let mut most = 0;
        // Longer than it takes to unpack them all.
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            most = most.max(waiting(&collecting));
        }
        println!("{most} bytes wait of {} MiB sent", 3 * SENT);
        assert!(most > MEMORY / 4 && most <= MEMORY, "{most} bytes");
        fs::remove_file(&raw).unwrap();
        while peer.durable < peer.sent {
            let _ = peer.hear_of(stream::kind::ACK).await.unwrap();
            most = most.max(waiting(&collecting));
        }
        assert!(most <= MEMORY, "{most} bytes");
    });
    wait_until(SOON, "all is put", || {
        (waiting(&collecting) == 0).then_some(())
    });
}
