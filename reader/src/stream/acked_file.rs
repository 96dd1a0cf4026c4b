//! What was acknowledged of a session in overwrite mode, in a file next to its ring file.
//!
//! Nothing in such a ring says how far it was read. A streamer that starts again would send all of
//! it once more; so it reads here how far the one before had come. The file is one PROGRESS block,
//! replaced as a whole. Losing it costs pages that are sent twice, and no data.

use std::fs;
use std::path::PathBuf;

use ringmark_format::Uuid;

use super::delivered::{Delivered, Told};
use crate::sessions::session::Session;
use crate::whole_file;

/// Most bytes of the file that are read: a session has at most 4096 slots.
const BYTES_MAX: u64 = 1 << 20;

/// The file of one session.
#[derive(Debug)]
pub(super) struct AckedFile {
    path: PathBuf,
    session: Uuid,
    /// What is in it, as far as known.
    kept: Delivered,
}

impl AckedFile {
    /// The file of a session. `None`: its ring says itself how far it was read, or has no name of its
    /// own.
    pub(super) fn of(session: &Session) -> Option<Self> {
        let path = session.path();
        let is_named = path
            .extension()
            .is_some_and(|extension| extension == "ring");
        (is_named && !session.consumes()).then(|| Self {
            path: path.with_extension("acked"),
            session: session.uuid(),
            kept: Delivered::default(),
        })
    }

    /// Reads what an earlier streamer has left. Nothing is known where that cannot be read.
    pub(super) fn read(&mut self) -> Delivered {
        let about = fs::symlink_metadata(&self.path);
        let is_sound = about.is_ok_and(|about| about.is_file() && about.len() <= BYTES_MAX);
        let bytes = is_sound.then(|| fs::read(&self.path).ok()).flatten();
        let read = bytes.and_then(|bytes| Delivered::read(&bytes, self.session));
        self.kept = read.unwrap_or_default();
        self.kept.clone()
    }

    /// Replaces the file, if there is more to keep. A directory that may not be written has none.
    pub(super) fn keep(&mut self, delivered: &Delivered) {
        if self.kept.acked() == delivered.acked() {
            return;
        }
        let block = delivered.block(self.session, &Told::default());
        if whole_file::replace(&self.path, "acked.new", &block).is_ok() {
            self.kept = delivered.clone();
        }
    }

    /// Removes the file if its ring file is gone.
    pub(super) fn remove_if_alone(&self) {
        if !self.path.with_extension("ring").exists() {
            let _ = fs::remove_file(&self.path);
        }
    }
}
