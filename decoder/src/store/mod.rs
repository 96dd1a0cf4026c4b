//! The files of a collector's store, for its readers: segments, their indexes, and copies of what
//! was cut off segments. Only the collector writes there.
//!
//! [`segments`] finds the files by name, [`load_index`] says what a segment holds without reading
//! it, and [`SegmentIndex::may_pass`] says whether a filter needs it. [`read`] reads whole stores, and trace files.

mod files;
mod index;
mod index_file;
mod read;

pub use files::{
    ID_FILE, SegmentName, copies, copies_below, directory_name, dumps_below, files_of_store, host,
    index_of, is_copy, parse, parse_stored, parse_with, segment, segments, service_directory,
};
pub use index::{IndexBuilder, SegmentEnd, SegmentIndex};
pub use index_file::{load_index, segment_end};
pub use read::{Opened, Unreadable, read, removed_text};
