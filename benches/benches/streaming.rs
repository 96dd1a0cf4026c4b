//! What a stream costs beside a bare loop that sends the same blocks to the same collector, which
//! checks every checksum and stores in memory; over TLS, packed, and what a synced disk takes.
//!
//! Not run by `./test`: it takes two gigabytes of memory for a minute.

use std::ops::Div;

use ringmark_benches::streaming::{
    COPYING, Place, Reached, Sender, Way, fastest_piece, fill, race, send_loop, sendfile_loop,
    stream, tls_loop,
};
use ringmark_benches::{child_argument, finish, percentiles, print_bar, print_rows};
use ringmark_collector::store::SyncMode::{Cache, Disk};
use ringmark_reader::Codec;

const ROUNDS: usize = 7;

fn main() {
    if child_argument().is_some() {
        return fill();
    }
    let place = Place::filled();
    let piece = fastest_piece(&place);
    println!(
        "the bare send loop is fastest with writes of {} KiB",
        piece >> 10
    );
    let results = race(&place, ROUNDS, senders(piece));
    let megabytes = place.bytes() / 1_000_000;
    println!("\nStreams and bare loops ({ROUNDS} interleaved rounds of {megabytes} MB)");
    let [rates, cpu] = results.rows();
    print_rows("MB/s", &rates);
    print_rows("ms CPU of the sender per GB", &cpu);
    let paired = |of: &str, to: &str| {
        let (of, to) = (results.rates(of), results.rates(to));
        percentiles(of.into_iter().zip(to).map(|(a, b)| a.div(b)).collect())[1]
    };
    let least = percentiles(results.rates("send loop"))[1];
    let bars = [
        (
            "copying: bare send loop / streamer",
            paired("send loop", "streamer"),
            1.0 / 0.85,
        ),
        (
            "zero-copy: bare sendfile / streamer",
            paired("sendfile loop", "streamer --zero-copy"),
            1.0 / 0.85,
        ),
        ("collector: 400 MB/s / bare send loop", 400.0 / least, 1.0),
    ];
    let mut missed = false;
    for (what, value, most) in bars {
        missed |= value > most;
        print_bar("S1", what, value, most, value <= most);
    }
    drop(place);
    finish(missed)
}

/// `piece`: bytes of the bare loop's writes.
fn senders(piece: usize) -> Vec<Sender> {
    let by_reference = Way {
        zero_copy: true,
        ..COPYING
    };
    let packed = |codec| {
        let way = Way { codec, ..COPYING };
        move |at: &Reached, place: &Place| stream(&at.plain, place, way)
    };
    vec![
        Sender::to(Cache, "send loop", move |at, place| {
            send_loop(&at.plain, place, piece)
        }),
        Sender::to(Cache, "streamer", packed(Codec::None)),
        Sender::to(Cache, "sendfile loop", |at, place| {
            sendfile_loop(&at.plain, place)
        }),
        Sender::to(Cache, "streamer --zero-copy", move |at, place| {
            stream(&at.plain, place, by_reference)
        }),
        Sender::to(Cache, "TLS send loop", |at, place| tls_loop(&at.tls, place)),
        Sender::to(Cache, "streamer, TLS", |at, place| {
            stream(&at.tls, place, COPYING)
        }),
        Sender::to(Cache, "streamer, LZ4", packed(Codec::Lz4)),
        Sender::to(
            Cache,
            "streamer, filter and LZ4",
            packed(Codec::DeltaShuffleLz4),
        ),
        Sender::alone("dd conv=fdatasync", Place::dd),
        Sender::to(Disk, "streamer, synced disk", packed(Codec::None)),
    ]
}
