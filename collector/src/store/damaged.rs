//! What of a segment is no blocks: told once, and kept.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringmark_decoder::Fault;
use ringmark_decoder::store::copies;

use super::context::Context;
use super::error::{StoreError, io_at};
use super::store_directory::create;
use crate::figures::Figures;
use crate::lock::lock;

impl Context {
    /// Damage was found in a segment that stays as it is: told and counted once.
    pub(super) fn damaged(&self, segment: &Path, what: &str) {
        if lock(&self.damaged).insert(segment.to_owned()) {
            Figures::add(&self.figures.damaged_segments_total, 1);
            self.say(format!(
                "{what}; the segment stays, what else is in it is read"
            ));
        }
    }

    /// Keeps what is about to be cut off a segment's end, from `offset` on.
    pub(super) fn keep_end(
        &self,
        segment: &Path,
        offset: u64,
        what: &str,
    ) -> Result<(), StoreError> {
        let kept = keep(segment, offset).map_err(io_at("copy the end of", segment))?;
        Figures::add(&self.figures.damaged_segments_total, 1);
        let place = kept.display();
        self.say(format!(
            "{what}; no block follows, cut off and kept: {place}"
        ));
        Ok(())
    }

    fn say(&self, what: String) {
        if let Some(people) = self.people.get() {
            let _ = people.send(what);
        }
    }
}

/// Whether a file ends within a block: its writer was killed.
pub(super) fn is_cut(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::TruncatedHeader { .. } | Fault::TruncatedContent { .. }
    )
}

/// Copies a file's end to the next free name.
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

/// Removes the copies of a segment that is removed; how many there were.
pub(super) fn remove_copies(segment: &Path) -> u64 {
    let removed = copies(segment).take_while(|copy| fs::remove_file(copy).is_ok());
    removed.count() as u64
}
