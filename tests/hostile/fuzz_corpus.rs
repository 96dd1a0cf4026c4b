//! Promise: whatever the fuzzers found or were given to begin with ends in events or in an error.
//! The same functions over the same inputs as in `fuzz/`, without a fuzzer.

use std::fs;
use std::path::{Path, PathBuf};

use ringmark_decoder::{DumpBuilder, Output};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::workspace_root;

use crate::bodies;

use bodies::{cli_patterns, dump_blocks, repair, ring_image, schema, stream};

const EMIT: &str = ringmark_tests::program!("emit");

fn corpus(target: &str) -> PathBuf {
    workspace_root().join("fuzz/corpus").join(target)
}

/// Every file of a directory with its content, in the order of their names.
fn inputs(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| (path.clone(), fs::read(path).unwrap());
    paths.into_iter().map(read).collect()
}

fn replay(dir: &Path, least: usize, run: fn(&[u8])) {
    let inputs = inputs(dir);
    assert!(inputs.len() >= least, "{} inputs", inputs.len());
    for (path, bytes) in &inputs {
        println!("{}", path.display());
        run(bytes);
    }
}

#[test]
fn dumps() {
    replay(&corpus("dump_blocks"), 3, dump_blocks::run);
    replay(
        &workspace_root().join("format-spec/vectors/v1"),
        20,
        dump_blocks::run,
    );
}

#[test]
fn ring_files() {
    replay(&corpus("ring_image"), 4, ring_image::run);
}

#[test]
fn streams() {
    replay(&corpus("stream"), 3, stream::run);
}

#[test]
fn schema_streams() {
    replay(&corpus("schema"), 5, schema::run);
}

#[test]
fn text_of_people() {
    replay(&corpus("cli_patterns"), 40, cli_patterns::run);
}

#[test]
fn the_corpus_stays_small() {
    let targets = inputs_below(&workspace_root().join("fuzz/corpus"));
    let bytes: usize = targets.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes <= 1 << 20, "{bytes} bytes");
    let largest = targets.iter().max_by_key(|(_, bytes)| bytes.len()).unwrap();
    assert!(
        largest.1.len() <= 64 << 10,
        "{} is large",
        largest.0.display()
    );
}

fn inputs_below(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let targets = fs::read_dir(dir).unwrap();
    targets
        .flat_map(|target| inputs(&target.unwrap().path()))
        .collect()
}

fn events(bytes: &[u8]) -> usize {
    let mut builder = DumpBuilder::new();
    let _ = builder.read("input", bytes);
    let dump = builder.finish();
    let is_event = |item: &Output<'_>| matches!(item, Output::Event(_));
    dump.events().filter(is_event).count()
}

#[test]
fn repaired_checksums_lead_on() {
    let vectors = workspace_root().join("format-spec/vectors/v1");
    for name in ["two_rings.rmk", "lz4_container.rmk", "delta_shuffle.rmk"] {
        let good = fs::read(vectors.join(name)).unwrap();
        let wanted = events(&good);
        assert_eq!(repair::repaired(&good, false), good, "{name}");
        assert_eq!(events(&repair::repaired(&good, true)), wanted, "{name}");
        // The SESSION block's header says the session; its last byte is of the header's CRC.
        let mut wrong = good.clone();
        wrong[63] ^= 1;
        assert_ne!(wrong, good);
        assert_eq!(repair::repaired(&wrong, false), good, "{name}");
    }
    assert!(events(&fs::read(vectors.join("two_rings.rmk")).unwrap()) > 0);
}

/// A dead session of few rings and events.
fn dead_session(fixture: &Fixture, mode: &str, arguments: &str) -> Vec<u8> {
    let ringmark = format!("mode={mode},ring=8K,page=4K,session=16K,warm=1,keep=always");
    let _ = fixture
        .start(EMIT, &ringmark, arguments)
        .finish(SOON)
        .expect_code(0);
    fs::read(fixture.ring_file()).unwrap()
}

