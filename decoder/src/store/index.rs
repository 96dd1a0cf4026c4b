//! The index of a segment: times and slots, short enough to be read in place of the segment.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::codec::write;
use ringmark_format::store::{Index, IndexSlot};
use zerocopy::{FromBytes, IntoBytes};

use crate::blocks::block_reader::{Block, BlockReader, Item};
use crate::blocks::content::Content;
use crate::blocks::page::Page;
use crate::events::filter::Filter;
use crate::trace_file::clock_parts::{ClockParts, Collectors};
use crate::trace_file::session::{Counters, SessionBlock};

/// How a segment ends: by this an index knows its segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SegmentEnd {
    /// Size of the segment in bytes.
    pub segment_bytes: u64,
    /// CRC-32 of its last [`INDEX_TAIL_BYTES`](ringmark_format::store::INDEX_TAIL_BYTES) bytes.
    pub tail_crc: u32,
}

/// By how much a time may differ, in ns, when more of the session is read than one segment.
const SLACK_NS: u64 = 1_000_000_000;

/// The index of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentIndex {
    /// The session that the segment belongs to.
    pub session: Uuid,
    /// Size and checksum of the segment, times of its events.
    pub about: Index,
    /// The slots that the segment has pages of, by ascending index.
    pub slots: Vec<IndexSlot>,
}

impl SegmentIndex {
    /// Reads an index from the bytes of its file; `None`: it is no index, or damaged.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = BlockReader::new("an index", bytes);
        let Some(Item::Block(block)) = reader.next_item() else {
            return None;
        };
        if block.header.kind != kind::INDEX {
            return None;
        }
        Self::of_content(Uuid(block.header.session), block.content)
    }

    /// Reads the content of an INDEX block; `None`: it is none.
    #[must_use]
    pub fn of_content(session: Uuid, content: &[u8]) -> Option<Self> {
        let (about, mut rest) = Index::read_from_prefix(content).ok()?;
        let mut slots = Vec::new();
        for _ in 0..about.slots {
            let (slot, after) = IndexSlot::read_from_prefix(rest).ok()?;
            slots.push(slot);
            rest = after;
        }
        Some(Self {
            session,
            about,
            slots,
        })
    }

    /// The content of an INDEX block.
    #[must_use]
    pub fn content(&self) -> Vec<u8> {
        [self.about.as_bytes(), self.slots.as_bytes()].concat()
    }

    /// Size of that, in bytes.
    pub(crate) const fn content_bytes(&self) -> usize {
        Index::BYTES + self.slots.len() * IndexSlot::BYTES
    }

    /// The bytes of its file: one INDEX block.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let content = self.content();
        let mut block = Vec::with_capacity(BlockHeader::BYTES + content.len());
        let header = write::header(kind::INDEX, self.session);
        // Too many slots for a block: no index.
        let _ = write::block(&mut block, header, &content);
        block
    }

    /// Whether the segment may hold an event that the filter lets pass. Only times are compared,
    /// with some slack for clocks that are fitted differently with more of the session at hand.
    #[must_use]
    pub fn may_pass(&self, filter: &Filter) -> bool {
        let Index {
            first_ns,
            last_ns,
            first_t_ns,
            last_t_ns,
            error_ns,
            ..
        } = self.about;
        let slack = error_ns.saturating_add(SLACK_NS);
        let wide = |first: u64, last: u64, by| (first.saturating_sub(by), last.saturating_add(by));
        first_ns <= last_ns
            && filter.times_may_pass(
                wide(first_t_ns, last_t_ns, SLACK_NS),
                wide(first_ns, last_ns, slack),
            )
    }

    /// When its session began, as far as the first event here says, in ns since 1970; `None`: it has no events.
    #[must_use]
    pub fn start_ns(&self) -> Option<u64> {
        let about = &self.about;
        let start_ns = about.first_ns.saturating_sub(about.first_t_ns);
        (about.first_ns <= about.last_ns).then_some(start_ns)
    }

    /// Between which times its session began, in ns since 1970, whichever way clocks are fitted.
    pub(super) fn starts_within(&self) -> Option<RangeInclusive<u64>> {
        let slack = self.about.error_ns.saturating_add(SLACK_NS);
        let ns = self.start_ns()?;
        Some(ns.saturating_sub(slack)..=ns.saturating_add(slack))
    }

    /// A time that the segment's last event does not lie before, in ns since 1970, whichever way clocks are fitted.
    /// `None`: it has no events.
    pub(super) fn ends_after_ns(&self) -> Option<u64> {
        let about = &self.about;
        let slack = about.error_ns.saturating_add(SLACK_NS);
        (about.first_ns <= about.last_ns).then(|| about.last_ns.saturating_sub(slack))
    }
}

/// Makes the index of a segment out of its blocks. The memory does not grow with the pages.
#[derive(Debug, Default)]
pub struct IndexBuilder {
    session: Option<(Uuid, SessionBlock)>,
    clock: ClockParts,
    ticks: Option<(u64, u64)>,
    slots: BTreeMap<u32, IndexSlot>,
}

