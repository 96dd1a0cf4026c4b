//! A synthetic producer over a ring file laid out by hand, and a tiny decoder of dumps.
#![allow(dead_code, unreachable_pub)]

pub mod child;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use ringmark_format::attribute::{self, tag};
use ringmark_format::block::{BLOCK_MAGIC, BlockHeader, SEALED, Window, kind};
use ringmark_format::codec;
use ringmark_format::counters::{CountersHeader, SlotCounters};
use ringmark_format::ending::EndingBlock;
use ringmark_format::mailbox::MAILBOX_BYTES;
use ringmark_format::open_span::{Frame, OpenSpans};
use ringmark_format::page::PageHeader;
use ringmark_format::record::{self, Header};
use ringmark_format::session::{
    Clock, Extent, Mode, RING_FILE_MAGIC, SessionHeader, SessionState, phase,
};
use ringmark_format::slot::state;
use ringmark_format::{ENDIAN_MARK, RingId, TypeId, VERSION_MAJOR, VERSION_MINOR};
use ringmark_ring::writer::Ring;
use ringmark_ring::{ClockSample, RingFile, SlotGeometry, SpanStack, Writer, identity, mapping};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

pub const SLOTS: u32 = 16;
const STATE: u64 = 4096;
const CONSUMED: u64 = 8192;
const MAILBOX: u64 = 12288;
const DIRECTORY: u64 = MAILBOX + MAILBOX_BYTES as u64;
const SCHEMA: u64 = DIRECTORY + 4096;
const RINGS: u64 = SCHEMA + 4096;

/// A directory of its own, removed at the end.
pub struct Dir(pub PathBuf);

impl Dir {
    pub fn new(label: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!(
            "/dev/shm/ringmark-reader-{}-{number}-{label}",
            std::process::id()
        ));
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .unwrap();
        Self(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What the synthetic session looks like.
#[derive(Clone)]
pub struct Layout {
    pub mode: Mode,
    pub clock: Clock,
    pub page_bytes: u32,
    pub pages: u32,
    pub keep: u32,
    pub pid: u32,
    pub start_time: u64,
}

impl Layout {
    pub fn new(mode: Mode) -> Self {
        let own = identity::own();
        Self {
            mode,
            clock: Clock::Monotonic,
            page_bytes: 4096,
            pages: 8,
            keep: 0,
            pid: own.pid,
            start_time: own.start_time,
        }
    }

    /// As a process that is gone leaves it: of a number beyond the largest that a kernel gives out.
    pub fn dead(mut self) -> Self {
        self.pid = 4_194_305;
        self
    }

    fn ring_bytes(&self) -> u64 {
        u64::from(self.page_bytes) * u64::from(self.pages)
    }

    pub fn file_bytes(&self) -> u64 {
        RINGS + u64::from(SLOTS) * self.ring_bytes()
    }
}

/// A synthetic session; leaked, so that its writers may live for ever.
pub struct Producer {
    pub ring: &'static RingFile,
    pub layout: Layout,
    pub path: PathBuf,
    writers: Vec<&'static Writer>,
}

fn header(layout: &Layout, attributes: &[u8], uuid: u128) -> SessionHeader {
    let mut header = SessionHeader::new_zeroed();
    header.magic = RING_FILE_MAGIC;
    header.version_major = VERSION_MAJOR;
    header.version_minor = VERSION_MINOR;
    header.endian = ENDIAN_MARK;
    header.header_bytes = 4096;
    header.file_bytes = layout.file_bytes();
    header.state_offset = STATE;
    header.mailbox_offset = MAILBOX;
    header.mailbox_bytes = MAILBOX_BYTES as u64;
    header.consumed_offset = CONSUMED;
    header.directory_offset = DIRECTORY;
    header.slots = SLOTS;
    header.mode = layout.mode as u32;
    header.clock = layout.clock as u32;
    header.page_bytes = layout.page_bytes;
    header.ring_bytes = layout.ring_bytes() as u32;
    header.attributes_bytes = attributes.len() as u32;
    header.session = uuid.to_be_bytes();
    header.boot_id = identity::boot_id();
    header.pid_namespace = identity::own_pid_namespace();
    header.pid = layout.pid;
    header.start_time = layout.start_time;
    header.tick_mult = 1;
    header.keep = layout.keep;
    header
}

impl Producer {
    pub fn new(dir: &Dir, name: &str, layout: Layout) -> Self {
        use std::os::unix::fs::FileExt;
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let path = dir.join(&format!("{name}.ring"));
        let file = ringmark_ring::session_dir::create(&path).unwrap();
        mapping::set_size(&file, layout.file_bytes()).unwrap();
        mapping::allocate(&file, 0, layout.file_bytes()).unwrap();
        let mut attributes = Vec::new();
        attribute::push(&mut attributes, tag::SERVICE_NAME, b"synthetic");
        attribute::push(&mut attributes, tag::TAG, b"run=one");
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let uuid = u128::from(std::process::id()) << 32 | u128::from(number);
        let header = header(&layout, &attributes, uuid);
        file.write_all_at(header.as_bytes(), 0).unwrap();
        file.write_all_at(&attributes, SessionHeader::BYTES as u64)
            .unwrap();
        let ring: &'static RingFile = Box::leak(Box::new(RingFile::produce(file, &path).unwrap()));
        ring.schema_log()
            .add_extent(Extent {
                offset: SCHEMA,
                bytes: 4096,
            })
            .unwrap();
        let writer = |_| -> &'static Writer { Box::leak(Box::new(Writer::new())) };
        let writers = (0..SLOTS).map(writer).collect();
        let producer = Self {
            ring,
            layout,
            path,
            writers,
        };
        producer.set_phase(phase::LIVE);
        producer
    }

    pub fn set_phase(&self, phase: u64) {
        let offset = core::mem::offset_of!(SessionState, phase);
        self.ring.state_word(offset).store(phase, Ordering::Release);
    }

    pub fn schema(&self, bytes: &[u8]) {
        self.ring.schema_log().append(bytes).unwrap();
    }

    /// Claims slot `index` for a new owner.
    pub fn attach(&self, index: u32, writer: &'static Writer) {
        let slot = self.ring.slot(index).unwrap();
        let fresh = slot.claim(state::FREE);
        assert!(fresh || slot.claim(state::SEALED));
        let geometry = SlotGeometry {
            pages_offset: RINGS + u64::from(index) * self.layout.ring_bytes(),
            page_bytes: self.layout.page_bytes,
            pages: self.layout.pages,
        };
        slot.set_geometry(geometry);
        let next_ring = core::mem::offset_of!(SessionState, next_ring_id);
        let ring_id = 1 + self
            .ring
            .state_word(next_ring)
            .fetch_add(1, Ordering::Relaxed);
        slot.set_owner(RingId(ring_id), 100 + index, *b"synthetic\0\0\0\0\0\0\0");
        slot.publish_state(state::ACTIVE);
        let used = core::mem::offset_of!(SessionState, slots_used);
        let used = self.ring.state_word(used);
        used.fetch_max(u64::from(index) + 1, Ordering::Relaxed);
        let ring = Ring {
            pages: self.ring.pages(geometry).unwrap(),
            geometry,
            stack: None,
            slot,
            slot_index: index,
            mode: self.layout.mode,
            ring_id,
            tid: 100 + index,
            thread_name: slot.thread_name(),
        };
        // SAFETY: the claim is ours, and no other code has this writer.
        unsafe { writer.attach(ring, self.layout.clock as u32) };
    }

    pub fn writer(&self, index: u32) -> &'static Writer {
        self.resume(index)
    }

    /// Gives a slot a stack of open spans, in the room of the last slot's ring.
    pub fn stack(&self, index: u32) -> &'static SpanStack {
        let slot = self.ring.slot(index).unwrap();
        let last = u64::from(SLOTS - 1);
        slot.set_stack_offset(RINGS + last * self.layout.ring_bytes());
        self.ring.span_stack(slot).unwrap()
    }

