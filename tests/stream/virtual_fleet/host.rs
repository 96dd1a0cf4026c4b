//! A host: a traced program, and the streamer's state machines that read its rings.

use std::collections::{BTreeMap, VecDeque};

use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::block_at::Blocks;
use ringmark_format::codec::write;
use ringmark_format::progress::GoneRange;
use ringmark_reader::SlotPosition;
use ringmark_reader::stream::machines::{
    Delivered, InFlight, Ledger, Resumed, SlotProgress, SpilledGone, overwritten,
};
use ringmark_tests::random::Random;

use super::program::Program;

/// Pages that wait on disk.
#[derive(Default)]
pub(crate) struct Spill {
    pub(crate) blocks: Vec<(SlotPosition, Vec<u8>)>,
    pub(crate) read: usize,
    freed: usize,
    /// Most pages that wait.
    pub(crate) most: usize,
    /// Pages between them that are gone.
    pub(crate) gone: SpilledGone,
    /// Those of these ranges that are on disk.
    kept: Vec<GoneRange>,
}

impl Spill {
    fn end_of(&self, slot: u32) -> u64 {
        let waits = self.blocks[self.freed..].iter().map(|(at, _)| at);
        let of = waits.filter(|at| at.slot == slot).map(|at| at.next_page);
        of.max().unwrap_or(0)
    }

    fn is_empty(&self) -> bool {
        self.freed == self.blocks.len()
    }

    /// The first page of each slot that is here, or gone just before it.
    pub(crate) fn begins(&self) -> BTreeMap<u32, u64> {
        let mut begins = BTreeMap::new();
        for (at, _) in self.blocks[self.freed..].iter().rev() {
            let _ = begins.insert(at.slot, at.next_page - 1);
        }
        for range in self.kept.iter().rev() {
            if let Some(begin) = begins.get_mut(&range.slot)
                && range.to == *begin
            {
                *begin = range.from;
            }
        }
        begins
    }

    fn push(&mut self, at: SlotPosition, block: &[u8], unacknowledged: &[GoneRange]) {
        if self.is_empty() {
            self.gone.begin(unacknowledged);
            self.kept.clear();
        }
        self.kept.extend_from_slice(self.gone.unwritten());
        self.gone.wrote_all();
        self.blocks.push((at, block.to_vec()));
    }

    /// The next streamer finds what is on disk.
    fn found_again(&mut self) {
        self.gone = SpilledGone::default();
        if !self.is_empty() {
            self.gone.read(&self.kept);
        }
    }
}

/// How far the session has come on the present connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    New,
    Announced,
    Streaming,
    Sent,
}

/// A connection as the streamer sees it.
pub(crate) struct Connection {
    pub(crate) number: u64,
    pub(crate) collector: usize,
    store: [u8; 16],
    pub(crate) sent: u64,
    pub(crate) durable: u64,
    pub(crate) credit: u64,
    /// Blocks that wait for credit.
    pub(crate) waiting: VecDeque<Vec<u8>>,
    pub(crate) waiting_bytes: u64,
    /// Blocks that go now.
    pub(crate) out: Vec<Vec<u8>>,
}

pub(crate) struct Host {
    pub(crate) program: Program,
    pub(crate) progress: Vec<SlotProgress>,
    pub(crate) ledger: Ledger,
    pub(crate) in_flight: InFlight,
    pub(crate) spill: Spill,
    pub(crate) connection: Option<Connection>,
    pub(crate) stage: Stage,
    pub(crate) schema_sent: u64,
    pub(crate) rewound: bool,
    /// What the file next to the ring file holds.
    file: Vec<u8>,
    /// Pages that were moved to disk.
    pub(crate) spilled: u64,
    /// No streamer runs.
    pub(crate) is_down: bool,
}

impl Host {
    pub(crate) fn new(program: Program, spill_pages: usize) -> Self {
        let mut made = Self {
            program,
            progress: Vec::new(),
            ledger: Ledger::default(),
            in_flight: InFlight::default(),
            spill: Spill {
                most: spill_pages,
                ..Spill::default()
            },
            connection: None,
            stage: Stage::New,
            schema_sent: 0,
            rewound: false,
            file: Vec::new(),
            spilled: 0,
            is_down: false,
        };
        made.progress = made.new_progress();
        made
    }

