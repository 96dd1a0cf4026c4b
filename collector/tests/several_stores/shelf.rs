//! A collector with its store: what came, how much of that is durable, and what it knows.

use std::collections::{BTreeMap, VecDeque};

use ringmark_format::stream::UNKNOWN;
use ringmark_reader::SlotPosition;
use ringmark_reader::stream::machines::Resumed;

use crate::host::Message;

/// A store, and the collector that writes to it.
#[derive(Default)]
pub(crate) struct Shelf {
    pub(crate) id: [u8; 16],
    /// It keeps nothing in mind over a connection's end.
    pub(crate) is_stateless: bool,
    /// What was stored, in order; the first `durable` of it survive a loss of power.
    log: Vec<Message>,
    durable: usize,
    /// The page after the last one that is stored, by slot.
    next: BTreeMap<u32, u64>,
    /// Messages under way to it on the present connection.
    pub(crate) under_way: VecDeque<Message>,
    /// Pages in each message of the present connection that it took.
    came: Vec<u64>,
}

impl Shelf {
    /// An empty one.
    pub(crate) fn new(id: u8, is_stateless: bool) -> Self {
        Self {
            id: [id; 16],
            is_stateless,
            ..Self::default()
        }
    }

    /// A connection begins: what RESUME says. All that is stored is durable then.
    pub(crate) fn greet(&mut self) -> Resumed {
        self.under_way.clear();
        self.came.clear();
        self.durable = self.log.len();
        let position = |(&slot, &next_page): (&u32, &u64)| (SlotPosition { slot, next_page }, 0);
        let slots: Vec<_> = match self.is_stateless {
            true => Vec::new(),
            false => self.next.iter().map(position).collect(),
        };
        Resumed {
            flags: if slots.is_empty() { UNKNOWN } else { 0 },
            schema_bytes: 0,
            slots,
        }
    }

    /// Takes the next message that is under way.
    pub(crate) fn take(&mut self) {
        let Some(message) = self.under_way.pop_front() else {
            return;
        };
        let message = match message {
            Message::Pages(mut pages) => {
                self.came.push(pages.len() as u64);
                pages.retain(|&(slot, page)| self.put(slot, page));
                Message::Pages(pages)
            }
            progress => {
                self.came.push(0);
                progress
            }
        };
        self.log.push(message);
    }

    /// Notes a page; returns whether it is stored now.
    fn put(&mut self, slot: u32, page: u64) -> bool {
        let next = self.next.entry(slot).or_default();
        // What a stateless collector stored before, it does not know.
        let is_new = self.is_stateless || page >= *next;
        *next = (*next).max(page + 1);
        is_new
    }

    /// Makes all that came durable; returns what ACK says.
    pub(crate) fn sync(&mut self) -> u64 {
        self.durable = self.log.len();
        self.received()
    }

    /// Pages that came, and of which the streamer has not heard that they are durable.
    pub(crate) fn unheard(&self, heard: u64) -> u64 {
        self.came.iter().skip(heard as usize).sum()
    }

    /// What it would acknowledge if it did so before a sync: a bug.
    pub(crate) fn received(&self) -> u64 {
        self.came.len() as u64
    }

    /// The machine loses its power: what is not durable is gone, and the rest is read again. Where objects
    /// are put, `landed` messages more are there, although no answer came.
    pub(crate) fn lose_power(&mut self, landed: u64) {
        let landed = if self.is_stateless { landed } else { 0 };
        self.log.truncate(self.durable + landed as usize);
        self.durable = self.log.len();
        self.next.clear();
        self.under_way.clear();
        for message in self.log.clone() {
            if let Message::Pages(pages) = message {
                for (slot, page) in pages {
                    let next = self.next.entry(slot).or_default();
                    *next = (*next).max(page + 1);
                }
            }
        }
    }

    /// All pages that are stored, those of several connections each as often as they came.
    pub(crate) fn pages(&self) -> Vec<(u32, u64)> {
        let pages = |message: &Message| match message {
            Message::Pages(pages) => pages.clone(),
            Message::Progress(_) => Vec::new(),
        };
        self.log.iter().flat_map(pages).collect()
    }

    /// The PROGRESS blocks that are stored.
    pub(crate) fn progress(&self) -> impl Iterator<Item = &[u8]> {
        self.log.iter().filter_map(|message| match message {
            Message::Progress(content) => Some(content.as_slice()),
            Message::Pages(_) => None,
        })
    }
}
