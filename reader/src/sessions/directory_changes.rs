//! Whether the session directories may have changed since they were last read.
//!
//! A recorder asks a hundred times a second. The time of a directory's last change costs one system
//! call, its content many.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringmark_ring::clock;

use crate::interval::Interval;
use crate::sessions::directories;
use crate::sessions::file_id::FileId;

/// How often the directories are read in any case.
const READ_EVERY: Duration = Duration::from_millis(500);
/// Two changes within this time may carry the same time stamp: the kernel's clock for it is coarse.
const SAME_TIME_NS: i128 = 100_000_000;

/// What tells two states of a directory apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    id: FileId,
    /// Time of its last change, in ns since 1970.
    changed_ns: i128,
}

/// A watched directory when it was last read.
#[derive(Debug)]
struct SeenDirectory {
    path: PathBuf,
    /// `None`: it was not there.
    stamp: Option<Stamp>,
}

/// The session directories as they were when they were last read.
#[derive(Debug, Default)]
pub(crate) struct DirectoryChanges {
    seen: Vec<SeenDirectory>,
    reads: Interval,
    /// The stamps are old enough that a further change would carry another time.
    is_settled: bool,
}

impl DirectoryChanges {
    /// Whether the directories should be read now. The caller then reads them.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_old = self.reads.is_due(READ_EVERY);
        let is_same = |seen: &SeenDirectory| stamp(&seen.path) == seen.stamp;
        if !is_old && self.is_settled && self.seen.iter().all(is_same) {
            return false;
        }
        self.remember();
        true
    }

    /// Makes the next [`DirectoryChanges::is_due`] say yes: a file there was not ready.
    pub(crate) fn look_again(&mut self) {
        self.is_settled = false;
    }

    fn remember(&mut self) {
        let now = i128::from(clock::realtime_ns());
        let stamped = |path: PathBuf| {
            let stamp = stamp(&path);
            SeenDirectory { path, stamp }
        };
        self.seen = directories::watched().into_iter().map(stamped).collect();
        let mut stamps = self.seen.iter().filter_map(|seen| seen.stamp);
        self.is_settled = stamps.all(|stamp| (now - stamp.changed_ns).abs() > SAME_TIME_NS);
        self.reads.done();
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let about = fs::symlink_metadata(path).ok()?;
    let changed_ns = i128::from(about.ctime()) * 1_000_000_000 + i128::from(about.ctime_nsec());
    Some(Stamp {
        id: FileId::of(&about),
        changed_ns,
    })
}
