//! What commands read: trace files and stores, and the rings of a running process.

pub(crate) mod exported;
pub(crate) mod follow;
pub(crate) mod notices;
pub(crate) mod rings;
pub(crate) mod trace_files;
