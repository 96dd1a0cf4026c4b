//! Writes a trace file of spans to measure with: `generate FILE SPANS [SEED]`.
//!
//! 16 threads of one process end spans of 2,000 names, in pages of 64 KiB. Names are as frequent as
//! Zipf has it, durations are lognormal around 20 us, and each span has an integer (`len`) and a small
//! one (`ret`) as arguments. The same seed writes the same file.

use std::fs::File;
use std::io::{BufWriter, Write};

use ringmark_format::attribute::{self, tag};
use ringmark_format::block::PageState;
use ringmark_format::codec::write;
use ringmark_format::counters::{CountersHeader, FINAL, SlotCounters};
use ringmark_format::page::PageHeader;
use ringmark_format::record;
use ringmark_format::schema::{
    EntryHeader, EventEntry, FieldEntry, Kind, Level, Shape, entry_kind, semantic,
};
use ringmark_format::session::{Clock, Mode, RING_FILE_MAGIC, SessionHeader};
use ringmark_format::{ENDIAN_MARK, PageNumber, RingId, TypeId, Uuid, VERSION_MAJOR};
use zerocopy::{FromZeros, IntoBytes};

const SESSION: Uuid = Uuid([0x19; 16]);
const PAGE_BYTES: usize = 64 << 10;
const THREADS: usize = 16;
const NAMES: u32 = 2000;
const FIRST_TYPE: u32 = 16;

/// The generator xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Between 0 and 1.
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Normally distributed, by a sum.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.part()).sum::<f64>() - 6.0
    }

    /// The rank of a name: rank r is as frequent as 1 / r.
    fn name(&mut self) -> u32 {
        let rank = f64::from(NAMES).powf(self.part());
        (rank as u32).clamp(1, NAMES) - 1
    }
}

/// The page of a thread.
struct Thread {
    page: u64,
    events: u64,
    bytes: Vec<u8>,
    header: PageHeader,
}

impl Thread {
    fn new(slot: usize, tick: u64) -> Self {
        let mut header = PageHeader::new_zeroed();
        header.slot = slot as u32;
        header.ring_id = 1 + slot as u64;
        header.tid = 1000 + slot as u32;
        header.thread_name[..6].copy_from_slice(b"worker");
        let mut thread = Self {
            page: 0,
            events: 0,
            bytes: Vec::with_capacity(PAGE_BYTES),
            header,
        };
        thread.begin(tick);
        thread
    }

    fn begin(&mut self, tick: u64) {
        self.header.generation = self.page + 1;
        self.header.tick_base = tick;
        self.header.first_event = self.events;
        self.bytes.clear();
        self.bytes.extend_from_slice(self.header.as_bytes());
    }

    fn word(&mut self, word: u64) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    fn span(&mut self, tick: u64, name: u32, words: [u64; 3], out: &mut Vec<u8>) {
        if PAGE_BYTES - self.bytes.len() < 32 {
            self.end(out);
            self.begin(tick);
        }
        let ticks = (tick - self.header.tick_base) as u32;
        self.word(record::pack(ticks, TypeId(FIRST_TYPE + name), 3));
        words.into_iter().for_each(|word| self.word(word));
        self.events += 1;
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let left = (PAGE_BYTES - self.bytes.len()) as u64 / 8;
        if left > 0 {
            self.word(record::pack_span(record::PAD, left));
            self.bytes.resize(PAGE_BYTES, 0);
        }
        let (ring, number) = (RingId(self.header.ring_id), PageNumber(self.page));
        let bytes = PAGE_BYTES as u32;
        let header = write::page_header(SESSION, ring, number, bytes, bytes, PageState::Sealed);
        write::block(out, header, &self.bytes).expect("a page");
        self.page += 1;
    }

    fn counters(&self) -> SlotCounters {
        let mut counters = SlotCounters::new_zeroed();
        counters.slot = self.header.slot;
        counters.ring_id = self.header.ring_id;
        counters.tid = self.header.tid;
        counters.events = self.events;
        counters
    }
}

