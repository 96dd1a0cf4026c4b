//! What a host remembers of a session's delivery, over all connections and collectors.
//!
//! A collector acknowledges what it has for good. Another one may know nothing of that, and the first
//! may have forgotten it, so the host keeps it: the pages before `acked` in each slot, and so much of
//! the schema. Nothing here reads a clock or a file; [`Delivered::block`] is what is kept of it on disk.

use std::collections::{BTreeMap, BTreeSet};

use ringmark_format::Uuid;
use ringmark_format::block::kind;
use ringmark_format::block_at::Blocks;
use ringmark_format::codec::write;
use ringmark_format::progress::{GoneRange, Progress, ProgressSlot};
use ringmark_format::stream::{AGAIN, SCHEMA_ACKED};
use zerocopy::{FromBytes, IntoBytes};

use crate::pages::batch::fits;
use crate::pages::positions::SlotPosition;

/// What a collector says in RESUME.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resumed {
    /// See [`ringmark_format::stream::UNKNOWN`] and [`SCHEMA_ACKED`].
    pub flags: u32,
    /// Bytes of schema that it has.
    pub schema_bytes: u64,
    /// How far it has each slot, and the flags of that.
    pub slots: Vec<(SlotPosition, u32)>,
}

/// Where a session goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The page of each slot.
    pub slots: Vec<SlotPosition>,
    /// The byte of the schema stream.
    pub schema_bytes: u64,
}

/// What a PROGRESS block says that is not remembered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told<'a> {
    /// See [`ringmark_format::progress::ALL_SENT`].
    pub flags: u32,
    /// `CLOCK_REALTIME` now, ns since 1970.
    pub real_ns: u64,
    /// `CLOCK_MONOTONIC` now, ns.
    pub mono_ns: u64,
    /// Pages that will never come.
    pub ranges: &'a [GoneRange],
    /// For each slot, the page before which all was sent on this connection; `None`: say only what
    /// was acknowledged.
    pub sent: Option<&'a BTreeMap<u32, u64>>,
}

/// What of a session was acknowledged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delivered {
    /// For each slot, the page after the last one that a collector acknowledged.
    acked: BTreeMap<u32, u64>,
    /// The store whose collector acknowledged schema last, and how much.
    schema: ([u8; 16], u64),
    /// Connections over which the session was sent.
    epoch: u32,
    /// For each slot, the page with which the present connection began.
    starts: BTreeMap<u32, u64>,
}

impl Delivered {
    /// Notes that the pages before these positions were acknowledged.
    pub fn acknowledge(&mut self, positions: &[SlotPosition]) {
        for at in positions.iter().filter(|at| at.next_page > 0) {
            let acked = self.acked.entry(at.slot).or_default();
            *acked = (*acked).max(at.next_page);
        }
    }

    /// What was acknowledged of the pages, for a uuid under which no collector has anything.
    #[must_use]
    pub fn of_another_uuid(&self) -> Self {
        Self {
            acked: self.acked.clone(),
            ..Self::default()
        }
    }

    /// Notes that a collector of this store acknowledged so much of the schema.
    pub fn acknowledge_schema(&mut self, store: [u8; 16], bytes: u64) {
        match self.schema {
            (known, before) if known == store => self.schema.1 = before.max(bytes),
            _ => self.schema = (store, bytes),
        }
    }

    /// For each slot, the page after the last one that was acknowledged.
    #[must_use]
    pub fn acked(&self) -> &BTreeMap<u32, u64> {
        &self.acked
    }

