//! One traced process: its header and attributes, its event types, pages and counters.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringmark_format::attribute::{Attributes, tag};
use ringmark_format::clock::Sample;
use ringmark_format::counters::{CountersHeader, FINAL, SCHEMA_INCOMPLETE, SlotCounters};
use ringmark_format::ending::Ending;
use ringmark_format::session::{Clock, Mode, RING_FILE_MAGIC, SessionHeader};
use ringmark_format::store::IndexSlot;
use ringmark_format::{ENDIAN_MARK, SlotIndex, Uuid, VERSION_MAJOR};
use zerocopy::FromBytes;

use crate::blocks::damage::Fault;
use crate::blocks::page::Page;
use crate::trace_file::finished_spans::ReachingSpans;
use crate::trace_file::open_spans::OpenStack;
use crate::trace_file::packed_stream::PackedStream;
use crate::trace_file::progress::HostProgress;
use crate::trace_file::samples::{RanIn, SampleAt};
use crate::trace_file::schema::Schema;
use crate::trace_file::switch_blocks::SwitchBlocks;
use crate::trace_file::switched::Switched;
use crate::trace_file::thread_states::ThreadDoes;
use crate::trace_file::thread_times::ThreadTimes;
use crate::trace_file::time::SessionClock;
use crate::trace_file::waited_for::WaitedFor;

/// Bytes of a process's name that are shown: names of files are no longer.
const NAME_BYTES_MAX: usize = 256;

/// One session of a dump: the ring file of one process, as far as it was read.
#[derive(Debug)]
pub struct Session {
    /// Its random identity, the same in every file.
    pub uuid: Uuid,
    /// Name of its host in the store that it was read from.
    pub(crate) stored_host: Option<Vec<u8>>,
    /// Its header; `None` if no SESSION block was read. Ticks then count as nanoseconds.
    pub header: Option<SessionHeader>,
    /// Its attributes as (tag, value), in order; see [`ringmark_format::attribute::tag`].
    pub attributes: Vec<(u16, Vec<u8>)>,
    /// Its event types and functions.
    pub schema: Schema,
    /// Its clock, which turns ticks into times. Sessions of one process share it.
    pub clock: SessionClock,
    /// Its slots that have pages, by ascending index.
    pub slots: Vec<Slot>,
    /// Slots of segments that were not read, by slot and position.
    pub(crate) left_out: Vec<IndexSlot>,
    /// Its oldest segments were removed from the store that it was read from.
    pub(crate) is_shortened: bool,
    /// Only a part of it is here, and what comes later will be read with the next part.
    pub(crate) goes_on: bool,
    /// The stacks of open spans that were copied last, by slot.
    pub(crate) open_stacks: Vec<OpenStack>,
    /// Its blocks of switches, until they are put together with those of the process.
    pub(crate) switch_blocks: SwitchBlocks,
    /// Switches of the threads of its process.
    pub(crate) switched: Arc<Switched>,
    /// `CLOCK_MONOTONIC` in ns from when on events are here; `None`: from the session's start on.
    pub window: Option<u64>,
    /// Its schema stream, up to the first gap.
    pub(crate) schema_stream: PackedStream,
    /// Bytes that its pages need and that stream lacks.
    pub schema_lacks: u64,
    /// What its host said about pages that are not here.
    pub(crate) progress: HostProgress,
    /// Its latest counters; `None`: no COUNTERS block was read.
    pub counters: Option<Counters>,
    /// Number of its process among those of the dump. Several copies of the library in one process
    /// have a session each, and the same number.
    pub process: usize,
    /// How it ended; `None`: it goes on, or nothing read says.
    pub ending: Option<Ending>,
    /// Tick at which a reader that watched its living process found it dead; 0: none did.
    pub(crate) dead_tick: u64,
    /// Its place in the sessions of its dump.
    pub number: usize,
    /// The first session in the dump whose clock and zero it shares; its own number: it shares none.
    pub(crate) clock_of: usize,
    /// Its events may lie in finished spans, its own or those of another session of its process.
    pub(crate) has_spans: bool,
    /// Its finished spans that reach from one page into an earlier one.
    pub(crate) reaching: ReachingSpans,
    /// See [`Self::process_name`].
    pub(crate) name: Vec<u8>,
}

impl Session {
    /// The value of the first attribute with this tag; see [`ringmark_format::attribute::tag`].
    #[must_use]
    pub fn attribute(&self, tag: u16) -> Option<&[u8]> {
        let found = self.attributes.iter().find(|(t, _)| *t == tag);
        found.map(|(_, value)| value.as_slice())
    }

