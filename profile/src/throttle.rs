//! Whether the limit of a control group keeps a process from running: the kernel counts how long it did, in each group
//! around the process.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::switches::{Switch, Turn};
use crate::target::Target;

/// A thread that had no processor for less than this may have been preempted by another one, in ns.
const LEAST_NS: u64 = 5_000_000;
/// Looks after which the groups are looked for again: a process may be moved.
const FIND_EVERY: u32 = 100;
/// Longest file of a group's counts that is read, in bytes.
const COUNTS_MAX: usize = 4096;

/// The control groups of a process, and its threads that could run and do not.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    groups: Vec<Group>,
    looks: u32,
    /// Looks that found a count grown.
    growths: u64,
    ready: HashMap<u32, ReadySince>,
}

/// A thread that could run and does not.
#[derive(Debug, Clone, Copy)]
struct ReadySince {
    mono_ns: u64,
    /// [`Throttle::growths`] before the look that saw it.
    growths: u64,
}

/// A control group.
#[derive(Debug)]
struct Group {
    path: PathBuf,
    counts: File,
    /// How long its limit kept it from running, as the kernel counts it.
    throttled: u64,
}

impl Throttle {
    /// Looks at the groups, then marks those switches of the last look at which a thread runs again that the limit of its
    /// group had kept from running.
    pub(crate) fn mark(&mut self, target: &Target, switches: &mut [Switch]) {
        if self.looks.is_multiple_of(FIND_EVERY) {
            self.find(target);
        }
        self.looks = self.looks.wrapping_add(1);
        let before = self.growths;
        self.growths += u64::from(self.has_grown());
        switches.sort_unstable();
        for switch in switches {
            match switch.turn {
                Turn::Ready => {
                    let (mono_ns, growths) = (switch.mono_ns, before);
                    let since = ReadySince { mono_ns, growths };
                    self.ready.insert(switch.tid, since);
                }
                Turn::Seen => {}
                _ => {
                    let since = self.ready.remove(&switch.tid);
                    let is_due = |since: ReadySince| {
                        let is_long = switch.mono_ns.saturating_sub(since.mono_ns) >= LEAST_NS;
                        is_long && self.growths > since.growths
                    };
                    if switch.turn == Turn::Runs && since.is_some_and(is_due) {
                        switch.turn = Turn::Unthrottled;
                    }
                }
            }
        }
    }

    /// Whether the limit of any group kept it from running since the last look.
    fn has_grown(&mut self) -> bool {
        let mut has_grown = false;
        for group in &mut self.groups {
            let now = throttled(&group.counts).unwrap_or(group.throttled);
            has_grown |= now > group.throttled;
            group.throttled = now;
        }
        has_grown
    }

    /// Finds the groups that the process is in now, from its own to the outermost one.
    fn find(&mut self, target: &Target) {
        let of_process = target.text("cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mut known = std::mem::take(&mut self.groups);
        for path in paths(&of_process, &mounts) {
            let kept = known.iter().position(|group| group.path == path);
            let group = kept.map(|place| known.swap_remove(place));
            self.groups.extend(group.or_else(|| Group::open(path)));
        }
    }
}

impl Group {
    /// `None`: it is not there, may not be read, or has no limit that is counted.
    fn open(path: PathBuf) -> Option<Self> {
        let counts = File::open(path.join("cpu.stat")).ok()?;
        Some(Self {
            throttled: throttled(&counts)?,
            path,
            counts,
        })
    }
}

/// How long a limit kept a group from running: in us, or, of the first version of control groups, in ns.
fn throttled(counts: &File) -> Option<u64> {
    let mut bytes = [0; COUNTS_MAX];
    let came = counts.read_at(&mut bytes, 0).ok()?;
    let text = std::str::from_utf8(&bytes[..came]).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let (_, count) =
        lines.find(|(name, _)| matches!(*name, "throttled_usec" | "throttled_time"))?;
    count.parse().ok()
}

/// The folders of the groups of a process, its own first. `of_process`: its file `cgroup`; `mounts`: our `mountinfo`.
fn paths(of_process: &str, mounts: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in of_process.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(group)) =
            (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let is_unified = number == "0" && controllers.is_empty();
        if !is_unified && !controllers.split(',').any(|name| name == "cpu") {
            continue;
        }
        for (root, place) in mounts.lines().filter_map(|line| mount(line, is_unified)) {
            let Ok(below) = Path::new(group).strip_prefix(root) else {
                continue;
            };
            let own = Path::new(place).join(below);
            let around = own.ancestors().take_while(|path| path.starts_with(place));
            found.extend(around.map(Path::to_owned));
        }
    }
    found
}

