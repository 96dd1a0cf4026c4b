//! P10: bytes per u64 event of a real trace: raw, with LZ4, with LZ4 behind the reversible filter.

use ringmark_benches::real::{read_lines, snapshot, sources, start};
use ringmark_benches::{finish, print_bar};
use ringmark_decoder::DumpBuilder;
use ringmark_reader::Codec;

const RING_BYTES: u32 = 16 << 20;

fn main() {
    let session = start(RING_BYTES);
    let emitted = read_lines(&sources());
    println!("one event a line: {emitted} events of this repository's files");
    let mut missed = false;
    for (name, codec, most) in [
        ("raw", Codec::None, 16.0 * 1.01),
        ("LZ4", Codec::Lz4, 10.0),
        ("filter and LZ4", Codec::DeltaShuffleLz4, 6.0),
    ] {
        let path = std::env::temp_dir().join(format!("ringmark-size-{}.rmk", std::process::id()));
        let (bytes, _) = snapshot(&session, codec, &path);
        let events = events(&bytes);
        assert!(events > 0, "no events in the snapshot");
        println!("{name}: {} bytes, {events} events", bytes.len());
        let each = bytes.len() as f64 / events as f64;
        missed |= each > most;
        print_bar(
            "P10",
            &format!("bytes per event, {name}"),
            each,
            most,
            each <= most,
        );
    }
    finish(missed)
}

fn events(bytes: &[u8]) -> usize {
    let mut builder = DumpBuilder::new();
    builder.read("snapshot", bytes).expect("a readable dump");
    let dump = builder.finish();
    assert!(dump.damage.is_empty(), "{:?}", dump.damage);
    dump.events()
        .filter(|item| matches!(item, ringmark_decoder::Output::Event(_)))
        .count()
}
