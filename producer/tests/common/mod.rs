//! A small reader for tests: the schema and the records of this process's session.
#![allow(dead_code, unreachable_pub)] // Each test uses a part of it.
#![forbid(unsafe_code)]

pub mod schema;

use std::path::Path;

use ringmark::{Builder, Session};
use ringmark_format::PageNumber;
use ringmark_format::page::PageHeader;
use ringmark_format::record::{self, Header};
use ringmark_format::schema::Kind;
use ringmark_ring::observe::{self, HEADER_WORDS};
use ringmark_ring::{PageRead, RingFile, SlotView};
use schema::{FieldInfo, TypeInfo};
use zerocopy::{FromBytes, IntoBytes};

/// Starts a session in memory that only this process sees, without a helper thread.
pub fn start(options: impl FnOnce(Builder) -> Builder) -> Session {
    let builder = Session::builder().memfd(true).control(false);
    options(builder).start().expect("a session starts")
}

/// A committed record.
#[derive(Debug, Clone)]
pub struct Record {
    pub type_id: u32,
    /// Tick of the session's clock.
    pub tick: u64,
    pub tid: u32,
    pub ring_id: u64,
    pub payload: Vec<u8>,
}

/// What a session holds.
#[derive(Debug)]
pub struct Recorded {
    pub types: Vec<TypeInfo>,
    /// In the order of rings and, in a ring, of commits' places.
    pub records: Vec<Record>,
}

/// Reads what the session holds now.
pub fn read(session: &Session) -> Recorded {
    let file = session.file().try_clone().expect("the file can be shared");
    let ring_file = RingFile::observe(file, Path::new("memfd")).expect("a ring file");
    let types = schema::parse(&ring_file.schema_log().read(0));
    let slots = (0..ring_file.slots_used()).filter_map(|index| ring_file.slot(index));
    let records = slots
        .flat_map(|slot| slot_records(&ring_file, slot))
        .collect();
    Recorded { types, records }
}

fn slot_records(file: &RingFile, slot: SlotView<'_>) -> Vec<Record> {
    let geometry = slot.geometry();
    let Some(pages) = file.pages(geometry) else {
        return Vec::new();
    };
    let page_words = geometry.page_bytes as usize / 8;
    let last = slot.produced();
    let first = last.saturating_sub(u64::from(geometry.pages));
    let mut all = Vec::new();
    for number in first..=last {
        let at = (number % u64::from(geometry.pages)) as usize * page_words;
        let page = &pages[at..at + page_words];
        let mut copy = vec![0; page_words];
        if let PageRead::Copied(copied) = observe::copy_open(page, PageNumber(number), &mut copy) {
            assert!(!copied.damaged, "page {number} is damaged");
            page_records(&copy[..copied.words], &mut all);
        }
    }
    all
}

fn page_records(page: &[u64], all: &mut Vec<Record>) {
    let (header, _) = PageHeader::read_from_prefix(page.as_bytes()).expect("a page header");
    let mut at = HEADER_WORDS;
    let mut extended = None;
    while at < page.len() {
        match record::unpack(page[at]) {
            Header::Empty | Header::Pad => break,
            Header::Busy(words) | Header::Cancelled(words) => at += words as usize,
            Header::Record {
                ticks,
                type_id,
                payload_words,
            } => {
                let (first, words) = match payload_words {
                    Some(words) => (at + 1, words as usize),
                    None => (at + 2, page[at + 1] as usize),
                };
                let payload = &page[first..first + words];
                at = first + words;
                if type_id.0 == record::TIME_EXTEND {
                    extended = Some(payload[0]);
                    continue;
                }
                all.push(Record {
                    type_id: type_id.0,
                    tick: extended
                        .take()
                        .unwrap_or(header.tick_base + u64::from(ticks)),
                    tid: header.tid,
                    ring_id: header.ring_id,
                    payload: payload.as_bytes().to_vec(),
                });
            }
        }
    }
}