#[test]
fn an_image_is_its_input() {
    let fixture = Fixture::new("image");
    let image = dead_session(&fixture, "discard", "1 40");
    let input = ring_image::input_for(&image).expect("a small session");
    assert!(input.len() < 16 << 10, "{} bytes", input.len());
    assert!(ring_image::image(&input) == image);
}

/// Writes what the fuzzers begin with; by hand, after a change of the format:
/// `cargo nextest run -p ringmark-tests write_seeds --run-ignored only`.
#[test]
#[ignore = "writes into the checkout"]
fn write_seeds() {
    for (mode, threads) in [("discard", 1), ("overwrite", 2)] {
        let fixture = Fixture::new("seed");
        let image = dead_session(&fixture, mode, &format!("{threads} 60"));
        let input = ring_image::input_for(&image).expect("a small session");
        for (number, how) in [(0, "still"), (1, "changing")] {
            let path = corpus("ring_image").join(format!("{mode}_{how}"));
            fs::write(path, [&[number], &input[..]].concat()).unwrap();
        }
    }
    for vector in [
        "kinds",
        "unknown",
        "odd_fields",
        "two_rings",
        "described_twice",
    ] {
        let path = workspace_root().join(format!("format-spec/vectors/v1/{vector}.rmk"));
        fs::write(
            corpus("schema").join(vector),
            stream(&fs::read(path).unwrap()),
        )
        .unwrap();
    }
    for (number, (what, text)) in TEXTS.iter().enumerate() {
        let name = format!("{what}_{number:02}");
        let input = [&[b'0' + what], text.as_bytes()].concat();
        fs::write(corpus("cli_patterns").join(name), input).unwrap();
    }
}

/// The schema stream of a dump, whose pieces stand in order.
fn stream(dump: &[u8]) -> Vec<u8> {
    use ringmark_decoder::{BlockReader, Item};
    use ringmark_format::block::kind;
    let mut reader = BlockReader::new("vector", dump);
    let mut stream = Vec::new();
    while let Some(item) = reader.next_item() {
        if let Item::Block(block) = item
            && block.header.kind == kind::SCHEMA
        {
            stream.extend_from_slice(block.content);
        }
    }
    stream
}

/// What people write: 0 `RINGMARK`, 1 `RINGMARK_FILTER`, 2 parts of filters, 3 sizes and times.
const TEXTS: &[(u8, &str)] = &[
    (0, "1"),
    (0, "0"),
    (0, "mode=discard,ring=64K,page=4K,session=4M"),
    (0, "mode=overwrite,clock=coarse,keep=always,warm=2"),
    (0, "fork=off,memfd=on,control=0,tag=service=web"),
    (0, "session=99999999999G"),
    (0, "page=3K"),
    (0, "ring"),
    (0, "ring=é"),
    (1, "info"),
    (1, "info,hyper=debug,hyper::proto=off"),
    (1, "app=loud"),
    (1, "span[{x=1}]=info"),
    (1, ",,=,off"),
    (2, "1.5s"),
    (2, "200ms"),
    (2, "+7ns"),
    (2, "1e300h"),
    (2, "2026-11-21T01:42:03.5Z"),
    (2, "2026-11-21 01:42:03"),
    (2, "size>=1024"),
    (2, "path=/tmp/*"),
    (2, "ok!=true"),
    (2, "n<=0x1F"),
    (2, "n=170141183460469231731687303715884105727"),
    (2, "n<NaN"),
    (2, "=5"),
    (2, "a>b"),
    (2, "request.*"),
    (2, "net::*::d?ne"),
    (2, "********x"),
    (2, "warn"),
    (2, "4242"),
    (3, "4096"),
    (3, "64K"),
    (3, "1.5MiB"),
    (3, "2gb"),
    (3, "99999999T"),
    (3, "10s"),
    (3, "1.5m"),
    (3, "0.0000000001s"),
    (3, "99999999999999999999h"),
    (3, "1970-01-01T00:00:00Z"),
    (3, "9999-12-31T23:59:60.999999999Z"),
];
