//! Bad input: the right words, and everything that is sound still comes out.

use crate::common;

use common::*;
use ringmark_decoder::{BlockReader, DumpBuilder, Fault, Item};
use ringmark_format::block::{PageState, codec, kind};
use ringmark_format::codec::{crc32, header_crc, write};
use ringmark_format::record::{BUSY, pack, pack_span};
use ringmark_format::session::Mode;
use ringmark_format::{TypeId, VERSION_MAJOR};
use zerocopy::IntoBytes;

fn refused(bytes: &[u8]) -> String {
    read(bytes).unwrap_err().to_string()
}

fn faults(bytes: &[u8]) -> Vec<Fault> {
    let dump = read(bytes).unwrap();
    dump.damage.into_iter().map(|d| d.fault).collect()
}

#[test]
fn what_is_no_dump_is_named() {
    let wrong = "test.rmk: block 0 at offset 0: ";
    assert_eq!(refused(b""), format!("{wrong}empty, expected a trace file"));
    for (bytes, what) in [
        (&b"\x7fELF\x02\x01\x01\0"[..], "an ELF file"),
        (b"\x1f\x8b\x08\0\0\0\0\0", "gzip"),
        (b"RINGMARK\x01\0\0\0", "a ring file"),
        (b"hello world, this is text\n", "text"),
        (b"{\"a\": 1}\n", "JSON"),
        (&[0; 100], "zeros"),
    ] {
        let said = refused(bytes);
        assert!(
            said.contains(what) && said.contains("expected \"RMKB\""),
            "{said}"
        );
    }
    assert!(refused(b"\xde\xad\xbe\xef").ends_with("expected \"RMKB\""));
    assert_eq!(
        refused(&three_pages()[..40]),
        format!("{wrong}truncated block header: 40 bytes, expected 64")
    );
}

#[test]
fn other_versions_and_byte_orders_are_refused_by_name() {
    let mut header = session_header(Mode::Discard);
    header.version_major = VERSION_MAJOR + 1;
    let mut bytes = Vec::new();
    write::session(&mut bytes, SESSION, &session_content(header)).unwrap();
    assert!(refused(&bytes).ends_with("format version 2, this decoder reads up to 1"));

    header.version_major = VERSION_MAJOR;
    header.version_minor = 99;
    let mut bytes = Vec::new();
    write::session(&mut bytes, SESSION, &session_content(header)).unwrap();
    assert!(
        read(&bytes).unwrap().damage.is_empty(),
        "a newer minor is read"
    );

    let mut swapped = three_pages()[..64].to_vec();
    swapped[4..6].reverse();
    for at in [40, 44, 48, 52, 56] {
        swapped[at..at + 4].reverse();
    }
    let crc = crc32(&swapped[..60]).to_be_bytes();
    swapped[60..64].copy_from_slice(&crc);
    assert!(refused(&swapped).contains("written big-endian, expected little-endian"));
}

#[test]
fn a_wrong_crc_costs_its_block_only() {
    let mut bytes = three_pages();
    let second = block_starts(&bytes)[3];
    bytes[second + 64 + 500] ^= 1;
    let dump = read(&bytes).unwrap();
    let sum = dump.verify();
    assert_eq!((sum.events, sum.missing, sum.pages), (500, 250, 2));
    let [damage] = &dump.damage[..] else {
        panic!("{:?}", dump.damage)
    };
    let said = damage.to_string();
    assert!(
        said.contains(&format!(
            "block 3 at offset {second}: page 1 of ring 5: crc32 of the block content stored"
        )),
        "{said}"
    );
}

/// Offsets of the blocks of a sound dump.
fn block_starts(bytes: &[u8]) -> Vec<usize> {
    let mut reader = BlockReader::new("x", bytes);
    let mut starts = Vec::new();
    while let Some(item) = reader.next_item() {
        match item {
            Item::Block(block) => starts.push(block.offset as usize),
            Item::Damage(damage) => panic!("{damage}"),
        }
    }
    starts
}