    /// Begins the next connection with what the collector of this store says. `most`: the page up to
    /// which a slot can have been sent; a position beyond it is not believed. Returns where the session
    /// goes on.
    pub fn resume(&mut self, store: [u8; 16], said: &Resumed, most: impl Fn(u32) -> u64) -> Start {
        self.epoch = self.epoch.saturating_add(1);
        let mut slots = self.acked.clone();
        for (SlotPosition { slot, next_page }, flags) in &said.slots {
            let known = slots.entry(*slot).or_default();
            *known = match flags & AGAIN != 0 {
                true => *next_page,
                false => (*known).max(*next_page),
            };
        }
        for (slot, page) in &mut slots {
            *page = (*page).min(most(*slot));
        }
        slots.retain(|_, page| *page > 0);
        self.starts = slots;
        let slots = SlotPosition::list(&self.starts);
        self.acknowledge(&slots);
        let is_kept = said.flags & SCHEMA_ACKED != 0 && self.schema.0 == store;
        let schema_bytes = match is_kept {
            true => self.schema.1.max(said.schema_bytes),
            false => said.schema_bytes,
        };
        Start {
            slots,
            schema_bytes,
        }
    }

    /// Notes the pages with which the present connection begins, where the rings say that the pages
    /// before them were released: in discard mode, if none waits elsewhere.
    pub fn begin_at(&mut self, positions: &[SlotPosition]) {
        self.acknowledge(positions);
        self.starts = positions.iter().map(|at| (at.slot, at.next_page)).collect();
    }

    /// A PROGRESS block with all of it, and with what else is `told`.
    #[must_use]
    pub fn block(&self, session: Uuid, told: &Told<'_>) -> Vec<u8> {
        let nothing = BTreeMap::new();
        let sent = told.sent.unwrap_or(&nothing);
        let slots = self.acked.keys().chain(self.starts.keys());
        let slots: BTreeSet<u32> = slots.chain(sent.keys()).copied().collect();
        let mut content = Progress {
            epoch: self.epoch,
            flags: told.flags,
            real_ns: told.real_ns,
            mono_ns: told.mono_ns,
            schema_acked: self.schema.1,
            store: self.schema.0,
            slots: slots.len() as u32,
            ranges: told.ranges.len() as u32,
        }
        .as_bytes()
        .to_vec();
        for slot in slots {
            let page = |of: &BTreeMap<u32, u64>| of.get(&slot).copied().unwrap_or_default();
            let acked = page(&self.acked).max(page(sent));
            let start = page(&self.starts);
            let slot = ProgressSlot {
                slot,
                reserved: 0,
                start,
                acked,
            };
            content.extend_from_slice(slot.as_bytes());
        }
        content.extend_from_slice(told.ranges.as_bytes());
        let mut block = Vec::new();
        fits(write::block(
            &mut block,
            write::header(kind::PROGRESS, session),
            &content,
        ));
        block
    }

    /// What [`Delivered::block`] made for this session. `None`: the bytes are damaged, or of another
    /// session.
    #[must_use]
    pub fn read(bytes: &[u8], session: Uuid) -> Option<Self> {
        let block = Blocks::new(bytes).next()?;
        let is_its = block.header.kind == kind::PROGRESS && block.header.session == session.0;
        let content = block.content().ok().filter(|_| is_its)?;
        let (progress, mut rest) = Progress::read_from_prefix(content).ok()?;
        let mut read = Self {
            schema: (progress.store, progress.schema_acked),
            epoch: progress.epoch,
            ..Self::default()
        };
        for _ in 0..progress.slots {
            let (slot, after) = ProgressSlot::read_from_prefix(rest).ok()?;
            read.acked.insert(slot.slot, slot.acked);
            rest = after;
        }
        Some(read)
    }
}

