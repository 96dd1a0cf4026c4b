//! Damage in segments: bytes that are no blocks. It is reported once, and the bytes are kept.
//!
//! Disks lose bits and tails. The collector must go on in such a store, but may not destroy
//! evidence of what happened.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringmark_decoder::Fault;
use ringmark_decoder::store::copies;

use super::context::StoreContext;
use super::error::{StoreError, io_at};
use super::store_directory::create;
use crate::figures::Figures;
use crate::mutex::lock;
use crate::notice::Notice;

impl StoreContext {
    /// Reports and counts damage in a segment that stays as it is, once for each segment.
    pub(super) fn damaged(&self, segment: &Path, what: &str) {
        if lock(&self.damaged).insert(segment.to_owned()) {
            Figures::add(&self.figures.damaged_segments_total, 1);
            self.notice(Notice::error(format!(
                "{what}; the segment stays, what else is in it is read"
            )));
        }
    }

    /// Copies the end of a segment, from `offset` on, before it is cut off.
    ///
    /// # Errors
    /// The copy cannot be made: then the end must not be cut off.
    pub(super) fn keep_end(
        &self,
        segment: &Path,
        offset: u64,
        what: &str,
    ) -> Result<(), StoreError> {
        let kept = keep(segment, offset).map_err(io_at("copy the end of", segment))?;
        Figures::add(&self.figures.damaged_segments_total, 1);
        let place = kept.display();
        self.notice(Notice::error(format!(
            "{what}; no block follows, cut off and kept: {place}"
        )));
        Ok(())
    }
}

/// Whether the fault is that a file ends within a block: its writer was killed, which is no damage.
pub(super) fn is_cut(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::TruncatedHeader { .. } | Fault::TruncatedContent { .. }
    )
}

/// Copies the end of a file to the next free name; returns that name.
fn keep(segment: &Path, offset: u64) -> io::Result<PathBuf> {
    let mut from = File::open(segment)?;
    from.seek(SeekFrom::Start(offset))?;
    let mode = from.metadata()?.mode() & 0o777;
    for place in copies(segment) {
        match create(&place, mode) {
            Ok(mut copy) => {
                let copied = io::copy(&mut from, &mut copy).and_then(|_| copy.sync_all());
                if copied.is_err() {
                    let _ = fs::remove_file(&place);
                }
                return copied.map(|()| place);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes the copies of a segment's ends; returns how many there were.
pub(super) fn remove_copies(segment: &Path) -> u64 {
    let removed = copies(segment).take_while(|copy| fs::remove_file(copy).is_ok());
    removed.count() as u64
}
