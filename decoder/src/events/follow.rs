//! Sessions that are still running: gives the new events of each piece, each event once.
//!
//! A live session is read in pieces, and a page that is still open comes again with every piece.
//! The follower keeps, for each slot, the number of the next event and the reservations that were
//! not committed yet.

use std::collections::{BTreeSet, HashMap};

use ringmark_format::Uuid;
use ringmark_format::block::kind;
use ringmark_format::block_at::Blocks;

use crate::blocks::damage::Damage;
use crate::events::event::{Event, Lost, Output};
use crate::trace_file::dump::{Dump, DumpBuilder};
use crate::trace_file::loss::{self, Loss, Why};

/// Most numbers of uncommitted records that are remembered per slot.
const HOLES_MAX: usize = 1024;

/// How far a slot was shown.
#[derive(Debug, Default)]
struct Shown {
    /// Number of the first event that was not met.
    next: u64,
    /// Numbers below `next` that were reserved but not committed when they were met.
    holes: BTreeSet<u64>,
    /// Losses that were reported, in all.
    lost: u64,
    /// Page whose losses were reported last.
    page: Option<u64>,
    /// Reservations in the slot up to the known end of that page.
    end: u64,
}

/// Reads pieces of sessions one after the other. A piece is a sequence of whole blocks: pages that
/// are new, and again the pages that were open.
#[derive(Debug, Default)]
pub struct Follower {
    /// SESSION and SCHEMA blocks so far, which every piece needs.
    preamble: Vec<u8>,
    slots: HashMap<(Uuid, u32), Shown>,
}

impl Follower {
    /// Reads the next piece. Messages call it `name`.
    ///
    /// # Errors
    /// It holds nothing that can be used.
    pub fn read(&mut self, name: &str, piece: &[u8]) -> Result<Dump, Damage> {
        let mut builder = DumpBuilder::new();
        let whole = [self.preamble.as_slice(), piece].concat();
        builder.read(name, whole.as_slice())?;
        for block in Blocks::new(piece) {
            if matches!(block.header.kind, kind::SESSION | kind::SCHEMA) {
                self.preamble.extend_from_slice(block.bytes);
            }
        }
        Ok(builder.finish())
    }

    /// Gives `show` the events of a piece that no piece before had, and the losses between them.
    pub fn news<'d>(&mut self, dump: &'d Dump, mut show: impl FnMut(&Output<'d>)) {
        for item in dump.events() {
            // Losses are found here, against what was shown before this piece.
            let Output::Event(event) = &item else {
                continue;
            };
            let slot = (event.session.uuid, event.slot().0);
            let slot = self.slots.entry(slot).or_default();
            for loss in slot.losses_before(event) {
                show(&Output::Lost(lost_before(event, loss)));
            }
            if slot.is_new(event.seq) {
                show(&item);
            }
        }
    }
}

fn lost_before<'a>(event: &Event<'a>, loss: Loss) -> Lost<'a> {
    Lost {
        session: event.session,
        page: Some(event.page),
        ring: Some(event.ring()),
        t_ns: event.t_ns,
        loss,
    }
}

impl Shown {
    /// Whether the event with this number was not shown before; from now on it counts as shown.
    /// Numbers that it passes over are remembered as holes, which may be committed later.
    fn is_new(&mut self, seq: u64) -> bool {
        if seq < self.next {
            return self.holes.remove(&seq);
        }
        let room = HOLES_MAX.saturating_sub(self.holes.len());
        self.holes.extend((self.next..seq).rev().take(room));
        self.next = seq + 1;
        true
    }

    /// The losses between what was shown and the page of this event. Losses before the first page
    /// are not reported: they happened before the follower began.
    fn losses_before(&mut self, event: &Event<'_>) -> Vec<Loss> {
        let header = &event.page.header;
        let start = header.first_event;
        let end = loss::after(event.page);
        let known = self.page.replace(event.page.number.0);
        if known == Some(event.page.number.0) {
            self.end = self.end.max(end);
            return Vec::new();
        }
        if known.is_none() {
            (self.lost, self.next, self.end) = (header.lost_before, start, start);
        }
        let mut losses = Vec::new();
        let mut push = |why, count| {
            if count > 0 {
                losses.push(Loss { why, count });
            }
        };
        let cause = Why::Lost(loss::usual_cause(event.session));
        push(cause, header.lost_before.saturating_sub(self.lost));
        push(loss::gap(event.session), start.saturating_sub(self.end));
        self.lost = self.lost.max(header.lost_before);
        self.next = self.next.max(start);
        self.end = self.end.max(end);
        // Nothing is committed any more in the pages before.
        self.holes.clear();
        losses
    }
}
