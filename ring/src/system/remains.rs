//! What is left unread in the ring file of a dead session, read without mapping it.
//!
//! It is counted just before the file is removed, inside a program that starts: so it is quick, and
//! bounded on any input. Only page headers are read, and the open page of each ring is walked:
//!
//! ```text
//!  unread = reservations so far - first_event of the first page that was not consumed
//!         + lost so far         - lost_before of that page
//! ```
//!
//! Both ends are cumulative counts, so the pages in between need not be read. Where an end cannot
//! be found, or the limits here are reached, the count is a lower bound and is marked as one.
//!
//! A read of the file cannot fault, as a touch of its map could: the file may be truncated at any
//! moment, and the program has not asked for a SIGBUS handler.

use std::fs::File;
use std::os::unix::fs::FileExt;

use ringmark_format::PageNumber;
use ringmark_format::page::PageHeader;
use ringmark_format::session::SessionState;
use ringmark_format::slot::{Slot, state};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::protocol::observe::{self, PageRead};
use crate::protocol::slot::SlotGeometry;
use crate::protocol::sync::AtomicU64;
use crate::system::ring_file::Geometry;

/// Most slots that are looked at.
const SLOTS_MAX: u64 = 4096;
/// Most bytes of open pages that are walked.
const WALKED_BYTES_MAX: u64 = 1 << 20;

/// Events that go with a session when it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Remains {
    /// Events that were not consumed, and those that the session counted as lost.
    pub(crate) events: u64,
    /// Events that newer ones had overwritten.
    pub(crate) overwritten: u64,
    /// `events` is a lower bound.
    pub(crate) inexact: bool,
}

impl Remains {
    /// What is left in the ring file of a session whose process is gone.
    pub(crate) fn of(file: &File, geometry: &Geometry) -> Self {
        let mut remains = Self::default();
        remains.look(file, geometry).unwrap_or(());
        remains
    }

    /// Whether nothing goes with it.
    pub(crate) fn is_nothing(&self) -> bool {
        self.events == 0 && self.overwritten == 0 && !self.inexact
    }

    /// `None`: the rest cannot be read.
    fn look(&mut self, file: &File, geometry: &Geometry) -> Option<()> {
        self.inexact = true;
        let header = &geometry.header;
        let mut session = SessionState::new_zeroed();
        file.read_exact_at(session.as_mut_bytes(), header.state_offset)
            .ok()?;
        let used = session.slots_used.min(header.slots.into());
        let looked_at = used.min(SLOTS_MAX) as usize;
        let mut slots = vec![Slot::new_zeroed(); looked_at];
        file.read_exact_at(slots.as_mut_bytes(), header.directory_offset)
            .ok()?;
        let mut consumed = vec![0_u64; looked_at];
        file.read_exact_at(consumed.as_mut_bytes(), header.consumed_offset)
            .ok()?;
        self.inexact = used > SLOTS_MAX;
        let mut budget = WALKED_BYTES_MAX;
        for (slot, consumed) in slots.iter().zip(&consumed) {
            let ring = RingLeft {
                file,
                slot,
                consumed: *consumed,
                file_bytes: header.file_bytes,
            };
            if ring.add_to(self, &mut budget).is_none() {
                self.inexact = true;
            }
        }
        if consumed.iter().all(|pages| *pages == 0) {
            // No consumer was there that has reported it.
            self.add(session.lost.iter().copied());
        }
        Some(())
    }

    fn add(&mut self, counts: impl IntoIterator<Item = u64>) {
        let sum = counts.into_iter().fold(self.events, u64::saturating_add);
        self.events = sum;
    }
}

/// One ring of a dead session, as its file holds it. Numbers are as damaged as the file is: each is
/// bounded, or added without overflow.
struct RingLeft<'a> {
    file: &'a File,
    slot: &'a Slot,
    consumed: u64,
    file_bytes: u64,
}

impl RingLeft<'_> {
    /// Adds what is unread in this ring. `None`: not all of it could be counted. `budget` is what
    /// is left of the bytes that may be walked.
    fn add_to(&self, remains: &mut Remains, budget: &mut u64) -> Option<()> {
        let slot = self.slot;
        let lost = slot.lost.iter().copied().fold(0, u64::saturating_add);
        if slot.produced <= self.consumed {
            // A ring from which nothing was taken may have lost some without a page.
            remains.add((self.consumed == 0).then_some(lost));
            return Some(());
        }
        let geometry = SlotGeometry {
            pages_offset: slot.pages_offset,
            page_bytes: slot.page_bytes,
            pages: slot.pages,
        };
        if !geometry.valid(self.file_bytes) {
            return None;
        }
        let oldest = slot.produced.saturating_sub(geometry.pages.into());
        let first = self.consumed.max(oldest);
        // The oldest may have been about to be switched.
        let (begin, is_whole) = match self.header(geometry, first) {
            Some(header) => (header, true),
            None => (self.header(geometry, first + 1)?, false),
        };
        let before = match self.consumed {
            0 => 0,
            _ => begin.lost_before,
        };
        remains.add([lost.saturating_sub(before)]);
        if self.consumed == 0 {
            remains.overwritten = remains.overwritten.saturating_add(begin.first_event);
        }
        let (end, is_exact) = self.end(geometry, budget)?;
        remains.add([end.saturating_sub(begin.first_event)]);
        (is_whole && is_exact).then_some(())
    }

    /// Reservations so far, and whether these are all.
    fn end(&self, geometry: SlotGeometry, budget: &mut u64) -> Option<(u64, bool)> {
        if self.slot.state == state::SEALED {
            return Some((self.slot.events_sealed, true));
        }
        let newest = self.slot.produced - 1;
        let header = self.header(geometry, newest)?;
        let Some(left) = budget.checked_sub(geometry.page_bytes.into()) else {
            return Some((header.first_event, false));
        };
        *budget = left;
        let records = self.records(geometry, newest)?;
        Some((header.first_event.saturating_add(records), true))
    }

    fn records(&self, geometry: SlotGeometry, number: u64) -> Option<u64> {
        let mut bytes = vec![0; geometry.page_bytes as usize];
        self.file
            .read_exact_at(&mut bytes, place(geometry, number))
            .ok()?;
        let (words, _) = bytes.as_chunks::<8>();
        let page: Vec<_> = words
            .iter()
            .map(|word| AtomicU64::new(u64::from_le_bytes(*word)))
            .collect();
        let mut copy = vec![0; page.len()];
        match observe::copy_open(&page, PageNumber(number), &mut copy) {
            PageRead::Copied(copied) => copied.records.filter(|_| !copied.damaged),
            PageRead::NotThere => None,
        }
    }

    /// The header of a page, if this page is there.
    fn header(&self, geometry: SlotGeometry, number: u64) -> Option<PageHeader> {
        let mut bytes = [0; PageHeader::BYTES];
        self.file
            .read_exact_at(&mut bytes, place(geometry, number))
            .ok()?;
        let header = PageHeader::read_from_bytes(&bytes).ok()?;
        (header.generation == number.wrapping_add(1)).then_some(header)
    }
}

fn place(geometry: SlotGeometry, number: u64) -> u64 {
    let index = number % u64::from(geometry.pages);
    geometry.pages_offset + index * u64::from(geometry.page_bytes)
}
