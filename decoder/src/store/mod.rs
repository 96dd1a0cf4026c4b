//! The files of a collector's store, for its readers: segments, their indexes, and copies of what
//! was cut off segments. Only the collector writes there.
//!
//! [`segments`] finds the files by name, [`load_index`] says what a segment holds without reading
//! it, and [`SegmentIndex::may_pass`] says whether a filter needs it.

mod files;
mod index;
mod index_file;

pub use files::{
    ID_FILE, SegmentName, copies, copies_below, dumps_below, files_of_store, host, index_of,
    is_copy, parse, parse_stored, parse_with, segment, segments,
};
pub use index::{IndexBuilder, SegmentEnd, SegmentIndex};
pub use index_file::{load_index, segment_end};