impl IndexBuilder {
    /// Takes the next block of the segment. `None`: it cannot be understood, and there will be no
    /// index.
    pub fn take(&mut self, block: &Block<'_>) -> Option<()> {
        let content = block.content;
        match block.header.kind {
            kind::SESSION => {
                let session = block.header.session;
                self.session = Some((Uuid(session), SessionBlock::read(content, session).ok()?));
            }
            kind::COUNTERS => self.clock.take_counters(&Counters::read(content).ok()?),
            kind::HOST_CLOCK => self.clock.take_host_clock(content).ok()?,
            kind::PAGE => self.take_page(Page::read(block, Content::none()).ok()?, content)?,
            _ => {}
        }
        Some(())
    }

    fn take_page(&mut self, mut page: Page, bytes: &[u8]) -> Option<()> {
        if page.check(bytes, |_| {}).is_some() {
            return None;
        }
        let header = &page.header;
        self.clock.take_page(header);
        // A loss before the page has the time of its start.
        let (low, high) = page
            .summary
            .ticks
            .unwrap_or((header.tick_base, header.tick_base));
        let low = low.min(header.tick_base);
        let old = self.ticks.unwrap_or((low, high));
        self.ticks = Some((old.0.min(low), old.1.max(high)));
        let end = header
            .first_event
            .saturating_add(page.summary.reservations());
        let next = if page.sealed {
            page.number.0.saturating_add(1)
        } else {
            0
        };
        let slot = self.slots.entry(header.slot).or_insert(IndexSlot {
            slot: header.slot,
            reserved: 0,
            first_event: header.first_event,
            end_event: end,
            first_lost: header.lost_before,
            last_lost: header.lost_before,
            next_page: next,
        });
        slot.first_event = slot.first_event.min(header.first_event);
        slot.end_event = slot.end_event.max(end);
        slot.first_lost = slot.first_lost.min(header.lost_before);
        slot.last_lost = slot.last_lost.max(header.lost_before);
        slot.next_page = slot.next_page.max(next);
        Some(())
    }

    /// The index of a segment that ends like this; see
    /// [`segment_end`](super::segment_end). `None`: it holds no session.
    #[must_use]
    pub fn finish(self, end: SegmentEnd) -> Option<SegmentIndex> {
        self.finish_with(end, 0)
    }

    /// The index of what a segment that is an object has of a session. Other segments may have times of other
    /// collectors: where a collector does not know how wrong its clock is, no time rules the segment out.
    #[must_use]
    pub fn finish_object(self) -> Option<SegmentIndex> {
        self.finish_with(SegmentEnd::default(), u64::MAX)
    }

    /// `unknown`: the error of a measured clock that may be wrong by anything.
    fn finish_with(self, end: SegmentEnd, unknown: u64) -> Option<SegmentIndex> {
        let (session, block) = self.session?;
        let clock = self
            .clock
            .into_clock(Some(&block.header), Collectors::Several);
        let slots: Vec<_> = self.slots.into_values().collect();
        let mut about = Index {
            segment_bytes: end.segment_bytes,
            tail_crc: end.tail_crc,
            slots: slots.len() as u32,
            first_ns: u64::MAX,
            last_ns: 0,
            first_t_ns: u64::MAX,
            last_t_ns: 0,
            error_ns: 0,
        };
        if let Some((low, high)) = self.ticks {
            (about.first_t_ns, about.last_t_ns) = (clock.t_ns(low), clock.t_ns(high));
            about.first_ns = clock.wall_of(low, about.first_t_ns);
            about.last_ns = clock.wall_of(high, about.last_t_ns);
            let errors = [about.first_t_ns, about.last_t_ns].map(|t| clock.error_ns(t));
            let unmeasured = if clock.is_measured() { unknown } else { 0 };
            let errors = errors.map(|error| error.unwrap_or(unmeasured));
            about.error_ns = errors.into_iter().max().unwrap_or(0);
        }
        Some(SegmentIndex {
            session,
            about,
            slots,
        })
    }
}

/// When the first session of segments began, each with its index if it has one. `None`: not known, as where a session has
/// no index yet.
pub(super) fn first_start<'i>(
    segments: impl Iterator<Item = (Uuid, Option<Cow<'i, SegmentIndex>>)>,
) -> Option<RangeInclusive<u64>> {
    let mut starts: HashMap<Uuid, Option<RangeInclusive<u64>>> = HashMap::new();
    for (session, index) in segments {
        let start = starts.entry(session).or_default();
        if start.is_none() {
            *start = index.and_then(|index| index.starts_within());
        }
    }
    let starts: Option<Vec<_>> = starts.into_values().collect();
    starts?
        .into_iter()
        .reduce(|one, other| *one.start().min(other.start())..=*one.end().min(other.end()))
}
