//! Promise: a stored session says which spans were open when it was streamed last, and how its
//! process ended.

use std::sync::atomic::AtomicBool;

use ringmark_decoder::Dump;
use ringmark_format::ending::Ending;
use ringmark_reader::stream::{Address, Streamer};
use ringmark_reader::{Codec, Selection};
use ringmark_tests::collecting::{Collecting, stream, stream_options};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::{Running, wait_until};

const IN_SPANS: &str = ringmark_tests::program!("in_spans");

/// A program in its spans.
fn start(fixture: &Fixture, mode: &str) -> Running {
    let ready = fixture.path("ready");
    let mut command = fixture.program(IN_SPANS, mode);
    let program = Running::start(command.arg("hold").arg(&ready)).expect("a program");
    wait_until(SOON, "a program in its spans", || {
        ready.exists().then_some(())
    });
    program
}

/// Name of the outermost span of each thread, and how many are open in it.
fn open(dump: &Dump) -> Vec<(String, u64)> {
    let threads = dump.open_spans();
    let rows = threads.iter().map(|thread| {
        let name = String::from_utf8_lossy(&thread.spans[0].ty.name);
        (name.into_owned(), thread.spans.len() as u64 + thread.deeper)
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    rows
}

fn ends(dump: &Dump) -> Vec<Ending> {
    dump.endings().iter().map(|end| end.ending).collect()
}

#[test]
fn a_stored_session_says_what_was_open_and_how_it_ended() {
    let all = [
        ("checkout".to_owned(), 2),
        ("http.handle".to_owned(), 72),
        ("nightly".to_owned(), 1),
        ("request".to_owned(), 1),
    ];
    let killed = Ending::of_wait_status(9).expect("a signal");
    for (mode, codec) in [
        ("mode=discard", Codec::None),
        ("mode=overwrite,keep=always", Codec::Lz4),
    ] {
        let fixture = Fixture::new("stream-ends");
        let mut program = start(&fixture, mode);
        let (ring_file, socket) = (fixture.ring_file(), fixture.path("socket"));
        let collecting = Collecting::start(&socket, &fixture.path("store"));
        // A streamer that leaves while the program goes on.
        let to = Address::Unix(socket.clone());
        let mut options = stream_options(Selection::Path(ring_file.clone()), to);
        // A session belongs to the host that sent it first: the one that `stream` names.
        options.introduction.host = "here".to_owned();
        let mut streamer = Streamer::new(options).expect("a session");
        let left = streamer.run(&AtomicBool::new(true), |_| {});
        left.expect("everything is durable");
        let stored = collecting.stored();
        assert_eq!((open(&stored), ends(&stored)), (all.to_vec(), vec![]));
        // Not waited for: how it ended is told to its parent, on every kernel.
        program.child().kill().expect("a kill");
        let _ = stream(&ring_file, &socket, codec);
        let stored = collecting.stored();
        assert_eq!((open(&stored), ends(&stored)), (all.to_vec(), vec![killed]));
        assert!(stored.damage.is_empty(), "{:?}", stored.damage);
    }
}
