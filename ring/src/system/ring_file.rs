//! The ring file: regions at offsets that the header states, read once and validated.
//!
//! ```text
//!  ┌────────┬───────┬─────────┬──────────┬───────────┬─────────┬─────────┬───────┬───────┬─
//!  │ header │ state │ mailbox │ consumed │ directory │ enabled │ schema… │ pages │ pages │ …
//!  └────────┴───────┴─────────┴──────────┴───────────┴─────────┴─────────┴───────┴───────┴─
//!   once     producer   both    consumer   producer … all the rest
//! ```
//!
//! The last line names the side that stores. Each region has its own offset in the header: their
//! order is the producer's choice. The pages of a ring are allocated when it is needed; until then
//! the file has a hole there.
//!
//! A reader takes the geometry from a private copy of the header and never looks at the header in
//! shared memory again (invariant 7 of ARCHITECTURE.md). It maps the file read-only, and where it
//! consumes or controls, the one system page of that region writable.

mod error;
mod geometry;

use std::fs::File;
use std::path::{Path, PathBuf};

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use ringmark_format::counters::CAUSES;
use ringmark_format::mailbox::MAILBOX_BYTES;
use ringmark_format::open_span::STACK_BYTES;
use ringmark_format::session::{
    SCHEMA_INCOMPLETE, SessionHeader, SessionState, exit_status, phase,
};
use ringmark_format::slot::Slot;

pub use self::error::RingFileError;
pub use self::geometry::{Geometry, SLOTS_MAX, SYSTEM_PAGE, read_geometry};
use crate::protocol::directory::Directory;
use crate::protocol::mailbox::Mailbox;
use crate::protocol::order;
use crate::protocol::schema_log::{STATE_WORDS, SchemaLog};
use crate::protocol::slot::{SLOT_WORDS, SlotGeometry, SlotView};
use crate::protocol::span_stack::SpanStack;
use crate::protocol::sync::AtomicU64;
use crate::system::mapping::{MapError, Mapping};

/// A mapped ring file with its geometry.
///
/// Three doors, by what the caller may store: [`RingFile::observe`] nothing, [`RingFile::consume`]
/// the consumed words, [`RingFile::produce`] everything. Accessors return words of shared memory;
/// what they mean, and which side stores them, is for the types of the protocol.
#[derive(Debug)]
pub struct RingFile {
    file: File,
    path: PathBuf,
    map: Mapping,
    consumed: Option<Mapping>,
    geometry: Geometry,
}

