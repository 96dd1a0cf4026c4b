//! What a store is opened with.

use std::path::PathBuf;
use std::time::Duration;

use super::store_directory::DirectoryOptions;

/// When what was received counts as durable, and is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMode {
    /// When it is on the disk: it survives a power loss.
    #[default]
    Disk,
    /// When it is in the kernel's page cache: it survives the collector's death.
    Cache,
}

/// How a store is configured.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Its directory.
    pub root: PathBuf,
    /// When data counts as durable.
    pub sync: SyncMode,
    /// Size in bytes at which a segment is closed.
    pub segment_bytes: u64,
    /// Age at which a segment is closed.
    pub segment_age: Duration,
    /// Which segments are removed.
    pub retention: Retention,
    /// Memory for remembered sessions, in bytes; one connection gets at most an eighth.
    pub session_bytes: u64,
    /// What the collector may do with the directory.
    pub directory: DirectoryOptions,
}

/// Which segments a store keeps; the default keeps all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retention {
    /// Most bytes of all segments together; the oldest are removed first.
    pub bytes: Option<u64>,
    /// Age of its last event at which a segment is removed.
    pub age: Option<Duration>,
}
