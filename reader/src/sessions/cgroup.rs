//! The control groups of processes.

use std::fs;

/// Whether a process is in this group, or in one below it.
pub(crate) fn is_in(pid: u32, group: &str) -> bool {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"));
    groups.is_ok_and(|groups| are_in(&groups, group))
}

/// The same for the lines of `/proc/PID/cgroup`: number, controllers, path.
fn are_in(groups: &str, group: &str) -> bool {
    let group = group.trim_end_matches('/');
    let below = |path: &str| {
        let rest = path.strip_prefix(group);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut paths = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths.any(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_holds_those_below_it() {
        let both = "4:memory:/system.slice\n0::/system.slice/shop.service/a:b\n";
        for group in ["/system.slice", "/system.slice/shop.service/", "/"] {
            assert!(are_in(both, group), "{group}");
        }
        for other in ["/system", "/user.slice", "system.slice"] {
            assert!(!are_in(both, other), "{other}");
        }
        assert!(!is_in(0, "/"));
    }
}
