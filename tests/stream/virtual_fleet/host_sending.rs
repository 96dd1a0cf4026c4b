//! What a streamer sends: what waits on disk, then sealed pages, then open ones and the last words.

use ringmark_format::block_at::Blocks;
use ringmark_format::codec::write;
use ringmark_format::progress::ALL_SENT;
use ringmark_reader::SlotPosition;
use ringmark_reader::stream::machines::{
    Moment, PageGap, Release, SpillPosition, SpilledSchema, missing_blocks,
};
use ringmark_tests::random::Random;

use super::common::{MONO_ZERO_NS, REAL_ZERO_NS};
use super::host::{Connection, Host, Stage};
use super::program::Program;

/// Bytes of pages in a batch.
const BATCH_BYTES: u64 = 32 << 10;

impl Host {
    pub(crate) fn stream(&mut self, now_ns: u64, random: &mut Random) {
        if self.ledger.is_to_tell() {
            self.tell(0, now_ns);
        }
        if !self.send_spilled(now_ns) {
            return;
        }
        if std::mem::take(&mut self.rewound) {
            for (slot, page) in &self.ledger.sent_to {
                self.progress[*slot as usize].skip_to(*page);
            }
        }
        let is_done = self.send_pages(now_ns, random);
        if is_done && self.program.has_ended {
            self.end(now_ns);
        } else if is_done && random.below(6) == 0 {
            self.send_open();
        }
    }

    /// Sends what waits on disk; returns whether all is sent.
    fn send_spilled(&mut self, now_ns: u64) -> bool {
        while self.spill.read < self.spill.blocks.len() {
            if !self.has_room() {
                return false;
            }
            let until = (self.spill.read + 4).min(self.spill.blocks.len());
            let piece = self.spill.blocks[self.spill.read..until].iter();
            let piece: Vec<u8> = piece.flat_map(|(_, block)| block.iter().copied()).collect();
            self.spill.read = until;
            let missing = missing_blocks(&piece, &mut self.ledger.sent_to, SpilledSchema::LeaveOut);
            let begins = self.spill.begins();
            for gap in &missing.gaps {
                // Those before the first page on disk were acknowledged.
                let acked = self.ledger.delivered.acked().get(&gap.slot).copied();
                let from = begins.get(&gap.slot).copied().max(acked);
                let from = from.unwrap_or(gap.to).max(gap.from).min(gap.to);
                let lost = self.spill.gone.without(PageGap { from, ..*gap });
                assert!(
                    lost.is_empty(),
                    "{lost:?} are not on disk, and nothing says why"
                );
            }
            // What is gone is told before the pages that follow it.
            if self.ledger.is_to_tell() {
                self.tell(0, now_ns);
            }
            self.send_schema();
            self.send_all(&missing.blocks);
            let to = SpillPosition {
                part: 0,
                byte: until as u64,
            };
            let sent = self.ledger.sent_to.iter();
            let sent = sent.map(|(&slot, &next_page)| SlotPosition { slot, next_page });
            let sent = sent.collect();
            self.note_sent(Release::spilled(to, sent));
        }
        true
    }

    /// Sends sealed pages, as far as there is credit; returns whether none is left.
    fn send_pages(&mut self, now_ns: u64, random: &mut Random) -> bool {
        while self.has_room() {
            let mut batch = Vec::new();
            let mut is_done = true;
            for slot in 0..self.progress.len() {
                is_done &= self.fill(slot, &mut batch, random);
            }
            self.note_holes();
            if self.ledger.is_to_tell() {
                self.tell(0, now_ns);
            }
            if !batch.is_empty() {
                self.send_schema();
                self.send_all(&batch);
                let release = Release::pages(self.taken(), self.schema_sent);
                self.ledger.sent(&release);
                self.note_sent(release);
            }
            if is_done {
                return true;
            }
        }
        false
    }

    /// Takes sealed pages of a slot; returns whether none is left.
    fn fill(&mut self, slot: usize, batch: &mut Vec<u8>, random: &mut Random) -> bool {
        let (ring, progress) = (&self.program.rings[slot], &mut self.progress[slot]);
        let room = self.connection.as_ref().map_or(0, Connection::room);
        progress.bound(ring.produced(), ring.capacity);
        while progress.next < ring.produced() {
            let page = progress.next;
            if page < ring.oldest(self.program.overwrites)
                || self.program.overwrites && random.below(60) == 0
            {
                // The program has overwritten it.
                progress.skip();
                continue;
            }
            let block = ring.sealed(page);
            if (batch.len() + block.len()) as u64 > BATCH_BYTES.min(room) {
                return false;
            }
            progress.took(ring.first_event(page), ring.first_event(page + 1));
            progress.next += 1;
            batch.extend_from_slice(block);
        }
        true
    }

    fn send_open(&mut self) {
        for slot in 0..self.program.rings.len() {
            if let Some(block) = self.program.rings[slot].open() {
                self.send_schema();
                self.send(block);
            }
        }
    }

    /// The last words: open pages, PROGRESS, counters.
    fn end(&mut self, now_ns: u64) {
        self.send_open();
        self.tell(ALL_SENT, now_ns);
        let mut block = Vec::new();
        write::counters(
            &mut block,
            self.program.session,
            &self.program.counters(true),
        )
        .expect("COUNTERS");
        self.send(block);
        let taken = Release::pages(self.taken(), self.schema_sent);
        self.note_sent(taken);
        self.stage = Stage::Sent;
    }

    fn tell(&mut self, flags: u32, now_ns: u64) {
        let now = Moment {
            real_ns: REAL_ZERO_NS + now_ns,
            mono_ns: MONO_ZERO_NS + now_ns,
        };
        let (blocks, release) = self.ledger.tell(self.program.session, flags, now);
        self.send_all(&blocks);
        self.note_sent(release);
    }

    fn send_schema(&mut self) {
        let schema = Program::schema();
        let at = self.schema_sent as usize;
        if at < schema.len() {
            let mut block = Vec::new();
            write::schema(
                &mut block,
                self.program.session,
                self.schema_sent,
                &schema[at..],
            )
            .expect("SCHEMA");
            self.send(block);
            self.schema_sent = schema.len() as u64;
        }
    }

    pub(crate) fn send_all(&mut self, blocks: &[u8]) {
        let blocks: Vec<_> = Blocks::new(blocks)
            .map(|block| block.bytes.to_vec())
            .collect();
        blocks.into_iter().for_each(|block| self.send(block));
    }

    /// Sends a block, or keeps it until there is credit for it.
    pub(crate) fn send(&mut self, block: Vec<u8>) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        connection.sent += block.len() as u64;
        if connection.sent <= connection.credit {
            connection.out.push(block);
        } else {
            connection.waiting_bytes += block.len() as u64;
            connection.waiting.push_back(block);
        }
    }

    fn has_room(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| {
            connection.room() >= 64 << 10
                || connection.room() > 0 && connection.sent == connection.durable
        })
    }

    fn note_sent(&mut self, release: Release) {
        if let Some(connection) = &self.connection {
            self.in_flight
                .push(connection.sent, self.program.session, release);
        }
    }
}
