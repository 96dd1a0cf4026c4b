//! What is removed: the oldest segments, by age and by the size of the store.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{StoreError, StoreOptions, io_at, name};

/// What a store keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retention {
    /// Segments in all, bytes. The oldest go first.
    pub bytes: Option<u64>,
    /// Segments that were written last longer ago go.
    pub age: Option<Duration>,
}

/// What was found and done.
#[derive(Debug, Default)]
pub(super) struct Enforced {
    /// Segments removed.
    pub(super) removed: u64,
    /// Their bytes.
    pub(super) removed_bytes: u64,
    /// Bytes of those that are left.
    pub(super) bytes: u64,
    pub(super) errors: Vec<StoreError>,
}

/// Finds what is not kept; `remove` removes a segment, or says that it must stay.
pub(super) fn enforce(
    options: &StoreOptions,
    remove: impl Fn(&Path) -> Result<bool, StoreError>,
) -> Enforced {
    let Retention { bytes, age } = options.retention;
    let mut done = Enforced::default();
    let files = name::segments(&options.root).unwrap_or_else(|error| {
        done.errors.push(io_at("read", &options.root)(error));
        Vec::new()
    });
    let mut segments: Vec<(SystemTime, u64, PathBuf)> = files
        .into_iter()
        .filter_map(|path| {
            let about = fs::metadata(&path).ok()?;
            Some((about.modified().ok()?, about.len(), path))
        })
        .collect();
    segments.sort();
    let mut total: u64 = segments.iter().map(|(_, bytes, _)| bytes).sum();
    for (written, size, path) in segments {
        let is_old = age.is_some_and(|age| written.elapsed().unwrap_or_default() > age);
        let is_much = bytes.is_some_and(|bytes| total > bytes);
        if !(is_old || is_much) {
            continue;
        }
        match remove(&path) {
            Ok(true) => {
                total -= size;
                done.removed += 1;
                done.removed_bytes += size;
            }
            Ok(false) => {}
            Err(error) => done.errors.push(error),
        }
    }
    done.bytes = total;
    done
}
