//! A store of objects of many hosts, whose segments each have some pages of all.

use std::fs;
use std::path::Path;

use ringmark_decoder::store::{FooterEntry, SegmentFooter, raw_object, schema_object};
use ringmark_decoder::{BlockReader, IndexBuilder, Item};
use ringmark_format::Uuid;
use ringmark_format::attribute::{self, tag};
use ringmark_format::codec::write;
use ringmark_format::session::Mode;
use zerocopy::IntoBytes;

use super::{PageOf, schema, session_header};

pub const HOSTS: u8 = 200;
pub const SEGMENTS: u64 = 20;
/// Pages of a host in a segment, and of these one in ten comes later.
pub const PAGES: u64 = 2;
pub const LATE_BY: u64 = 3;
pub const PAGE_BYTES: u32 = 8192;
/// Events of a page, and ticks between them, which are ns: a segment lasts for 16 s.
pub const EVENTS: u64 = 16;
pub const STEP: u64 = 500_000_000;
pub const WHOLE: u64 = SEGMENTS * PAGES * EVENTS * STEP;

fn uuid(host: u8) -> Uuid {
    Uuid([host + 1; 16])
}

fn session(host: u8) -> Vec<u8> {
    let mut header = session_header(Mode::Discard);
    (header.session, header.pid) = (uuid(host).0, 100 + u32::from(host));
    let mut attributes = Vec::new();
    attribute::push(&mut attributes, tag::SERVICE_NAME, b"shop");
    header.attributes_bytes = attributes.len() as u32;
    let content = [header.as_bytes(), &attributes].concat();
    let mut out = Vec::new();
    write::session(&mut out, uuid(host), &content).unwrap();
    out
}

fn page(host: u8, number: u64, out: &mut Vec<u8>) {
    let mut page = PageOf::new(number, number * EVENTS);
    page.session = uuid(host);
    page.page_bytes = PAGE_BYTES;
    page.header.tick_base = 1000 + number * EVENTS * STEP;
    for event in 0..EVENTS {
        page.event(
            (event * STEP) as u32,
            16 + (event % 2) as u32,
            &[number * EVENTS + event],
        );
    }
    page.close();
    page.write(true, out);
}

/// The segment in which a page comes.
fn place(host: u8, number: u64) -> u64 {
    let is_late = (u64::from(host) * 7 + number).is_multiple_of(10);
    let place = number / PAGES + if is_late { LATE_BY } else { 0 };
    place.min(SEGMENTS - 1)
}

fn entry(host: u8, blocks: &[u8]) -> FooterEntry {
    let mut index = IndexBuilder::default();
    let mut reader = BlockReader::new("a segment", blocks);
    while let Some(Item::Block(block)) = reader.next_item() {
        index.take(&block).unwrap();
    }
    FooterEntry {
        session: uuid(host),
        host: format!("host-{host}").into_bytes(),
        service: b"shop".to_vec(),
        schema_bytes: schema().len() as u64,
        epoch: 1,
        bytes: blocks.len() as u32,
        index: index.finish_object(),
    }
}

fn put(root: &Path, name: &str, bytes: &[u8]) -> u64 {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
    bytes.len() as u64
}

/// Puts all hosts' segments and schema; returns the bytes of all.
pub fn fill(root: &Path) -> u64 {
    let mut total = 0;
    for host in 0..HOSTS {
        let mut bytes = session(host);
        write::schema(&mut bytes, uuid(host), 0, &schema()).unwrap();
        let range = (0, schema().len() as u64);
        let name = schema_object(&format!("host-{host}"), uuid(host), range, 7);
        total += put(root, &name, &bytes);
    }
    for segment in 0..SEGMENTS {
        let (mut bytes, mut sessions) = (Vec::new(), Vec::new());
        for host in 0..HOSTS {
            let mut blocks = session(host);
            let numbers = (0..SEGMENTS * PAGES).filter(|number| place(host, *number) == segment);
            numbers.for_each(|number| page(host, number, &mut blocks));
            sessions.push(entry(host, &blocks));
            bytes.extend(blocks);
        }
        let footer = SegmentFooter {
            segment_bytes: bytes.len() as u64,
            sessions,
            is_grouped: true,
        };
        bytes.extend(footer.block());
        let name = raw_object("2026-11-26-19", Uuid([1; 16]), segment);
        total += put(root, &name, &bytes);
    }
    total
}
