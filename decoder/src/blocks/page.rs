//! A page that was stored: its header, its records, and the check of both.
//!
//! A page can be decoded alone. It is walked once to be checked, which keeps the sound part and
//! counts what is in it; every later walk goes over the sound part only. Its bytes stay where they
//! were read from ([`Content`]), and are loaded for each walk.

use std::borrow::Cow;

use ringmark_format::block::PageState;
use ringmark_format::page::{PageHeader, valid_page_bytes};
use ringmark_format::{PageNumber, RingId, TypeId};
use zerocopy::{FromBytes, IntoBytes};

use crate::blocks::block_reader::Block;
use crate::blocks::content::Content;
use crate::blocks::damage::Fault;
use crate::blocks::type_bits::TypeBits;
use crate::blocks::walk::{Record, Records, Reservation, Shown, Walk};

/// A page of a session, as far as it was read: a page that was still open has fewer bytes.
#[derive(Debug)]
pub struct Page {
    /// Its header, as stored.
    pub header: PageHeader,
    /// Name of the thread, where a later one is known than that of the header.
    renamed: Option<Box<[u8; 16]>>,
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
    /// Types of the events that it counted.
    pub(crate) types: TypeBits,
    /// Number of its bytes that were read.
    pub(crate) extent: u32,
    /// Where these bytes are.
    pub(crate) content: Content,
    /// The finished spans around its records, see [`crate::trace_file::spans`].
    pub(crate) around: Around,
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

/// What is known of the finished spans around the records of a page.
#[derive(Debug, Default)]
pub(crate) enum Around {
    /// There are no finished spans.
    #[default]
    None,
    /// Its own, and around its end the one with this number in its session; 0: there is none.
    Ring(u32),
    /// Those of its thread, which has rings in several sessions.
    Thread(InThread),
}

impl Around {
    /// Number of the innermost span of its ring around the end of the page; 0: there is none.
    pub(crate) const fn of_ring(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::Ring(top) => *top,
            Self::Thread(page) => page.ring,
        }
    }
}

