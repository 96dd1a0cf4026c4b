//! How much memory a session may take: what the file system, the limit on file sizes and the control
//! group leave to it.
//!
//! | what limits | how much of it a session gets | why |
//! | --- | --- | --- |
//! | free space of the file system | a quarter | the files of others are there, too, `/dev/shm` for one |
//! | memory of the control group | a sixteenth | pages of a ring file count as the program's memory |
//! | size of files | all of it | a signal kills the program at the first byte beyond |
//!
//! The producer looks before it makes a ring file. A reader looks to say what a program that starts
//! now would get.

use std::path::Path;

use rustix::process::{Resource, getrlimit};

use crate::system::small_file;

/// What limits a session where the file system is nearly full.
pub const FREE_SPACE: &str = "a quarter of the filesystem's free space";
/// What limits a session where files may not be larger.
const FILE_SIZES: &str = "the limit on file sizes";
/// What limits a session in a control group.
const CONTROL_GROUP: &str = "a sixteenth of the cgroup's memory limit";

/// How much a session may take in a directory, and what limits it.
///
/// Bytes that a session in `dir` may take: `wanted`, but never above a quarter of the file system's
/// free space, a sixteenth of the control group's limit, or the limit on file sizes, of which `head`
/// bytes are for the session's head. The second value names the limit; `None`: the session gets what
/// it wants.
///
/// A limit that cannot be read is none: a directory that is not there, a system without control
/// groups. `groups`: see [`own_groups`].
#[must_use]
pub fn of_session(dir: &Path, wanted: u64, head: u64, groups: &str) -> (u64, Option<&'static str>) {
    let free =
        rustix::fs::statvfs(dir).map_or(u64::MAX, |fs| fs.f_bavail.saturating_mul(fs.f_frsize));
    let limits = [
        (wanted, None),
        (free / 4, Some(FREE_SPACE)),
        (file_size_limit().saturating_sub(head), Some(FILE_SIZES)),
        (cgroup_limit(groups) / 16, Some(CONTROL_GROUP)),
    ];
    limits
        .into_iter()
        .min_by_key(|(bytes, _)| *bytes)
        .unwrap_or((wanted, None))
}

/// Largest file that this process may make, in bytes: a signal kills it at the first byte beyond.
#[must_use]
pub fn file_size_limit() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// The control groups of this process, as the kernel lists them. Reading them takes a lock that all starts
/// and ends of processes take.
#[must_use]
pub fn own_groups() -> String {
    small_file::text("/proc/self/cgroup")
}

/// The least of the memory limits of these groups and those around them, in bytes.
fn cgroup_limit(groups: &str) -> u64 {
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        if controllers.is_empty() {
            Some(least_limit("/sys/fs/cgroup", path, "memory.max"))
        } else if controllers.split(',').any(|name| name == "memory") {
            let file = "memory.limit_in_bytes";
            Some(least_limit("/sys/fs/cgroup/memory", path, file))
        } else {
            None
        }
    });
    // Each of them ends at its root.
    let root = || least_limit("/sys/fs/cgroup", "", "memory.max");
    limits.min().unwrap_or_else(root)
}

/// The least number in `file` of the directory `path` below `root` and of its parents. (A container
/// sees only some of them, the last one at the root.)
fn least_limit(root: &str, path: &str, file: &str) -> u64 {
    let mut path = path.trim_end_matches('/');
    let mut least = u64::MAX;
    loop {
        let limit = small_file::text(&format!("{root}{path}/{file}"));
        least = least.min(limit.parse().unwrap_or(u64::MAX));
        match path.rfind('/') {
            Some(at) => path = &path[..at],
            None => return least,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::least_limit;

    #[test]
    fn the_least_limit_around_a_group_counts() {
        let root = std::env::temp_dir().join(format!("ringmark-limits-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b")).unwrap();
        let root_text = root.to_string_lossy().into_owned();
        for (group, limit) in [("", "max"), ("a", "4096"), ("a/b", "8192")] {
            fs::write(root.join(group).join("memory.max"), format!("{limit}\n")).unwrap();
        }
        let least = |path| least_limit(&root_text, path, "memory.max");
        assert_eq!(
            (least("/a/b"), least("/a"), least("/")),
            (4096, 4096, u64::MAX)
        );
        // As a container sees it, whose own group is the root.
        assert_eq!(least("/not/there"), u64::MAX);
        fs::remove_dir_all(&root).unwrap();
    }
}
