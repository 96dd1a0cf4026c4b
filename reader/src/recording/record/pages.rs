//! How a recorder moves pages: fill a batch, write the schema it needs, write the batch, release.
//!
//! The order is what a killed recorder relies on. A page is released only after its batch was
//! written, and a batch only after the schema of its records.

use ringmark_format::counters::{CountersHeader, SlotCounters};
use ringmark_format::ending::EndingBlock;

use super::Recorder;
use crate::error::ReaderError;
use crate::pages::drain::{Fill, FillPass, Finality, SchemaPiece, SessionDrain};
use crate::recording::dump::{Limit, Room, block_bytes};

impl Recorder {
    /// Moves everything that is sealed; returns the number of pages moved.
    pub(super) fn pass(&mut self, index: usize) -> Result<u64, ReaderError> {
        let moved = self.move_pages(index, SessionDrain::fill)?;
        self.pace.saw(self.recorded[index].drain.fullest());
        Ok(moved)
    }

    /// Fills and writes batches until the pass is done or the dump is full; returns the number of
    /// pages moved.
    pub(super) fn move_pages(&mut self, index: usize, fill: FillPass) -> Result<u64, ReaderError> {
        let mut moved = 0;
        let mut exceed = false;
        while !self.full {
            // Only a bounded dump needs the sum, which visits every session.
            let is_bounded = self.dump.is_bounded();
            let ending = if is_bounded { self.ending_bytes() } else { 0 };
            let Room { bytes, limit } = self.dump.room(ending);
            self.batch.clear(if exceed { u64::MAX } else { bytes });
            let filled = fill(&mut self.recorded[index].drain, &mut self.batch)?;
            moved += self.batch.pages();
            exceed = false;
            if filled == Fill::BatchFull && self.batch.is_empty() {
                match limit {
                    Limit::File => self.rotate()?,
                    Limit::EmptyFile => exceed = true,
                    Limit::Dump => self.stop_full(index),
                }
                continue;
            }
            self.write_batch(index)?;
            if filled == Fill::PassDone {
                break;
            }
        }
        Ok(moved)
    }

    /// Ends the recording at the size that was set for it.
    fn stop_full(&mut self, index: usize) {
        self.full = true;
        self.recorded[index].drain.rewind();
        let (name, bytes) = (self.dump.name(), self.dump.bytes());
        self.notices
            .push(format!("{name}: stopped at {bytes} bytes, the limit"));
    }

    /// Writes the batch after the schema that its pages need, then releases the pages.
    fn write_batch(&mut self, index: usize) -> Result<(), ReaderError> {
        self.write_schema(index)?;
        let uuid = self.recorded[index].drain.session().uuid();
        self.dump.add_pages(uuid, &self.batch)?;
        self.done.pages += self.batch.pages();
        self.full_disk.wrote();
        self.recorded[index].drain.release();
        Ok(())
    }

    fn write_schema(&mut self, index: usize) -> Result<(), ReaderError> {
        let drain = &mut self.recorded[index].drain;
        let uuid = drain.session().uuid();
        while let Some(SchemaPiece { offset, bytes }) = drain.peek_schema() {
            self.dump.add_schema(uuid, offset, &bytes)?;
            drain.schema_written(bytes.len());
        }
        Ok(())
    }

    /// Bytes of the blocks that must fit after the last page of a file: counters and ends.
    pub(super) fn ending_bytes(&self) -> u64 {
        let counters = |slots| block_bytes(CountersHeader::BYTES + slots * SlotCounters::BYTES);
        let bytes = |slots: usize| counters(slots) + block_bytes(EndingBlock::BYTES);
        let recorded = self.recorded.iter();
        recorded.map(|r| bytes(r.drain.slots()) as u64).sum()
    }

    /// Ends the present file with the counters of every session, and starts the next one.
    pub(super) fn rotate(&mut self) -> Result<(), ReaderError> {
        for recorded in &mut self.recorded {
            let content = recorded.drain.counters(Finality::Interim, None)?;
            let uuid = recorded.drain.session().uuid();
            self.dump.add_counters(uuid, &content)?;
        }
        self.dump.rotate()
    }
}
