//! What a process sees of the file system: a container or a chroot has another `/dev/shm`, or none.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where session directories are, unless the process was told otherwise.
const DEFAULT_PARENT: &str = "/dev/shm";

/// Whether a ring file that the process makes stands where this tool sees it by the same path.
pub(crate) fn shares_sessions(pid: u32) -> bool {
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    let id = |path: &Path| {
        let about = fs::metadata(path).ok()?;
        Some((about.dev(), about.ino()))
    };
    let directory = told_directory(pid).unwrap_or_else(|| PathBuf::from(DEFAULT_PARENT));
    // The process may have to make it first, in its parent.
    for path in directory.ancestors().take(2) {
        let theirs = id(&root.join(path.strip_prefix("/").unwrap_or(path)));
        match (theirs, id(path)) {
            (None, None) => {}
            (theirs, ours) => return theirs == ours,
        }
    }
    false
}

/// `RINGMARK_DIR`, as the process was started with it.
fn told_directory(pid: u32) -> Option<PathBuf> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let told = variables.find_map(|variable| variable.strip_prefix(b"RINGMARK_DIR="))?;
    (!told.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(told)))
}
