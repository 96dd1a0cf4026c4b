//! Indexes of segments: made when a segment is closed, read by whoever looks for a time.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringmark_decoder::{BlockReader, Damage, IndexBuilder, Item, SegmentIndex};
use ringmark_format::codec::crc32;
use ringmark_format::store::INDEX_TAIL_BYTES;

use super::damaged::is_cut;
use super::place::{create, remove_left};

/// Ending of an index's name.
const ENDING: &str = "idx";

/// Where the index of a segment lies.
pub(super) fn path(segment: &Path) -> PathBuf {
    segment.with_extension(ENDING)
}

/// The index of a segment, if it is there and speaks of the segment as it is now.
#[must_use]
pub fn load(segment: &Path) -> Option<SegmentIndex> {
    let index = SegmentIndex::read(&fs::read(path(segment)).ok()?)?;
    let (bytes, crc) = end(segment).ok()?;
    let speaks_of_it = index.about.segment_bytes == bytes && index.about.tail_crc == crc;
    speaks_of_it.then_some(index)
}

/// Size of a segment, and the checksum of its end.
fn end(segment: &Path) -> io::Result<(u64, u32)> {
    let mut file = File::open(segment)?;
    let bytes = file.metadata()?.len();
    let tail = bytes.min(INDEX_TAIL_BYTES.into());
    file.seek(SeekFrom::Start(bytes - tail))?;
    let mut end = Vec::with_capacity(tail as usize);
    file.take(tail).read_to_end(&mut end)?;
    Ok((bytes, crc32(&end)))
}

/// Makes the index of a segment that is not written any more. One with damage gets none, and the
/// first damage is returned, unless it is only that its writer was killed.
///
/// # Errors
/// The segment cannot be read, or its index not be written.
pub fn make(segment: &Path) -> io::Result<Option<Damage>> {
    let (bytes, crc) = end(segment)?;
    let name = segment.display().to_string();
    let mut reader = BlockReader::new(&name, File::open(segment)?.take(bytes));
    let mut builder = IndexBuilder::default();
    while let Some(item) = reader.next_item() {
        let block = match item {
            Item::Block(block) => block,
            Item::Damage(damage) => return Ok(Some(damage).filter(|d| !is_cut(&d.fault))),
        };
        if builder.take(&block).is_none() {
            return Ok(None);
        }
    }
    let Some(index) = builder.finish(bytes, crc) else {
        return Ok(None);
    };
    let (new, place) = (segment.with_extension("idx.new"), path(segment));
    remove_left(&new)?;
    let mode = fs::metadata(segment)?.mode() & 0o777;
    create(&new, mode)?.write_all(&index.bytes())?;
    fs::rename(&new, &place)?;
    Ok(None)
}
