//! Any input at all: no panic, bounded output, and no flipped byte goes unnoticed.

use crate::common;

use common::*;
use proptest::prelude::*;
use ringmark_decoder::{BlockReader, Counted, Dump, DumpBuilder, Filter, Item, Stats};
use ringmark_format::attribute::tag;
use ringmark_format::block::{BlockHeader, codec};
use ringmark_format::codec::{crc32, header_crc, write};
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::seen_waits::SeenWait;
use ringmark_format::session::Mode;
use ringmark_format::switches::{Switch, Switches, turn};
use zerocopy::{FromBytes, IntoBytes};

/// Does everything that can be done with a dump.
fn exercise(dump: &Dump) -> (String, String) {
    let mut filter = Filter::new();
    filter
        .condition("n>5")
        .unwrap()
        .name("*")
        .level("info")
        .unwrap();
    let _ = dump.events().filter(|i| filter.passes_item(i)).count();
    let _ = Stats::collect(dump.events());
    let sum = dump.verify();
    let _ = (sum.to_json(), sum.to_string());
    let _ = dump.figures(Counted::default());
    let piece: Result<(), ()> = dump.cut(&Filter::new()).write(|_| Ok(()));
    piece.unwrap();
    (lossy_text(dump), json(dump))
}

fn lossy_text(dump: &Dump) -> String {
    let text = text(dump);
    assert!(!text.bytes().any(|b| b < b' ' && b != b'\n' || b == 0x7f));
    text
}

fn try_all(bytes: &[u8]) {
    let mut builder = DumpBuilder::new();
    let _ = builder.read("any", bytes);
    let dump = builder.finish();
    let (text, json) = exercise(&dump);
    let bound = 4096 + 400 * bytes.len();
    assert!(
        text.len() < bound && json.len() < 2 * bound,
        "{} {} of {}",
        text.len(),
        json.len(),
        bytes.len()
    );
}

/// A dump with every kind of field, spans, holes, a partial page and a container.
fn rich() -> Vec<u8> {
    let mut out = Vec::new();
    write::session(
        &mut out,
        SESSION,
        &session_content(session_header(Mode::Overwrite)),
    )
    .unwrap();
    write::schema(&mut out, SESSION, 0, &rich_schema()).unwrap();
    let mut pages = Vec::new();
    for number in 0..3 {
        let mut page = PageOf::new(number, 20 * number);
        for i in 0..4 {
            page.event(10 * i, 16, &[i.into()])
                .event(10 * i + 5, 17, &[7])
                .event(10 * i + 6, 18, &[16 | (8 << 32), 3, 4]);
            page.event(10 * i + 6, 19, &[i.into()])
                .event(10 * i + 7, 20, &[i.into()])
                .event(10 * i + 8, 21, &[i.into()]);
        }
        page.span(2, 3)
            .span(3, 2)
            .event(50, 400, &[1])
            .event(0, 4, &[99_999])
            .event(0, 16, &[0; 300]);
        if number < 2 {
            page.close();
        }
        page.write(number < 2, if number == 0 { &mut out } else { &mut pages });
    }
    write::container(&mut out, SESSION, codec::DELTA_SHUFFLE_LZ4, &pages).unwrap();
    switched(&mut out);
    end(200, &mut out);
    out
}

/// Switches of the thread of its pages, and what it waited for.
fn switched(out: &mut Vec<u8>) {
    let at = |ns: u64, turn| Switch {
        mono_ns: MONO_ZERO_NS + ns,
        tid: 77,
        turn,
        cpu: 0,
    };
    let head = Switches {
        from_mono_ns: MONO_ZERO_NS,
        to_mono_ns: MONO_ZERO_NS + 2000,
        lost: 0,
        switches: 0,
        reserved: 0,
    };
    let turns = [
        (0, turn::SEEN),
        (9, turn::WAITS),
        (12, turn::RUNS),
        (1012, turn::READY),
        (1014, turn::RUNS),
    ];
    write::switches(out, SESSION, &head, &turns.map(|(ns, turn)| at(ns, turn))).unwrap();
    let seen = |ns: u64| SeenWait {
        from_mono_ns: MONO_ZERO_NS + ns,
        to_mono_ns: MONO_ZERO_NS + ns + 2,
        tid: 77,
        text: 0,
        text_bytes: 0,
        reserved: 0,
    };
    let waits = [(seen(10), &b"read a\nf\ng"[..]), (seen(1012), b"read a")];
    write::seen_waits(out, SESSION, waits).unwrap();
}