    /// Name of the host that the process ran on: the one under which a store holds it, or else as the
    /// process found it; empty if not known.
    #[must_use]
    pub fn host(&self) -> &[u8] {
        let stored = self.stored_host.as_deref();
        stored.or(self.attribute(tag::HOST)).unwrap_or_default()
    }

    /// Name of the service that the process belongs to, as found; empty if it has none.
    #[must_use]
    pub fn service(&self) -> &[u8] {
        self.attribute(tag::SERVICE_NAME).unwrap_or_default()
    }

    /// Whether times of its events are known: dates, and durations in ns. They are not without its header,
    /// which says what a tick is, and with clock `none`, whose ticks are all 0.
    #[must_use]
    pub fn has_times(&self) -> bool {
        self.header
            .is_some_and(|header| header.clock != Clock::None as u32)
    }

    /// Whether many of its events share a tick.
    pub(crate) fn is_coarse(&self) -> bool {
        self.header
            .is_some_and(|header| header.clock == Clock::Coarse as u32)
    }

    /// A time since the session's start as `CLOCK_MONOTONIC` in ns.
    pub(crate) const fn on_mono(&self, t_ns: u64) -> u64 {
        self.clock.mono_zero_ns.saturating_add(t_ns)
    }

    /// What a thread did between two of its records, by their times since the session's start in ns; `None`: it
    /// is not known, as where the trace has no switches of it. Its times make up that from the one to the other.
    #[must_use]
    pub fn thread_times(&self, tid: u32, from_ns: u64, to_ns: u64) -> Option<ThreadTimes> {
        let clock = Clock::from_u32(self.header?.clock)?;
        let on_mono = |t_ns: u64| self.clock.mono_zero_ns.checked_add(t_ns);
        if clock == Clock::None {
            return None;
        }
        self.switched.times(tid, on_mono(from_ns)?, on_mono(to_ns)?)
    }