/// A page of a thread that has rings in several sessions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InThread {
    /// Number of the thread among those of the dump.
    pub(crate) thread: u32,
    /// Number of the page in the thread.
    pub(crate) page: u32,
    /// Number of the innermost of the thread's spans around its end; 0: there is none.
    pub(crate) top: u32,
    /// The same of its ring alone, for records of functions.
    pub(crate) ring: u32,
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
    pub(crate) fn read(block: &Block<'_>, content: Content) -> Result<Self, Fault> {
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
            renamed: None,
            ring: RingId(of_block.ring_id),
            number: PageNumber(of_block.page_number),
            sealed: PageState::of_flags(of_block.flags) == PageState::Sealed,
            page_bytes: of_block.page_bytes,
            summary: Summary::default(),
            types: TypeBits::default(),
            extent: bytes.len() as u32,
            content,
            around: Around::default(),
            from_mono_ns: 0,
            from: 0,
            kept: Vec::new(),
            thread: 0,
            member: 0,
        })
    }

    /// Bytes of the page that were read, header included; at most `page_bytes`.
    #[must_use]
    pub const fn extent(&self) -> usize {
        self.extent as usize
    }

    /// Name of the thread as it was known last, without the zeros at its end; at most 16 bytes.
    #[must_use]
    pub fn thread_name(&self) -> &[u8] {
        let name = self.renamed.as_deref().unwrap_or(&self.header.thread_name);
        let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        &name[..end]
    }

    /// Notes what its thread is called, if that is known.
    pub(crate) fn rename(&mut self, name: Option<&[u8; 16]>) {
        let other = name.filter(|name| **name != self.header.thread_name);
        self.renamed = other.map(|name| Box::new(*name));
    }

    /// Its bytes, without a copy where they are in memory. None, as of [`Self::load`].
    pub(crate) fn bytes(&self) -> Cow<'_, [u8]> {
        match &self.content {
            Content::Held(held) => Cow::Borrowed(held),
            Content::Stored { .. } => Cow::Owned(self.load()),
        }
    }

    /// Its bytes. None, if what they were read from has changed since: then that is noted there.
    pub(crate) fn load(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.load_into(&mut bytes);
        bytes
    }

    /// Replaces `bytes` with those of the page, as [`Self::load`] does.
    pub(crate) fn load_into(&self, bytes: &mut Vec<u8>) {
        self.content
            .load(self.extent(), self.header.as_bytes(), bytes);
    }

    /// The sound part of its bytes, as they were loaded.
    #[inline]
    pub(crate) fn sound<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let end = (self.summary.end as usize).min(bytes.len());
        &bytes[..end]
    }

    /// Which of its events are shown.
    #[inline]
    pub(crate) fn shown(&self) -> Shown<'_> {
        Shown {
            from: self.from,
            kept: &self.kept,
        }
    }

    /// A walk at its first record.
    #[inline]
    pub(crate) const fn walk(&self) -> Walk {
        Walk::new(self.header.tick_base)
    }

    /// The events that are shown, in the order of reservation. `bytes`: as they were loaded.
    pub(crate) fn records<'a>(&'a self, bytes: &'a [u8]) -> Records<'a> {
        Records {
            bytes: self.sound(bytes),
            walk: self.walk(),
            shown: self.shown(),
        }
    }

    /// As [`Self::records`], with events that are not shown.
    pub(crate) fn all_records<'a>(&'a self, bytes: &'a [u8]) -> Records<'a> {
        Records {
            shown: Shown::default(),
            ..self.records(bytes)
        }
    }

    /// Whether the page begins before what is shown.
    pub(crate) const fn is_old(&self) -> bool {
        self.header.tick_base < self.from
    }

    /// The tick with which it began. Its first record may have read the clock before the page was begun.
    pub(crate) fn earliest_tick(&self) -> u64 {
        let first = self.summary.ticks.map(|(first, _)| first);
        first.map_or(self.header.tick_base, |first| {
            first.min(self.header.tick_base)
        })
    }

    /// Whether nothing in it ends a walk before its end.
    pub(crate) fn is_sound(&self, bytes: &[u8]) -> bool {
        let (mut walk, mut record) = (self.walk(), Record::NONE);
        let shown = Shown::default();
        while walk.step(bytes, shown, &mut record).is_some() {}
        walk.fault().is_none() && self.hole_at(walk.at(), bytes).is_none()
    }

    /// Walks all of its bytes once, counts what is there, and keeps where the sound part ends.
    ///
    /// `meet` is called with the type of every event. Returns what ended the walk before the
    /// page's end.
    pub(crate) fn check(&mut self, bytes: &[u8], mut meet: impl FnMut(TypeId)) -> Option<Fault> {
        let (shown, mut walk) = (self.shown(), self.walk());
        let (mut summary, mut types) = (Summary::default(), TypeBits::default());
        let (mut first, mut last) = (0, 0);
        let (mut low, mut high) = (u64::MAX, 0);
        let mut sound = walk.at();
        let mut is_before = self.is_old();
        let mut record = Record::NONE;
        while let Some(step) = walk.step(bytes, shown, &mut record) {
            match step {
                Reservation::Event => {
                    is_before &= record.tick < shown.from;
                    summary.backward += u64::from(record.tick < last);
                    last = record.tick;
                    if summary.events == 0 {
                        first = last;
                    }
                    summary.events += 1;
                    (low, high) = (low.min(last), high.max(last));
                    types.add(record.type_id);
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
        let fault = walk.fault().or_else(|| self.hole_at(walk.at(), bytes));
        summary.end = sound as u32;
        summary.ticks = (summary.events > 0).then_some((low, high));
        summary.ends = (summary.events > 0).then_some((first, last));
        (self.summary, self.types) = (summary, types);
        fault
    }

    /// An empty word inside a sealed page.
    fn hole_at(&self, at: usize, bytes: &[u8]) -> Option<Fault> {
        (self.sealed && at < bytes.len()).then_some(Fault::Record {
            at: at as u32,
            what: "nothing there, though the page is sealed",
            found: 0,
        })
    }
}
