//! What is stored of a session, in memory: its SESSION block, its schema, and which pages of which
//! slots. Blocks are checked against it before they are written; nothing is written here.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, PageState};
use ringmark_format::page::PageHeader;
use ringmark_format::progress::{Progress, ProgressSlot};
use ringmark_format::store::IndexSlot;
use ringmark_reader::SlotPosition;
use zerocopy::FromBytes;

use super::budget::{Budget, Charge, SLOT_BYTES};
use super::error::{SessionFault, StoreError};
use super::known_session::KnownSession;
use super::positions::{Before, HOLE_BYTES, PagePlace, Positions, STEP_MAX};

/// Most schema bytes of one session, as many as a reader takes from a ring file. They are kept in
/// memory, as every segment begins with them; what the sessions of a host keep is bounded apart.
pub(super) const SCHEMA_BYTES_MAX: usize = 64 << 20;
/// Most slots of a session.
const SLOTS_MAX: usize = 4096;

/// What is stored of a session.
#[derive(Debug)]
pub(super) struct SessionContents {
    uuid: Uuid,
    /// Content of its SESSION block.
    session: Vec<u8>,
    schema: Vec<u8>,
    slots: BTreeMap<u32, Positions>,
    charge: Charge,
}

impl SessionContents {
    /// A session of which nothing is stored but what SESSION says.
    ///
    /// # Errors
    /// All sessions together would take too much memory.
    pub(super) fn new(
        uuid: Uuid,
        host: &str,
        session: &[u8],
        budget: &Arc<Budget>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            uuid,
            session: session.to_vec(),
            schema: Vec::new(),
            slots: BTreeMap::new(),
            charge: Charge::new(budget, host, session.len())?,
        })
    }

    /// Bytes of memory that it takes.
    pub(super) fn remembered(&self) -> u64 {
        self.charge.bytes()
    }

    /// Gives memory back until it takes as much as before.
    pub(super) fn give_back_to(&mut self, bytes: u64) {
        self.charge.shrink_to(bytes);
    }

    /// Charges what was read from the files of a session that was found again.
    ///
    /// # Errors
    /// All sessions together would take too much memory.
    pub(super) fn charge_all(&mut self) -> Result<(), StoreError> {
        let bytes = self.session.len() + self.schema.len();
        let slots = self.slots.len() as u64 * SLOT_BYTES;
        let holes: u64 = self.slots.values().map(Positions::holes).sum();
        self.charge.grow(bytes as u64 + slots + holes * HOLE_BYTES)
    }

    /// How far the session is stored: what RESUME says.
    pub(super) fn known(&self) -> KnownSession {
        let position = |(&slot, positions): (&u32, &Positions)| SlotPosition {
            slot,
            next_page: positions.resume(),
        };
        let again = self.slots.iter().filter(|(_, there)| there.holes() > 0);
        KnownSession {
            schema_bytes: self.schema.len() as u64,
            slots: self.slots.iter().map(position).collect(),
            again: again.map(|(&slot, _)| slot).collect(),
            has_acked_schema: false,
        }
    }

    /// Content of its SESSION block; empty if no segment that was read has one.
    pub(super) fn session(&self) -> &[u8] {
        &self.session
    }

    /// Takes the content of a SESSION block.
    pub(super) fn set_session(&mut self, content: &[u8]) {
        self.session = content.to_vec();
    }

    /// Its schema so far.
    pub(super) fn schema(&self) -> &[u8] {
        &self.schema
    }

    /// Checks a piece of schema at this offset, and charges what is new in it.
    ///
    /// # Errors
    /// It leaves a gap, contradicts what is stored, or takes too much memory.
    pub(super) fn admit_schema<'p>(
        &mut self,
        offset: u64,
        piece: &'p [u8],
    ) -> Result<&'p [u8], StoreError> {
        let have = self.schema.len() as u64;
        if offset > have {
            let (found, most) = (offset, have);
            return Err(self.wrong(SessionFault::SchemaGap { found, most }));
        }
        let known = (have - offset) as usize;
        let (old, new) = piece.split_at(known.min(piece.len()));
        let offset = offset as usize;
        if self.schema.get(offset..offset + old.len()) != Some(old) {
            return Err(self.wrong(SessionFault::SchemaDiffers));
        }
        if new.is_empty() {
            return Ok(new);
        }
        let (found, most) = (self.schema.len() + new.len(), SCHEMA_BYTES_MAX);
        if found > most {
            return Err(self.wrong(SessionFault::SchemaSize { found, most }));
        }
        self.charge.grow(new.len() as u64)?;
        Ok(new)
    }

    /// Adds schema that is stored now.
    pub(super) fn add_schema(&mut self, new: &[u8]) {
        self.schema.extend_from_slice(new);
    }

    /// Adds what a stored piece of schema has more. Schema after a gap cannot be used; the streamer
    /// will send it again.
    pub(super) fn add_stored_schema(&mut self, offset: u64, piece: &[u8]) {
        let known = self.schema.len().checked_sub(offset as usize);
        let new = known.and_then(|known| piece.get(known..));
        self.schema.extend_from_slice(new.unwrap_or_default());
    }

    /// Checks a page against its block's header, and finds its slot.
    ///
    /// # Errors
    /// They contradict each other, or the session would have too many slots.
    pub(super) fn place_of(
        &self,
        header: &BlockHeader,
        content: &[u8],
    ) -> Result<PagePlace, StoreError> {
        let Ok((page, _)) = PageHeader::read_from_prefix(content) else {
            return Err(self.wrong(SessionFault::PageWithoutHeader));
        };
        if page.generation != header.page_number.wrapping_add(1) || page.ring_id != header.ring_id {
            return Err(self.wrong(SessionFault::OtherPage));
        }
        let positions = self.slots.get(&page.slot);
        if positions.is_none() && self.slots.len() >= SLOTS_MAX {
            return Err(self.wrong(SessionFault::TooManySlots { most: SLOTS_MAX }));
        }
        Ok(PagePlace {
            slot: page.slot,
            is_new: positions.is_none_or(|there| there.is_new(header.page_number)),
        })
    }

    /// Checks that a ring can have come from the last page of this slot to the page `found`.
    ///
    /// # Errors
    /// No ring comes there.
    pub(super) fn check_step(&self, slot: u32, found: u64) -> Result<(), StoreError> {
        let next = self.slots.get(&slot).map_or(0, Positions::next);
        let most = next.saturating_add(STEP_MAX);
        if found <= most {
            return Ok(());
        }
        Err(self.wrong(SessionFault::PageNumber {
            found,
            slot,
            next,
            most,
        }))
    }

    /// Charges a slot, unless the session has pages of it.
    ///
    /// # Errors
    /// All sessions together would take too much memory.
    pub(super) fn charge_slot(&mut self, slot: u32) -> Result<(), StoreError> {
        match self.slots.contains_key(&slot) {
            true => Ok(()),
            false => self.charge.grow(SLOT_BYTES),
        }
    }

    /// Takes over what an index says about a slot.
    pub(super) fn have_until(&mut self, slot: &IndexSlot) {
        let positions = self.slots.entry(slot.slot).or_default();
        positions.have_until(slot.next_page);
    }

    /// Pages between the last one of a slot and this sealed one. Before the first one of a slot that
    /// is here nothing is known.
    pub(super) fn skipped_before(&self, header: &BlockHeader, slot: u32) -> u64 {
        let is_open = PageState::of_flags(header.flags) == PageState::Open;
        let before = self.slots.get(&slot).filter(|_| !is_open);
        before.map_or(0, |before| before.skipped_before(header.page_number))
    }

    /// Takes what a PROGRESS block says about pages that this collector will not get: another one
    /// has them. A slot without pages here needs none of it.
    pub(super) fn take_progress(&mut self, content: &[u8]) {
        let Ok((progress, mut rest)) = Progress::read_from_prefix(content) else {
            return;
        };
        for _ in 0..progress.slots {
            let Ok((slot, after)) = ProgressSlot::read_from_prefix(rest) else {
                return;
            };
            if let Some(positions) = self.slots.get_mut(&slot.slot) {
                positions.begin_at(slot.start);
            }
            rest = after;
        }
    }

    /// Notes that a page is stored. An open page does not count: it will come again, sealed.
    pub(super) fn note_page(&mut self, header: &BlockHeader, slot: u32, before: Before) {
        if PageState::of_flags(header.flags) == PageState::Open {
            return;
        }
        let positions = self.slots.entry(slot).or_default();
        match before {
            Before::Damage => positions.have_after_damage(header.page_number),
            Before::Whole => positions.have(header.page_number),
        }
    }

    /// A block of the streamer that contradicts what is stored.
    pub(super) fn wrong(&self, source: SessionFault) -> StoreError {
        StoreError::Protocol {
            session: self.uuid,
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    /// The names of 200,000 functions take 20 MiB.
    #[test]
    fn the_schema_of_a_large_program_is_taken_and_an_endless_one_is_not() {
        let piece = vec![7; 1 << 20];
        let uuid = Uuid([7; 16]);
        for (memory_mib, expected_mib) in [(1024, 64), (8 * 24, 23)] {
            let budget = Budget::new(memory_mib << 20, Arc::new(Figures::default()));
            let mut session = SessionContents::new(uuid, "web", &[], &budget).unwrap();
            let mut taken = 0;
            while let Ok(new) = session.admit_schema(taken, &piece) {
                let new = new.to_vec();
                taken += new.len() as u64;
                session.add_schema(&new);
            }
            assert_eq!(taken >> 20, expected_mib);
        }
    }
}
