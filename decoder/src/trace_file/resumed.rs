//! What earlier parts of a trace hold, while a later part is read: pages that come again are left out.

use std::collections::{BTreeMap, HashMap};

use ringmark_format::Uuid;

use crate::blocks::page::Page;

/// The pages of earlier parts, and those that came since.
#[derive(Debug, Default)]
pub(crate) struct Resumed {
    sessions: HashMap<Uuid, Vec<Known>>,
    /// The last page of each slot that was met since it was asked for: host, session, slot.
    met: BTreeMap<(Vec<u8>, Uuid, u32), u64>,
    /// Pages of each session that came first after it was over.
    late: BTreeMap<(Vec<u8>, Uuid), u64>,
}

/// A session that an earlier part has.
#[derive(Debug)]
struct Known {
    host: Vec<u8>,
    /// By slot: the first page that no earlier part has.
    next: HashMap<u32, u64>,
    /// It has ended: all that comes later is left out.
    is_over: bool,
}

impl Resumed {
    /// Takes note of a session.
    pub(crate) fn add(
        &mut self,
        (host, session): (&[u8], Uuid),
        next: impl Iterator<Item = (u32, u64)>,
        is_over: bool,
    ) {
        self.sessions.entry(session).or_default().push(Known {
            host: host.to_vec(),
            next: next.collect(),
            is_over,
        });
    }

    /// Whether an earlier part has the page, or ended without it.
    pub(crate) fn holds(&mut self, session: Uuid, host: Option<&Vec<u8>>, page: &Page) -> bool {
        let host = host.map_or(&[][..], Vec::as_slice);
        let (slot, number) = (page.header.slot, page.number.0);
        let last = self.met.entry((host.to_vec(), session, slot));
        let last = last.or_insert(number);
        *last = number.max(*last);
        let known = self.sessions.get(&session);
        // Where no host is proved, it is the first session with this uuid, as everywhere.
        let is_its =
            |known: &&Known| host.is_empty() || known.host.is_empty() || known.host == host;
        let known = known.and_then(|known| known.iter().find(is_its));
        let is_over = known.is_some_and(|known| known.is_over);
        let is_read =
            known.is_some_and(|known| known.next.get(&slot).is_some_and(|next| number < *next));
        if is_over && !is_read {
            *self.late.entry((host.to_vec(), session)).or_default() += 1;
        }
        is_over || is_read
    }

    /// How many pages of each session came after it was over, since this was asked before.
    pub(crate) fn take_late(&mut self) -> BTreeMap<(Vec<u8>, Uuid), u64> {
        std::mem::take(&mut self.late)
    }

    /// The last page of each slot that was met since this was asked before.
    pub(crate) fn take_met(&mut self) -> BTreeMap<(Vec<u8>, Uuid, u32), u64> {
        std::mem::take(&mut self.met)
    }
}