impl RingFile {
    /// Maps an open ring file to observe it: nothing of it can be stored to.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn observe(file: File, path: &Path) -> Result<Self, RingFileError> {
        Self::map_with(file, path, Mapping::read_only)
    }

    /// Maps a ring file that is open for writing, as its one consumer: the consumed words can be
    /// stored to, and nothing else.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn consume(file: File, path: &Path) -> Result<Self, RingFileError> {
        let mut ring_file = Self::observe(file, path)?;
        let consumed = map_consumed(&ring_file.file, &ring_file.geometry)?;
        ring_file.consumed = Some(consumed);
        Ok(ring_file)
    }

    /// Maps the producer's own ring file, which it has just laid out.
    ///
    /// # Errors
    /// What is wrong with the file; a producer that laid it out well sees errors of `mmap` only.
    pub fn produce(file: File, path: &Path) -> Result<Self, RingFileError> {
        Self::map_with(file, path, Mapping::writable)
    }

    fn map_with(
        file: File,
        path: &Path,
        map: fn(&File, u64, usize) -> Result<Mapping, MapError>,
    ) -> Result<Self, RingFileError> {
        let stat = |source| MapError {
            step: "fstat",
            source,
        };
        let bytes = file.metadata().map_err(stat)?.len();
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        if size < SessionHeader::BYTES {
            return Err(RingFileError::TooSmall { bytes });
        }
        let geometry = read_geometry(&file)?;
        let map = map(&file, 0, size)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            map,
            consumed: None,
            geometry,
        })
    }

    /// The open file, for locks and for passing it on.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where it was found. A memfd has none that others could open.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The validated geometry, which does not change while the file is mapped.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The mapping of the whole file.
    #[must_use]
    pub fn map(&self) -> &Mapping {
        &self.map
    }

    /// Whether a page was gone when it was touched: see [`crate::system::guard`]. From then on
    /// words of it read as zeros, and stores to it reach no other process.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        let consumed = self.consumed.as_ref();
        self.map.is_broken() || consumed.is_some_and(Mapping::is_broken)
    }

    /// The ring directory, through which threads of the producer claim slots.
    #[must_use]
    pub fn directory<'f>(&'f self) -> Directory<'f, impl Fn(u32) -> Option<SlotView<'f>>> {
        let used = self.state_word(offset_of!(SessionState, slots_used));
        Directory::new(used, self.geometry.header.slots, |index| self.slot(index))
    }

    /// Directory entries in use, from index 0 on; it only grows. A reader looks at these again and
    /// again, because new threads add to them.
    #[must_use]
    pub fn slots_used(&self) -> u32 {
        self.directory().used()
    }

    /// The slot with this index; `None`: the directory has no such entry. An entry that is not in
    /// use yet is FREE.
    #[must_use]
    pub fn slot(&self, index: u32) -> Option<SlotView<'_>> {
        let header = &self.geometry.header;
        if index >= header.slots {
            return None;
        }
        let offset = header.directory_offset + u64::from(index) * Slot::BYTES as u64;
        let words = self.map.words(offset, SLOT_WORDS as u64 * 8)?;
        SlotView::new(words, self.consumed_word(index)?)
    }

    fn consumed_word(&self, index: u32) -> Option<&AtomicU64> {
        let offset = self.geometry.header.consumed_offset;
        let within = u64::from(index) * 8;
        let word = match &self.consumed {
            Some(map) => map.words(offset % SYSTEM_PAGE + within, 8)?,
            None => self.map.words(offset + within, 8)?,
        };
        word.first()
    }

    /// The words of all pages of a ring; `None`: the geometry is not valid for this file.
    #[must_use]
    pub fn pages(&self, geometry: SlotGeometry) -> Option<&[AtomicU64]> {
        if !geometry.valid(self.map.bytes()) {
            return None;
        }
        self.map.words(geometry.pages_offset, geometry.ring_bytes())
    }

    /// The stack of open spans of a slot; `None`: it has none, or not in this file.
    #[must_use]
    pub fn span_stack(&self, slot: SlotView<'_>) -> Option<&SpanStack> {
        let offset = slot.stack_offset();
        let words = || self.map.words(offset, STACK_BYTES)?.first_chunk();
        (offset != 0 && offset.is_multiple_of(64)).then(words)?
    }

    /// One word of [`SessionState`], by the byte offset of its field there.
    #[must_use]
    pub fn state_word(&self, offset: usize) -> &AtomicU64 {
        &self.state_words()[offset / 8]
    }

    /// The schema stream: read by all sides, appended to by the producer.
    #[must_use]
    pub fn schema_log(&self) -> SchemaLog<'_> {
        let words = self.map.words(0, self.map.bytes() & !7).unwrap_or(&[]);
        SchemaLog::over(self.state_words(), words)
    }

    /// The control mailbox; `None`: the session has none (`control=off`).
    #[must_use]
    pub fn mailbox(&self) -> Option<Mailbox<'_>> {
        let offset = self.geometry.header.mailbox_offset;
        let words = || self.map.words(offset, MAILBOX_BYTES as u64);
        Mailbox::over((offset != 0).then(words)??)
    }

    /// The words of [`SessionState`].
    #[must_use]
    pub fn state_words(&self) -> &[AtomicU64; STATE_WORDS] {
        static ZEROS: [AtomicU64; STATE_WORDS] = [const { AtomicU64::new(0) }; STATE_WORDS];
        let offset = self.geometry.header.state_offset;
        // The header was validated: the state region is there.
        self.map
            .words(offset, SessionState::BYTES as u64)
            .and_then(<[AtomicU64]>::first_chunk)
            .unwrap_or(&ZEROS)
    }

    /// Phase of the session: see [`phase`]. What was laid out before it is visible after it
    /// (`[T2]`).
    #[must_use]
    pub fn phase(&self) -> u64 {
        self.state_word(offset_of!(SessionState, phase))
            .load(order::state_acquire()) // [T2]
    }

    /// Whether the producer closed the session: no event type is enabled any more, and no record
    /// will follow.
    #[must_use]
    pub fn closed(&self) -> bool {
        self.phase() == phase::CLOSED
    }

    /// Whether the producer announced its end: it closed the session, or is in its exit, from which
    /// events may come until the process is gone. A killed process announces nothing.
    #[must_use]
    pub fn has_said_bye(&self) -> bool {
        matches!(self.phase(), phase::CLOSED | phase::EXITING)
    }

    /// Status of the process's exit, 0 to 255, once it has begun. `None`: the process was killed,
    /// called `_exit`, still runs, or its C library did not give the status.
    #[must_use]
    pub fn exit_status(&self) -> Option<u8> {
        let word = self.state_word(offset_of!(SessionState, exit_status));
        exit_status::from_word(word.load(Relaxed))
    }

    /// Events lost that belong to no ring, by cause: their thread had none. Cumulative.
    #[must_use]
    pub fn lost(&self) -> [u64; CAUSES] {
        let first = offset_of!(SessionState, lost);
        core::array::from_fn(|i| self.state_word(first + 8 * i).load(Relaxed))
    }

    /// Whether the schema stream had no room for an entry: records of that type are shown raw.
    #[must_use]
    pub fn schema_incomplete(&self) -> bool {
        let flags = self.state_word(offset_of!(SessionState, flags));
        flags.load(Relaxed) & SCHEMA_INCOMPLETE != 0
    }

    /// The bitmap of enabled event types, a bit each; stored by the producer, for readers to show.
    #[must_use]
    pub fn enabled_words(&self) -> &[AtomicU64] {
        let header = &self.geometry.header;
        self.map
            .words(header.enabled_offset, header.enabled_bytes & !7)
            .unwrap_or(&[])
    }
}

fn map_consumed(file: &File, geometry: &Geometry) -> Result<Mapping, MapError> {
    let offset = geometry.header.consumed_offset;
    let start = offset / SYSTEM_PAGE * SYSTEM_PAGE;
    let bytes = offset - start + u64::from(geometry.header.slots) * 8;
    Mapping::writable(file, start, bytes as usize)
}
