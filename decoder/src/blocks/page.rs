//! A page that was stored: its header, its records, and the check of both.
//!
//! A page can be decoded alone. It is walked once to be checked, which keeps the sound part and
//! counts what is in it; every later walk goes over the sound part only.

use ringmark_format::block::PageState;
use ringmark_format::page::{PageHeader, valid_page_bytes};
use ringmark_format::record::{self, Header};
use ringmark_format::{PageNumber, RingId, TypeId};
use zerocopy::FromBytes;

use crate::blocks::block_reader::Block;
use crate::blocks::damage::Fault;

/// A page of a session, as far as it was read: a page that was still open has fewer bytes.
#[derive(Debug)]
pub struct Page {
    /// Its header, as stored.
    pub header: PageHeader,
    /// The ring: which claim of the slot wrote it.
    pub ring: RingId,
    /// Its number in its slot, counted from 0 over all claims.
    pub number: PageNumber,
    /// Whether the page is complete: no record will be added.
    pub sealed: bool,
    /// Size of the whole page in bytes, a power of two.
    pub page_bytes: u32,
    /// What the check counted.
    pub summary: Summary,
    /// The page's first `extent` bytes.
    pub(crate) bytes: Vec<u8>,
    /// By index of the record: the finished span around it (see [`crate::trace_file::spans`]); or
    /// empty.
    pub(crate) parents: Vec<u64>,
    /// `CLOCK_MONOTONIC` in ns from when on events are shown, as a WINDOW block says; 0: all are.
    pub(crate) from_mono_ns: u64,
    /// The same as a tick of the session's clock.
    pub(crate) from: u64,
    /// Indices of earlier records that are shown because something in the window needs them.
    pub(crate) kept: Vec<u64>,
    /// Number of its writer among the threads of the dump (see [`crate::trace_file::threads`]).
    pub(crate) thread: u32,
    /// Place of its session among those of its process.
    pub(crate) member: u32,
}

/// What the check of a page counts. Each reservation of the page is counted in one field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Committed events.
    pub events: u64,
    /// Reservations that were cancelled.
    pub cancelled: u64,
    /// Reservations that were not committed when the page was read, or never.
    pub uncommitted: u64,
    /// Records of a reserved type that this decoder does not know.
    pub reserved: u64,
    /// Events that are not shown: they are earlier than the recorded window.
    pub left_out: u64,
    /// Events whose tick lies before that of the event before.
    pub backward: u64,
    /// Bytes of the page that hold sound records; the walk ends there.
    pub end: u32,
    /// Smallest and largest tick; `None` without events.
    pub ticks: Option<(u64, u64)>,
    /// Ticks of the first and of the last event; `None` without events.
    pub ends: Option<(u64, u64)>,
}

impl Summary {
    /// Number of reservations in the page. Each has a number within its slot, whether or not it
    /// became an event.
    #[must_use]
    pub const fn reservations(&self) -> u64 {
        self.events + self.cancelled + self.uncommitted + self.reserved + self.left_out
    }
}

/// A committed record, as a walk finds it: tick and type from its header word, the payload
/// borrowed from the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    /// Its number within the page.
    pub index: u64,
    pub tick: u64,
    pub type_id: TypeId,
    pub payload: &'a [u8],
}

/// What became of a reservation, as a walk over the page finds it.
pub(crate) enum Reservation<'a> {
    Event(Record<'a>),
    Cancelled,
    Uncommitted,
    Reserved,
    LeftOut,
}

/// Walks the records of a page in the order of their reservation.
///
/// Nothing in the bytes is trusted: each length is checked against the rest of the page. The walk
/// ends at the first word that cannot start a record, and keeps the reason.
#[derive(Debug, Clone)]
pub(crate) struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    index: u64,
    tick_base: u64,
    extended: Option<u64>,
    fault: Option<(&'static str, u64)>,
    /// Events before this tick are left out, but those with these numbers.
    from: u64,
    kept: &'a [u64],
}

#[inline]
fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*word))
}

impl<'a> Walk<'a> {
    pub(crate) const fn new(bytes: &'a [u8], tick_base: u64) -> Self {
        Self {
            bytes,
            at: PageHeader::BYTES,
            index: 0,
            tick_base,
            extended: None,
            fault: None,
            from: 0,
            kept: &[],
        }
    }

    /// Where the walk stands.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// Why the walk ended before its end.
    pub(crate) fn fault(&self) -> Option<Fault> {
        let (what, found) = self.fault?;
        let at = self.at as u32;
        Some(Fault::Record { at, what, found })
    }

