//! How far a pass over all slots of a session has come.

use crate::pages::page_copy::SlotPages;

/// A pass that takes from slot after slot. It survives a full batch: the next call goes on with it.
///
/// Two bounds keep it finite while programs write. What is sealed after the pass has come to a slot
/// waits for the next pass. And the rings of all visits together are no larger than the ring file,
/// so that a damaged file whose slots share pages cannot keep the reader busy for ever.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// Index of the slot that the pass has come to; 0 also between two passes.
    slot: usize,
    /// Where the visit to that slot ends; `None` before the visit begins.
    visit_end: Option<u64>,
    /// Bytes of rings that the pass may still visit.
    ring_bytes_left: u64,
}

impl Pass {
    /// Whether the pass has not gone beyond the first slot.
    pub(crate) const fn is_at_first_slot(&self) -> bool {
        self.slot == 0
    }

    /// Lets the pass visit rings of `file_bytes` in all.
    pub(crate) const fn allow(&mut self, file_bytes: u64) {
        self.ring_bytes_left = file_bytes;
    }

    /// Index of the slot that the pass has come to.
    pub(crate) const fn slot(&self) -> usize {
        self.slot
    }

    /// The page before which the visit to the present slot ends: fixed when the visit begins.
    /// `None`: the rings of the slots before it have used up what the pass may visit.
    pub(crate) fn visit(&mut self, there: &SlotPages) -> Option<u64> {
        if self.visit_end.is_none() {
            let bytes = there.geometry.ring_bytes();
            self.ring_bytes_left = self.ring_bytes_left.checked_sub(bytes)?;
            self.visit_end = Some(there.sealed_end);
        }
        self.visit_end
    }

    /// Goes on to the next slot.
    pub(crate) const fn leave_slot(&mut self) {
        self.slot += 1;
        self.visit_end = None;
    }

    /// Ends the pass, finished or not: the next one begins at the first slot.
    pub(crate) const fn end(&mut self) {
        self.slot = 0;
        self.visit_end = None;
    }
}

#[cfg(test)]
mod tests {
    use ringmark_ring::SlotGeometry;

    use super::*;

    fn slot(sealed_end: u64) -> SlotPages {
        SlotPages {
            geometry: SlotGeometry {
                pages_offset: 4096,
                page_bytes: 4096,
                pages: 4,
            },
            sealed_end,
            produced: sealed_end + 1,
            ended: false,
        }
    }

    #[test]
    fn a_visit_ends_where_it_ended_when_it_began() {
        let mut pass = Pass::default();
        pass.allow(1 << 20);
        assert_eq!(pass.visit(&slot(5)), Some(5));
        assert_eq!(pass.visit(&slot(9)), Some(5), "the batch was full");
        pass.leave_slot();
        assert_eq!((pass.slot(), pass.visit(&slot(9))), (1, Some(9)));
        pass.end();
        assert!(pass.is_at_first_slot());
        assert_eq!(pass.visit(&slot(11)), Some(11));
    }

    #[test]
    fn rings_that_share_pages_do_not_keep_a_pass() {
        let mut pass = Pass::default();
        pass.allow(2 * 4 * 4096);
        for expected in [Some(1), Some(1), None, None] {
            assert_eq!(pass.visit(&slot(1)), expected);
            pass.leave_slot();
        }
    }
}
