//! Promise: `--keep-size` bounds what is being written, too, and what is written goes on.

use std::fs;

use ringmark_collector::store::SyncMode;
use ringmark_format::Uuid;
use ringmark_reader::stream::Address;
use ringmark_tests::collecting::{Collecting, options, segments};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::scripted_streamer::{ScriptedStreamer, page_of};
use ringmark_tests::wait_until;

fn uuid(n: u8) -> Uuid {
    Uuid([n + 1; 16])
}

/// What is being written counts: sessions that go on for long take no more than is kept, and go on.
#[test]
fn what_is_open_counts() {
    const KEEP: u64 = 16 << 20;
    const BLOCK: usize = 64 << 10;
    const HOSTS: u8 = 6;
    const ROUNDS: u64 = 120;
    let fixture = Fixture::new("open");
    let (socket, store) = (fixture.path("socket"), fixture.path("store"));
    let mut with = options(Address::Unix(socket.clone()), &store);
    with.store.retention.bytes = Some(KEEP);
    with.store.sync = SyncMode::Cache;
    let collecting = Collecting::with(with);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    let bytes = || {
        let files = segments(&store).into_iter();
        files
            .filter_map(|file| Some(fs::metadata(file).ok()?.len()))
            .sum::<u64>()
    };
    let mut most = 0;
    runtime.block_on(async {
        let mut peers = Vec::new();
        for n in 0..HOSTS {
            let host = format!("host-{n}");
            let mut peer = ScriptedStreamer::greeted(&socket, &host).await.unwrap();
            peer.announce(uuid(n)).await.unwrap();
            peers.push(peer);
        }
        for number in 0..ROUNDS {
            for (peer, n) in peers.iter_mut().zip(0..) {
                let page = page_of(uuid(n), number, BLOCK);
                peer.send(&page).await.unwrap();
                peer.settle().await.unwrap();
            }
            // What came is removed a moment later.
            let within = wait_until(SOON, "a store of the size that is kept", || {
                Some(bytes()).filter(|bytes| *bytes <= KEEP + KEEP / 4)
            });
            most = most.max(within);
        }
    });
    let removed = collecting.figure("removed_segments_total");
    let sent = u64::from(HOSTS) * ROUNDS * BLOCK as u64;
    println!("{most} bytes at most, {KEEP} to keep, {sent} sent, {removed} segments removed");
    assert!(sent > 2 * KEEP && removed > 6);
}