    #[cold]
    fn fail(&mut self, what: &'static str, found: u64) {
        self.fault = Some((what, found));
    }

    /// Moves on over `words` words.
    #[inline]
    fn pass(&mut self, words: u64) -> Option<()> {
        let left = (self.bytes.len() - self.at) as u64 / 8;
        if words == 0 || words > left {
            let what = if words == 0 {
                "length 0"
            } else {
                "length reaches past the page"
            };
            let found = word_at(self.bytes, self.at).unwrap_or(0);
            self.fail(what, found);
            return None;
        }
        self.at += 8 * words as usize;
        Some(())
    }

    /// A time extension is committed together with its record: alone it is damage.
    #[inline]
    fn end_of_bytes(&mut self) {
        if self.extended.is_some() {
            self.fail("a time extension without its record", 0);
        }
    }

    /// Moves on over a reservation that became no event. It has a number all the same, and ends a
    /// time extension before it.
    fn hole(&mut self, record: Header, step: Reservation<'a>) -> Option<Reservation<'a>> {
        self.pass(record.words(|| None).unwrap_or(0))?;
        self.index += 1;
        self.extended = None;
        Some(step)
    }

    /// The next reservation; `None` at the end or before a fault. Time extensions are taken into
    /// the record after them.
    #[inline]
    pub(crate) fn step(&mut self) -> Option<Reservation<'a>> {
        loop {
            let at = self.at;
            let Some(word) = word_at(self.bytes, at) else {
                self.end_of_bytes();
                return None;
            };
            let record = record::unpack(word);
            let (ticks, type_id, front) = match record {
                Header::Record {
                    ticks,
                    type_id,
                    payload_words,
                } => match payload_words {
                    Some(_) => (ticks, type_id, 8),
                    None => (ticks, type_id, self.long_front(word)?),
                },
                Header::Empty => {
                    self.end_of_bytes();
                    return None;
                }
                Header::Pad => {
                    self.end_of_bytes();
                    if self.fault.is_none() {
                        self.at = self.bytes.len();
                    }
                    return None;
                }
                Header::Busy(_) => return self.hole(record, Reservation::Uncommitted),
                Header::Cancelled(_) => return self.hole(record, Reservation::Cancelled),
            };
            let words = record.words(|| word_at(self.bytes, at + 8));
            self.pass(words.unwrap_or(u64::MAX))?;
            let payload = self.bytes.get(at + front..self.at)?;
            if type_id.0 == record::TIME_EXTEND {
                self.extended = word_at(payload, 0);
                if payload.len() != 8 {
                    self.at = at;
                    self.fail("a time extension of another length", word);
                    return None;
                }
                continue;
            }
            if type_id.0 < record::FIRST_TYPE {
                self.index += 1;
                self.extended = None;
                return Some(Reservation::Reserved);
            }
            let counted = self.tick_base.wrapping_add(u64::from(ticks));
            let tick = self.extended.take().unwrap_or(counted);
            return Some(self.event(tick, type_id, payload));
        }
    }

    #[inline]
    fn event(&mut self, tick: u64, type_id: TypeId, payload: &'a [u8]) -> Reservation<'a> {
        let index = self.index;
        self.index += 1;
        if tick < self.from && self.kept.binary_search(&index).is_err() {
            return Reservation::LeftOut;
        }
        Reservation::Event(Record {
            index,
            tick,
            type_id,
            payload,
        })
    }

    /// Bytes of a header whose length stands in the next word, if that is no length that the
    /// header itself could hold.
    fn long_front(&mut self, header: u64) -> Option<usize> {
        match word_at(self.bytes, self.at + 8) {
            Some(words) if words >= record::LONG => Some(16),
            _ => {
                self.fail("long length too small or not there", header);
                None
            }
        }
    }
}

fn expect(what: &'static str, found: u64, expected: u64) -> Result<(), Fault> {
    if found == expected {
        return Ok(());
    }
    Err(Fault::Value {
        what,
        found,
        expected,
    })
}

impl Page {
    /// Reads the content of a PAGE block and checks its header against that of the block. The
    /// records are checked by [`Self::check`].
    pub(crate) fn read(block: &Block<'_>) -> Result<Self, Fault> {
        let (of_block, bytes) = (&block.header, block.content);
        expect(
            "extent of the page",
            of_block.extent.into(),
            bytes.len() as u64,
        )?;
        if !valid_page_bytes(of_block.page_bytes) {
            return Err(Fault::Value {
                what: "page size (a power of two, at least)",
                found: of_block.page_bytes.into(),
                expected: ringmark_format::page::PAGE_BYTES_MIN.into(),
            });
        }
        let Ok((header, _)) = PageHeader::read_from_prefix(bytes) else {
            return Err(Fault::Value {
                what: "extent of the page (at least its header)",
                found: bytes.len() as u64,
                expected: PageHeader::BYTES as u64,
            });
        };
        let in_page = of_block.extent <= of_block.page_bytes && of_block.extent.is_multiple_of(8);
        if !in_page {
            return Err(Fault::Value {
                what: "extent of the page (a multiple of 8, at most its size)",
                found: of_block.extent.into(),
                expected: of_block.page_bytes.into(),
            });
        }
        expect(
            "generation in the page",
            header.generation,
            of_block.page_number.wrapping_add(1),
        )?;
        expect("ring id in the page", header.ring_id, of_block.ring_id)?;
        Ok(Self {
            header,
            ring: RingId(of_block.ring_id),
            number: PageNumber(of_block.page_number),
            sealed: PageState::of_flags(of_block.flags) == PageState::Sealed,
            page_bytes: of_block.page_bytes,
            summary: Summary::default(),
            bytes: bytes.to_vec(),
            parents: Vec::new(),
            from_mono_ns: 0,
            from: 0,
            kept: Vec::new(),
            thread: 0,
            member: 0,
        })
    }