    fn new_progress(&self) -> Vec<SlotProgress> {
        let consumes = !self.program.overwrites;
        let rings = self.program.rings.iter();
        rings
            .map(|ring| {
                let mut progress = SlotProgress::new(consumes.then_some(ring.consumed));
                progress.note_holes();
                progress
            })
            .collect()
    }

    pub(crate) fn name(&self) -> String {
        format!("host-{}", self.program.session.0[0])
    }

    /// Connected: WELCOME came.
    pub(crate) fn connected(
        &mut self,
        number: u64,
        collector: usize,
        store: [u8; 16],
        credit: u64,
    ) {
        self.connection = Some(Connection {
            number,
            collector,
            store,
            sent: 0,
            durable: 0,
            credit,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            out: Vec::new(),
        });
        self.stage = Stage::New;
    }

    /// RESUME came.
    pub(crate) fn resume(&mut self, said: &Resumed) {
        let Some(connection) = self.connection.as_ref() else {
            return;
        };
        let (rings, spill) = (&self.program.rings, &self.spill);
        let produced = |slot: u32| {
            let ring = rings.get(slot as usize);
            let produced = ring.map_or(0, |ring| ring.produced());
            produced.max(spill.end_of(slot))
        };
        let start = self.ledger.resume(connection.store, said, produced);
        for (slot, page) in spill.begins() {
            self.ledger.sent_to.entry(slot).or_insert(page);
        }
        self.schema_sent = start.schema_bytes;
        for at in &start.slots {
            self.progress[at.slot as usize].skip_to(at.next_page);
            self.written(*at);
        }
        if !self.program.overwrites && self.spill.is_empty() {
            let taken = self.taken();
            self.ledger.delivered.begin_at(&taken);
        }
        self.stage = Stage::Streaming;
    }

    /// The pages before this one are somewhere for good.
    fn written(&mut self, at: SlotPosition) {
        let (progress, ring) = (
            &mut self.progress[at.slot as usize],
            &mut self.program.rings[at.slot as usize],
        );
        let _ = progress.write_to(at.next_page);
        if !self.program.overwrites {
            ring.consumed = ring.consumed.max(progress.written);
        }
    }

    pub(crate) fn taken(&self) -> Vec<SlotPosition> {
        let position = |(slot, progress): (usize, &SlotProgress)| SlotPosition {
            slot: slot as u32,
            next_page: progress.next,
        };
        self.progress.iter().enumerate().map(position).collect()
    }

    /// Takes the next step; returns the blocks that go over the connection.
    pub(crate) fn step(&mut self, now_ns: u64, random: &mut Random) -> Vec<Vec<u8>> {
        self.spill_if_due(random);
        match (self.connection.is_some(), self.stage) {
            (true, Stage::New) => {
                let mut block = Vec::new();
                let written =
                    write::session(&mut block, self.program.session, &self.program.content());
                written.expect("SESSION");
                self.send(block);
                self.stage = Stage::Announced;
            }
            (true, Stage::Streaming) => self.stream(now_ns, random),
            _ => {}
        }
        let connection = self.connection.as_mut();
        connection.map_or(Vec::new(), |connection| std::mem::take(&mut connection.out))
    }

    pub(crate) fn note_holes(&mut self) {
        for (slot, progress) in self.progress.iter_mut().enumerate() {
            let holes = progress.take_holes().into_iter();
            let ranges = holes.map(|hole| overwritten(slot as u32, hole));
            let ranges: Vec<_> = ranges.collect();
            self.ledger.gone.add(&ranges);
            if !self.spill.is_empty() {
                self.spill.gone.note(&ranges);
            }
        }
    }

    /// ACK came. Returns the blocks that may go now.
    pub(crate) fn acknowledged(&mut self, durable: u64, credit: u64) -> Vec<Vec<u8>> {
        let Some(connection) = &mut self.connection else {
            return Vec::new();
        };
        assert!(
            durable <= connection.sent - connection.waiting_bytes,
            "an ACK of what was not sent"
        );
        (connection.durable, connection.credit) = (durable, credit.max(connection.credit));
        while let Some(block) = connection.waiting.front() {
            let end = connection.sent - connection.waiting_bytes + block.len() as u64;
            if end > connection.credit {
                break;
            }
            connection.waiting_bytes -= block.len() as u64;
            connection.out.extend(connection.waiting.pop_front());
        }
        let (out, store) = (std::mem::take(&mut connection.out), connection.store);
        while let Some(batch) = self.in_flight.next_durable(durable) {
            self.ledger.release(&batch.release, store);
            for at in &batch.release.pages {
                self.written(*at);
            }
            if let Some(to) = batch.release.spilled_to {
                self.spill.freed = self.spill.freed.max(to.byte as usize);
            }
        }
        out
    }

