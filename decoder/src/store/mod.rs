//! What lies in a collector's store, for those who read it: segments, their indexes, copies of what
//! was cut off them. Writing there is the collector's.

mod files;
mod index;
mod index_file;

pub use files::{
    ID_FILE, copies, copies_below, dumps_below, files_of_store, index_of, parse, parse_with,
    segment, segments,
};
pub use index::{IndexBuilder, SegmentIndex};
pub use index_file::{load_index, segment_end};
