//! The header of a ring file, validated: what is read of it once, and believed from then on.
//!
//! The header may be damaged, of another version, or no header at all. Every number in it that is
//! used later is bounded here by the size of the file, so the rest of this crate adds offsets
//! without checks of its own.

use std::fs::File;

use ringmark_format::session::{Clock, Mode, RING_FILE_MAGIC, SessionHeader, SessionState};
use ringmark_format::slot::Slot;
use ringmark_format::{ENDIAN_MARK, VERSION_MAJOR};
use zerocopy::{FromBytes, FromZeros};

use super::error::RingFileError;
use crate::system::mapping::MapError;

/// Regions that are mapped alone start at a multiple of this, in bytes. Part of the format: it does
/// not follow a system with larger pages.
pub const SYSTEM_PAGE: u64 = 4096;

/// Most directory entries that a session can have.
pub const SLOTS_MAX: u32 = 1 << 16;
/// Largest header region, attributes included: a reader copies no more, whatever the file says.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// The session's geometry: validated, private, never read again from shared memory.
///
/// Offsets in the header lie within the file, are multiples of 8, and their regions end within it.
/// Regions may overlap: that a producer laid them out badly is harmless to a reader.
#[derive(Debug, Clone)]
pub struct Geometry {
    /// The header as it was when it was validated.
    pub header: SessionHeader,
    /// The session attributes, raw: entries of tag and value, which a parser bounds.
    pub attributes: Vec<u8>,
    /// Mode of the session: what a full ring gives up.
    pub mode: Mode,
    /// Clock of the session: the unit of its ticks.
    pub clock: Clock,
}

impl Geometry {
    /// Takes a copy of the header region apart and validates it against the size of the file, in
    /// bytes.
    ///
    /// # Errors
    /// The first thing that is wrong. No input makes it panic.
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

/// Readers map mailbox and consumed words for writing, but never the first system page: a map of it
/// for writing is how a living producer is known ([`crate::system::identity`]).
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

/// Reads and validates the header of a ring file without mapping it: for looking at many files, of
/// which few are mapped.
///
/// # Errors
/// What is wrong with the file.
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
