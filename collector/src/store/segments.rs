//! The segments of one session: which is being written, which were, and what is not durable.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use ringmark_format::Uuid;

use super::context::{StoreContext, SyncHandles};
use super::error::StoreError;
use super::options::SyncMode;
use super::segment::{ClosedSegment, Naming, Segment};
use super::unsynced::{SyncState, Unsynced};
use crate::figures::Figures;
use crate::mutex::lock;

/// The segments of one session.
#[derive(Debug)]
pub(super) struct Segments {
    uuid: Uuid,
    directory: PathBuf,
    current: Option<Segment>,
    /// Number of the next segment.
    next: u32,
    closed: Vec<ClosedSegment>,
    sync: SyncState,
    context: Arc<StoreContext>,
}

impl Segments {
    /// No segments yet, of a session with its place in `directory`.
    pub(super) fn new(uuid: Uuid, directory: PathBuf, context: &Arc<StoreContext>) -> Self {
        Self {
            uuid,
            directory,
            current: None,
            next: 0,
            closed: Vec::new(),
            sync: SyncState::default(),
            context: context.clone(),
        }
    }

    /// Whether one was ever begun.
    pub(super) fn are_begun(&self) -> bool {
        self.next > 0
    }

    /// Their directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The one that is being written, if there is one.
    pub(super) fn current(&self) -> Option<&Path> {
        self.current.as_ref().map(Segment::path)
    }

    /// Whether this one is being written, or holds what is not durable: it must not be removed.
    pub(super) fn has_use_for(&self, segment: &Path) -> bool {
        let mut closed = self.closed.iter();
        self.current() == Some(segment)
            || closed.any(|closed| closed.path() == segment && closed.is_unsynced())
    }

    /// Whether anything is not durable.
    pub(super) fn have_unsynced(&self) -> bool {
        self.sync.has_unsynced()
    }

    /// Whether a sync failed: nothing can be added, and what is not durable must go.
    pub(super) fn have_failed(&self) -> bool {
        self.sync.has_failed()
    }

    /// What a thread needs to sync them without keeping the session locked.
    pub(super) fn sync_handles(&self) -> SyncHandles {
        SyncHandles {
            turn: self.sync.turn(),
            context: self.context.clone(),
        }
    }

    /// Takes what is to be synced now.
    ///
    /// # Errors
    /// An earlier sync failed.
    pub(super) fn take_unsynced(&mut self) -> Result<Unsynced, StoreError> {
        self.sync.check(&self.directory)?;
        Ok(self.sync.take())
    }

    /// Gives up after a sync of `taken` failed.
    ///
    /// # Errors
    /// As [`Segments::give_up`].
    pub(super) fn fail(&mut self, taken: Unsynced) -> Result<(), StoreError> {
        self.sync.fail(taken);
        self.give_up()
    }

    /// Cuts them back to what is durable, so that the session can be found again.
    ///
    /// # Errors
    /// A file cannot be cut.
    pub(super) fn give_up(&mut self) -> Result<(), StoreError> {
        self.current = None;
        self.sync.cut(&self.directory)
    }

    /// Takes note of a closed segment that was found. It may not be durable: the machine may have
    /// written it just before the collector was killed.
    pub(super) fn note_closed(&mut self, number: u32, segment: File) {
        self.next = number + 1;
        self.note_written(&Arc::new(segment), u64::MAX);
    }

    /// Goes on with the last segment that was found.
    pub(super) fn go_on_with(&mut self, number: u32, segment: Segment) {
        self.next = number + 1;
        self.note_written(segment.file(), segment.bytes());
        self.current = Some(segment);
    }

    /// Appends a whole block to the present segment, or to a new one if that is full or broken. A
    /// new one begins with `preamble`.
    ///
    /// # Errors
    /// It cannot be written, or an earlier sync failed.
    pub(super) fn append(
        &mut self,
        block: &[u8],
        preamble: impl FnOnce() -> Vec<u8>,
    ) -> Result<(), StoreError> {
        self.sync.check(&self.directory)?;
        let most = self.context.segment_bytes.load(Relaxed);
        let is_full = |s: &Segment| s.bytes() + block.len() as u64 > most;
        if let Some(segment) = &self.current
            && (segment.is_broken() || is_full(segment))
        {
            self.close();
        }
        if self.current.is_none() {
            self.begin(&preamble())?;
        }
        let is_synced = self.is_synced();
        let Some(segment) = &mut self.current else {
            return Ok(());
        };
        if is_synced {
            self.sync.add_file(segment.file(), segment.bytes());
        }
        let begun = Instant::now();
        segment.append(block)?;
        self.context.appended(block.len() as u64, begun);
        Ok(())
    }

    /// Begins a segment. In a store that syncs, it gets its name only when it is durable.
    fn begin(&mut self, preamble: &[u8]) -> Result<(), StoreError> {
        let path = ringmark_decoder::store::segment(&self.directory, self.uuid, self.next);
        let options = &self.context.options;
        let (naming, within) = (Naming::under(options.sync), options.directory);
        let segment = Segment::create(&path, naming, preamble, within)?;
        self.next += 1;
        self.note_written(segment.file(), 0);
        if self.is_synced() {
            self.sync.add_name(path);
        }
        self.current = Some(segment);
        Figures::add(&self.context.figures.segments_total, 1);
        Ok(())
    }

    fn is_synced(&self) -> bool {
        self.context.options.sync == SyncMode::Disk
    }

    /// Has the next sync include a file, which has `bytes_before` bytes now, in a store that syncs.
    fn note_written(&mut self, file: &Arc<File>, bytes_before: u64) {
        if self.is_synced() {
            self.sync.add_file(file, bytes_before);
        }
    }

    /// Closes the present segment; its index is made later.
    fn close(&mut self) {
        if let Some(segment) = self.current.take() {
            lock(&self.context.unindexed).push(segment.path().to_owned());
            self.closed.retain(ClosedSegment::is_unsynced);
            self.closed.push(ClosedSegment::of(&segment));
        }
    }

    /// Closes this segment, if it is the present one.
    pub(super) fn close_if_current(&mut self, segment: &Path) {
        if self.current() == Some(segment) {
            self.close();
        }
    }

    /// Closes the present segment if it has the configured age.
    pub(super) fn rotate_if_old(&mut self) {
        let age = self.context.options.segment_age;
        let is_old = |s: &Segment| s.begun().elapsed() >= age;
        if self.current.as_ref().is_some_and(is_old) {
            self.close();
        }
    }
}
