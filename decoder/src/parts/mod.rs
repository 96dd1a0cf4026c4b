//! A trace that comes in parts: each part is read once, and gives the rows that end in it.
//!
//! What a later part needs of the earlier ones is a [`CoveredSession`] for each session: how far each slot
//! was read, and the records of calls and spans that have begun and not ended, in their pages. All other
//! records of these pages are blanked. So a later part is a dump of these pages and of what is new, and
//! has the rows that a dump of everything has, but for those that were given before.
//!
//! A slot is read up to the first page that is not here and may still come ([`advance`]). Spans go from thread
//! to thread, and their ids are given again. So where there are any, no record is read before all earlier ones
//! of its session are here ([`together`]). [`carried`] writes what is open, and what waits.

mod advance;
mod carried;
mod part;
mod together;

use std::collections::BTreeMap;

use ringmark_format::Uuid;
use ringmark_format::store::IndexSlot;

use crate::blocks::damage::{Damage, Place};
use crate::trace_file::dump::DumpBuilder;
use crate::trace_file::loss::CARRIED_LOSS;
use crate::trace_file::resumed::Resumed;

pub use advance::Settled;
pub use part::{LossRow, Part, PartEnd};

/// What the parts so far hold of a session.
///
/// It is all that a later part needs of it, but for its SESSION and SCHEMA. Its size is that of what is
/// open: two numbers for each slot, and a page for each slot with open calls or spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoveredSession {
    /// The host that was proved to have sent it, or empty.
    pub host: Vec<u8>,
    /// The session.
    pub session: Uuid,
    /// All of it was read. What comes again is left out.
    pub is_over: bool,
    /// Its slots, by index.
    pub slots: BTreeMap<u32, CoveredSlot>,
    /// Events that it lost without a slot, since its last row.
    pub lost_since: u64,
    /// Blocks with what is open in it, and with what was said about it as a whole.
    pub blocks: Vec<u8>,
}

impl CoveredSession {
    /// A session of which nothing was read.
    #[must_use]
    pub fn new(host: Vec<u8>, session: Uuid) -> Self {
        Self {
            host,
            session,
            is_over: false,
            slots: BTreeMap::new(),
            lost_since: 0,
            blocks: Vec::new(),
        }
    }
}

impl CoveredSession {
    /// The session is over. `is_final`: all of it was read; else it was given up, and what its host sends later is late.
    fn end(&mut self, is_final: bool) {
        self.blocks.clear();
        if is_final {
            self.slots.clear();
        }
        for slot in self.slots.values_mut() {
            *slot = CoveredSlot {
                next_page: slot.next_page,
                ..CoveredSlot::default()
            };
        }
    }

    /// Whether it is over because its host said nothing for long: it may go on.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.is_over && !self.slots.is_empty()
    }
}

/// How far a slot was read.
///
/// Pages before `next_page` are never read again. A page among them that was not there had been given up: if
/// it comes later, it is left out, and its events stay counted as lost or missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoveredSlot {
    /// The page from which on it was not read.
    pub next_page: u64,
    /// Reservations before that page.
    pub events: u64,
    /// The tick of the last record before it.
    pub tick: u64,
    /// Events lost before that page.
    pub lost: u64,
    /// Those of them that are not counted as lost before a row: there was none since.
    pub lost_since: u64,
    /// Pages with open records after which events were lost.
    pub losses_after: Vec<u64>,
}

impl DumpBuilder {
    /// Goes on where earlier parts ended: pages that these have are left out, what they left open is
    /// there, and their losses are counted. It comes before all inputs. SESSION and SCHEMA of the sessions
    /// are to be read with them.
    ///
    /// # Errors
    /// The blocks of a session are damaged.
    pub fn resume(&mut self, covered: &[CoveredSession]) -> Result<(), Damage> {
        let mut resumed = Resumed::default();
        for of in covered {
            let next = of.slots.iter().map(|(slot, of)| (*slot, of.next_page));
            resumed.add((&of.host, of.session), next, of.is_over);
            if of.is_over || of.slots.is_empty() && of.blocks.is_empty() {
                continue;
            }
            let host = Some(of.host.clone()).filter(|host| !host.is_empty());
            self.own(host.into_iter().map(|host| (of.session, host)).collect());
            if !of.blocks.is_empty() {
                self.read("the state of earlier parts", &of.blocks[..])?;
            }
            let place = Place {
                source: "the state of earlier parts".into(),
                block: 0,
                offset: 0,
            };
            let session = self.session(of.session, &place);
            for (index, slot) in &of.slots {
                let pages: Vec<_> = session.pages_of(*index).collect();
                session.carry_out(pieces(*index, slot, &pages));
            }
        }
        self.own(Default::default());
        self.resumed = Some(resumed);
        Ok(())
    }

    /// The last page of each slot in what was read since this was asked before: host, session, slot.
    ///
    /// An input is read for good when the parts cover all of these pages: when `next_page` of each slot
    /// is greater, or its session is over.
    pub fn take_met(&mut self) -> BTreeMap<(Vec<u8>, Uuid, u32), u64> {
        let resumed = self.resumed.as_mut();
        resumed.map(Resumed::take_met).unwrap_or_default()
    }

    /// How many pages of each session, by host, were left out because it was over and they were not read before, since
    /// this was asked before. All pages count where the slots of a session are not known any more.
    pub fn take_late(&mut self) -> BTreeMap<(Vec<u8>, Uuid), u64> {
        let resumed = self.resumed.as_mut();
        resumed.map(Resumed::take_late).unwrap_or_default()
    }
}

/// What lies before, between and after the pages of a slot that are carried. `pages`: number, reservations
/// before and up to the end.
fn pieces(index: u32, slot: &CoveredSlot, pages: &[(u64, u64, u64)]) -> Vec<IndexSlot> {
    let mut from = (0, 0);
    let mut found = Vec::new();
    let ends = pages.iter().map(|page| (page.1, Some(page)));
    for (end, page) in ends.chain([(slot.events, None)]) {
        let before = found.len().checked_sub(1).map(|last: usize| pages[last].0);
        let has_loss = before.is_some_and(|page| slot.losses_after.contains(&page));
        found.push(IndexSlot {
            slot: index,
            reserved: if has_loss { CARRIED_LOSS } else { 0 },
            first_event: from.0,
            end_event: end,
            first_lost: from.1,
            last_lost: slot.lost,
            next_page: page.map_or(slot.next_page, |page| page.0),
        });
        from = (page.map_or(end, |page| page.2), slot.lost);
    }
    found
}
