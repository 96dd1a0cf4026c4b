//! Promise: a dump of three pages with one byte changed, any byte to any value, is decoded without
//! a crash; a change of covered bytes is reported, and no event is shown that was not written.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ringmark_decoder::{Dump, DumpBuilder, Output};
use ringmark_format::block::BlockHeader;
use ringmark_format::codec::crc32;
use ringmark_tests::is_long;
use zerocopy::IntoBytes;

use crate::common;

const THREADS: usize = 2;
/// Values of every byte in the short run.
const SHORT_VALUES: usize = 4;

/// What was written: type, tick and payload by number.
type Written = Vec<(u32, u64, Vec<u8>)>;

fn read(bytes: &[u8]) -> Option<Dump> {
    let mut builder = DumpBuilder::new();
    builder.read("dump", bytes).ok()?;
    Some(builder.finish())
}

fn written(bytes: &[u8]) -> Written {
    let dump = read(bytes).expect("a sound dump");
    let mut all = Vec::new();
    for item in dump.events() {
        let Output::Event(event) = item else {
            panic!("a loss in a sound dump");
        };
        assert_eq!(event.seq, all.len() as u64);
        all.push((event.ty.id.0, event.tick, event.payload.to_vec()));
    }
    all
}

/// How a changed dump was told from the sound one.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    /// Refused, or damage reported.
    Reported,
    /// Not at all: everything is shown as it was.
    Harmless,
}

/// Looks at a changed dump.
fn look(bytes: &[u8], written: &Written) -> Result<Told, String> {
    let Some(dump) = read(bytes) else {
        return Ok(Told::Reported);
    };
    let mut shown = 0;
    let mut next = 0;
    for item in dump.events() {
        let Output::Event(event) = item else { continue };
        let place = event.seq as usize;
        let right = written.get(place).is_some_and(|(id, tick, payload)| {
            (*id, *tick, payload.as_slice()) == (event.ty.id.0, event.tick, &event.payload[..])
        });
        if !right || place < next {
            return Err(format!("event {place} was never written so"));
        }
        next = place + 1;
        shown += 1;
    }
    let sum = dump.verify();
    if !sum.damage.is_empty() {
        return Ok(Told::Reported);
    }
    if shown != written.len() || !sum.complete {
        return Err(format!("{shown} events shown and no damage reported"));
    }
    Ok(Told::Harmless)
}

/// Bytes that no checksum covers: those that fill blocks up to a multiple of 8.
fn uncovered(bytes: &[u8]) -> usize {
    let mut reader = ringmark_decoder::BlockReader::new("dump", bytes);
    let mut padding = 0;
    while let Some(item) = reader.next_item() {
        if let ringmark_decoder::Item::Block(block) = item {
            padding += block.content.len().next_multiple_of(8) - block.content.len();
        }
    }
    padding
}

/// Splitmix64: the values of a byte in the short run.
fn mixed(seed: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// Flips of the byte at `at`: all, or some by `seed`.
fn flips(at: usize, seed: u64) -> Vec<u8> {
    if is_long() {
        return (1..=255).collect();
    }
    let number = |i: usize| mixed(seed ^ (at * SHORT_VALUES + i) as u64) % 255 + 1;
    (0..SHORT_VALUES).map(|i| number(i) as u8).collect()
}

#[test]
fn every_byte_of_three_pages() {
    let sound = common::three_pages();
    let written = written(&sound);
    assert_eq!(written.len(), 750);
    let seed = if is_long() { 0 } else { 20_261_121 };
    let [next, changes, harmless] = [const { AtomicUsize::new(0) }; 3];
    let work = || {
        let mut bytes = sound.clone();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= bytes.len() {
                return;
            }
            for flip in flips(at, seed) {
                bytes[at] ^= flip;
                let told = look(&bytes, &written);
                bytes[at] ^= flip;
                let told = told.unwrap_or_else(|e| panic!("byte {at} flipped by {flip:#x}: {e}"));
                changes.fetch_add(1, Ordering::Relaxed);
                harmless.fetch_add(usize::from(told == Told::Harmless), Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .for_each(|t| t.join().expect("no byte makes it fail"));
    });
    let (changes, harmless) = (changes.into_inner(), harmless.into_inner());
    let per_byte = changes / sound.len();
    println!(
        "{changes} changes of {} bytes, seed {seed}: {harmless} harmless",
        sound.len()
    );
    assert_eq!(
        harmless,
        uncovered(&sound) * per_byte,
        "changes of covered bytes not reported"
    );
}

/// The test must see a change that no checksum tells: one whose checksums were made right.
#[test]
fn a_change_behind_its_checksum_is_seen() {
    let sound = common::three_pages();
    let written = written(&sound);
    let first = sound
        .windows(4)
        .rposition(|w| w == b"RMKB")
        .expect("blocks");
    let page = sound[..first]
        .windows(4)
        .rposition(|w| w == b"RMKB")
        .expect("a page");
    let (mut header, _) =
        <BlockHeader as zerocopy::FromBytes>::read_from_prefix(&sound[page..]).expect("a header");
    let mut bytes = sound.clone();
    // The payload of the page's first event.
    bytes[page + 64 + 96 + 8] ^= 1;
    let content = page + 64..page + 64 + header.stored_bytes as usize;
    header.content_crc = crc32(&bytes[content]);
    header.header_crc = crc32(&header.as_bytes()[..60]);
    bytes[page..page + 64].copy_from_slice(header.as_bytes());
    assert!(look(&bytes, &written).is_err());
}
