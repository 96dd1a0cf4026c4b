//! The events of a session and of the store that it was streamed to, as text to compare.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use ringmark_decoder::{BlockReader, Dump, Item, Output};
use ringmark_format::block::{SEALED, kind};
use ringmark_format::store::{STORE_MAGIC, STORE_VERSION, StoreId};
use zerocopy::IntoBytes;

use crate::fixture::{Fixture, SOON};
use crate::recording::read;

/// The content of `store.id` of a store that is there.
#[must_use]
pub fn store_id() -> Vec<u8> {
    let id = StoreId {
        magic: STORE_MAGIC,
        version: STORE_VERSION,
        reserved: 0,
        id: [7; 16],
    };
    id.as_bytes().to_vec()
}

/// A session of somewhat more than 64 KiB that has ended; `emit` is the program of that name.
///
/// # Panics
/// When the program does not end well.
#[must_use]
pub fn ended_session(fixture: &Fixture, emit: &str) -> PathBuf {
    let ringmark = "mode=discard,ring=64K,page=4K,keep=always";
    let program = fixture.start(emit, ringmark, "2 1300");
    let _ = program.finish(SOON).expect_code(0);
    fixture.ring_file()
}

/// Every event of a session; reading releases it, so a copy is read.
///
/// # Panics
/// When there are few.
#[must_use]
pub fn expected(fixture: &Fixture, ring_file: &Path) -> Vec<String> {
    let copy = fixture.path("expected.ring");
    let _ = fs::copy(ring_file, &copy).unwrap();
    let events = events(&read(&[copy]));
    assert!(events.len() > 1500, "{} events", events.len());
    events
}

/// Every event, as text that says all of it.
#[must_use]
pub fn events(dump: &Dump) -> Vec<String> {
    let lines = dump.events().filter_map(|item| match item {
        Output::Event(event) => {
            let (ring, seq) = (event.ring(), event.seq);
            Some(format!("{ring} {seq} {} {:?}", event.tick, event.payload))
        }
        Output::Lost(_) => None,
    });
    // Sorted: what lies less than a nanosecond apart may change places with other clock samples.
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    lines
}

/// Sealed pages that stand in a store more than once. Others may: their copies merge.
///
/// # Panics
/// When a segment cannot be read.
#[must_use]
pub fn repeated(segments: &[PathBuf]) -> usize {
    let (distinct, all) = sealed(segments);
    all - distinct
}

/// Sealed pages of a store: those that differ, and all.
///
/// # Panics
/// As [`repeated`].
#[must_use]
pub fn sealed(segments: &[PathBuf]) -> (usize, usize) {
    let (mut pages, mut all) = (HashSet::new(), 0);
    for path in segments {
        let mut reader = BlockReader::new("segment", fs::File::open(path).unwrap());
        while let Some(item) = reader.next_item() {
            if let Item::Block(block) = item
                && block.header.kind == kind::PAGE
                && block.header.flags & SEALED != 0
            {
                let header = block.header;
                let _ = pages.insert((header.session, header.ring_id, header.page_number));
                all += 1;
            }
        }
    }
    (pages.len(), all)
}