/// Event types of every shape, one of them with fields of every kind.
fn rich_schema() -> Vec<u8> {
    let meaning = |m: u32| m.to_le_bytes();
    let (duration, span) = (meaning(semantic::DURATION), meaning(semantic::SPAN_ID));
    let took: &[(u16, &[u8])] = &[(tag::SEMANTIC, &duration)];
    let id: &[(u16, &[u8])] = &[(tag::SEMANTIC, &span)];
    let mut all: Vec<FieldOf<'_>> = Kind::ALL.iter().map(|k| field(k.name(), *k, 0)).collect();
    all.push(FieldOf {
        count: 3,
        ..field("list", Kind::Str, 0)
    });
    let with_id = || FieldOf {
        extra: id,
        ..field("id", Kind::U64, 0)
    };
    let stream = [
        event_entry(
            16,
            "tick",
            Level::Info,
            Shape::Instant,
            &[field("n", Kind::U64, 0)],
        ),
        event_entry(
            17,
            "work",
            Level::Debug,
            Shape::Span,
            &[FieldOf {
                extra: took,
                ..field("t", Kind::U64, 0)
            }],
        ),
        event_entry(18, "all", Level::Info, Shape::Instant, &all),
        event_entry(19, "new", Level::Info, Shape::SpanNew, &[with_id()]),
        event_entry(20, "enter", Level::Info, Shape::SpanEnter, &[with_id()]),
        event_entry(21, "exit", Level::Info, Shape::SpanExit, &[with_id()]),
    ];
    stream.concat()
}

/// Makes every CRC of a sequence of blocks right again, as far as the lengths lead.
fn fix_crcs(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(rest) = bytes.get_mut(at..) {
        let Ok((mut header, _)) = BlockHeader::read_from_prefix(rest) else {
            return;
        };
        let stored = header.stored_bytes as usize;
        let Some(content) = rest.get(64..64 + stored) else {
            return;
        };
        header.content_crc = crc32(content);
        header.header_crc = header_crc(&header);
        rest[..64].copy_from_slice(header.as_bytes());
        at += 64 + stored.next_multiple_of(8);
    }
}

#[test]
fn the_rich_dump_is_sound() {
    let dump = read(&rich()).unwrap();
    assert!(dump.damage.is_empty(), "{:?}", dump.damage);
    assert_eq!(dump.verify().events, 3 * 26);
    try_all(&rich());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        try_all(&bytes);
    }

    #[test]
    fn arbitrary_bytes_behind_a_right_header(bytes in prop::collection::vec(any::<u8>(), 0..2000), kind in 0u16..16) {
        let mut out = rich();
        write::block(&mut out, write::header(kind, SESSION), &bytes).unwrap();
        try_all(&out);
    }

    #[test]
    fn mutations_with_wrong_crcs(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = rich();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        try_all(&bytes);
    }

    #[test]
    fn mutations_with_right_crcs(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = rich();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        fix_crcs(&mut bytes);
        try_all(&bytes);
    }

    #[test]
    fn arbitrary_records_in_a_page(words in prop::collection::vec(word(), 0..200), sealed in any::<bool>()) {
        let mut bytes = rich();
        let mut page = PageOf::new(90, 0);
        for w in words {
            page.word(w);
        }
        page.write(sealed, &mut bytes);
        try_all(&bytes);
    }

    #[test]
    fn two_arbitrary_copies_of_a_page(a in prop::collection::vec(word(), 0..30), b in prop::collection::vec(word(), 0..30), shared in 0usize..30) {
        let mut bytes = rich();
        for words in [&a[..], &[&a[..shared.min(a.len())], &b[..]].concat()] {
            let mut page = PageOf::new(90, 0);
            for w in words {
                page.word(*w);
            }
            page.write(false, &mut bytes);
        }
        try_all(&bytes);
    }
}

/// Words that often are headers.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        (0u64..64, 0u64..24, 0u64..4).prop_map(|(low, ty, words)| low | ty << 32 | words << 56),
        (0u64..10, 1u64..5).prop_map(|(low, ty)| low | ty << 32),
        any::<u64>(),
        Just(0),
    ]
}

/// What can be seen of a dump: every event's line, in order.
fn seen(bytes: &[u8]) -> Option<(String, bool)> {
    let dump = read(bytes).ok()?;
    Some((text(&dump), dump.damage.is_empty()))
}

/// Every byte of a dump of three 4 KiB pages at some values; at all of them, and with a look at what
/// is still shown, in `tests/hostile/damage.rs`.
#[test]
fn no_flipped_byte_goes_unnoticed() {
    let mut bytes = three_pages();
    let (sound, clean) = seen(&bytes).unwrap();
    assert!(clean);
    let mut unnoticed = 0;
    for at in 0..bytes.len() {
        for value in [1, 128] {
            bytes[at] ^= value;
            unnoticed += usize::from(is_unnoticed(&bytes, &sound));
            bytes[at] ^= value;
        }
    }
    assert_eq!(unnoticed, 0);
}

/// No damage is reported, yet the events differ.
fn is_unnoticed(bytes: &[u8], sound: &str) -> bool {
    let mut blocks = BlockReader::new("x", bytes);
    while let Some(item) = blocks.next_item() {
        if matches!(item, Item::Damage(_)) {
            return false;
        }
    }
    let Ok(dump) = read(bytes) else { return false };
    dump.damage.is_empty() && text(&dump) != sound
}
