//! Where a path is mounted, and how.

use std::fs;
use std::path::{Path, PathBuf};

/// A mount, from a line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// Where it is.
    pub(super) point: PathBuf,
    /// The name of its file system: `tmpfs`.
    pub(super) kind: String,
    /// Its options, with commas between them.
    pub(super) options: String,
}

impl Mount {
    /// The mount that holds a path; `None`: that cannot be seen.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let path = fs::canonicalize(path).ok()?;
        let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
        Self::holding(&path, &table)
    }

    /// The last mount at the deepest point: a later one covers those before it.
    fn holding(path: &Path, table: &str) -> Option<Self> {
        let mounts = table.lines().filter_map(Self::parse);
        let around = mounts.filter(|mount| path.starts_with(&mount.point));
        around.max_by_key(|mount| mount.point.components().count())
    }

    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(4);
        let point = fields.next()?.replace("\\040", " ");
        Some(Self {
            point: PathBuf::from(point),
            options: fields.next()?.to_owned(),
            kind: after.split(' ').next()?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Mount;

    #[test]
    fn the_deepest_and_latest_mount_holds_a_path() {
        let table = "\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
25 21 0:6 / /dev rw,nosuid - devtmpfs udev rw,size=1k
26 25 0:22 / /dev/shm rw,nosuid,nodev - tmpfs tmpfs rw
27 25 0:23 / /dev/shm ro - tmpfs tmpfs rw
28 21 0:24 / /a\\040b rw - xfs /dev/sdb rw
";
        let kind = |path: &str| {
            let mount = Mount::holding(Path::new(path), table).unwrap();
            format!("{} {}", mount.kind, mount.options)
        };
        assert_eq!(kind("/dev/shm/ringmark-0"), "tmpfs ro");
        assert_eq!(kind("/dev/shmx"), "devtmpfs rw,nosuid");
        assert_eq!(kind("/home"), "ext4 rw,relatime");
        assert_eq!(kind("/a b/c"), "xfs rw");
    }
}
