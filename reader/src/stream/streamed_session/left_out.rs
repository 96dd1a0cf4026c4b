//! Pages that the budget of their service does not allow: they are left out as a whole, and counted.

use std::time::Duration;

use ringmark_format::block_at::{BlockAt, Blocks};

use super::mapped::MappedSession;
use super::{Outgoing, Stage, StreamedSession};
use crate::share::Share1024;
use crate::stream::in_flight::Release;
use crate::stream::policy::{Budgets, LeftOut, Verdict};
use crate::stream::positions::page_of;

/// How long a collector is not told about pages that were left out, where no page follows them.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// The part of the fullest ring with which it is told at once: the rings get their pages back then.
const CROWDED: Share1024 = Share1024(256);

impl StreamedSession {
    /// Leaves pages out of the batch.
    pub(super) fn leave_out_of_batch(&mut self, out: &mut Outgoing<'_>) {
        if !self.is_bounded(out) {
            return;
        }
        let (budgets, is_last) = (&mut *out.budgets, self.is_at_its_last());
        out.batch
            .retain(|block| self.keeps(block, budgets, is_last));
    }

    /// Leaves pages out of blocks from the spill. Returns how many.
    pub(super) fn leave_out_of(&mut self, blocks: &mut Vec<u8>, out: &mut Outgoing<'_>) -> u64 {
        if !self.is_bounded(out) {
            return 0;
        }
        let (mut kept, mut pages) = (Vec::with_capacity(blocks.len()), 0);
        for block in Blocks::new(blocks) {
            match self.keeps(&block, out.budgets, false) {
                true => kept.extend_from_slice(block.bytes),
                false => pages += 1,
            }
        }
        *blocks = kept;
        pages
    }

    /// Whether its service has a budget.
    fn is_bounded(&self, out: &Outgoing<'_>) -> bool {
        out.budgets.bounds(&self.service)
    }

    /// Whether open pages are sent now or never.
    fn is_at_its_last(&self) -> bool {
        let ended = self.drain().is_some_and(|drain| drain.session().ended());
        self.stage == Stage::Ending && ended
    }

    fn keeps(&mut self, block: &BlockAt<'_>, budgets: &mut Budgets, is_last: bool) -> bool {
        let gone = &self.ledger.gone;
        // It was left out on an earlier connection, which is not known to have brought that.
        if page_of(block).is_some_and(|at| gone.is_left_out(at.slot, at.page)) {
            return false;
        }
        match budgets.count(&self.service, block, is_last) {
            Verdict::Sent => true,
            Verdict::NotNow => false,
            Verdict::LeftOut(LeftOut { slot, page, events }) => {
                self.ledger.gone.add_left_out(slot, page, events);
                self.over_budget = self.over_budget.saturating_add(events);
                false
            }
        }
    }

    /// Whether to tell a collector later about what was left out. A thread that writes much has many pages left out, and each
    /// time it is told costs bytes.
    pub(super) fn waits_to_tell(&self) -> bool {
        let is_recent = self.told_at.is_some_and(|at| at.elapsed() < TELL_EVERY);
        let fullest = self.drain().map(|drain| drain.fullest());
        self.stage == Stage::Streaming && is_recent && fullest.unwrap_or_default() < CROWDED
    }

    /// Notes that the pages taken are released with what was told last: none of them is sent. Those that
    /// wait on disk were taken, too, and are still to be sent.
    pub(super) fn note_left_out(&mut self, out: &mut Outgoing<'_>) {
        if self.spill.as_ref().is_some_and(|spill| !spill.is_read()) {
            return;
        }
        let taken = self.mapped.as_ref().map(MappedSession::taken);
        let is_new = |taken: &Release| {
            taken.pages.iter().any(|at| {
                let sent_to = self.ledger.sent_to.get(&at.slot).copied();
                at.next_page > sent_to.unwrap_or_default()
            })
        };
        if let Some(taken) = taken.filter(is_new) {
            self.ledger.sent(&taken);
            out.note_sent(self.uuid, taken);
        }
    }
}