    /// Bytes of the page that were read, header included; at most `page_bytes`.
    #[must_use]
    pub fn extent(&self) -> usize {
        self.bytes.len()
    }

    /// Name of the thread when it attached, without the zeros at its end; at most 16 bytes.
    #[must_use]
    pub fn thread_name(&self) -> &[u8] {
        let name = &self.header.thread_name;
        let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        &name[..end]
    }

    /// Walks the sound part of the page.
    #[inline]
    pub(crate) fn walk(&self) -> Walk<'_> {
        let (from, kept) = (self.from, self.kept.as_slice());
        let walk = self.walk_all();
        Walk { from, kept, ..walk }
    }

    /// Walks the sound part of the page, events that are not shown included.
    #[inline]
    pub(crate) fn walk_all(&self) -> Walk<'_> {
        let end = (self.summary.end as usize).min(self.bytes.len());
        Walk::new(&self.bytes[..end], self.header.tick_base)
    }

    /// Whether the page begins before what is shown.
    pub(crate) const fn is_old(&self) -> bool {
        self.header.tick_base < self.from
    }

    /// Whether nothing in it ends a walk before its end.
    pub(crate) fn is_sound(&self) -> bool {
        let mut walk = Walk::new(&self.bytes, self.header.tick_base);
        while walk.step().is_some() {}
        walk.fault().is_none() && self.hole_at(walk.at()).is_none()
    }

    /// Walks the whole page once, counts what is there, and keeps the sound part.
    ///
    /// `meet` is called with the type of every event. Returns what ended the walk before the
    /// page's end.
    pub(crate) fn check(&mut self, mut meet: impl FnMut(TypeId)) -> Option<Fault> {
        let (from, kept) = (self.from, self.kept.as_slice());
        let walk = Walk::new(&self.bytes, self.header.tick_base);
        let mut walk = Walk { from, kept, ..walk };
        let mut summary = Summary::default();
        let (mut first, mut last) = (0, 0);
        let mut sound = walk.at();
        let mut is_before = self.is_old();
        while let Some(step) = walk.step() {
            match step {
                Reservation::Event(record) => {
                    is_before &= record.tick < from;
                    summary.events += 1;
                    summary.backward += u64::from(record.tick < last);
                    last = record.tick;
                    if summary.events == 1 {
                        first = last;
                    }
                    let (low, high) = summary.ticks.unwrap_or((last, last));
                    summary.ticks = Some((low.min(last), high.max(last)));
                    meet(record.type_id);
                }
                Reservation::Cancelled => summary.cancelled += 1,
                Reservation::Uncommitted if is_before => summary.left_out += 1,
                Reservation::Uncommitted => summary.uncommitted += 1,
                Reservation::Reserved => summary.reserved += 1,
                Reservation::LeftOut => summary.left_out += 1,
            }
            sound = walk.at();
        }
        let fault = walk.fault().or_else(|| self.hole_at(walk.at()));
        summary.end = sound as u32;
        summary.ends = (summary.events > 0).then_some((first, last));
        self.summary = summary;
        fault
    }

    /// An empty word inside a sealed page.
    fn hole_at(&self, at: usize) -> Option<Fault> {
        (self.sealed && at < self.bytes.len()).then_some(Fault::Record {
            at: at as u32,
            what: "nothing there, though the page is sealed",
            found: 0,
        })
    }
}
