//! The files of a collector's store, for its readers: segments, their indexes, and copies of what
//! was cut off segments. Only the collector writes there.
//!
//! [`segments`] finds the files by name, [`load_index`] says what a segment holds without reading
//! it, and [`SegmentIndex::may_pass`] says whether a filter needs it. [`read`] reads whole stores, and trace files.
//! A store of objects has other names ([`raw_object`]), and a footer in each segment ([`SegmentFooter`]);
//! it is read through an [`ObjectSource`], so that it may lie anywhere.

mod files;
mod footer;
mod index;
mod index_file;
mod links;
mod object_names;
mod object_source;
mod objects;
mod read;

pub use files::{
    ID_FILE, SegmentName, copies, copies_below, directory_name, dumps_below, files_of_store, host,
    index_of, is_copy, parse, parse_stored, parse_with, segment, segments, service_directory,
};
pub use footer::{FooterEntry, SegmentFooter};
pub use index::{IndexBuilder, SegmentEnd, SegmentIndex};
pub use index_file::{load_index, segment_end};
pub use links::{refuse_links_above, refuse_links_in};
pub use object_names::{
    OBJECTS_ID, RAW, SCHEMA, is_object_store, is_raw, objects_below, raw_hour, raw_object,
    schema_object, schema_owner, schema_session,
};
pub use object_source::{DirectorySource, ListedObject, ObjectSource};
pub use read::{Opened, Unreadable, read, removed_text};