    /// Claims a sealed slot for another owner, whose writer goes on where the last one stopped.
    pub fn resume(&self, index: u32) -> &'static Writer {
        self.attach(index, self.writers[index as usize]);
        self.writers[index as usize]
    }

    /// Events lost in all slots.
    pub fn lost(&self) -> u64 {
        (0..self.ring.slots_used())
            .flat_map(|i| self.ring.slot(i).unwrap().lost())
            .sum()
    }
}

/// Emits one event; `false` if it was lost.
pub fn emit(writer: &Writer, thread: u64, number: u64) -> bool {
    emit_at(writer, thread, number, ringmark_ring::clock::monotonic_ns())
}

/// As [`emit`], at another time of the session's clock.
pub fn emit_at(writer: &Writer, thread: u64, number: u64, now: u64) -> bool {
    let base = |now| ClockSample {
        tick: now,
        mono_ns: now,
    };
    let reserved = match writer.reserve(TypeId(16), 2, now) {
        Some(reserved) => Ok(reserved),
        None => writer.reserve_cold(TypeId(16), 2, now, &base),
    };
    let Ok(mut reservation) = reserved else {
        return false;
    };
    reservation.set_word(0, thread);
    reservation.set_word(1, number);
    reservation.commit();
    true
}

/// Session, slot and page number, ring id.
pub type PageKey = ([u8; 16], u64, u64);

/// What a dump holds.
#[derive(Default, Debug)]
pub struct Decoded {
    pub sessions: Vec<[u8; 16]>,
    pub schema: BTreeMap<[u8; 16], Vec<u8>>,
    /// The records (thread, number) of the fullest copy of each page.
    pub pages: BTreeMap<PageKey, Vec<(u64, u64)>>,
    pub sealed: usize,
    pub counters: BTreeMap<[u8; 16], (CountersHeader, Vec<SlotCounters>)>,
    /// The stack of each thread that had spans open.
    pub open: Vec<(OpenSpans, Vec<Frame>)>,
    /// Blocks before which no SESSION block of their session stood.
    pub orphans: usize,
}

impl Decoded {
    pub fn of_file(path: &Path) -> Self {
        Self::of(&std::fs::read(path).unwrap())
    }

