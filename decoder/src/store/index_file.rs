//! The file with the index of a segment, next to the segment.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use ringmark_format::codec::crc32;
use ringmark_format::store::INDEX_TAIL_BYTES;

use super::files::index_of;
use super::index::SegmentIndex;

/// Reads the index of a segment. `None`: there is none, or the segment has changed since it was
/// made.
#[must_use]
pub fn load_index(segment: &Path) -> Option<SegmentIndex> {
    let index = SegmentIndex::read(&fs::read(index_of(segment)).ok()?)?;
    let (bytes, crc) = segment_end(segment).ok()?;
    let speaks_of_it = index.about.segment_bytes == bytes && index.about.tail_crc == crc;
    speaks_of_it.then_some(index)
}

/// Size of a segment in bytes, and the CRC-32 of its last [`INDEX_TAIL_BYTES`] bytes: by these an
/// index knows its segment.
///
/// # Errors
/// It cannot be read.
pub fn segment_end(segment: &Path) -> io::Result<(u64, u32)> {
    let mut file = File::open(segment)?;
    let bytes = file.metadata()?.len();
    let tail = bytes.min(INDEX_TAIL_BYTES.into());
    file.seek(SeekFrom::Start(bytes - tail))?;
    let mut end = Vec::with_capacity(tail as usize);
    file.take(tail).read_to_end(&mut end)?;
    Ok((bytes, crc32(&end)))
}
