//! The moving of pages: fill a batch, write it after its schema, release.

use ringmark_format::counters::{CountersHeader, SlotCounters};

use super::Recorder;
use crate::error::ReaderError;
use crate::pages::batch::Batch;
use crate::pages::drain::{Fill, SessionDrain};
use crate::recording::dump::{Limit, block_bytes};

/// A pass over a session: of sealed pages, or of what is left.
type FillPass = fn(&mut SessionDrain, &mut Batch) -> Result<Fill, ReaderError>;

impl Recorder {
    /// Moves everything that is sealed; returns the pages moved.
    pub(super) fn pass(&mut self, index: usize) -> Result<u64, ReaderError> {
        let moved = self.move_pages(index, SessionDrain::fill)?;
        self.pace.saw(self.tracks[index].drain.fill_1024());
        Ok(moved)
    }

    /// Fills and writes batches until a pass is done or the dump is full.
    pub(super) fn move_pages(&mut self, index: usize, fill: FillPass) -> Result<u64, ReaderError> {
        let mut moved = 0;
        let mut exceed = false;
        while !self.full {
            // To add them up costs a look at every session.
            let is_bounded = self.dump.is_bounded();
            let ending = if is_bounded { self.ending_bytes() } else { 0 };
            let (room, limit) = self.dump.room(ending);
            self.batch.clear(if exceed { u64::MAX } else { room });
            let filled = fill(&mut self.tracks[index].drain, &mut self.batch)?;
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

    fn stop_full(&mut self, index: usize) {
        self.full = true;
        self.tracks[index].drain.rewind();
        let (name, bytes) = (self.dump.name(), self.dump.bytes());
        self.notices
            .push(format!("{name}: stopped at {bytes} bytes, the limit"));
    }

    /// Writes the batch after the schema that it needs, then releases its pages.
    fn write_batch(&mut self, index: usize) -> Result<(), ReaderError> {
        self.write_schema(index)?;
        let uuid = self.tracks[index].drain.session().uuid();
        self.dump.add_pages(uuid, &self.batch)?;
        self.done.pages += self.batch.pages();
        self.waits_for_space = false;
        self.tracks[index].drain.release();
        Ok(())
    }

    fn write_schema(&mut self, index: usize) -> Result<(), ReaderError> {
        let drain = &mut self.tracks[index].drain;
        let uuid = drain.session().uuid();
        while let Some((offset, bytes)) = drain.peek_schema() {
            self.dump.add_schema(uuid, offset, &bytes)?;
            drain.schema_written(bytes.len());
        }
        Ok(())
    }

    fn ending_bytes(&self) -> u64 {
        let bytes = |slots: usize| block_bytes(CountersHeader::BYTES + slots * SlotCounters::BYTES);
        let tracks = self.tracks.iter();
        tracks.map(|t| bytes(t.drain.slots()) as u64).sum()
    }

    fn rotate(&mut self) -> Result<(), ReaderError> {
        for track in &mut self.tracks {
            let content = track.drain.counters(false, None)?;
            let uuid = track.drain.session().uuid();
            self.dump.add_counters(uuid, &content)?;
        }
        self.dump.rotate()
    }
}
