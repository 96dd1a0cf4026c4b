//! How a recorder writes what stands beside the pages of its sessions.

use super::Recorder;
use super::beside::Beside;
use crate::error::ReaderError;
use crate::recording::dump::{Limit, Room};

impl Recorder {
    /// Has blocks written beside the pages from now on. A dump that has reached its largest size goes without them.
    pub fn write_beside(&mut self, from: Box<dyn Beside>) {
        self.beside.from = Some(from);
    }

    /// Writes what there is for a session. What could not be written is tried again.
    pub(super) fn pass_beside(&mut self, index: usize, at_end: bool) -> Result<(), ReaderError> {
        let Some(from) = &mut self.beside.from else {
            return Ok(());
        };
        let session = self.recorded[index].drain.session();
        self.beside.waiting.extend(from.blocks(session, at_end));
        while let Some(bytes) = self.beside.waiting.front().map(Vec::len) {
            let has_room = self.has_room(bytes as u64)?;
            let block = self.beside.waiting.pop_front().unwrap_or_default();
            if has_room && let Err(error) = self.dump.add_blocks(&block) {
                self.beside.waiting.push_front(block);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether the dump takes so many bytes more, in its next file if need be.
    fn has_room(&mut self, bytes: u64) -> Result<bool, ReaderError> {
        if !self.dump.is_bounded() {
            return Ok(true);
        }
        loop {
            let Room { bytes: left, limit } = self.dump.room(self.ending_bytes());
            match limit {
                _ if left >= bytes => return Ok(true),
                Limit::File => self.rotate()?,
                Limit::EmptyFile => return Ok(true),
                Limit::Dump => return Ok(false),
            }
        }
    }
}