    /// Decodes; panics at anything that is not a valid dump.
    pub fn of(bytes: &[u8]) -> Self {
        let mut decoded = Self::default();
        let used = decoded.add(bytes);
        assert_eq!(used, bytes.len(), "a cut or damaged block");
        decoded
    }

    /// Adds the valid prefix; returns its length.
    pub fn add(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some((header, content, end)) = block(bytes, at) {
            self.block(&header, content);
            at = end;
        }
        at
    }

    fn block(&mut self, header: &BlockHeader, content: &[u8]) {
        let session = header.session;
        if header.kind != kind::SESSION && !self.sessions.contains(&session) {
            self.orphans += 1;
        }
        match header.kind {
            kind::SESSION => {
                SessionHeader::read_from_prefix(content).unwrap();
                if !self.sessions.contains(&session) {
                    self.sessions.push(session);
                }
            }
            kind::SCHEMA => {
                let schema = self.schema.entry(session).or_default();
                assert!(header.page_number <= schema.len() as u64, "schema gap");
                schema.truncate(header.page_number as usize);
                schema.extend_from_slice(content);
            }
            kind::PAGE => self.page(header, content),
            kind::COUNTERS => {
                let (totals, rest) = CountersHeader::read_from_prefix(content).unwrap();
                let slots = rest.chunks_exact(SlotCounters::BYTES);
                let slots: Vec<_> = slots
                    .map(|s| SlotCounters::read_from_bytes(s).unwrap())
                    .collect();
                assert_eq!(slots.len(), totals.slots as usize);
                self.counters.insert(session, (totals, slots));
            }
            kind::OPEN_SPANS => {
                let (stack, rest) = OpenSpans::read_from_prefix(content).unwrap();
                let frames = rest.chunks_exact(size_of::<Frame>());
                let frames: Vec<_> = frames.map(|f| Frame::read_from_bytes(f).unwrap()).collect();
                assert_eq!(frames.len(), stack.frames as usize);
                self.open.push((stack, frames));
            }
            kind::CONTAINER => {
                let raw = codec::decode(header.codec, content, header.raw_bytes).unwrap();
                assert_eq!(self.add(&raw), raw.len());
            }
            // The pages are whole all the same.
            kind::WINDOW => assert_eq!(content.len(), Window::BYTES),
            kind::ENDING => assert_eq!(content.len(), EndingBlock::BYTES),
            other => panic!("kind {other}"),
        }
    }

    fn page(&mut self, header: &BlockHeader, content: &[u8]) {
        assert_eq!(header.extent as usize, content.len());
        self.sealed += usize::from(header.flags & SEALED);
        let (page, _) = PageHeader::read_from_prefix(content).unwrap();
        assert_eq!(page.generation, header.page_number + 1);
        assert_eq!(page.ring_id, header.ring_id);
        let records = walk(content);
        let key = (
            header.session,
            u64::from(page.slot) << 40 | header.page_number,
            header.ring_id,
        );
        let known = self.pages.entry(key).or_default();
        let common = known.len().min(records.len());
        assert_eq!(
            known[..common],
            records[..common],
            "conflicting copies of a page"
        );
        if records.len() > known.len() {
            *known = records;
        }
    }

    /// All events, each once.
    pub fn events(&self) -> BTreeSet<(u64, u64)> {
        let all: Vec<_> = self.pages.values().flatten().copied().collect();
        let set: BTreeSet<_> = all.iter().copied().collect();
        assert_eq!(all.len(), set.len(), "an event in two pages");
        set
    }
}

fn block(bytes: &[u8], at: usize) -> Option<(BlockHeader, &[u8], usize)> {
    let (header, rest) = BlockHeader::read_from_prefix(bytes.get(at..)?).ok()?;
    let crc = codec::header_crc(&header);
    if header.magic != BLOCK_MAGIC || header.header_crc != crc {
        return None;
    }
    let content = rest.get(..header.stored_bytes as usize)?;
    let padded = ringmark_format::align8(content.len());
    rest.get(..padded)?;
    (header.content_crc == codec::crc32(content)).then_some((
        header,
        content,
        at + BlockHeader::BYTES + padded,
    ))
}

fn walk(page: &[u8]) -> Vec<(u64, u64)> {
    let words: Vec<u64> = page
        .as_chunks::<8>()
        .0
        .iter()
        .map(|w| u64::from_le_bytes(*w))
        .collect();
    let mut at = PageHeader::BYTES / 8;
    let mut records = Vec::new();
    while at < words.len() {
        match record::unpack(words[at]) {
            Header::Empty | Header::Pad => break,
            Header::Busy(n) | Header::Cancelled(n) => at += n as usize,
            Header::Record {
                type_id,
                payload_words,
                ..
            } => {
                let payload = payload_words.unwrap() as usize;
                if type_id == TypeId(16) {
                    records.push((words[at + 1], words[at + 2]));
                }
                at += 1 + payload;
            }
        }
    }
    records
}

/// Opens a file for writing only to cut it.
pub fn cut(path: &Path, bytes: u64) {
    File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(bytes)
        .unwrap();
}