/// What a line of `mountinfo` mounts of control groups, and where; `None`: something else.
fn mount(line: &str, is_unified: bool) -> Option<(&str, &str)> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut words = filesystem.split(' ');
    let (kind, options) = (words.next()?, words.nth(1)?);
    let is_it = match is_unified {
        true => kind == "cgroup2",
        false => kind == "cgroup" && options.split(',').any(|option| option == "cpu"),
    };
    let mut words = mount.split(' ').skip(3);
    is_it.then_some((words.next()?, words.next()?))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{LEAST_NS, Throttle, paths};
    use crate::switches::{Switch, Turn};
    use crate::target::Target;

    const MOUNTS: &str = "\
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
41 31 0:38 /pod /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";

    #[test]
    fn groups_are_found_from_the_own_one_outwards() {
        let of = |text| {
            let found = paths(text, MOUNTS);
            found
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
        };
        let cpu = "/sys/fs/cgroup/cpu";
        let both = [format!("{cpu}/a/b"), format!("{cpu}/a"), cpu.to_owned()];
        assert_eq!(of("4:memory:/x\n1:cpu,cpuacct:/a/b\n"), both);
        let unified = "/sys/fs/cgroup/unified";
        assert_eq!(
            of("0::/pod/a"),
            [format!("{unified}/a"), unified.to_owned()]
        );
        // It lies outside of what is mounted here.
        assert!(of("0::/other").is_empty() && of("0::/../a").is_empty());
        assert!(of("").is_empty() && of("cpu").is_empty());
    }

    #[test]
    fn only_long_times_without_a_processor_are_marked() {
        let target = Target::open(std::process::id()).unwrap();
        let folder = std::env::temp_dir().join(format!("throttle-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let count = |us: u64| {
            let text = format!("usage_usec 1\nthrottled_usec {us}\n");
            std::fs::write(folder.join("cpu.stat"), text).unwrap();
        };
        count(5);
        let mut throttle = Throttle {
            groups: vec![super::Group::open(PathBuf::from(&folder)).unwrap()],
            looks: 1,
            ..Throttle::default()
        };
        let at = |mono_ns, turn| Switch {
            mono_ns,
            tid: 7,
            turn,
            cpu: 0,
        };
        let marked = |throttle: &mut Throttle, from: u64, ns: u64| {
            let mut switches = [at(from + ns, Turn::Runs), at(from, Turn::Ready)];
            throttle.mark(&target, &mut switches);
            switches[1].turn
        };
        assert_eq!(marked(&mut throttle, 1, LEAST_NS), Turn::Runs, "no growth");
        count(6);
        assert_eq!(marked(&mut throttle, 1, LEAST_NS), Turn::Unthrottled);
        count(7);
        assert_eq!(marked(&mut throttle, 1, LEAST_NS - 1), Turn::Runs);
        // It began to be ready before the look before.
        let mut switches = [at(1, Turn::Ready)];
        throttle.mark(&target, &mut switches);
        count(8);
        let mut switches = [at(LEAST_NS + 1, Turn::Runs), at(LEAST_NS + 2, Turn::Waits)];
        throttle.mark(&target, &mut switches);
        assert_eq!(
            switches.map(|one| one.turn),
            [Turn::Unthrottled, Turn::Waits]
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
