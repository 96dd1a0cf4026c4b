//! What outlives a streamed session here: what was acknowledged of it, or nothing once it is drained.

use std::path::Path;

use super::StreamedSession;
use super::hold::Hold;
use super::mapped::MappedSession;
use crate::error::ReaderError;
use crate::sessions::session::RemovalScope;

impl StreamedSession {
    /// Keeps on disk what was acknowledged, where the rings do not say it.
    pub(in crate::stream) fn keep_acked(&mut self) {
        if let Some(file) = &mut self.acked_file {
            file.keep(&self.ledger.delivered);
        }
    }

    /// Marks a session that was read to its end and is durable, or of which nothing is wanted, as
    /// consumed; removes its ring file unless it requests to be kept.
    pub(in crate::stream) fn remove_if_drained(
        &mut self,
        alone: impl FnOnce(&Path) -> bool,
    ) -> Result<(), ReaderError> {
        self.keep_acked();
        let is_done = |mapped: &&MappedSession| mapped.drained || self.hold == Hold::Unwanted;
        let Some(mapped) = self.mapped.as_ref().filter(is_done) else {
            return Ok(());
        };
        let session = mapped.drain.session();
        session.set_taken();
        let removed = session.remove_drained(RemovalScope::NotKept, alone);
        if let Some(file) = &self.acked_file {
            file.remove_if_alone();
        }
        removed
    }
}
