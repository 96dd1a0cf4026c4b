//! Dumps built by hand: what a recorder would have written.
#![allow(dead_code, unreachable_pub, reason = "every test uses its own part")]

pub mod many_hosts;
pub mod random_trace;

use ringmark_decoder::{Damage, Dump, DumpBuilder, JsonWriter, TextWriter};
use ringmark_format::attribute::{self, tag};
use ringmark_format::block::PageState;
use ringmark_format::codec::write;
use ringmark_format::counters::{CountersHeader, FINAL, SlotCounters};
use ringmark_format::page::PageHeader;
use ringmark_format::record;
use ringmark_format::schema::{
    EntryHeader, EventEntry, FieldEntry, Kind, Level, Shape, entry_kind,
};
use ringmark_format::session::{Clock, Mode, RING_FILE_MAGIC, SessionHeader};
use ringmark_format::{ENDIAN_MARK, PageNumber, RingId, TypeId, Uuid, VERSION_MAJOR};
use zerocopy::{FromZeros, IntoBytes};

pub mod function_schema;

pub const SESSION: Uuid = Uuid([7; 16]);
pub const REAL_ZERO_NS: u64 = 1_795_225_323_000_000_000;
pub const MONO_ZERO_NS: u64 = 1_000_000_000;

/// A session whose ticks are nanoseconds from 1000 on.
pub fn session_header(mode: Mode) -> SessionHeader {
    let mut header = SessionHeader::new_zeroed();
    header.magic = RING_FILE_MAGIC;
    header.version_major = VERSION_MAJOR;
    header.endian = ENDIAN_MARK;
    header.mode = mode as u32;
    header.clock = Clock::Monotonic as u32;
    header.session = SESSION.0;
    header.pid = 4242;
    header.tick_zero = 1000;
    header.mono_zero_ns = MONO_ZERO_NS;
    header.real_zero_ns = REAL_ZERO_NS;
    header.tick_mult = 1;
    header
}

pub fn session_content(mut header: SessionHeader) -> Vec<u8> {
    let mut attributes = Vec::new();
    attribute::push(&mut attributes, tag::PROCESS_NAME, b"server");
    header.attributes_bytes = attributes.len() as u32;
    [header.as_bytes(), &attributes].concat()
}

pub struct FieldOf<'a> {
    pub name: &'a str,
    pub kind: Kind,
    pub offset: u32,
    pub count: u16,
    pub extra: &'a [(u16, &'a [u8])],
}

pub const fn field(name: &str, kind: Kind, offset: u32) -> FieldOf<'_> {
    FieldOf {
        name,
        kind,
        offset,
        count: 0,
        extra: &[],
    }
}

