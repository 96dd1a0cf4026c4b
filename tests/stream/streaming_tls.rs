//! Promise: a stream over TLS loses nothing and repeats nothing wherever it is cut, in the handshake
//! or after, and a peer that is slow in its handshake holds no other up.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringmark_reader::Selection;
use ringmark_tests::ca::{Ca, as_host, tls, tls_options};
use ringmark_tests::collecting::{Collecting, segments, stream_options, stream_with};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::proxy::{Fault, Proxy};
use ringmark_tests::store_contents::{ended_session, events, expected, repeated};
use ringmark_tests::{is_long, wait_until};

const EMIT: &str = ringmark_tests::program!("emit");

/// One exchange over a way that is bad at first. Connections, and bytes sent.
fn exchange(fixture: &Fixture, ca: &Ca, ring_file: &Path, fault: Fault) -> (u64, u64) {
    let root = fixture.path("store");
    let _ = fs::remove_dir_all(&root);
    let copy = fixture.path("copy.ring");
    let _ = fs::copy(ring_file, &copy).unwrap();
    let expected = expected(fixture, ring_file);
    let collecting = Collecting::with(tls_options(ca.collector(), &root));
    let plan = move |n| if n == 0 { fault } else { Fault::NONE };
    let proxy = Proxy::start_tcp(&collecting.place(), plan);
    let to = tls(format!("127.0.0.1:{}", proxy.port()));
    let mut options = stream_options(Selection::Path(copy), to);
    as_host("WEB-1", ca.host("web-1"))(&mut options);
    let sent = stream_with(options).sent;
    let stored = collecting.stored();
    let found = events(&stored);
    let differs = found.iter().zip(&expected).position(|(f, e)| f != e);
    assert_eq!((found.len(), differs), (expected.len(), None), "{fault:?}");
    assert!(stored.damage.is_empty(), "{:?}", stored.damage);
    let segments = segments(&root);
    assert_eq!((repeated(&segments), stored.conflicts), (0, 0));
    // Under the name as the certificate has it.
    let is_of_host = |path: &PathBuf| path.parent().unwrap().ends_with("web-1");
    assert!(segments.iter().all(is_of_host), "{segments:?}");
    (proxy.connections(), sent)
}

#[test]
fn cut_in_the_handshake_and_after() {
    let fixture = Fixture::new("tls_cut");
    let ca = Ca::new(fixture.path("ca"));
    let ring_file = ended_session(&fixture, EMIT);
    let (connections, sent) = exchange(&fixture, &ca, &ring_file, Fault::NONE);
    assert!(connections == 1 && sent > 60_000, "{sent} bytes");
    // Both handshakes end before 2 KiB; the rest are pages one way, acknowledgements the other.
    let step = if is_long() { 1 } else { 211 };
    let early = (0..2048).step_by(step);
    let late = (2048..sent).step_by(step * 40);
    let mut cuts = 0;
    for at in early.clone().chain(late) {
        let fault = Fault {
            cut_there: at,
            ..Fault::NONE
        };
        let (connections, _) = exchange(&fixture, &ca, &ring_file, fault);
        assert_eq!(connections, 2, "cut there at byte {at}");
        cuts += 1;
    }
    for at in early {
        let fault = Fault {
            cut_back: at,
            ..Fault::NONE
        };
        cuts += exchange(&fixture, &ca, &ring_file, fault).0 - 1;
    }
    println!("{cuts} cuts, each event once");
}

/// Connections that begin a handshake and never end it.
#[test]
fn slow_handshakes_hold_nobody() {
    let fixture = Fixture::new("tls_slow");
    let ca = Ca::new(fixture.path("ca"));
    let ring_file = ended_session(&fixture, EMIT);
    let collecting = Collecting::with(tls_options(ca.collector(), &fixture.path("store")));
    let mut slow: Vec<_> = (0..50)
        .map(|_| TcpStream::connect(collecting.place()).unwrap())
        .collect();
    for (index, stream) in slow.iter_mut().enumerate() {
        let begin = [0x16, 3, 1, 2, 0, 1];
        stream.write_all(&begin[..index % 7]).unwrap();
    }
    let mut options = stream_options(Selection::Path(ring_file), tls(collecting.place()));
    as_host("web-1", ca.host("web-1"))(&mut options);
    assert!(stream_with(options).sent > 60_000);
    assert!(collecting.figure("connections") >= 50);
    drop(collecting);

    let mut options = tls_options(ca.collector(), &fixture.path("store"));
    options.handshake_within = Duration::from_millis(100);
    let mut collecting = Collecting::with(options);
    let mut slow = TcpStream::connect(collecting.place()).unwrap();
    slow.set_read_timeout(Some(SOON)).unwrap();
    assert_eq!(slow.read(&mut [0; 16]).unwrap(), 0);
    let heard = collecting.notice();
    assert!(heard.contains("no TLS handshake within 0.1 s"), "{heard}");
}

/// What people's monitoring is told of each host.
#[test]
fn figures_of_a_host() {
    let fixture = Fixture::new("tls_figures");
    let ca = Ca::new(fixture.path("ca"));
    let ring_file = ended_session(&fixture, EMIT);
    let mut options = tls_options(ca.collector(), &fixture.path("store"));
    options.metrics = Some("127.0.0.1:0".to_owned());
    let collecting = Collecting::with(options);
    let mut options = stream_options(Selection::Path(ring_file), tls(collecting.place()));
    as_host("web-1", ca.host("web-1"))(&mut options);
    let sent = stream_with(options).sent;
    let figures = wait_until(SOON, "the connection to end", || {
        let figures = collecting.served_figures();
        let ended = figures.contains("\nringmark_collector_host_connections{host=\"web-1\"} 0\n");
        ended.then_some(figures)
    });
    for name in ["received", "durable"] {
        let line =
            format!("\nringmark_collector_host_{name}_bytes_total{{host=\"web-1\"}} {sent}\n");
        assert!(figures.contains(&line), "{line}{figures}");
    }
}