#[test]
fn garbage_and_holes_between_blocks_are_passed_over() {
    let bytes = three_pages();
    let starts = block_starts(&bytes);
    let with_garbage = [
        &bytes[..starts[3]],
        b"RMKB and some garbage",
        &bytes[starts[3]..],
    ]
    .concat();
    let dump = read(&with_garbage).unwrap();
    assert_eq!(
        (dump.verify().events, dump.damage.len()),
        (750, 2),
        "{:?}",
        dump.damage
    );
    let said = dump.damage[1].to_string();
    let expected = format!(
        "at offset {}: 21 bytes that are no block, skipped",
        starts[3]
    );
    assert!(said.contains(&expected), "{said}");
    // A piece out of the middle of a page: its length leads into the next block.
    let with_hole = [&bytes[..starts[3] + 1000], &bytes[starts[3] + 2000..]].concat();
    let dump = read(&with_hole).unwrap();
    assert_eq!((dump.verify().events, dump.verify().missing), (500, 250));
    // Cut in the last page, another dump behind it.
    let two = [&bytes[..starts[4] + 777], &bytes[..]].concat();
    let dump = read(&two).unwrap();
    assert_eq!((dump.verify().events, dump.repeated), (750, 2));
}

#[test]
fn a_prefix_of_any_length_gives_its_whole_blocks() {
    let bytes = three_pages();
    let starts = block_starts(&bytes);
    for cut in 1..bytes.len() {
        let whole = starts.iter().skip(1).filter(|s| **s <= cut).count();
        match read(&bytes[..cut]) {
            Ok(dump) => {
                let pages = dump.verify().pages as usize;
                assert_eq!(pages, whole.saturating_sub(2), "cut at {cut}");
                let said: Vec<_> = dump.damage.iter().map(ToString::to_string).collect();
                let is_cut = !starts.contains(&cut);
                assert_eq!(said.len(), usize::from(is_cut), "cut at {cut}: {said:?}");
                let is_truncated = |text: &String| text.contains("truncated block");
                assert!(said.iter().all(is_truncated), "cut at {cut}: {said:?}");
            }
            Err(_) => assert_eq!(whole, 0, "cut at {cut}"),
        }
    }
}

#[test]
fn records_that_cannot_be_are_damage_and_what_is_before_them_stands() {
    for (word, what) in [
        (pack_span(BUSY, 0), "length 0"),
        (pack_span(BUSY, 4000), "length reaches past the page"),
        (pack(0, TypeId(16), 200), "length reaches past the page"),
        (
            pack(0, TypeId(16), 255),
            "long length too small or not there",
        ),
        (0, "nothing there, though the page is sealed"),
    ] {
        let mut bytes = start(Mode::Discard);
        let mut page = PageOf::new(0, 0);
        page.event(1, 16, &[1]).word(word);
        page.bytes.resize(1024, 0);
        page.write(true, &mut bytes);
        let dump = read(&bytes).unwrap();
        assert_eq!(dump.verify().events, 1);
        let said = dump.damage[0].to_string();
        assert!(
            said.contains("record at offset 112 of the page") && said.contains(what),
            "{said}"
        );
    }
}

#[test]
fn containers_that_lie_are_refused() {
    let plain = three_pages();
    let container = |codec: u8, stored: &[u8], raw_bytes: u32| {
        let mut header = write::header(kind::CONTAINER, SESSION);
        header.codec = codec;
        header.raw_bytes = raw_bytes;
        header.stored_bytes = stored.len() as u32;
        header.content_crc = crc32(stored);
        header.header_crc = header_crc(&header);
        [
            &plain,
            header.as_bytes(),
            stored,
            &vec![0; stored.len().next_multiple_of(8) - stored.len()],
        ]
        .concat()
    };
    let bomb = [0x1f, 0, 1, 0, 255, 255, 255, 255];
    for (bytes, what) in [
        (
            container(codec::LZ4, &bomb, 100),
            "LZ4 malformed, or expanding past",
        ),
        (
            container(codec::LZ4, &bomb, 4 << 20),
            "LZ4 malformed, or expanding past",
        ),
        (
            container(codec::LZ4, &[0], 5 << 20),
            "content of a block of kind 5 is 5242880 bytes, expected at most 4194304",
        ),
        (
            container(codec::DELTA_SHUFFLE_LZ4, &[255; 16], 100),
            "the filtered streams contradict",
        ),
        (container(9, &[0; 8], 8), "unknown codec 9"),
        (
            container(
                codec::NONE,
                &container(codec::NONE, b"", 0)[plain.len()..],
                64,
            ),
            "a container inside a container",
        ),
    ] {
        let dump = read(&bytes).unwrap();
        assert_eq!(dump.verify().events, 750);
        let said: Vec<String> = dump.damage.iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|s| s.contains(what)), "{said:?} {what}");
    }
}

