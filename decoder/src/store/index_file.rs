//! The file with the index of a segment, next to the segment.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use ringmark_format::codec::crc32;
use ringmark_format::store::INDEX_TAIL_BYTES;

use super::files::index_of;
use super::index::{SegmentEnd, SegmentIndex};

/// Reads the index of a segment. `None`: there is none, or the segment has changed since it was
/// made.
#[must_use]
pub fn load_index(segment: &Path) -> Option<SegmentIndex> {
    let index = SegmentIndex::read(&fs::read(index_of(segment)).ok()?)?;
    let end = segment_end(segment).ok()?;
    let speaks_of_it =
        index.about.segment_bytes == end.segment_bytes && index.about.tail_crc == end.tail_crc;
    speaks_of_it.then_some(index)
}

/// Reads how a segment ends.
///
/// # Errors
/// It cannot be read.
pub fn segment_end(segment: &Path) -> io::Result<SegmentEnd> {
    let mut file = File::open(segment)?;
    let bytes = file.metadata()?.len();
    let tail = bytes.min(INDEX_TAIL_BYTES.into());
    file.seek(SeekFrom::Start(bytes - tail))?;
    let mut end = Vec::with_capacity(tail as usize);
    file.take(tail).read_to_end(&mut end)?;
    Ok(SegmentEnd {
        segment_bytes: bytes,
        tail_crc: crc32(&end),
    })
}
