//! Codecs: exactly reversible for any bytes, total on any input, and small on a real trace.
#![cfg(feature = "codec")]

use proptest::prelude::*;
use ringmark_format::block::{BlockHeader, CONTENT_BYTES_MAX, PageState, codec};
use ringmark_format::codec::{CodecError, decode, encode, filter, write};
use ringmark_format::page::PageHeader;
use ringmark_format::record::{self, pack};
use ringmark_format::{PageNumber, RingId, TypeId, Uuid};
use zerocopy::{FromZeros, IntoBytes};

const SESSION: Uuid = Uuid([3; 16]);

fn page(words: &[u64], page_bytes: u32, out: &mut Vec<u8>) {
    let mut bytes = PageHeader::new_zeroed().as_bytes().to_vec();
    words
        .iter()
        .for_each(|w| bytes.extend_from_slice(&w.to_le_bytes()));
    let extent = bytes.len() as u32;
    let header = write::page_header(
        SESSION,
        RingId(1),
        PageNumber(0),
        extent,
        page_bytes,
        PageState::Open,
    );
    write::block(out, header, &bytes).unwrap();
}

fn round_trip(raw: &[u8]) {
    for codec in [codec::NONE, codec::LZ4, codec::DELTA_SHUFFLE_LZ4] {
        let mut stored = Vec::new();
        encode(codec, raw, &mut stored).unwrap();
        let back = decode(codec, &stored, raw.len() as u32);
        assert!(back.as_deref() == Ok(raw), "codec {codec}");
    }
    let filtered = filter::apply(raw);
    assert!(filtered.len() <= filter::filtered_bytes_max(raw.len()));
}

/// Words that often are headers.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (any::<u32>(), 0u64..40, 0u64..6).prop_map(|(low, ty, n)| u64::from(low) | ty << 32 | n << 56),
        2 => (0u64..12, 1u64..5).prop_map(|(low, ty)| low | ty << 32),
        1 => (0u64..9).prop_map(|n| n),
        1 => Just(pack(1, TypeId(20), record::LONG)),
        2 => any::<u64>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_come_back(raw in prop::collection::vec(any::<u8>(), 0..3000)) {
        round_trip(&raw);
    }

    #[test]
    fn any_records_come_back(
        pages in prop::collection::vec(prop::collection::vec(word(), 0..300), 0..4),
        tail in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut raw = Vec::new();
        for words in &pages {
            page(words, 4096, &mut raw);
            write::counters(&mut raw, SESSION, &[1, 2, 3]).unwrap();
        }
        raw.extend_from_slice(&tail);
        round_trip(&raw);
    }

    #[test]
    fn mutated_blocks_come_back(
        words in prop::collection::vec(word(), 0..300),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut raw = Vec::new();
        page(&words, 4096, &mut raw);
        page(&words, 4096, &mut raw);
        for (at, value) in changes {
            let at = at.index(raw.len());
            raw[at] = value;
        }
        round_trip(&raw);
    }

    #[test]
    fn anything_can_be_decoded_or_refused(
        stored in prop::collection::vec(any::<u8>(), 0..2000),
        raw_bytes in 0u32..5000,
        codec in 0u8..4,
    ) {
        let _ = decode(codec, &stored, raw_bytes);
        let _ = filter::undo(&stored, raw_bytes as usize);
    }

    #[test]
    fn damaged_streams_are_decoded_or_refused(
        words in prop::collection::vec(word(), 0..300),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut raw = Vec::new();
        page(&words, 4096, &mut raw);
        let mut filtered = filter::apply(&raw);
        for (at, value) in changes {
            let at = at.index(filtered.len());
            filtered[at] = value;
        }
        if let Ok(back) = filter::undo(&filtered, raw.len()) {
            prop_assert_eq!(back.len(), raw.len());
        }
    }
}

#[test]
fn more_kinds_of_records_than_the_dictionary_holds() {
    let mut raw = Vec::new();
    let mut words = Vec::new();
    for round in 0..2 {
        for id in 0..5000u32 {
            words.push(pack(id, TypeId(16 + id), 1));
            words.push(u64::from(id) + round);
        }
    }
    page(&words, 1 << 20, &mut raw);
    round_trip(&raw);
}

#[test]
fn limits_are_refused() {
    let large = vec![0; CONTENT_BYTES_MAX as usize + 1];
    let bytes = large.len() as u64;
    let too_large = Err(CodecError::TooLarge { bytes });
    assert_eq!(encode(codec::LZ4, &large, &mut Vec::new()), too_large);
    assert_eq!(
        decode(codec::LZ4, &[], CONTENT_BYTES_MAX + 1).map(|_| ()),
        too_large
    );
    assert_eq!(decode(7, &[], 0), Err(CodecError::Unknown { codec: 7 }));
    assert_eq!(
        decode(codec::NONE, &[0], 2),
        Err(CodecError::Size {
            found: 1,
            expected: 2
        })
    );
}

/// One-u64 events as a server writes them: three types in no order, tick jitter of 10 bits on 300
/// ticks, a counter, a size and a latency.
fn trace(events: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    };
    let (mut ticks, mut counter) = (0u32, 1_000_000u64);
    let (mut raw, mut words) = (Vec::new(), Vec::new());
    for _ in 0..events {
        ticks += 300 + random(1024) as u32;
        let (id, payload) = match random(3) {
            0 => {
                counter += 1;
                (16, counter)
            }
            1 => (17, 64 << random(6)),
            _ => (18, 1000 + random(4096)),
        };
        words.extend([pack(ticks, TypeId(id), 1), payload]);
        if words.len() == 8000 {
            page(&words, 65536, &mut raw);
            words.clear();
            ticks = 0;
        }
    }
    raw
}

#[test]
fn a_trace_of_one_word_events_becomes_small() {
    let events = 40_000;
    let raw = trace(events);
    let size = |codec| {
        let mut out = Vec::new();
        write::container(&mut out, SESSION, codec, &raw).unwrap();
        (out.len() - BlockHeader::BYTES) as f64 / events as f64
    };
    let (plain, filtered) = (size(codec::LZ4), size(codec::DELTA_SHUFFLE_LZ4));
    println!("bytes per event: LZ4 {plain:.2}, filtered {filtered:.2}");
    assert!(plain <= 10.0, "LZ4: {plain} bytes per event");
    assert!(filtered <= 6.0, "filtered: {filtered} bytes per event");
    round_trip(&raw);
}
