//! The ring file: regions at offsets that the header states, read once and validated.

mod error;

use std::fs::File;
use std::path::{Path, PathBuf};

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use ringmark_format::counters::CAUSES;
use ringmark_format::mailbox::MAILBOX_BYTES;
use ringmark_format::session::{
    Clock, Mode, RING_FILE_MAGIC, SCHEMA_INCOMPLETE, SessionHeader, SessionState, phase,
};
use ringmark_format::slot::Slot;
use ringmark_format::{ENDIAN_MARK, VERSION_MAJOR};
use zerocopy::{FromBytes, FromZeros};

pub use self::error::RingFileError;
use crate::protocol::directory::Directory;
use crate::protocol::mailbox::Mailbox;
use crate::protocol::order;
use crate::protocol::schema_log::{STATE_WORDS, SchemaLog};
use crate::protocol::slot::{SLOT_WORDS, SlotGeometry, SlotView};
use crate::protocol::sync::AtomicU64;
use crate::system::mapping::{MapError, Mapping};

/// Most directory entries a session can have.
pub const SLOTS_MAX: u32 = 1 << 16;
/// Largest header region.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// The session's geometry: validated, private, never read again from shared memory.
#[derive(Debug, Clone)]
pub struct Geometry {
    /// The header as it was.
    pub header: SessionHeader,
    /// The session attributes, raw.
    pub attributes: Vec<u8>,
    /// Mode of the session.
    pub mode: Mode,
    /// Clock of the session.
    pub clock: Clock,
}

impl Geometry {
    /// Takes the header region apart and validates it against the size of the file.
    ///
    /// # Errors
    /// What is wrong.
    pub fn parse(region: &[u8], file_bytes: u64) -> Result<Self, RingFileError> {
        let (header, rest) =
            SessionHeader::read_from_prefix(region).map_err(|_| RingFileError::TooSmall {
                bytes: region.len() as u64,
            })?;
        check_identity(&header)?;
        if file_bytes < header.file_bytes {
            return Err(RingFileError::Truncated {
                found: file_bytes,
                expected: header.file_bytes,
            });
        }
        check_regions(&header, file_bytes)?;
        let attributes =
            rest.get(..header.attributes_bytes as usize)
                .ok_or(RingFileError::Header {
                    field: "attributes_bytes",
                    found: header.attributes_bytes.into(),
                })?;
        let mode = Mode::from_u32(header.mode).ok_or(RingFileError::Header {
            field: "mode",
            found: header.mode.into(),
        })?;
        let clock = Clock::from_u32(header.clock).ok_or(RingFileError::Header {
            field: "clock",
            found: header.clock.into(),
        })?;
        Ok(Self {
            header,
            attributes: attributes.to_vec(),
            mode,
            clock,
        })
    }
}

fn check_identity(header: &SessionHeader) -> Result<(), RingFileError> {
    if header.magic != RING_FILE_MAGIC {
        return Err(RingFileError::NotARingFile {
            found: header.magic,
        });
    }
    if header.endian == ENDIAN_MARK.swap_bytes() {
        return Err(RingFileError::ForeignEndian);
    }
    if header.endian != ENDIAN_MARK {
        return Err(RingFileError::Header {
            field: "endian",
            found: header.endian.into(),
        });
    }
    if header.version_major > VERSION_MAJOR {
        return Err(RingFileError::NewerMajor {
            found: header.version_major,
        });
    }
    Ok(())
}

/// Readers map mailbox and consumed words for writing, never the first page: who does is the producer.
fn check_written(header: &SessionHeader) -> Result<(), RingFileError> {
    let (mailbox, consumed) = (header.mailbox_offset, header.consumed_offset);
    let (field, found) = match () {
        () if mailbox > 0 && mailbox < SYSTEM_PAGE => ("mailbox_offset", mailbox),
        () if consumed < SYSTEM_PAGE => ("consumed_offset", consumed),
        () => return Ok(()),
    };
    Err(RingFileError::Header { field, found })
}

fn check_regions(header: &SessionHeader, file_bytes: u64) -> Result<(), RingFileError> {
    if header.slots == 0 || header.slots > SLOTS_MAX {
        return Err(RingFileError::Header {
            field: "slots",
            found: header.slots.into(),
        });
    }
    let slots = u64::from(header.slots);
    let regions = [
        ("header_bytes", 0, header.header_bytes),
        (
            "state_offset",
            header.state_offset,
            SessionState::BYTES as u64,
        ),
        (
            "mailbox_offset",
            header.mailbox_offset,
            header.mailbox_bytes,
        ),
        ("consumed_offset", header.consumed_offset, slots * 8),
        (
            "directory_offset",
            header.directory_offset,
            slots * Slot::BYTES as u64,
        ),
        (
            "enabled_offset",
            header.enabled_offset,
            header.enabled_bytes,
        ),
    ];
    check_written(header)?;
    if header.header_bytes > HEADER_BYTES_MAX {
        return Err(RingFileError::Header {
            field: "header_bytes",
            found: header.header_bytes,
        });
    }
    for (field, offset, bytes) in regions {
        let inside = offset
            .checked_add(bytes)
            .is_some_and(|end| end <= file_bytes);
        if !inside || !offset.is_multiple_of(8) {
            return Err(RingFileError::Header {
                field,
                found: offset,
            });
        }
    }
    Ok(())
}