impl Recorded {
    /// The only event type with this name.
    pub fn event_type(&self, name: &str) -> &TypeInfo {
        let mut found = self.types.iter().filter(|t| t.name == name);
        let first = found
            .next()
            .unwrap_or_else(|| panic!("no event type {name}"));
        assert!(found.next().is_none(), "two event types {name}");
        first
    }

    /// The records of the event type with this name.
    pub fn of(&self, name: &str) -> Vec<&Record> {
        let id = self.event_type(name).id;
        self.records.iter().filter(|r| r.type_id == id).collect()
    }

    /// The only record of the event type with this name.
    pub fn one(&self, name: &str) -> &Record {
        let all = self.of(name);
        assert_eq!(all.len(), 1, "records of {name}");
        all[0]
    }

    /// The name of a record's type.
    pub fn name(&self, record: &Record) -> &str {
        &self.type_of(record).name
    }

    fn type_of(&self, record: &Record) -> &TypeInfo {
        let found = self.types.iter().find(|t| t.id == record.type_id);
        found.unwrap_or_else(|| panic!("no type {}", record.type_id))
    }

    /// A field as text: numbers in decimal, arrays in brackets, bytes in hex.
    pub fn text(&self, record: &Record, field: &str) -> String {
        let field = self.type_of(record).field(field);
        let value = |i: usize| value_text(field, &record.payload, i);
        if field.count == 0 {
            return value(0);
        }
        let all: Vec<String> = (0..usize::from(field.count)).map(value).collect();
        format!("[{}]", all.join(", "))
    }

    /// A field that is an unsigned number of 8 bytes.
    pub fn number(&self, record: &Record, field: &str) -> u64 {
        self.text(record, field).parse().expect("a number")
    }

    /// All fields of the only record with this name: `a=1 b=x`.
    pub fn line(&self, name: &str) -> String {
        let record = self.one(name);
        let fields = self.event_type(name).fields.iter();
        let all: Vec<String> = fields
            .map(|f| format!("{}={}", f.name, self.text(record, &f.name)))
            .collect();
        all.join(" ")
    }
}

fn value_text(field: &FieldInfo, payload: &[u8], index: usize) -> String {
    let size = field.kind.fixed_bytes();
    let at = field.offset as usize + index * size;
    let bytes = &payload[at..at + size];
    if field.optional && payload[at + size..at + 2 * size].iter().all(|b| *b == 0) {
        return "none".to_owned();
    }
    let mut wide = [0; 16];
    wide[..size].copy_from_slice(bytes);
    let unsigned = u128::from_le_bytes(wide);
    let shift = 128 - 8 * size as u32;
    let signed = ((unsigned << shift) as i128) >> shift;
    match field.kind {
        Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 | Kind::U128 => unsigned.to_string(),
        Kind::I8 | Kind::I16 | Kind::I32 | Kind::I64 | Kind::I128 => signed.to_string(),
        Kind::F32 => f32::from_bits(unsigned as u32).to_string(),
        Kind::F64 => f64::from_bits(unsigned as u64).to_string(),
        Kind::Bool => ["false", "true"][unsigned as usize].to_owned(),
        Kind::Char => char::from_u32(unsigned as u32).expect("a char").to_string(),
        Kind::Str => String::from_utf8(dynamic(payload, unsigned).to_vec()).expect("UTF-8"),
        Kind::Bytes => dynamic(payload, unsigned)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect(),
    }
}

/// What a place (u32 offset, u32 bytes) points at; the padding behind it must be zero.
fn dynamic(payload: &[u8], place: u128) -> &[u8] {
    let (offset, bytes) = (place as u32 as usize, (place >> 32) as usize);
    let padding = &payload[offset + bytes..offset + bytes.next_multiple_of(8)];
    assert!(padding.iter().all(|b| *b == 0), "padding of a text");
    &payload[offset..offset + bytes]
}