    /// Moves sealed pages to disk while the collector is away or slow.
    fn spill_if_due(&mut self, random: &mut Random) {
        if self.spill.most == 0 || self.stage == Stage::Sent {
            return;
        }
        let is_away = self.connection.is_none();
        let is_full = |(ring, progress): (&super::program::Ring, &SlotProgress)| {
            let waits = ring.produced().saturating_sub(progress.written);
            waits > 0 && (is_away || waits * 2 >= ring.capacity)
        };
        if self.program.rings.iter().zip(&self.progress).any(is_full) {
            self.move_pages(random);
        }
    }

    fn move_pages(&mut self, random: &mut Random) {
        self.rewound = true;
        let overwrites = self.program.overwrites;
        for slot in 0..self.progress.len() {
            self.progress[slot].rewind();
            loop {
                let (ring, progress) = (&self.program.rings[slot], &mut self.progress[slot]);
                progress.bound(ring.produced(), ring.capacity);
                let page = progress.next;
                if page >= ring.produced() {
                    break;
                }
                if page < ring.oldest(overwrites) || overwrites && random.below(60) == 0 {
                    progress.skip();
                    continue;
                }
                if self.spill.blocks.len() - self.spill.freed >= self.spill.most {
                    return;
                }
                progress.took(ring.first_event(page), ring.first_event(page + 1));
                progress.next += 1;
                self.note_holes();
                let at = SlotPosition {
                    slot: slot as u32,
                    next_page: page + 1,
                };
                let block = self.program.rings[slot].sealed(page);
                let unacknowledged = self.ledger.gone.unacknowledged();
                self.spill.push(at, block, unacknowledged);
                self.spilled += 1;
                let _ = self.progress[slot].write_all();
                if !overwrites {
                    self.program.rings[slot].consumed = self.progress[slot].written;
                }
            }
        }
    }

    /// The connection is lost.
    pub(crate) fn hang_up(&mut self) {
        self.connection = None;
        self.stage = Stage::New;
        self.note_holes();
        self.in_flight = InFlight::default();
        self.ledger.begin_again();
        self.spill.read = self.spill.freed;
        self.progress.iter_mut().for_each(SlotProgress::rewind);
        self.rewound = false;
    }

    /// Keeps what was acknowledged on disk.
    pub(crate) fn keep(&mut self) {
        self.file = self
            .ledger
            .delivered
            .block(self.program.session, &Default::default());
    }

    /// The streamer is killed, and another one begins: what was found gone is found again, in the rings or on disk.
    pub(crate) fn restart(&mut self) {
        self.hang_up();
        self.is_down = false;
        self.ledger = Ledger::default();
        if self.program.overwrites {
            let kept = Delivered::read(&self.file, self.program.session);
            self.ledger = Ledger::new(kept.unwrap_or_default());
        }
        self.progress = self.new_progress();
        self.spill.found_again();
        self.ledger.gone.add(self.spill.gone.all());
        for slot in 0..self.progress.len() {
            let end = self.spill.end_of(slot as u32);
            if end > 0 {
                self.progress[slot].skip_to(end);
                let _ = self.progress[slot].write_all();
            }
        }
    }

    /// Whether all was acknowledged that it ever had.
    pub(crate) fn is_done(&self) -> bool {
        self.stage == Stage::Sent && !self.in_flight.has(self.program.session)
    }

    /// What waits on disk.
    pub(crate) fn waits_on_disk(&self) -> usize {
        self.spill.blocks.len() - self.spill.freed
    }
}

impl Connection {
    pub(crate) fn room(&self) -> u64 {
        self.credit.saturating_sub(self.sent)
    }
}

/// The last blocks that a session has: COUNTERS with FINAL.
pub(crate) fn is_final(block: &[u8]) -> bool {
    let counters = Blocks::new(block).next();
    counters.is_some_and(|block| {
        block.header.kind == kind::COUNTERS && block.bytes[BlockHeader::BYTES + 28] & 1 != 0
    })
}