fn session() -> Vec<u8> {
    let mut header = SessionHeader::new_zeroed();
    header.magic = RING_FILE_MAGIC;
    header.version_major = VERSION_MAJOR;
    header.endian = ENDIAN_MARK;
    header.mode = Mode::Discard as u32;
    header.clock = Clock::Monotonic as u32;
    header.session = SESSION.0;
    header.pid = 4242;
    header.tick_zero = 1000;
    header.mono_zero_ns = 1_000_000_000;
    header.real_zero_ns = 1_795_225_323_000_000_000;
    header.tick_mult = 1;
    let mut attributes = Vec::new();
    attribute::push(&mut attributes, tag::PROCESS_NAME, b"server");
    attribute::push(&mut attributes, tag::HOST, b"web-1");
    attribute::push(&mut attributes, tag::SERVICE_NAME, b"shop");
    header.attributes_bytes = attributes.len() as u32;
    [header.as_bytes(), &attributes].concat()
}

fn field(name: &str, offset: u32, meaning: Option<u32>) -> Vec<u8> {
    let entry = FieldEntry {
        kind: Kind::U64 as u8,
        flags: 0,
        count: 0,
        offset,
        bytes: 8,
        reserved: 0,
    };
    let mut value = entry.as_bytes().to_vec();
    attribute::push(&mut value, tag::NAME, name.as_bytes());
    if let Some(meaning) = meaning {
        attribute::push(&mut value, tag::SEMANTIC, &meaning.to_le_bytes());
    }
    value
}

/// The type of the spans of a name.
fn ty(number: u32) -> Vec<u8> {
    let mut attributes = Vec::new();
    let name = format!("module_{}.function_{number}", number % 37);
    attribute::push(&mut attributes, tag::NAME, name.as_bytes());
    attribute::push(&mut attributes, tag::TARGET, b"shop::work");
    for field in [
        field("duration", 0, Some(semantic::DURATION)),
        field("len", 8, None),
        field("ret", 16, None),
    ] {
        attribute::push(&mut attributes, tag::FIELD, &field);
    }
    let entry = EventEntry {
        level: Level::Info as u8,
        shape: Shape::Span as u8,
        flags: 0,
        fixed_payload_bytes: 24,
    };
    let header = EntryHeader {
        bytes: (EntryHeader::BYTES + EventEntry::BYTES + attributes.len()) as u32,
        kind: entry_kind::EVENT,
        fixed_bytes: EventEntry::BYTES as u16,
        id: FIRST_TYPE + number,
        reserved: 0,
    };
    [header.as_bytes(), entry.as_bytes(), &attributes].concat()
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, spans, ..] = words.as_slice() else {
        eprintln!("usage: generate FILE SPANS [SEED]");
        std::process::exit(2);
    };
    let spans: u64 = spans.parse().expect("SPANS is a number");
    let seed = words
        .get(2)
        .map_or(19, |seed| seed.parse().expect("SEED is a number"));
    let mut random = Random(seed | 1);
    let mut file = BufWriter::new(File::create(path).expect("FILE can be written"));
    let mut out = Vec::new();
    write::session(&mut out, SESSION, &session()).expect("a session");
    let schema: Vec<u8> = (0..NAMES).flat_map(ty).collect();
    write::schema(&mut out, SESSION, 0, &schema).expect("a schema");
    let mut tick = 1_000_000;
    let mut threads: Vec<_> = (0..THREADS).map(|slot| Thread::new(slot, tick)).collect();
    for _ in 0..spans {
        tick += 100 + random.next() % 2000;
        let thread = &mut threads[(random.next() % THREADS as u64) as usize];
        let took = (20_000.0 * random.normal().exp()) as u64;
        let name = random.name();
        let len = 1 << (random.next() % 16);
        let words = [
            took.min(tick - 1000),
            len + random.next() % 64,
            u64::from(random.part() < 0.02),
        ];
        thread.span(tick, name, words, &mut out);
        if out.len() > 1 << 20 {
            file.write_all(&out).expect("FILE can be written");
            out.clear();
        }
    }
    threads.iter_mut().for_each(|thread| thread.end(&mut out));
    let mut header = CountersHeader::new_zeroed();
    header.slots = THREADS as u32;
    header.flags = FINAL;
    let mut content = header.as_bytes().to_vec();
    for thread in &threads {
        content.extend_from_slice(thread.counters().as_bytes());
    }
    write::counters(&mut out, SESSION, &content).expect("counters");
    file.write_all(&out).expect("FILE can be written");
    file.flush().expect("FILE can be written");
}
