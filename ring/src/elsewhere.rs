//! A process of another pid namespace, where that one lies within our own: we see it under a pid of
//! ours.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ringmark_format::session::SessionHeader;

use crate::{identity, session_dir, small_file};

/// Whether the process that wrote `header` is in sight and maps `file`. Looks at every process: only
/// for those that do not hold the record lock.
#[must_use]
pub(crate) fn maps_file(header: &SessionHeader, file: &File) -> bool {
    let entries = session_dir::entries(Path::new("/proc")).unwrap_or_default();
    let names = entries.iter().filter_map(|path| path.file_name()?.to_str());
    names
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .any(|who| is_that(who, header) && identity::is_mapped(who, file))
}

/// Whether a process that we see is the one with the header's pid in the header's pid namespace.
pub(crate) fn is_that(who: &str, header: &SessionHeader) -> bool {
    let status = small_file::text(&format!("/proc/{who}/status"));
    let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let innermost = pids.and_then(|pids| pids.split_whitespace().last()?.parse().ok());
    let namespace = || fs::metadata(format!("/proc/{who}/ns/pid")).map(|about| about.ino());
    innermost == Some(header.pid) && namespace().is_ok_and(|inode| inode == header.pid_namespace)
}