/// An EVENT entry of the schema stream.
pub fn event_entry(
    id: u32,
    name: &str,
    level: Level,
    shape: Shape,
    fields: &[FieldOf<'_>],
) -> Vec<u8> {
    event_entry_of(id, name.as_bytes(), level, shape, fields)
}

/// The same with a name of any bytes.
pub fn event_entry_of(
    id: u32,
    name: &[u8],
    level: Level,
    shape: Shape,
    fields: &[FieldOf<'_>],
) -> Vec<u8> {
    let mut attributes = Vec::new();
    attribute::push(&mut attributes, tag::NAME, name);
    attribute::push(&mut attributes, tag::TARGET, b"app::net");
    attribute::push(&mut attributes, 60_000, b"of a later version");
    for field in fields {
        let entry = FieldEntry {
            kind: field.kind as u8,
            flags: 0,
            count: field.count,
            offset: field.offset,
            bytes: field.kind.fixed_bytes() as u32,
            reserved: 0,
        };
        let mut value = entry.as_bytes().to_vec();
        attribute::push(&mut value, tag::NAME, field.name.as_bytes());
        for (tag, bytes) in field.extra {
            attribute::push(&mut value, *tag, bytes);
        }
        attribute::push(&mut attributes, tag::FIELD, &value);
    }
    let entry = EventEntry {
        level: level as u8,
        shape: shape as u8,
        flags: 0,
        fixed_payload_bytes: 0,
    };
    let header = EntryHeader {
        bytes: (EntryHeader::BYTES + EventEntry::BYTES + attributes.len()) as u32,
        kind: entry_kind::EVENT,
        fixed_bytes: EventEntry::BYTES as u16,
        id,
        reserved: 0,
    };
    [header.as_bytes(), entry.as_bytes(), &attributes].concat()
}

/// A page in the making.
pub struct PageOf {
    pub session: Uuid,
    pub header: PageHeader,
    pub bytes: Vec<u8>,
    pub page_bytes: u32,
}

impl PageOf {
    pub fn new(number: u64, first_event: u64) -> Self {
        let mut header = PageHeader::new_zeroed();
        header.generation = number + 1;
        header.ring_id = 5;
        header.tick_base = 1000 + 1000 * number;
        header.first_event = first_event;
        header.tid = 77;
        header.thread_name[..6].copy_from_slice(b"worker");
        Self {
            session: SESSION,
            header,
            bytes: vec![0; PageHeader::BYTES],
            page_bytes: 4096,
        }
    }

    pub fn word(&mut self, word: u64) -> &mut Self {
        self.bytes.extend_from_slice(&word.to_le_bytes());
        self
    }

    pub fn event(&mut self, ticks: u32, id: u32, payload: &[u64]) -> &mut Self {
        let words = payload.len() as u64;
        self.word(record::pack(ticks, TypeId(id), words));
        if words >= record::LONG {
            self.word(words);
        }
        for word in payload {
            self.word(*word);
        }
        self
    }

    pub fn span(&mut self, reserved: u32, words: u64) -> &mut Self {
        self.word(record::pack_span(reserved, words));
        self.bytes
            .resize(self.bytes.len() + 8 * (words as usize - 1), 0);
        self
    }

    pub fn left(&self) -> usize {
        self.page_bytes as usize - self.bytes.len()
    }

    /// PAD to the end, if there is room for one.
    pub fn close(&mut self) -> &mut Self {
        let words = self.left() as u64 / 8;
        if words > 0 {
            self.span(record::PAD, words);
        }
        self
    }

    pub fn write(&mut self, sealed: bool, out: &mut Vec<u8>) {
        self.bytes[..PageHeader::BYTES].copy_from_slice(self.header.as_bytes());
        let state = match sealed {
            true => PageState::Sealed,
            false => PageState::Open,
        };
        let header = write::page_header(
            self.session,
            RingId(self.header.ring_id),
            PageNumber(self.header.generation - 1),
            self.bytes.len() as u32,
            self.page_bytes,
            state,
        );
        write::block(out, header, &self.bytes).unwrap();
    }
}

pub fn counters(slots: &[SlotCounters], lost: [u64; 8], is_final: bool) -> Vec<u8> {
    let mut header = CountersHeader::new_zeroed();
    header.slots = slots.len() as u32;
    header.flags = if is_final { FINAL } else { 0 };
    header.lost = lost;
    let mut content = header.as_bytes().to_vec();
    slots
        .iter()
        .for_each(|s| content.extend_from_slice(s.as_bytes()));
    content
}

pub fn slot_counters(events: u64, lost: [u64; 8]) -> SlotCounters {
    let mut slot = SlotCounters::new_zeroed();
    slot.ring_id = 5;
    slot.tid = 77;
    slot.events = events;
    slot.lost = lost;
    slot
}

/// Session and a schema of three types: 16 `tick` (u64 n), 17 `bytes` (u64 size), 18 `named`
/// (str name, i64 delta).
pub fn start(mode: Mode) -> Vec<u8> {
    let mut out = Vec::new();
    write::session(&mut out, SESSION, &session_content(session_header(mode))).unwrap();
    write::schema(&mut out, SESSION, 0, &schema()).unwrap();
    out
}

pub fn schema() -> Vec<u8> {
    let instant = |id, name, fields: &[FieldOf<'_>]| {
        event_entry(id, name, Level::Info, Shape::Instant, fields)
    };
    [
        instant(16, "tick", &[field("n", Kind::U64, 0)]),
        instant(17, "bytes", &[field("size", Kind::U64, 0)]),
        instant(
            18,
            "named",
            &[field("name", Kind::Str, 0), field("delta", Kind::I64, 8)],
        ),
    ]
    .concat()
}

pub fn end(events: u64, out: &mut Vec<u8>) {
    let content = counters(&[slot_counters(events, [0; 8])], [0; 8], true);
    write::counters(out, SESSION, &content).unwrap();
}

/// Three sealed 4 KiB pages of one-u64 events, session, schema and final counters.
pub fn three_pages() -> Vec<u8> {
    let mut out = start(Mode::Discard);
    let mut first = 0;
    for number in 0..3 {
        let mut page = PageOf::new(number, first);
        while page.left() >= 16 {
            let n = first;
            page.event((n % 250) as u32, 16 + (n % 2) as u32, &[n]);
            first += 1;
        }
        page.close().write(true, &mut out);
    }
    end(first, &mut out);
    out
}

pub fn read(bytes: &[u8]) -> Result<Dump, Damage> {
    let mut builder = DumpBuilder::new();
    builder.read("test.rmk", bytes)?;
    Ok(builder.finish())
}

pub fn text(dump: &Dump) -> String {
    let (mut writer, mut out) = (TextWriter::new(), Vec::new());
    dump.events().for_each(|item| writer.write(&item, &mut out));
    String::from_utf8(out).unwrap()
}

pub fn json(dump: &Dump) -> String {
    let (mut writer, mut out) = (JsonWriter::new(), Vec::new());
    dump.events().for_each(|item| writer.write(&item, &mut out));
    String::from_utf8(out).unwrap()
}
