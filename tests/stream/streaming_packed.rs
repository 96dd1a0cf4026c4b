//! Promise: a stream is packed in blocks of 64 KiB and more; smaller ones only where that much does not come within a
//! tenth of a second, or does not fit.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ringmark_format::align8;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_reader::stream::{Address, Streamer};
use ringmark_reader::{Codec, Selection};
use ringmark_tests::collecting::{Collecting, stream_options};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Fixture, SOON};
use zerocopy::FromBytes;

const EMIT: &str = ringmark_tests::program!("emit");
const LARGE: u32 = 64 << 10;
const GATHERED_FOR: Duration = Duration::from_millis(100);

/// Takes one connection and hands it on to a collector; what went there.
fn tap(at: &Path, to: &Path) -> JoinHandle<Vec<u8>> {
    let listener = UnixListener::bind(at).unwrap();
    let to = to.to_owned();
    thread::spawn(move || {
        let (streamer, _) = listener.accept().unwrap();
        let collector = UnixStream::connect(to).unwrap();
        let (from, back) = (
            collector.try_clone().unwrap(),
            streamer.try_clone().unwrap(),
        );
        let answers = thread::spawn(move || {
            drop(std::io::copy(&mut &from, &mut &back));
            let _ = back.shutdown(Shutdown::Both);
        });
        let (mut all, mut piece) = (Vec::new(), vec![0; 64 << 10]);
        while let Ok(read) = (&streamer).read(&mut piece)
            && read > 0
        {
            all.extend_from_slice(&piece[..read]);
            (&collector).write_all(&piece[..read]).unwrap();
        }
        let _ = collector.shutdown(Shutdown::Write);
        answers.join().unwrap();
        all
    })
}

/// Bytes in each container before they were packed.
fn containers(mut stream: &[u8]) -> Vec<u32> {
    let mut found = Vec::new();
    while let Ok((header, _)) = BlockHeader::read_from_prefix(stream) {
        if header.kind == kind::CONTAINER {
            found.push(header.raw_bytes);
        }
        let whole = BlockHeader::BYTES + align8(header.stored_bytes as usize);
        stream = stream.get(whole..).unwrap_or_default();
    }
    found
}

#[test]
fn small_pages_are_packed_together() {
    let fixture = Fixture::new("packed");
    let (socket, way) = (fixture.path("socket"), fixture.path("way"));
    let ringmark = "mode=discard,ring=4M,page=4K,session=16M";
    // A page or two every 5 ms.
    let program = fixture.start(EMIT, ringmark, "1 60000 burst=300 pause=5000");
    let ring_file = fixture.ring_file();
    let collecting = Collecting::start(&socket, &fixture.path("store"));
    let tapped = tap(&way, &socket);
    let mut options = stream_options(Selection::Path(ring_file), Address::Unix(way));
    options.codec = Codec::Lz4;
    let begun = Instant::now();
    let mut streamer = Streamer::new(options).unwrap();
    streamer.run(&AtomicBool::new(false), |_| {}).unwrap();
    drop(streamer);
    let took = begun.elapsed();
    let _ = program.finish(SOON).expect_code(0);
    let containers = containers(&tapped.join().unwrap());
    let account = Delivery::of(&collecting.stored());
    assert_eq!((account.delivered(), account.lost()), (60_000, 0));
    let small = containers.iter().filter(|raw| **raw < LARGE).count();
    println!(
        "{} blocks, {small} of them small, in {took:?}",
        containers.len()
    );
    // One more at the beginning, at the end, and for every look at open pages.
    let most = took.div_duration_f64(GATHERED_FOR) + took.as_secs_f64() + 4.0;
    assert!(small as f64 <= most, "{small} small blocks in {took:?}");
}
