//! Promise: events of several hosts come in the order in which they happened, as far as the stated error of
//! their clocks tells, whatever the hosts take the time to be.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ringmark_decoder::{Dump, Output, Value};
use ringmark_reader::Codec;
use ringmark_tests::collecting::{Collecting, stream_as};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::wrong_clocks::WrongClocks;
use ringmark_tests::{binary, run};

const EXCHANGE: &str = ringmark_tests::program!("exchange");
const TURNS: u64 = 400;
const S: i64 = 1_000_000_000;

/// One half of an exchange that is being traced.
struct Half {
    fixture: Fixture,
    child: Child,
}

impl Drop for Half {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

/// Two programs that answer each other through pipes.
fn exchange() -> [Half; 2] {
    let ringmark = "mode=discard,ring=256K,page=4K,session=4M,keep=always";
    let (to_second, from_first) = std::io::pipe().unwrap();
    let (to_first, from_second) = std::io::pipe().unwrap();
    let start = |label, first: &str, input: Stdio, output: Stdio| {
        let fixture = Fixture::new(label);
        let mut command: Command = fixture.program(EXCHANGE, ringmark);
        command.args([first, &TURNS.to_string()]);
        let child = command.stdin(input).stdout(output).spawn().unwrap();
        Half { fixture, child }
    };
    [
        start("first", "0", to_first.into(), from_first.into()),
        start("second", "1", to_second.into(), from_second.into()),
    ]
}

/// An event: its number, its time, and how wrong that can be.
type Turn = (u64, u64, u64);

/// What was exchanged, in the order that the store gives.
fn turns(dump: &Dump) -> Vec<Turn> {
    let of = |item| match item {
        Output::Event(event) => {
            let Some((_, Value::U64(n))) = event.args().next() else {
                panic!("an event that is not ours");
            };
            let error = event.session.clock.error_ns(event.t_ns);
            Some((n, event.wall_ns(), error.expect("a measured clock")))
        }
        Output::Lost(_) => None,
    };
    dump.events().filter_map(of).collect()
}

/// Traces an exchange of which the second half runs on a host with wrong clocks. Everything comes in order, or
/// nearer than the errors that are stated; the largest of them, ns.
fn expect_order(skew: WrongClocks) -> u64 {
    let fixture = Fixture::new("skew");
    let (socket, way, store) = (
        fixture.path("socket"),
        fixture.path("way"),
        fixture.path("store"),
    );
    let collecting = Collecting::start(&socket, &store);
    skew.start(&way, &socket);
    let halves = exchange();
    let streams = [(&halves[0], socket, "one"), (&halves[1], way, "other")];
    std::thread::scope(|scope| {
        for (half, to, host) in streams {
            let ring_file = half.fixture.ring_file();
            scope.spawn(move || stream_as(host, &ring_file, &to, Codec::None));
        }
    });
    let dump = collecting.stored();
    let mut found = turns(&dump);
    assert_eq!(found.len() as u64, TURNS);
    let in_order = found.is_sorted_by_key(|turn| turn.0);
    assert!(found.is_sorted_by_key(|turn| turn.1));
    found.sort_unstable();
    let mut back = 0;
    for pair in found.windows(2) {
        let [(n, before, error), (_, after, other)] = [pair[0], pair[1]];
        back = back.max(before.saturating_sub(after));
        assert!(
            after + error + other > before,
            "{skew:?}: {n} at {before}, the next one at {after}, stated errors {error} and {other}"
        );
    }
    let most = found.iter().map(|turn| turn.2).max().unwrap_or(0);
    println!(
        "{skew:?}: stated error up to {most} ns, in order: {in_order}, back by {back} ns at most"
    );
    // A round trip that takes longer would have ended the connection.
    assert!(most < 5 * S as u64, "{most} ns");
    assert!(in_order || back > 0);
    expect_told(&fixture, &store);
    most
}

/// People are told how wrong the times can be.
fn expect_told(fixture: &Fixture, store: &PathBuf) {
    let tool = |command: &str| {
        run(
            fixture.command(binary::path()).arg(command).arg(store),
            SOON,
        )
        .unwrap()
        .expect_code(0)
    };
    for command in ["cat", "report"] {
        let told = tool(command).stderr_text();
        assert!(
            told.contains("on the collector's clock"),
            "{command}: {told}"
        );
    }
    let verified = tool("verify").stdout_text();
    assert!(verified.contains("clock_error_ns: "), "{verified}");
}

const EXACT: WrongClocks = WrongClocks {
    offset_ns: 0,
    drift_ppm: 0,
    samples: true,
    delay_back: Duration::ZERO,
};

#[test]
fn ahead_and_slow() {
    let _ = expect_order(WrongClocks {
        offset_ns: 10 * S,
        drift_ppm: -180,
        ..EXACT
    });
}

#[test]
fn behind_and_fast() {
    let _ = expect_order(WrongClocks {
        offset_ns: -10 * S,
        drift_ppm: 180,
        ..EXACT
    });
}

/// The streamer does not have the monotonic clock of its programs: their realtime clocks must do.
#[test]
fn without_a_common_monotonic_clock() {
    for offset_ns in [10 * S, -10 * S] {
        let _ = expect_order(WrongClocks {
            offset_ns,
            samples: false,
            ..EXACT
        });
    }
}

/// One way that is slower than the other makes a measurement wrong by half the difference.
#[test]
fn a_way_that_is_slower_in_one_direction() {
    let delay_back = Duration::from_millis(60);
    let error = expect_order(WrongClocks {
        offset_ns: 10 * S,
        delay_back,
        ..EXACT
    });
    assert!(error >= 30_000_000, "only {error} ns are stated");
}