    /// What a thread waited for between two of its records, as far as it was seen, by their times since the session's start
    /// in ns; the longest first.
    #[must_use]
    pub fn waited_for(&self, tid: u32, from_ns: u64, to_ns: u64) -> Vec<WaitedFor<'_>> {
        if !self.has_times() {
            return Vec::new();
        }
        self.switched
            .waited_for(tid, self.on_mono(from_ns), self.on_mono(to_ns))
    }

    /// Where a thread ran between two moments, as far as samples met it, by their times since the session's start in ns; the
    /// longest first.
    #[must_use]
    pub fn ran_in(&self, tid: u32, from_ns: u64, to_ns: u64) -> Vec<RanIn<'_>> {
        if !self.has_times() {
            return Vec::new();
        }
        let part = self.on_mono(from_ns)..self.on_mono(to_ns);
        self.switched.samples.ran_in(tid, &part)
    }

    /// Whether a thread was seen, running or waiting, between two moments.
    pub(crate) fn was_seen(&self, tid: u32, from_ns: u64, to_ns: u64) -> bool {
        let (from, to) = (self.on_mono(from_ns), self.on_mono(to_ns));
        self.switched.was_seen(tid, from, to)
    }

    /// All samples of where the threads of its process ran, by thread and time.
    #[must_use]
    pub fn samples(&self) -> Vec<SampleAt<'_>> {
        self.switched.samples.piece(&(0..u64::MAX))
    }

    /// Whether samples were taken of where the threads of its process ran.
    #[must_use]
    pub fn has_samples(&self) -> bool {
        self.switched.samples.are_there
    }

    /// Whether those are of the kernel's own code, too.
    #[must_use]
    pub fn has_kernel_samples(&self) -> bool {
        self.switched.samples.has_kernel
    }

    /// Samples that had no room when they were taken.
    #[must_use]
    pub fn samples_lost(&self) -> u64 {
        self.switched.samples.lost
    }

    /// All waits that were seen of its process: thread, first and last look on its `CLOCK_MONOTONIC` in ns, text.
    #[must_use]
    pub fn seen_waits(&self) -> Vec<(u32, u64, u64, &[u8])> {
        self.switched.waits_piece(&(0..u64::MAX))
    }

    /// Whether it was looked at what the threads of its process wait for.
    #[must_use]
    pub fn has_waits(&self) -> bool {
        self.switched.has_waits()
    }

    /// Gives `each` when a thread had no processor between two of its records, by their times since the session's start in
    /// ns: what it did, and how many ns of that. Nothing, where that is not known.
    pub(crate) fn off_between(
        &self,
        tid: u32,
        (from_ns, to_ns): (u64, u64),
        mut each: impl FnMut(ThreadDoes, u64),
    ) {
        if self.thread_times(tid, from_ns, to_ns).is_none() {
            return;
        }
        let (from, to) = (self.on_mono(from_ns), self.on_mono(to_ns));
        self.switched.off(tid, from, to, |state| {
            let ns = state.to.min(to).saturating_sub(state.from.max(from));
            if ns > 0 {
                each(state.does, ns);
            }
        });
    }

    /// One more than the highest number of a processor that its process's threads ran on, as far as switches were recorded.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.switched.cpus()
    }

    /// Whether its events may lie in finished spans, its own or those of another session of its process.
    #[must_use]
    pub const fn has_finished_spans(&self) -> bool {
        self.has_spans
    }

    /// Whether switches of the threads of its process were recorded.
    #[must_use]
    pub fn has_switches(&self) -> bool {
        !self.switched.is_empty()
    }

    /// Switches of the threads of its process that had no room when they were recorded.
    #[must_use]
    pub fn switches_lost(&self) -> u64 {
        self.switched.lost()
    }

    /// Process id in the process's own pid namespace; 0 if not known.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.header.map_or(0, |h| h.pid)
    }

    /// The latest tick that is known of it: of its records, open spans, and the end of its process.
    pub(crate) fn last_tick(&self) -> u64 {
        let pages = self.slots.iter().flat_map(|slot| &slot.pages);
        let ticks = pages.filter_map(|page| page.summary.ticks);
        let frames = self.open_stacks.iter().flat_map(|stack| &stack.frames);
        let ticks = ticks.map(|(_, last)| last);
        let ticks = ticks.chain(frames.map(|frame| frame.tick));
        ticks.max().unwrap_or(0).max(self.dead_tick)
    }

    /// What the session did when a ring was full; `None`: not known.
    #[must_use]
    pub fn mode(&self) -> Option<Mode> {
        self.header.and_then(|h| Mode::from_u32(h.mode))
    }

    /// Name of the process for output, at most 256 bytes: its own name, or the file name of its
    /// executable, or empty.
    #[must_use]
    pub fn process_name(&self) -> &[u8] {
        &self.name
    }

    /// Works the name out of the attributes once: every line shows it.
    pub(crate) fn finish_name(&mut self) {
        let file = |path: &'_ [u8]| path.rsplit(|b| *b == b'/').next().map(<[u8]>::to_vec);
        let given = self.attribute(tag::PROCESS_NAME).map(<[u8]>::to_vec);
        let name = given.or_else(|| self.attribute(tag::EXECUTABLE).and_then(file));
        self.name = name.unwrap_or_default();
        self.name.truncate(NAME_BYTES_MAX);
    }

    /// When a collector heard of it last, in ns since 1970 on that collector's clock, or on the host's where none has
    /// measured it; `None`: its host never said how far it has come.
    pub(crate) fn heard_ns(&self) -> Option<u64> {
        let said_ns = self.progress.said_ns()?;
        let measured = self.clock.measurements.iter();
        let last = measured.max_by_key(|clock| clock.real_ns);
        let ahead_ns = last.map_or(0, |clock| clock.offset_ns);
        let heard_ns = i128::from(said_ns) - i128::from(ahead_ns);
        Some(u64::try_from(heard_ns.max(0)).unwrap_or(u64::MAX))
    }

    /// Whether the session had no room to describe all its event types, as its latest counters
    /// say. Records of the types without a description are shown raw.
    #[must_use]
    pub fn schema_incomplete(&self) -> bool {
        self.counters
            .as_ref()
            .is_some_and(|c| c.header.flags & SCHEMA_INCOMPLETE != 0)
    }

    /// Whether the session had ended and everything was read, as its latest counters say.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.counters
            .as_ref()
            .is_some_and(|c| c.header.flags & FINAL != 0)
    }
}

/// The pages of one slot of the ring directory. Several threads may have claimed the slot one
/// after the other; each claim is a ring of its own.
#[derive(Debug)]
pub struct Slot {
    /// Its index in the ring directory.
    pub index: SlotIndex,
    /// Its pages by ascending number, each number once per ring id.
    pub pages: Vec<Page>,
}

impl Slot {
    /// Records that were begun in the slot since the session started, by its pages.
    #[must_use]
    pub fn reservations(&self) -> u64 {
        let ends = self.pages.iter().map(|page| {
            let before = page.header.first_event;
            before.saturating_add(page.summary.reservations())
        });
        ends.max().unwrap_or(0)
    }

    /// Time between the oldest and the newest event of its pages, in ns; `None`: it has none.
    #[must_use]
    pub fn covered_ns(&self, clock: &SessionClock) -> Option<u64> {
        let ticks = || self.pages.iter().filter_map(|page| page.summary.ticks);
        let first = clock.t_ns(ticks().map(|(first, _)| first).min()?);
        let last = clock.t_ns(ticks().map(|(_, last)| last).max()?);
        Some(last.saturating_sub(first))
    }
}

