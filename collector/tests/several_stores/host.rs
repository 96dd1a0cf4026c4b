//! A host: rings that a program writes, and the streamer's state machines that read them.

use ringmark_format::Uuid;
use ringmark_format::block::BlockHeader;
use ringmark_format::progress::ALL_SENT;
use ringmark_reader::SlotPosition;
use ringmark_reader::stream::machines::{
    Delivered, InFlight, Ledger, Moment, Release, Resumed, SlotProgress, overwritten,
};

use crate::random::Random;

/// Reservations in each page.
pub(crate) const EVENTS: u64 = 7;
pub(crate) const SESSION: Uuid = Uuid([9; 16]);

/// A ring, and how far it was read.
pub(crate) struct Ring {
    pages: u64,
    pub(crate) produced: u64,
    pub(crate) progress: SlotProgress,
    /// The page after the last one of which this test knows that it was acknowledged.
    acked: u64,
}

/// What goes over a connection, in order.
#[derive(Clone)]
pub(crate) enum Message {
    /// Sealed pages, by slot and number.
    Pages(Vec<(u32, u64)>),
    /// The content of a PROGRESS block.
    Progress(Vec<u8>),
}

pub(crate) struct Host {
    pub(crate) rings: Vec<Ring>,
    overwrites: bool,
    pub(crate) ledger: Ledger,
    in_flight: InFlight,
    /// Messages sent on this connection.
    pub(crate) sent: u64,
    /// Pages that were acknowledged, and that a restart forgot.
    pub(crate) may_come_twice: u64,
    /// Pages that were sent although the streamer knew that a collector has them.
    pub(crate) again: u64,
    /// What the file next to the ring file holds.
    file: Vec<u8>,
    now_ns: u64,
}

impl Host {
    pub(crate) fn new(slots: u32, pages: u64, overwrites: bool) -> Self {
        let ring = |_| Ring {
            pages,
            produced: 0,
            progress: progress(overwrites, 0),
            acked: 0,
        };
        Self {
            rings: (0..slots).map(ring).collect(),
            overwrites,
            ledger: Ledger::default(),
            in_flight: InFlight::default(),
            sent: 0,
            may_come_twice: 0,
            again: 0,
            file: Vec::new(),
            now_ns: 0,
        }
    }

    /// The program writes a page into one of its rings.
    pub(crate) fn write(&mut self, random: &mut Random) {
        let ring = random.below(self.rings.len() as u64) as usize;
        let ring = &mut self.rings[ring];
        let is_full = ring.produced - ring.progress.written >= ring.pages;
        ring.produced += u64::from(self.overwrites || !is_full);
    }

    /// RESUME came.
    pub(crate) fn resume(&mut self, store: [u8; 16], said: &Resumed) {
        let rings = &self.rings;
        let produced = |slot: u32| rings.get(slot as usize).map_or(0, |ring| ring.produced);
        let start = self.ledger.resume(store, said, produced);
        self.sent = 0;
        for at in &start.slots {
            let ring = &mut self.rings[at.slot as usize];
            ring.progress.skip_to(at.next_page);
            ring.progress.write_to(at.next_page);
            ring.acked = ring.acked.max(at.next_page);
        }
        if !self.overwrites {
            self.ledger.delivered.begin_at(&self.taken());
        }
    }

    fn taken(&self) -> Vec<SlotPosition> {
        let position = |(slot, ring): (usize, &Ring)| SlotPosition {
            slot: slot as u32,
            next_page: ring.progress.next,
        };
        self.rings.iter().enumerate().map(position).collect()
    }

    /// Takes some pages out of the rings, while the program writes, and sends them.
    pub(crate) fn send(&mut self, most: u64, random: &mut Random) -> Vec<Message> {
        let mut pages = Vec::new();
        for (slot, ring) in self.rings.iter_mut().enumerate() {
            ring.progress.note_holes();
            ring.progress.bound(ring.produced, ring.pages);
            for _ in 0..random.below(most + 1) {
                if ring.progress.next >= ring.produced {
                    break;
                }
                if self.overwrites && random.below(8) == 0 {
                    ring.produced += random.below(ring.pages);
                }
                let page = ring.progress.next;
                if page < ring.produced.saturating_sub(ring.pages) {
                    ring.progress.skip();
                    continue;
                }
                self.again += u64::from(page < ring.acked);
                ring.progress.took(page * EVENTS, (page + 1) * EVENTS);
                ring.progress.next += 1;
                pages.push((slot as u32, page));
            }
        }
        self.note_holes();
        let mut messages = self.tell_if(self.ledger.is_to_tell(), 0);
        if !pages.is_empty() {
            messages.push(Message::Pages(pages));
            let release = Release::pages(self.taken(), 64);
            self.ledger.sent(&release);
            self.push(release);
        }
        messages
    }

