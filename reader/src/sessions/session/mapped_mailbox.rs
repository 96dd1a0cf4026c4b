//! The mailbox of a session, mapped to be written. It stays mapped, because long lists take thousands
//! of requests.

use std::sync::OnceLock;

use ringmark_format::mailbox::MAILBOX_BYTES;
use ringmark_ring::mailbox::Mailbox;
use ringmark_ring::mapping::MapError;
use ringmark_ring::ring_file::SYSTEM_PAGE;
use ringmark_ring::{Mapping, RingFile};

/// The mailbox of a session, which the first request maps.
#[derive(Debug, Default)]
pub(crate) struct MappedMailbox(OnceLock<Mapping>);

impl MappedMailbox {
    /// The mailbox that the header of this ring file names. `None`: it is outside the file.
    ///
    /// # Errors
    /// It cannot be mapped.
    pub(crate) fn of(&self, ring: &RingFile) -> Result<Option<Mailbox<'_>>, MapError> {
        let offset = ring.geometry().header.mailbox_offset;
        // A mapping begins at a page of the system.
        let within = offset % SYSTEM_PAGE;
        if self.0.get().is_none() {
            let (start, bytes) = (offset - within, within as usize + MAILBOX_BYTES);
            if start + bytes as u64 > ring.map().bytes() {
                return Ok(None);
            }
            // Another thread may have been first; then its mapping stays.
            let _ = self.0.set(Mapping::writable(ring.file(), start, bytes)?);
        }
        let map = self.0.get();
        let words = map.and_then(|map| map.words(within, MAILBOX_BYTES as u64));
        Ok(words.and_then(Mailbox::over))
    }
}
