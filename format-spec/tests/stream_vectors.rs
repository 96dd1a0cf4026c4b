//! `vectors/stream.txt`, messages packed elsewhere, are what this crate packs and what it reads.

use std::collections::BTreeMap;
use std::path::Path;

use ringmark_format::Uuid;
use ringmark_format::attribute::{self, Attributes, tag};
use ringmark_format::block::{self, BlockHeader};
use ringmark_format::codec::{crc32, write};
use ringmark_format::stream::{
    Ack, Hello, HostClock, Ping, Pong, Refused, Resume, ResumeSlot, Welcome, kind,
};
use zerocopy::{FromBytes, IntoBytes};

const NO_SESSION: Uuid = Uuid([0; 16]);
const SESSION: Uuid = Uuid([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
/// Content of kinds that this version does not know.
const LATER: &[u8] = b"of a later version";
const NOW: u64 = 1_700_000_000_000_000_000;

fn vectors() -> BTreeMap<String, Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/stream.txt");
    let text = std::fs::read_to_string(path).expect("the vectors");
    let byte = |hex: &[u8]| {
        let hex = std::str::from_utf8(hex).expect("ASCII");
        u8::from_str_radix(hex, 16).expect("hexadecimal")
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parsed = lines.map(|line| {
        let (name, hex) = line.split_once(' ').expect("a name and bytes");
        let bytes = hex.as_bytes().chunks(2).map(byte).collect();
        (name.to_owned(), bytes)
    });
    parsed.collect()
}

fn message(kind: u16, session: Uuid, parts: &[&[u8]]) -> Vec<u8> {
    let mut block = Vec::new();
    write::block(&mut block, write::header(kind, session), &parts.concat()).expect("a block");
    block
}

fn hello() -> Vec<u8> {
    let mut attributes = Vec::new();
    attribute::push(&mut attributes, tag::HOST, b"web-1");
    attribute::push(&mut attributes, tag::TOKEN, b"secret");
    let hello = Hello {
        version_major: 1,
        version_minor: 0,
        attributes_bytes: attributes.len() as u32,
        host: [b'H'; 16],
        boot_id: [b'B'; 16],
        real_ns: NOW + 1,
    };
    message(kind::HELLO, NO_SESSION, &[hello.as_bytes(), &attributes])
}

fn from_collector() -> Vec<(&'static str, Vec<u8>)> {
    let welcome = Welcome {
        version_major: 1,
        version_minor: 0,
        attributes_bytes: 0,
        collector: [b'S'; 16],
        real_ns: NOW + 2,
        credit: 8 << 20,
    };
    let refused = Refused {
        code: 1,
        reserved: 0,
    };
    let resume = Resume {
        schema_bytes: 640,
        slots: 2,
        flags: 0,
    };
    let slot = |slot, next_page| ResumeSlot {
        slot,
        flags: 0,
        next_page,
    };
    let slots = [slot(0, 17), slot(3, 1 << 40)];
    let ack = Ack {
        durable: 4160,
        credit: 4160 + (8 << 20),
    };
    let ping = Ping {
        number: 1,
        real_ns: NOW + 3,
    };
    let why = b"the token is not ours";
    let resume = [resume.as_bytes(), slots.as_bytes()];
    vec![
        (
            "welcome",
            message(kind::WELCOME, NO_SESSION, &[welcome.as_bytes()]),
        ),
        (
            "refused",
            message(kind::REFUSED, NO_SESSION, &[refused.as_bytes(), why]),
        ),
        ("resume", message(kind::RESUME, SESSION, &resume)),
        ("ack", message(kind::ACK, NO_SESSION, &[ack.as_bytes()])),
        ("ping", message(kind::PING, NO_SESSION, &[ping.as_bytes()])),
        ("drain", message(kind::DRAIN, NO_SESSION, &[])),
    ]
}

fn from_streamer() -> Vec<(&'static str, Vec<u8>)> {
    let pong = Pong {
        number: 1,
        ping_real_ns: NOW + 3,
        real_ns: NOW + 10_000_000_004,
        mono_ns: 5000,
    };
    vec![
        ("hello", hello()),
        ("pong", message(kind::PONG, NO_SESSION, &[pong.as_bytes()])),
        ("bye", message(kind::BYE, NO_SESSION, &[])),
        ("later_message", message(60, NO_SESSION, &[LATER])),
        ("later_block", message(20, SESSION, &[LATER])),
    ]
}

fn host_clock() -> HostClock {
    HostClock {
        real_ns: NOW + 5,
        offset_ns: -10_000_000_000,
        error_ns: 70_000,
        mono_ns: 6000,
    }
}

#[test]
fn messages_are_packed_as_elsewhere() {
    let mut vectors = vectors();
    let stored = message(block::kind::HOST_CLOCK, SESSION, &[host_clock().as_bytes()]);
    let ours = from_collector().into_iter().chain(from_streamer());
    for (name, bytes) in ours.chain([("host_clock", stored)]) {
        let theirs = vectors
            .remove(name)
            .unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(bytes, theirs, "{name}");
    }
    assert!(vectors.is_empty(), "{:?}", vectors.keys());
}

#[test]
fn messages_are_read_as_elsewhere() {
    let vectors = vectors();
    for (name, bytes) in &vectors {
        let (header, rest) = BlockHeader::read_from_prefix(bytes).expect("a header");
        assert_eq!(header.magic, block::BLOCK_MAGIC, "{name}");
        assert_eq!(
            header.header_crc,
            crc32(&bytes[..BlockHeader::BYTES - 4]),
            "{name}"
        );
        let content = &rest[..header.stored_bytes as usize];
        assert_eq!(header.content_crc, crc32(content), "{name}");
        assert_eq!(bytes.len() % 8, 0, "{name}");
    }
    let (_, rest) = BlockHeader::read_from_prefix(&vectors["hello"]).expect("a header");
    let (hello, attributes) = Hello::read_from_prefix(rest).expect("a whole HELLO");
    assert_eq!((hello.host, hello.real_ns), ([b'H'; 16], NOW + 1));
    let attributes = Attributes::new(&attributes[..hello.attributes_bytes as usize]);
    let find = |tag| attributes.clone().find(tag);
    assert_eq!(find(tag::HOST), Some(&b"web-1"[..]));
    assert_eq!(find(tag::TOKEN), Some(&b"secret"[..]));
}