    fn note_holes(&mut self) {
        for (slot, ring) in self.rings.iter_mut().enumerate() {
            let holes = ring.progress.take_holes().into_iter();
            let ranges = holes.map(|hole| overwritten(slot as u32, hole));
            self.ledger.gone.add(&ranges.collect::<Vec<_>>());
        }
    }

    /// The last PROGRESS.
    pub(crate) fn end(&mut self) -> Vec<Message> {
        self.note_holes();
        self.tell_if(true, ALL_SENT)
    }

    fn tell_if(&mut self, is_to_tell: bool, flags: u32) -> Vec<Message> {
        if !is_to_tell {
            return Vec::new();
        }
        self.now_ns += 1;
        let now = Moment {
            real_ns: self.now_ns,
            mono_ns: self.now_ns,
        };
        let (block, release) = self.ledger.tell(SESSION, flags, now);
        self.push(release);
        vec![Message::Progress(block[BlockHeader::BYTES..].to_vec())]
    }

    fn push(&mut self, release: Release) {
        self.sent += 1;
        self.in_flight.push(self.sent, SESSION, release);
    }

    /// ACK came: the first messages are durable.
    pub(crate) fn hear_ack(&mut self, durable: u64, store: [u8; 16]) {
        while let Some(batch) = self.in_flight.next_durable(durable) {
            self.ledger.release(&batch.release, store);
            for at in &batch.release.pages {
                let ring = &mut self.rings[at.slot as usize];
                ring.progress.write_to(at.next_page);
                ring.acked = ring.acked.max(at.next_page);
            }
        }
    }

    /// The connection is lost.
    pub(crate) fn hang_up(&mut self) {
        self.note_holes();
        self.in_flight = InFlight::default();
        self.ledger.begin_again();
        for ring in &mut self.rings {
            ring.progress.rewind();
        }
    }

    /// Keeps what was acknowledged on disk.
    pub(crate) fn keep(&mut self) {
        self.file = self.ledger.delivered.block(SESSION, &Default::default());
    }

    /// The streamer is killed, and another one begins. What was found gone and not told is found
    /// again, or is not: the ring does not say it.
    pub(crate) fn restart(&mut self) {
        self.hang_up();
        let kept = Delivered::read(&self.file, SESSION).unwrap_or_default();
        self.ledger = Ledger::default();
        for (slot, ring) in self.rings.iter_mut().enumerate() {
            let known = kept
                .acked()
                .get(&(slot as u32))
                .copied()
                .unwrap_or_default();
            let written = ring.progress.written;
            if self.overwrites {
                let oldest = ring.produced.saturating_sub(ring.pages);
                self.may_come_twice += ring.acked.saturating_sub(known.max(oldest));
                ring.acked = known;
            }
            ring.progress = progress(self.overwrites, written);
        }
        if self.overwrites {
            self.ledger.delivered = kept;
        }
    }

    /// A planted bug: what earlier connections acknowledged is forgotten.
    pub(crate) fn forget(&mut self) {
        self.ledger = Ledger::default();
        for ring in self.rings.iter_mut().filter(|_| self.overwrites) {
            ring.progress = progress(true, 0);
        }
    }

    /// Whether all that was written was acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        let is_done = |ring: &Ring| ring.progress.written == ring.produced;
        self.rings.iter().all(is_done) && !self.in_flight.has(SESSION)
    }
}

/// How far a ring was read by a streamer that has just begun.
fn progress(overwrites: bool, consumed: u64) -> SlotProgress {
    let mut progress = SlotProgress::new((!overwrites).then_some(consumed));
    progress.note_holes();
    progress
}
