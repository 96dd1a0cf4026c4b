//! Indexes of segments, made when a segment is closed.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ringmark_decoder::store::{index_of, segment_end};
use ringmark_decoder::{BlockReader, Damage, IndexBuilder, Item};

use super::damaged::is_cut;
use super::store_directory::{create, remove_left};

/// Makes the index of a segment that is not written any more. A segment with damage gets none, and
/// its first damage is returned; a torn end, left by a killed writer, does not count as damage.
///
/// # Errors
/// The segment cannot be read, or its index not be written.
pub fn make(segment: &Path) -> io::Result<Option<Damage>> {
    let end = segment_end(segment)?;
    let name = segment.display().to_string();
    let mut reader = BlockReader::new(&name, File::open(segment)?.take(end.segment_bytes));
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
    let Some(index) = builder.finish(end) else {
        return Ok(None);
    };
    let (new, place) = (segment.with_extension("idx.new"), index_of(segment));
    remove_left(&new)?;
    let mode = fs::metadata(segment)?.mode() & 0o777;
    create(&new, mode)?.write_all(&index.bytes())?;
    fs::rename(&new, &place)?;
    Ok(None)
}