/// The content of a COUNTERS block: what the session had counted when the block was written.
#[derive(Debug, Clone)]
pub struct Counters {
    /// Totals of the session.
    pub header: CountersHeader,
    /// Totals of each slot, by its index.
    pub slots: BTreeMap<u32, SlotCounters>,
    /// Events and losses, of all slots and of the session.
    counted: u64,
}

impl Counters {
    /// Reads a COUNTERS block's content.
    pub(crate) fn read(content: &[u8]) -> Result<Self, Fault> {
        let short = |expected: u64| Fault::Value {
            what: "size of a COUNTERS block",
            found: content.len() as u64,
            expected,
        };
        let (header, rest) = CountersHeader::read_from_prefix(content)
            .map_err(|_| short(CountersHeader::BYTES as u64))?;
        let wanted = u64::from(header.slots) * SlotCounters::BYTES as u64;
        if wanted > rest.len() as u64 {
            return Err(short(CountersHeader::BYTES as u64 + wanted));
        }
        let entries = rest.chunks_exact(SlotCounters::BYTES);
        let slots = entries
            .take(header.slots as usize)
            .filter_map(|bytes| SlotCounters::read_from_bytes(bytes).ok())
            .map(|slot| (slot.slot, slot))
            .collect::<BTreeMap<u32, SlotCounters>>();
        let of_slots = slots
            .values()
            .flat_map(|slot| slot.lost.iter().chain([&slot.events]));
        let counts = header.lost.iter().chain(of_slots);
        let counted = counts.fold(0, |sum: u64, count| sum.saturating_add(*count));
        Ok(Self {
            header,
            slots,
            counted,
        })
    }

    /// The clock sample, if there is one.
    pub(crate) fn sample(&self) -> Option<Sample> {
        let header = &self.header;
        let sample = Sample {
            tick: header.sample_tick,
            mono_ns: header.sample_mono_ns,
        };
        (sample.mono_ns != 0).then_some(sample)
    }

    /// Orders two COUNTERS blocks of one session in time: the final one is the latest, then the
    /// sample of the clock decides, then the number of reservations and losses.
    pub(crate) fn age(&self) -> (bool, u64, u64, u64) {
        let header = &self.header;
        let is_final = header.flags & FINAL != 0;
        (
            is_final,
            header.sample_mono_ns,
            header.sample_tick,
            self.counted,
        )
    }
}

/// Attributes of a session that are looked at; no producer writes as many.
const ATTRIBUTES_MAX: usize = 4096;

/// The content of a SESSION block, taken apart and checked: magic, byte order, version, identity
/// and sizes.
#[derive(Debug)]
pub(crate) struct SessionBlock {
    pub header: SessionHeader,
    pub attributes: Vec<(u16, Vec<u8>)>,
}

impl SessionBlock {
    /// Reads and checks a SESSION block's content.
    pub(crate) fn read(content: &[u8], session: [u8; 16]) -> Result<Self, Fault> {
        let value = |what, found, expected| Fault::Value {
            what,
            found,
            expected,
        };
        let Ok((header, rest)) = SessionHeader::read_from_prefix(content) else {
            let (found, expected) = (content.len() as u64, SessionHeader::BYTES as u64);
            return Err(value("size of a SESSION block", found, expected));
        };
        if header.magic != RING_FILE_MAGIC {
            return Err(Fault::WrongMagic {
                found: header.magic.to_vec(),
                looks_like: None,
            });
        }
        if header.endian == ENDIAN_MARK.swap_bytes() {
            return Err(Fault::ForeignEndian);
        }
        if header.version_major > VERSION_MAJOR {
            return Err(Fault::NewerMajor {
                found: header.version_major,
                supported: VERSION_MAJOR,
            });
        }
        if header.session != session {
            let first = |uuid: [u8; 16]| u64::from_be_bytes(*uuid.first_chunk().unwrap_or(&[0; 8]));
            let (found, expected) = (first(header.session), first(session));
            return Err(value("session uuid in the header", found, expected));
        }
        if header.tick_shift > 63 {
            return Err(value("tick shift", header.tick_shift.into(), 63));
        }
        let bytes = header.attributes_bytes as usize;
        let attributes = rest.get(..bytes).ok_or_else(|| {
            let found = rest.len() as u64;
            value("size of the session attributes", found, bytes as u64)
        })?;
        let attributes = Attributes::new(attributes);
        let attributes = attributes.take(ATTRIBUTES_MAX);
        let attributes = attributes.map(|a| (a.tag, a.value.to_vec())).collect();
        Ok(Self { header, attributes })
    }
}