/// A mapped ring file with its geometry.
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
        let (file, map, geometry) = Self::map_with(file, Mapping::read_only)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            map,
            consumed: None,
            geometry,
        })
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
    /// What is wrong with it.
    pub fn produce(file: File, path: &Path) -> Result<Self, RingFileError> {
        let (file, map, geometry) = Self::map_with(file, Mapping::writable)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            map,
            consumed: None,
            geometry,
        })
    }

    fn map_with(
        file: File,
        map: fn(&File, u64, usize) -> Result<Mapping, MapError>,
    ) -> Result<(File, Mapping, Geometry), RingFileError> {
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
        Ok((file, map, geometry))
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where it was found. A memfd has none that others could open.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The validated geometry.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The mapping.
    #[must_use]
    pub fn map(&self) -> &Mapping {
        &self.map
    }

    /// Whether a page was gone when it was touched: see [`crate::system::guard`].
    #[must_use]
    pub fn is_broken(&self) -> bool {
        let consumed = self.consumed.as_ref();
        self.map.is_broken() || consumed.is_some_and(Mapping::is_broken)
    }

    /// The ring directory.
    #[must_use]
    pub fn directory<'f>(&'f self) -> Directory<'f, impl Fn(u32) -> Option<SlotView<'f>>> {
        let used = self.state_word(offset_of!(SessionState, slots_used));
        Directory::new(used, self.geometry.header.slots, |index| self.slot(index))
    }

    /// Directory entries in use.
    #[must_use]
    pub fn slots_used(&self) -> u32 {
        self.directory().used()
    }

    /// The slot with this index.
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

    /// All pages of a ring with validated geometry.
    #[must_use]
    pub fn pages(&self, geometry: SlotGeometry) -> Option<&[AtomicU64]> {
        if !geometry.valid(self.map.bytes()) {
            return None;
        }
        self.map.words(geometry.pages_offset, geometry.ring_bytes())
    }

    /// One word of [`SessionState`], by its byte offset there.
    #[must_use]
    pub fn state_word(&self, offset: usize) -> &AtomicU64 {
        &self.state_words()[offset / 8]
    }

    /// The schema stream.
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

    /// Phase of the session: see [`phase`].
    #[must_use]
    pub fn phase(&self) -> u64 {
        self.state_word(offset_of!(SessionState, phase))
            .load(order::state_acquire()) // [T2]
    }

    /// Whether the producer closed the session: no event type is on any more.
    #[must_use]
    pub fn closed(&self) -> bool {
        self.phase() == phase::CLOSED
    }

    /// Whether the producer said good-bye: it closed the session, or is in its exit, from which
    /// events may come until it is gone.
    #[must_use]
    pub fn has_said_bye(&self) -> bool {
        matches!(self.phase(), phase::CLOSED | phase::EXITING)
    }

    /// Events lost that belong to no ring, by cause.
    #[must_use]
    pub fn lost(&self) -> [u64; CAUSES] {
        let first = offset_of!(SessionState, lost);
        core::array::from_fn(|i| self.state_word(first + 8 * i).load(Relaxed))
    }

    /// Whether the schema stream had no room for an entry.
    #[must_use]
    pub fn schema_incomplete(&self) -> bool {
        let flags = self.state_word(offset_of!(SessionState, flags));
        flags.load(Relaxed) & SCHEMA_INCOMPLETE != 0
    }

    /// The bitmap of enabled event types.
    #[must_use]
    pub fn enabled_words(&self) -> &[AtomicU64] {
        let header = &self.geometry.header;
        self.map
            .words(header.enabled_offset, header.enabled_bytes & !7)
            .unwrap_or(&[])
    }
}

/// Regions that are mapped alone start at a multiple of this.
pub const SYSTEM_PAGE: u64 = 4096;

fn map_consumed(file: &File, geometry: &Geometry) -> Result<Mapping, MapError> {
    let offset = geometry.header.consumed_offset;
    let start = offset / SYSTEM_PAGE * SYSTEM_PAGE;
    let bytes = offset - start + u64::from(geometry.header.slots) * 8;
    Mapping::writable(file, start, bytes as usize)
}

/// Reads and validates the header of a ring file without mapping it.
///
/// # Errors
/// What is wrong with it.
pub fn read_geometry(file: &File) -> Result<Geometry, RingFileError> {
    let stat = |source| MapError {
        step: "fstat",
        source,
    };
    let bytes = file.metadata().map_err(stat)?.len();
    if bytes < SessionHeader::BYTES as u64 {
        return Err(RingFileError::TooSmall { bytes });
    }
    Geometry::parse(&read_header(file, bytes)?, bytes)
}

fn read_header(file: &File, file_bytes: u64) -> Result<Vec<u8>, RingFileError> {
    use std::os::unix::fs::FileExt;
    let read = |source| MapError {
        step: "read header",
        source,
    };
    let mut fixed = SessionHeader::new_zeroed();
    file.read_exact_at(zerocopy::IntoBytes::as_mut_bytes(&mut fixed), 0)
        .map_err(read)?;
    check_identity(&fixed)?;
    let bytes = fixed.header_bytes.min(file_bytes).min(HEADER_BYTES_MAX);
    let mut region = vec![0; bytes as usize];
    file.read_exact_at(&mut region, 0).map_err(read)?;
    Ok(region)
}