#[test]
fn pages_that_contradict_their_block_are_refused() {
    let mut bytes = three_pages();
    let mut page = PageOf::new(7, 0);
    page.header.generation = 9;
    page.bytes[..96].copy_from_slice(page.header.as_bytes());
    let header = write::page_header(
        SESSION,
        ringmark_format::RingId(5),
        ringmark_format::PageNumber(7),
        96,
        4096,
        PageState::Open,
    );
    write::block(&mut bytes, header, &page.bytes).unwrap();
    assert!(matches!(
        faults(&bytes)[..],
        [Fault::Value {
            what: "generation in the page",
            found: 9,
            expected: 8
        }]
    ));
}

/// Gives one byte at a time, interrupted now and then; at the end an error if one is wanted.
struct Slow<'a>(&'a [u8], bool, u32);

impl std::io::Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.2 += 1;
        if self.2.is_multiple_of(7) {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let Some((byte, rest)) = self.0.split_first() else {
            return if self.1 {
                Err(std::io::Error::other("the disk is gone"))
            } else {
                Ok(0)
            };
        };
        buffer[0] = *byte;
        self.0 = rest;
        Ok(1)
    }
}

#[test]
fn pipes_give_what_they_like_and_may_break() {
    let bytes = three_pages();
    let sound = text(&read(&bytes).unwrap());
    for breaks in [false, true] {
        let mut builder = ringmark_decoder::DumpBuilder::new();
        builder.read("-", Slow(&bytes, breaks, 0)).unwrap();
        let dump = builder.finish();
        assert_eq!(text(&dump), sound);
        let said: Vec<String> = dump.damage.iter().map(ToString::to_string).collect();
        let wanted = format!(
            "-: block 6 at offset {}: cannot be read: the disk is gone",
            bytes.len()
        );
        assert_eq!(said, if breaks { vec![wanted] } else { vec![] });
    }
}

#[test]
fn counts_that_contradict_each_other_without_end_are_added_up_to_the_largest_number() {
    let mut bytes = start(Mode::Discard);
    for (number, first_event) in [(0, u64::MAX), (1, 0), (2, 0)] {
        let mut page = PageOf::new(number, first_event);
        page.event(1, 16, &[number]).close().write(true, &mut bytes);
    }
    let sum = read(&bytes).unwrap().verify();
    assert_eq!((sum.events, sum.contradictions), (3, u64::MAX));
}

/// A segment that was made larger by hand: its zeros would be read for minutes.
#[test]
fn of_a_file_that_is_nearly_all_holes_what_is_stored_is_read() {
    let name = format!("ringmark-nearly-holes-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, three_pages()).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(900 << 30).unwrap();
    let mut builder = DumpBuilder::new();
    let read = builder.read_file(&path, std::fs::File::open(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    read.unwrap();
    let dump = builder.finish();
    assert_eq!(text(&dump), text(&common::read(&three_pages()).unwrap()));
    let last = dump.damage.last().unwrap();
    assert!(matches!(last.fault, Fault::Holes { bytes, .. } if bytes == 900 << 30));
    let said = last.to_string();
    assert!(said.contains("a file of 966367641600 bytes"), "{said}");
}
