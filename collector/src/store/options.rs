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
    /// Memory for remembered sessions, in bytes; one host gets at most an eighth.
    pub session_bytes: u64,
    /// What the collector may do with the directory.
    pub directory: DirectoryOptions,
}

impl StoreOptions {
    /// Memory for remembered sessions that fits most fleets, in bytes: a session takes a few KiB, and its schema.
    pub const SESSION_BYTES: u64 = 256 << 20;
}

/// Which segments a store keeps; the default keeps all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retention {
    /// Most bytes of all segments together, those that are being written included. What is too much
    /// is taken from the host that has most, its oldest first.
    pub bytes: Option<u64>,
    /// Most bytes of the segments of one host.
    pub host_bytes: Option<u64>,
    /// What stays free on the file system.
    pub min_free: MinFree,
    /// Age of its last event at which a segment is removed.
    pub age: Option<Duration>,
}

/// What stays free on the store's file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinFree {
    /// A number of bytes.
    Bytes(u64),
    /// A part of the file system, in percent.
    Percent(u8),
}

impl Default for MinFree {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

impl MinFree {
    /// The same in bytes, for a file system of this size.
    pub(super) fn bytes(self, whole: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => whole / 100 * u64::from(percent),
        }
    }
}
