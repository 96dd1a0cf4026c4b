//! The books of one streamed session: what was sent, acknowledged and lost, over all connections.
//!
//! Nothing here reads a clock, a ring or a socket, so that schedules of cuts, acknowledgements that are
//! lost and collectors that change can be tried by the thousand.

use std::collections::BTreeMap;

use ringmark_format::Uuid;
use ringmark_format::progress::GoneRange;

use super::delivered::{Delivered, Resumed, Start, Told};
use super::gone::{Gone, RANGES_MAX};
use super::in_flight::Release;

/// When something is said, on the host's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Moment {
    /// `CLOCK_REALTIME`, ns since 1970.
    pub real_ns: u64,
    /// `CLOCK_MONOTONIC`, ns.
    pub mono_ns: u64,
}

/// What was sent, acknowledged and lost of one session.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// What collectors have acknowledged.
    pub delivered: Delivered,
    /// Pages that will never come.
    pub gone: Gone,
    /// For each slot, the page before which everything was sent on this connection, or is durable.
    pub sent_to: BTreeMap<u32, u64>,
    /// Whether PROGRESS was sent on this connection, and what it said was acknowledged.
    told: Option<BTreeMap<u32, u64>>,
}

impl Ledger {
    /// The books of a session of which this was acknowledged before.
    #[must_use]
    pub fn new(delivered: Delivered) -> Self {
        Self {
            delivered,
            ..Self::default()
        }
    }

    /// The connection was lost: what was not acknowledged on it will be sent again.
    pub fn begin_again(&mut self) {
        self.sent_to.clear();
        self.gone.begin_again();
        self.told = None;
    }

    /// Begins the next connection with what its collector says; see [`Delivered::resume`].
    pub fn resume(&mut self, store: [u8; 16], said: &Resumed, most: impl Fn(u32) -> u64) -> Start {
        let start = self.delivered.resume(store, said, most);
        let slots = start.slots.iter();
        self.sent_to = slots.map(|at| (at.slot, at.next_page)).collect();
        start
    }

    /// Notes that a batch of pages was sent.
    pub fn sent(&mut self, batch: &Release) {
        let pages = batch.pages.iter().map(|at| (at.slot, at.next_page));
        self.sent_to.extend(pages);
    }

    /// Notes that a batch is durable in this store.
    pub fn release(&mut self, durable: &Release, store: [u8; 16]) {
        self.delivered.acknowledge(&durable.pages);
        self.delivered.acknowledge(&durable.spilled);
        self.gone.acknowledge(durable.ranges);
        if durable.schema_bytes > 0 {
            self.delivered
                .acknowledge_schema(store, durable.schema_bytes);
        }
    }

    /// Whether PROGRESS is to be sent before anything else: none was on this connection, or pages
    /// were found gone.
    #[must_use]
    pub fn is_to_tell(&self) -> bool {
        self.told.is_none() || self.gone.is_to_tell()
    }

    /// Whether more was acknowledged than PROGRESS has said on this connection.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.told
            .as_ref()
            .is_some_and(|told| told != self.delivered.acked())
    }

    /// The PROGRESS blocks to be sent now, and what is to be released once they are durable.
    pub fn tell(&mut self, session: Uuid, flags: u32, now: Moment) -> (Vec<u8>, Release) {
        let release = Release::told(self.gone.found());
        let told = Told {
            flags,
            real_ns: now.real_ns,
            mono_ns: now.mono_ns,
            ranges: self.gone.tell(),
            sent: Some(&self.sent_to),
        };
        let blocks = blocks(&self.delivered, session, &told);
        self.told = Some(self.delivered.acked().clone());
        (blocks, release)
    }

    /// The PROGRESS blocks that keep these ranges next to pages that wait; nothing without ranges.
    #[must_use]
    pub fn keep(&self, session: Uuid, ranges: &[GoneRange]) -> Vec<u8> {
        let told = Told {
            ranges,
            ..Told::default()
        };
        match ranges {
            [] => Vec::new(),
            _ => blocks(&self.delivered, session, &told),
        }
    }
}

/// PROGRESS blocks that say this. Ranges that one block has no room for come in blocks of their own
/// before it.
fn blocks(delivered: &Delivered, session: Uuid, told: &Told<'_>) -> Vec<u8> {
    let ranges = told.ranges;
    let pieces = ranges.len().div_ceil(RANGES_MAX).max(1);
    let mut blocks = Vec::new();
    for piece in 0..pieces {
        let from = piece * RANGES_MAX;
        let piece = Told {
            flags: if piece + 1 == pieces { told.flags } else { 0 },
            ranges: &ranges[from..ranges.len().min(from + RANGES_MAX)],
            ..*told
        };
        blocks.extend(delivered.block(session, &piece));
    }
    blocks
}