/// The ranges in the content of a PROGRESS block; none of one that is shorter than it says.
pub(super) fn ranges_of(content: &[u8]) -> Vec<GoneRange> {
    let Ok((head, rest)) = Progress::read_from_prefix(content) else {
        return Vec::new();
    };
    let slots = (head.slots as usize).saturating_mul(ProgressSlot::BYTES);
    let rest = rest.get(slots..).unwrap_or_default();
    let each = rest.chunks_exact(GoneRange::BYTES);
    let ranges = each.map_while(|bytes| GoneRange::read_from_bytes(bytes).ok());
    let ranges: Vec<_> = ranges.take(head.ranges as usize).collect();
    match ranges.len() == head.ranges as usize {
        true => ranges,
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: [u8; 16] = [7; 16];

    fn all(_: u32) -> u64 {
        u64::MAX
    }

    fn at(slot: u32, next_page: u64) -> SlotPosition {
        SlotPosition { slot, next_page }
    }

    fn said(flags: u32, schema_bytes: u64, slots: &[(SlotPosition, u32)]) -> Resumed {
        Resumed {
            flags,
            schema_bytes,
            slots: slots.to_vec(),
        }
    }

    #[test]
    fn a_collector_that_knows_nothing_takes_nothing_back() {
        let mut delivered = Delivered::default();
        delivered.acknowledge(&[at(0, 5), at(1, 9)]);
        delivered.acknowledge(&[at(0, 3)]);
        let start = delivered.resume(STORE, &said(ringmark_format::stream::UNKNOWN, 0, &[]), all);
        assert_eq!(
            (start.slots, start.schema_bytes),
            (vec![at(0, 5), at(1, 9)], 0)
        );
        // Another one has more of one slot and less of the other.
        let start = delivered.resume(STORE, &said(0, 64, &[(at(0, 8), 0), (at(1, 2), 0)]), all);
        assert_eq!(
            (start.slots, start.schema_bytes),
            (vec![at(0, 8), at(1, 9)], 64)
        );
        let start = delivered.resume(STORE, &said(0, 64, &[]), all);
        assert_eq!(start.slots, [at(0, 8), at(1, 9)], "what it had is durable");
    }

    #[test]
    fn a_position_beyond_what_can_have_been_sent_is_not_believed() {
        let mut delivered = Delivered::default();
        let start = delivered.resume(
            STORE,
            &said(0, 0, &[(at(0, u64::MAX), 0), (at(9, 4), 0)]),
            |slot| {
                if slot == 0 { 6 } else { 0 }
            },
        );
        assert_eq!(start.slots, [at(0, 6)]);
        assert_eq!(delivered.acked().len(), 1);
    }

    #[test]
    fn damage_asks_for_pages_again() {
        let mut delivered = Delivered::default();
        delivered.acknowledge(&[at(0, 50)]);
        let start = delivered.resume(STORE, &said(0, 0, &[(at(0, 20), AGAIN)]), all);
        assert_eq!(start.slots, [at(0, 20)]);
        assert_eq!(
            delivered.acked().get(&0),
            Some(&50),
            "it was acknowledged all the same"
        );
    }

    #[test]
    fn schema_is_sent_again_to_another_store() {
        let mut delivered = Delivered::default();
        delivered.acknowledge_schema(STORE, 900);
        delivered.acknowledge_schema(STORE, 300);
        let kept = said(SCHEMA_ACKED, 0, &[]);
        assert_eq!(delivered.resume(STORE, &kept, all).schema_bytes, 900);
        assert_eq!(delivered.resume([8; 16], &kept, all).schema_bytes, 0);
        assert_eq!(
            delivered.resume(STORE, &said(0, 10, &[]), all).schema_bytes,
            10
        );
    }

    #[test]
    fn what_is_kept_is_read_and_damage_is_not() {
        let session = Uuid([3; 16]);
        let mut delivered = Delivered::default();
        delivered.acknowledge(&[at(0, 5), at(4095, u64::MAX)]);
        delivered.acknowledge_schema(STORE, 900);
        let mut block = delivered.block(session, &Told::default());
        assert_eq!(Delivered::read(&block, session), Some(delivered));
        assert_eq!(Delivered::read(&block, Uuid([4; 16])), None);
        let last = block.len() - 1;
        assert_eq!(Delivered::read(&block[..last], session), None);
        block[last] ^= 1;
        assert_eq!(Delivered::read(&block, session), None);
        assert_eq!(Delivered::read(b"", session), None);
    }
}
