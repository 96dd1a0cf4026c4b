//! What of a session is lost, overwritten or waited for.

use ringmark_format::counters::Cause;
use ringmark_format::session::Mode;
use ringmark_ring::slot::WaitCounts;

use crate::pages::drain::SessionDrain;
#[cfg(feature = "stream")]
use crate::pages::slot_progress::Hole;
use crate::pages::slot_reader::SlotReader;

impl SessionDrain {
    /// Events that the program lost since the session started, all causes, all rings.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost_by(|_| true)
    }

    /// Those of them that larger or more rings would have had room for.
    #[must_use]
    pub fn lost_for_room(&self) -> u64 {
        self.lost_by(|cause| matches!(cause, Cause::RingFull | Cause::NoRing | Cause::NoMemory))
    }

    fn lost_by(&self, is_meant: fn(Cause) -> bool) -> u64 {
        let ring = self.session.ring();
        let slots = self.slots.iter().filter_map(|r| ring.slot(r.index()));
        let lost = slots.map(|slot| slot.lost()).chain([ring.lost()]);
        let meant = lost.flat_map(|counts| Cause::ALL.into_iter().zip(counts));
        let meant = meant.filter(|(cause, _)| is_meant(*cause));
        meant.fold(0, |sum, (_, events)| sum.saturating_add(events))
    }

    /// The waits of the program's threads for room since the session started.
    #[must_use]
    pub fn waits(&self) -> WaitCounts {
        let ring = self.session.ring();
        let slots = self.slots.iter().filter_map(|r| ring.slot(r.index()));
        slots.fold(WaitCounts::default(), |sum, slot| sum.and(slot.waits()))
    }

    /// Events that a slot was given since the session's start, as last counted.
    pub(crate) fn events_of(&self, slot: u32) -> u64 {
        self.slots.get(slot as usize).map_or(0, SlotReader::events)
    }

    /// Bytes of the schema stream that are written.
    #[cfg(feature = "stream")]
    pub(crate) fn schema_bytes_written(&self) -> u64 {
        self.schema_written
    }

    /// Pages that a slot has produced; 0: there is no such slot.
    #[cfg(feature = "stream")]
    pub(crate) fn produced(&self, slot: u32) -> u64 {
        let slot = self.session.ring().slot(slot);
        slot.map_or(0, |slot| slot.produced())
    }

    /// Notes pages that are gone by number, for [`SessionDrain::take_holes`].
    #[cfg(feature = "stream")]
    pub(crate) fn noting_holes(self) -> Self {
        Self {
            notes_holes: true,
            ..self
        }
    }

    /// Pages that were found gone since the last call, by slot.
    #[cfg(feature = "stream")]
    pub(crate) fn take_holes(&mut self) -> Vec<(u32, Hole)> {
        let of_slot = |reader: &mut SlotReader| {
            let slot = reader.index();
            let holes = reader.take_holes();
            holes.into_iter().map(move |hole| (slot, hole))
        };
        self.slots.iter_mut().flat_map(of_slot).collect()
    }

    /// Pages that were overwritten before they could be copied, all slots.
    #[must_use]
    pub fn pages_skipped(&self) -> u64 {
        let skipped = self.slots.iter().map(SlotReader::skipped);
        skipped.fold(0, u64::saturating_add)
    }

    /// Events that were overwritten before they could be copied, those from before the first page at
    /// hand included.
    #[must_use]
    pub fn overwritten(&self) -> u64 {
        let overwrites = self.session.ring().geometry().mode == Mode::Overwrite;
        let slots = self.slots.iter().filter(|_| overwrites);
        slots
            .map(SlotReader::events_between)
            .fold(0, u64::saturating_add)
    }
}
