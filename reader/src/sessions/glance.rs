//! Whether anything may have come to the session directories since they were last read: to ask for
//! the time of their last change costs little, to read them does not.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringmark_ring::clock;

use crate::sessions::directories;
use crate::sessions::file_id::FileId;

/// How often they are read in any case.
const READ_EVERY: Duration = Duration::from_millis(500);
/// Two changes within this time may bear the same time: the kernel's clock for it is a coarse one.
const SAME_TIME_NS: i128 = 100_000_000;

/// A directory at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    id: FileId,
    /// Time of its last change, ns since 1970.
    changed_ns: i128,
}

/// The session directories as they were when they were last read.
#[derive(Debug, Default)]
pub(crate) struct Glance {
    seen: Vec<(PathBuf, Option<Stamp>)>,
    read_at: Option<Instant>,
    /// A further change would bear another time.
    is_settled: bool,
}

impl Glance {
    /// Whether the directories should be read now, which the caller then does.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_old = self.read_at.is_none_or(|at| at.elapsed() >= READ_EVERY);
        let is_same = |(path, seen): &(PathBuf, Option<Stamp>)| stamp(path) == *seen;
        if !is_old && self.is_settled && self.seen.iter().all(is_same) {
            return false;
        }
        self.look();
        true
    }

    /// Has them read next time: something there was not ready.
    pub(crate) fn again(&mut self) {
        self.is_settled = false;
    }

    fn look(&mut self) {
        let now = i128::from(clock::realtime_ns());
        let stamped = |path: PathBuf| {
            let stamp = stamp(&path);
            (path, stamp)
        };
        self.seen = directories::watched().into_iter().map(stamped).collect();
        let mut stamps = self.seen.iter().filter_map(|(_, stamp)| *stamp);
        self.is_settled = stamps.all(|stamp| (now - stamp.changed_ns).abs() > SAME_TIME_NS);
        self.read_at = Some(Instant::now());
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
