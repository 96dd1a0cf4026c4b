//! Lays out a new ring file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use ringmark_format::mailbox::MAILBOX_BYTES;
use ringmark_format::session::{
    Clock, Extent, FLAG_CLOCK_FELL_BACK, RING_FILE_MAGIC, SessionHeader, SessionState, phase,
};
use ringmark_format::slot::Slot;
use ringmark_format::{ENDIAN_MARK, VERSION_MAJOR, VERSION_MINOR};
use ringmark_ring::identity::Identity;
use ringmark_ring::mapping::{self, MapError};
use ringmark_ring::raw;
use ringmark_ring::ring_file::SYSTEM_PAGE;
use zerocopy::{FromZeros, IntoBytes};

use super::other_copies::TimeBase;
use crate::setup::Options;

const HEADER_BYTES: u64 = 2 * SYSTEM_PAGE;
const STATE_BYTES: u64 = SYSTEM_PAGE;
const ENABLED_BYTES: u64 = SYSTEM_PAGE;
/// Size of a schema extent.
pub(super) const EXTENT_BYTES: u64 = 32 << 10;

/// Bytes of a page of this system, at least those of the format.
pub(super) fn system_page() -> u64 {
    SYSTEM_PAGE.max(raw::page_size() as u64)
}

/// Offsets of the regions in front of the rings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Regions {
    state: u64,
    mailbox: u64,
    consumed: u64,
    directory: u64,
    enabled: u64,
    schema: u64,
    /// Where rings start.
    pub(super) end: u64,
    slots: u32,
}

impl Regions {
    /// Regions of a session whose rings may take `cap` bytes.
    pub(super) fn for_cap(cap: u64) -> Self {
        Self::in_pages(system_page(), cap)
    }

    /// On a system with pages of `page` bytes: what readers map for writing, mailbox and consumed words, has pages of its
    /// own, and so have the rings.
    fn in_pages(page: u64, cap: u64) -> Self {
        let slots = (cap / (64 << 10)).clamp(64, 4096) as u32;
        let state = HEADER_BYTES;
        let mailbox = (state + STATE_BYTES).next_multiple_of(page);
        let consumed = (mailbox + MAILBOX_BYTES as u64).next_multiple_of(page);
        let enabled = (consumed + u64::from(slots) * 8).next_multiple_of(page);
        let schema = enabled + ENABLED_BYTES;
        let directory = schema + EXTENT_BYTES;
        Self {
            state,
            mailbox,
            consumed,
            directory,
            enabled,
            schema,
            end: (directory + u64::from(slots) * Slot::BYTES as u64).next_multiple_of(page),
            slots,
        }
    }

    /// Number of slots.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }
}

/// Facts that the header states.
pub(super) struct Facts<'a> {
    pub(super) options: &'a Options,
    /// Whether a helper thread answers requests.
    pub(super) control: bool,
    pub(super) identity: Identity,
    pub(super) session: [u8; 16],
    pub(super) clock: Clock,
    pub(super) fell_back: bool,
    pub(super) time: TimeBase,
    pub(super) attributes: &'a [u8],
}

/// Gives the file its size and allocates the regions in front of the rings. The directory comes last, and gets
/// its first page: most programs have few threads, and each page takes 2 us of the start. Others follow with
/// their first entry.
pub(super) fn allocate(file: &File, regions: &Regions, file_bytes: u64) -> Result<(), MapError> {
    mapping::set_size(file, file_bytes)?;
    mapping::allocate(file, 0, regions.directory + SYSTEM_PAGE)
}

/// Writes header and state. Nothing is mapped yet, and no other process knows the file.
pub(super) fn write(
    file: &File,
    regions: &Regions,
    file_bytes: u64,
    facts: &Facts<'_>,
) -> io::Result<()> {
    let room = HEADER_BYTES as usize - SessionHeader::BYTES;
    let attributes = &facts.attributes[..facts.attributes.len().min(room)];
    let header = header(regions, file_bytes, facts, attributes.len() as u32);
    let mut region = header.as_bytes().to_vec();
    region.extend_from_slice(attributes);
    file.write_all_at(&region, 0)?;
    let mut state = SessionState::new_zeroed();
    state.phase = phase::LIVE;
    state.next_ring_id = 1;
    state.allocated_bytes = regions.end;
    state.schema_extents[0] = Extent {
        offset: regions.schema,
        bytes: EXTENT_BYTES,
    };
    file.write_all_at(state.as_bytes(), regions.state)
}

fn header(
    regions: &Regions,
    file_bytes: u64,
    facts: &Facts<'_>,
    attributes_bytes: u32,
) -> SessionHeader {
    let options = facts.options;
    SessionHeader {
        magic: RING_FILE_MAGIC,
        version_major: VERSION_MAJOR,
        version_minor: VERSION_MINOR,
        endian: ENDIAN_MARK,
        header_bytes: HEADER_BYTES,
        file_bytes,
        state_offset: regions.state,
        mailbox_offset: if facts.control { regions.mailbox } else { 0 },
        mailbox_bytes: if facts.control {
            MAILBOX_BYTES as u64
        } else {
            0
        },
        consumed_offset: regions.consumed,
        directory_offset: regions.directory,
        enabled_offset: regions.enabled,
        enabled_bytes: ENABLED_BYTES,
        slots: regions.slots,
        mode: options.mode as u32,
        clock: facts.clock as u32,
        page_bytes: options.page_bytes,
        ring_bytes: options.ring_bytes,
        attributes_bytes,
        session: facts.session,
        boot_id: facts.identity.boot_id,
        pid: facts.identity.pid,
        uid: rustix::process::geteuid().as_raw(),
        start_time: facts.identity.start_time,
        pid_namespace: facts.identity.pid_namespace,
        tick_zero: facts.time.zero.tick,
        mono_zero_ns: facts.time.zero.mono_ns,
        real_zero_ns: facts.time.real_zero_ns,
        tick_mult: facts.time.rate.mult,
        tick_shift: facts.time.rate.shift,
        flags: if facts.fell_back {
            FLAG_CLOCK_FELL_BACK
        } else {
            0
        },
        parent_pid: rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as u32),
        keep: options.keep as u32,
        reserved: [0; 13],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_readers_write_has_pages_of_its_own() {
        for page in [4096, 16 << 10, 64 << 10] {
            let regions = Regions::in_pages(page, 8 << 20);
            for at in [
                regions.mailbox,
                regions.consumed,
                regions.enabled,
                regions.end,
            ] {
                assert!(at.is_multiple_of(page), "{page}: {regions:?}");
            }
            let ends = [
                (regions.state, HEADER_BYTES),
                (regions.mailbox, regions.state + STATE_BYTES),
                (regions.consumed, regions.mailbox + MAILBOX_BYTES as u64),
                (
                    regions.enabled,
                    regions.consumed + u64::from(regions.slots) * 8,
                ),
                (regions.schema, regions.enabled + ENABLED_BYTES),
                (regions.directory, regions.schema + EXTENT_BYTES),
            ];
            assert!(
                ends.iter().all(|(next, end)| next >= end),
                "{page}: {regions:?}"
            );
        }
    }

    #[test]
    fn small_pages_leave_no_gaps() {
        let regions = Regions::in_pages(4096, 8 << 20);
        assert_eq!(regions.mailbox, 12 << 10);
        assert_eq!(regions.consumed, 20 << 10);
        assert_eq!(regions.enabled, 24 << 10);
        assert_eq!(regions.schema, 28 << 10);
        assert_eq!(regions.directory, 60 << 10);
    }
}
