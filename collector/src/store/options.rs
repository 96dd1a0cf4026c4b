//! What a store is opened with.

use std::path::PathBuf;
use std::time::Duration;

use super::store_directory::DirectoryOptions;

/// When what was received counts as durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sync {
    /// When it is on the disk: survives a power loss.
    #[default]
    Disk,
    /// When it is in the kernel's page cache: survives the collector's death.
    Cache,
}

/// How a store keeps segments.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The directory.
    pub root: PathBuf,
    /// When data is durable.
    pub sync: Sync,
    /// A segment is closed when it has reached this size.
    pub segment_bytes: u64,
    /// A segment is closed when it is this old.
    pub segment_age: Duration,
    /// What is removed.
    pub retention: Retention,
    /// Memory for what is remembered of sessions, bytes; one connection gets an eighth.
    pub session_bytes: u64,
    /// What may be done with the directory.
    pub directory: DirectoryOptions,
}

/// What a store keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retention {
    /// Segments in all, bytes. The oldest go first.
    pub bytes: Option<u64>,
    /// Segments whose last event is older go.
    pub age: Option<Duration>,
}
