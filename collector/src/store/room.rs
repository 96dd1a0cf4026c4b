//! Whether there is room for more. Without room the store takes in nothing: connections wait with
//! what they have and get no credit, so nothing is sent in vain.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::error::StoreError;
use super::free_space::FreeSpace;
use super::options::StoreOptions;
use crate::figures::Figures;
use crate::mutex::lock;

/// Bytes that must be free before writes are tried again.
const AGAIN_BYTES: u64 = 1 << 20;
/// How long after a failed write the next one is tried, whatever the file system says: a quota does
/// not show in what is free.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Room for more in the store.
#[derive(Debug)]
pub(super) struct Room {
    is_there: watch::Sender<bool>,
    /// When a write failed last.
    failed_at: Mutex<Instant>,
    figures: Arc<Figures>,
}

impl Room {
    /// Room until a write fails.
    pub(super) fn new(figures: Arc<Figures>) -> Self {
        Self {
            is_there: watch::Sender::new(true),
            failed_at: Mutex::new(Instant::now()),
            figures,
        }
    }

    /// Follows whether there is room.
    pub(super) fn follow(&self) -> watch::Receiver<bool> {
        self.is_there.subscribe()
    }

    /// Takes note of a failed write; returns a notice if it is the first that found no room.
    pub(super) fn failed(&self, error: &StoreError) -> Option<String> {
        if !error.is_for_want_of_room() {
            return None;
        }
        *lock(&self.failed_at) = Instant::now();
        let text = || format!("{error}; streamers wait until there is room, nothing is refused");
        self.set(false).then(text)
    }

    /// Looks whether there is room now; returns a notice if that changed.
    pub(super) fn look(&self, options: &StoreOptions) -> Option<String> {
        let space = FreeSpace::of(&options.root).ok()?;
        let free = space.free_bytes;
        Figures::set(&self.figures.free_bytes, free);
        let retention = &options.retention;
        let floor = retention.min_free.bytes(space.whole_bytes);
        Figures::set(&self.figures.min_free_bytes, floor);
        let keep_size = retention.bytes.unwrap_or(0);
        Figures::set(&self.figures.keep_size_bytes, keep_size);
        let root = options.root.display();
        if *self.is_there.borrow() {
            let text = || {
                format!(
                    "{root}: {free} bytes are free, expected {floor} (--min-free); streamers wait \
                     until there is room, nothing is refused"
                )
            };
            return (free < floor && self.set(false)).then(text);
        }
        let is_time = lock(&self.failed_at).elapsed() >= AGAIN_AFTER;
        let is_there = free >= floor && (is_time || free >= AGAIN_BYTES);
        (is_there && self.set(true)).then(|| format!("{root}: there is room again"))
    }

    /// Notes whether there is room; returns whether that changed.
    fn set(&self, is_there: bool) -> bool {
        Figures::set(&self.figures.full, u64::from(!is_there));
        let set = |there: &mut bool| std::mem::replace(there, is_there) != is_there;
        self.is_there.send_if_modified(set)
    }
}

impl StoreError {
    /// Whether a write failed because the disk is full, a quota is used up, or it became read-only:
    /// the same write may succeed later.
    pub(crate) fn is_for_want_of_room(&self) -> bool {
        let Self::Io { source, .. } = self else {
            return false;
        };
        matches!(
            source.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem
        )
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use super::*;

    fn failed(kind: ErrorKind) -> StoreError {
        StoreError::Io {
            action: "write",
            path: PathBuf::from("/store/a"),
            source: kind.into(),
        }
    }

    #[test]
    fn a_full_disk_is_reported_once_and_other_faults_are_no_want_of_room() {
        let room = Room::new(Arc::default());
        let there = room.follow();
        assert_eq!(room.failed(&failed(ErrorKind::PermissionDenied)), None);
        let other = io::Error::other("Input/output error");
        let other = StoreError::Io {
            action: "write",
            path: PathBuf::from("/store/a"),
            source: other,
        };
        assert!(room.failed(&other).is_none() && *there.borrow());
        let told = room.failed(&failed(ErrorKind::StorageFull));
        assert!(told.is_some_and(|text| text.starts_with("/store/a: write: ")));
        assert!(!*there.borrow());
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
            assert_eq!(room.failed(&failed(kind)), None, "reported before");
        }
    }
}
