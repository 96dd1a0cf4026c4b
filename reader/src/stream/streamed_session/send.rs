//! The pages of a session on their way to the connection: from its rings, and from its spill.

use super::pass::{NOTHING, PassError, Passed};
use super::{Outgoing, StreamedSession};
use crate::pages::drain::{Fill, FillPass};
use crate::pages::positions::SlotPosition;
use crate::stream::in_flight::Release;
use crate::stream::outgoing::{MissingBlocks, PageGap, SpilledSchema, missing_blocks};
use crate::stream::{own_uuid, zero_copy};

/// Bytes of pages in a batch, or one page if that is larger: they stay in the cache until they are
/// sent.
pub const BATCH_BYTES: u64 = 256 << 10;

impl StreamedSession {
    /// Fills and sends batches until the pass is done or the credit is short.
    pub(super) fn pass(
        &mut self,
        fill: FillPass,
        out: &mut Outgoing<'_>,
    ) -> Result<Passed, PassError> {
        let mut pages = 0;
        if self.mapped.is_none() {
            return Ok(NOTHING);
        }
        while out.has_room()? {
            let Some(filled) = self.fill_batch(fill, out)? else {
                break;
            };
            pages += out.batch.pages();
            self.send_batch(out)?;
            if filled == Fill::PassDone {
                return Ok(Passed { pages, done: true });
            }
        }
        Ok(Passed { pages, done: false })
    }

    /// Fills the batch, as far as there is credit. `None`: there is too little for a page.
    fn fill_batch(
        &mut self,
        fill: FillPass,
        out: &mut Outgoing<'_>,
    ) -> Result<Option<Fill>, PassError> {
        let Some(mapped) = &mut self.mapped else {
            return Ok(None);
        };
        let room = out.connection.room();
        // A page larger than a batch goes alone.
        for most in [BATCH_BYTES.min(room), room] {
            out.batch.clear(most);
            let filled = fill(&mut mapped.drain, out.batch)?;
            if filled == Fill::PassDone || !out.batch.is_empty() {
                return Ok(Some(filled));
            }
        }
        Ok(None)
    }

    /// Sends the batch, after what must precede it: pages that are gone, and schema.
    fn send_batch(&mut self, out: &mut Outgoing<'_>) -> Result<(), PassError> {
        self.tell_gone(out)?;
        let Some(mapped) = &mut self.mapped else {
            return Ok(());
        };
        out.send_schema(self.uuid, &mut mapped.drain)?;
        if out.batch.is_empty() {
            return Ok(());
        }
        let bytes = out.batch.bytes().len() as u64;
        let by_reference = out.connection.takes_references() && out.connection.room() >= bytes;
        match mapped.by_reference.as_ref().filter(|_| by_reference) {
            Some(file) => {
                let blocks = out.batch.bytes();
                zero_copy::send_batch(blocks, &mapped.drain, file, out.connection)?;
            }
            None => out.send_batch(self.uuid)?,
        }
        let taken = mapped.taken();
        self.ledger.sent(&taken);
        out.note_sent(self.uuid, taken);
        Ok(())
    }

    /// Sends what waits on disk, without what the collector has.
    pub(super) fn send_spilled(&mut self, out: &mut Outgoing<'_>) -> Result<Passed, PassError> {
        let mut pages = 0;
        while self.spill.as_ref().is_some_and(|spill| !spill.is_read()) {
            if !out.has_room()? {
                return Ok(Passed { pages, done: false });
            }
            let missing = self.read_spill(out);
            self.note_gaps(&missing.gaps);
            self.tell_gone(out)?;
            if let Some(mapped) = &mut self.mapped {
                out.send_schema(self.uuid, &mut mapped.drain)?;
            }
            out.send_blocks(self.uuid, &missing.blocks)?;
            let sent = SlotPosition::list(&self.ledger.sent_to);
            if let Some(spill) = &self.spill {
                out.note_sent(self.uuid, Release::spilled(spill.read_to(), sent));
            }
            pages += missing.pages;
            self.tell_cut_off(out)?;
        }
        Ok(Passed { pages, done: true })
    }

    /// Takes note of pages that are not between those of the spill. Before the first one there they were
    /// acknowledged, and a collector that asks for them again has lost them itself.
    fn note_gaps(&mut self, gaps: &[PageGap]) {
        let Some(spill) = &self.spill else {
            return;
        };
        for gap in gaps {
            let acked = self.ledger.delivered.acked().get(&gap.slot);
            let first = spill.begins().get(&gap.slot).max(acked);
            let from = first.map_or(gap.to, |first| gap.from.max(*first).min(gap.to));
            let lost = spill.gone().without(PageGap { from, ..*gap });
            lost.into_iter()
                .for_each(|pages| self.ledger.gone.add_spilled(pages));
        }
    }

    /// Tells the collector about pages at the end of a spill that could not be read: none comes from
    /// there that would show the gap.
    fn tell_cut_off(&mut self, out: &mut Outgoing<'_>) -> Result<(), PassError> {
        let spill = self.spill.as_ref().filter(|spill| spill.is_read());
        let Some(spill) = spill.filter(|_| self.spill_failed) else {
            return Ok(());
        };
        for end in spill.ends() {
            let sent_to = self.ledger.sent_to.get_mut(&end.slot);
            if let Some(sent_to) = sent_to.filter(|sent_to| **sent_to < end.next_page) {
                let gone = &mut self.ledger.gone;
                gone.add_spilled(PageGap {
                    slot: end.slot,
                    from: *sent_to,
                    to: end.next_page,
                });
                *sent_to = end.next_page;
            }
        }
        Ok(self.tell_gone(out)?)
    }

    /// Reads the next piece of the spill, as far as the collector lacks it.
    fn read_spill(&mut self, out: &mut Outgoing<'_>) -> MissingBlocks {
        let piece = match self.spill.as_mut().map(|spill| spill.read()) {
            Some(Ok(piece)) => piece,
            Some(Err(error)) => {
                self.spill_failed = true;
                out.notices.push(error.to_string());
                Vec::new()
            }
            None => Vec::new(),
        };
        let schema = match self.mapped {
            Some(_) => SpilledSchema::LeaveOut,
            None => SpilledSchema::Send,
        };
        let piece = own_uuid::of_blocks(&piece, self.uuid);
        missing_blocks(&piece, &mut self.ledger.sent_to, schema)
    }
}
